//! The bootstrap: how a figure varies over samples drawn from the one sample there is.
//!
//! Commands close in time are not independent: a lost segment, a busy minute or a changed habit affects several. So
//! whole blocks of neighbours are drawn, with the end joined to the beginning (the circular block bootstrap of Politis
//! and Romano, 1992). Figures of the same draws are paired.

use std::ops::RangeInclusive;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::{Confidence, Interval};

/// Draws samples of rows that are ordered by time.
#[derive(Debug, Clone)]
pub struct BlockBootstrap {
    rows: usize,
    length: usize,
    random: ChaCha20Rng,
    drawn: Vec<usize>,
}

/// How many rows a block has: the cube root of all, which is optimal for variances (Hall, Horowitz and Jing, Biometrika
/// 82 (1995) 561).
pub fn block_length(rows: usize) -> usize {
    (1..=rows).find(|length| length.saturating_pow(3) >= rows).unwrap_or(1)
}

impl BlockBootstrap {
    /// Samples of `rows` rows, the same for the same seed.
    pub fn new(rows: usize, seed: u64) -> Self {
        Self {
            rows,
            length: block_length(rows),
            random: ChaCha20Rng::seed_from_u64(seed),
            drawn: Vec::with_capacity(rows),
        }
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// The next sample: as many rows as there are, with repetitions.
    pub fn draw(&mut self) -> &[usize] {
        self.drawn.clear();
        while self.drawn.len() < self.rows {
            let start = self.random.random_range(0..self.rows as u64) as usize;
            let block = self.length.min(self.rows - self.drawn.len());
            self.drawn.extend((start..start + block).map(|row| row % self.rows));
        }
        &self.drawn
    }
}

/// How an interval follows from the values of a figure in the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalMethod {
    /// Between the quantiles that cut off both tails: for means, also with skewed samples.
    Percentile,
    /// The same, mirrored at the figure (Davison and Hinkley, Bootstrap Methods, 5.2): for figures with an upward bias
    /// in resamples, such as a mean of absolute deviations, which the mirror corrects.
    Mirrored,
}

/// The interval of a figure from its values in the samples; `None` without samples.
pub fn interval(
    figure: f64,
    mut samples: Vec<f64>,
    method: IntervalMethod,
    confidence: Confidence,
) -> Option<Interval> {
    samples.sort_unstable_by(f64::total_cmp);
    let low = quantile(&samples, confidence.tail())?;
    let high = quantile(&samples, 1.0 - confidence.tail())?;
    Some(match method {
        IntervalMethod::Percentile => Interval { low, high },
        IntervalMethod::Mirrored => Interval { low: 2.0 * figure - high, high: 2.0 * figure - low },
    })
}

/// The multiples of what was seen that an interval is searched among: 2 is far beyond every interval's end.
const MULTIPLES: RangeInclusive<u32> = 0..=80;
const MULTIPLES_OF_ONE: f64 = 40.0;

/// The interval of a sum of absolute values, from the values of its terms in the samples; `None` without samples.
///
/// Such a sum is too great by chance, most of all where all true terms are 0, and its resamples are greater again. So
/// the true terms are supposed to be any multiple of those that were seen, and to deviate as the samples do from their
/// mean: of these multiples the ones stay by which a sum as great as the one that was seen is within the quantiles.
pub fn interval_of_absolute_sum<const N: usize>(
    terms: &[f64; N],
    samples: &[[f64; N]],
    confidence: Confidence,
) -> Option<Interval> {
    let sum = |terms: &[f64; N]| terms.iter().map(|term| term.abs()).sum::<f64>();
    let seen = sum(terms);
    let mut mean = [0.0; N];
    for sample in samples {
        mean.iter_mut().zip(sample).for_each(|(mean, term)| *mean += term / samples.len() as f64);
    }
    let is_usual = |multiple: &f64| {
        let supposed = |sample: &[f64; N]| sum(&std::array::from_fn(|at| multiple * terms[at] + sample[at] - mean[at]));
        let mut sums: Vec<f64> = samples.iter().map(supposed).collect();
        sums.sort_unstable_by(f64::total_cmp);
        let ends = [confidence.tail(), 1.0 - confidence.tail()].map(|share| quantile(&sums, share));
        matches!(ends, [Some(low), Some(high)] if (low..=high).contains(&seen))
    };
    let usual: Vec<f64> = MULTIPLES.map(|at| f64::from(at) / MULTIPLES_OF_ONE).filter(is_usual).collect();
    let [low, high] = [usual.first(), usual.last()].map(|multiple| multiple.map_or(seen, |multiple| multiple * seen));
    (!samples.is_empty()).then_some(Interval { low, high })
}

/// The quantile of sorted values at `share`, linearly interpolated.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * sorted.len().saturating_sub(1) as f64;
    let [below, above] = [position.floor(), position.ceil()].map(|at| sorted.get(at as usize));
    let (below, above) = (below?, above?);
    Some(below + (above - below) * position.fract())
}

#[cfg(test)]
mod tests;
