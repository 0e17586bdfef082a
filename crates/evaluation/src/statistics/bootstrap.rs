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
mod tests {
    use super::*;
    use crate::statistics::tests::{assert_near, confidence};

    fn mean(values: &[f64], rows: &[usize]) -> f64 {
        rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len() as f64
    }

    fn sample_means(values: &[f64], samples: usize, seed: u64) -> Vec<f64> {
        let mut blocks = BlockBootstrap::new(values.len(), seed);
        (0..samples).map(|_| mean(values, blocks.draw())).collect()
    }

    /// Autocorrelated values: x = share · previous x + noise.
    fn autocorrelated(rows: usize, share: f64, random: &mut ChaCha20Rng) -> Vec<f64> {
        let mut value = 0.0;
        let mut next = || {
            // A sum of twelve uniform values is nearly normal.
            let noise = (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
            value = share * value + noise;
            value
        };
        (0..rows + 50).map(|_| next()).skip(50).collect()
    }

    #[test]
    fn samples_consist_of_blocks_of_neighbours() {
        let mut blocks = BlockBootstrap::new(307, 1);
        assert_eq!(blocks.length(), 7);
        for _ in 0..20 {
            let drawn = blocks.draw().to_vec();
            assert_eq!(drawn.len(), 307);
            for block in drawn.chunks(7) {
                assert!(block.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 307), "{block:?}");
            }
        }
        assert_eq!([0, 1, 2, 8, 9, 1000].map(|rows| BlockBootstrap::new(rows, 1).length()), [1, 1, 2, 2, 3, 10]);
        assert!(BlockBootstrap::new(0, 1).draw().is_empty());
        assert_eq!(BlockBootstrap::new(1, 1).draw(), [0]);
    }

    #[test]
    fn same_seed_draws_the_same_samples() {
        let [one, same, other] = [5, 5, 6].map(|seed| {
            let mut blocks = BlockBootstrap::new(100, seed);
            [blocks.draw().to_vec(), blocks.draw().to_vec()]
        });
        assert!(one == same && one != other && one[0] != one[1]);
    }

    /// The exact variance of a mean over n/l blocks drawn from n: the variance of a block's mean divided by n/l.
    #[test]
    fn variance_of_means_equals_the_exact_variance() {
        let values = autocorrelated(125, 0.6, &mut ChaCha20Rng::seed_from_u64(9));
        let (length, all) = (5, values.len());
        let block = |start: usize| (start..start + length).map(|at| values[at % all]).sum::<f64>() / length as f64;
        let blocks: Vec<f64> = (0..all).map(block).collect();
        let variance = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
        };
        let exact = variance(&blocks) * length as f64 / all as f64;
        assert_near(variance(&sample_means(&values, 20_000, 3)) / exact, 1.0, 0.04);
    }

    /// Intervals that assume independent values would be far too narrow.
    #[test]
    fn about_95_percent_of_intervals_hold_the_true_mean_of_autocorrelated_values() {
        let mut random = ChaCha20Rng::seed_from_u64(11);
        let (mut held, mut held_if_independent) = (0, 0);
        for seed in 0..300 {
            let values = autocorrelated(343, 0.5, &mut random);
            let all: Vec<usize> = (0..values.len()).collect();
            let found = mean(&values, &all);
            let interval =
                interval(found, sample_means(&values, 300, seed), IntervalMethod::Percentile, confidence(0.95))
                    .unwrap();
            held += usize::from(interval.low <= 0.0 && 0.0 <= interval.high);
            let deviation = values.iter().map(|value| (value - found).powi(2)).sum::<f64>() / 343.0;
            held_if_independent += usize::from(found.abs() <= 1.96 * (deviation / 343.0).sqrt());
        }
        assert!((265..=297).contains(&held), "{held} of 300");
        assert!(held_if_independent < 250, "{held_if_independent} of 300");
    }

    #[test]
    fn interval_lies_between_the_tails() {
        let even: Vec<f64> = (0..=1000).rev().map(f64::from).collect();
        let by_method = |method| interval(400.0, even.clone(), method, confidence(0.9)).unwrap();
        let (percentile, mirrored) = (by_method(IntervalMethod::Percentile), by_method(IntervalMethod::Mirrored));
        assert_near(percentile.low, 50.0, 1e-9);
        assert_near(percentile.high, 950.0, 1e-9);
        assert_near(mirrored.low, -150.0, 1e-9);
        assert_near(mirrored.high, 750.0, 1e-9);
        assert_eq!(interval(1.0, Vec::new(), IntervalMethod::Percentile, confidence(0.9)), None);
        assert_near(quantile(&[1.0, 2.0], 0.25).unwrap(), 1.25, 1e-12);
    }

    /// The terms of a reliability table: probabilities that are right less often by `excess`.
    fn terms(answers: &[(f64, bool)], rows: &[usize]) -> [f64; 10] {
        let mut terms = [0.0; 10];
        for (probability, is_right) in rows.iter().map(|row| answers[*row]) {
            let at = ((probability * 10.0) as usize).min(9);
            terms[at] += (probability - f64::from(u8::from(is_right))) / rows.len() as f64;
        }
        terms
    }

    /// A mirrored interval holds the truth of answers without any error in half of all cases.
    #[test]
    fn about_95_percent_of_intervals_hold_the_true_sum_of_absolute_values() {
        let mut random = ChaCha20Rng::seed_from_u64(12);
        for (excess, truth) in [(0.0, 0.0), (0.15, 0.1388)] {
            let mut held = 0;
            for seed in 0..200 {
                let answer = |_| {
                    let probability: f64 = random.random();
                    (probability, random.random::<f64>() < probability - excess)
                };
                let answers: Vec<(f64, bool)> = (0..250).map(answer).collect();
                let all: Vec<usize> = (0..answers.len()).collect();
                let mut blocks = BlockBootstrap::new(answers.len(), seed);
                let samples: Vec<[f64; 10]> = (0..200).map(|_| terms(&answers, blocks.draw())).collect();
                let interval = interval_of_absolute_sum(&terms(&answers, &all), &samples, confidence(0.95)).unwrap();
                held += u32::from((interval.low..=interval.high).contains(&truth));
            }
            assert!((172..=198).contains(&held), "{excess}: {held} of 200");
        }
        assert_eq!(interval_of_absolute_sum(&[0.5], &[], confidence(0.95)), None);
    }
}
