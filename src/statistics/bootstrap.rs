//! The bootstrap: how a figure scatters over samples that are drawn anew from the one there is.
//!
//! Commands near in time are not independent: a lost segment, a busy minute or a changed habit touches several. So whole
//! blocks of neighbours are drawn, with the end joined to the beginning (the circular block bootstrap of Politis and Romano,
//! 1992). Figures that are taken of the same draws are paired.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::{Confidence, Interval};

/// Draws samples of so many rows, which stand in order of time.
#[derive(Debug, Clone)]
pub struct Blocks {
    rows: usize,
    length: usize,
    random: ChaCha20Rng,
    drawn: Vec<usize>,
}

impl Blocks {
    /// Samples of `rows` rows, the same for the same seed. Blocks grow with the cube root of the rows, which is best for
    /// variances (Hall, Horowitz and Jing, Biometrika 82 (1995) 561).
    pub fn new(rows: usize, seed: u64) -> Self {
        let length = (1..=rows).find(|length| length.saturating_pow(3) >= rows).unwrap_or(1);
        Self { rows, length, random: ChaCha20Rng::seed_from_u64(seed), drawn: Vec::with_capacity(rows) }
    }

    /// How many rows a block has.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The next sample: as many rows as there are, some of them several times.
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

/// How an interval is made of what a figure came to in the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// What cuts off a tail on either side. For means, whose scatter it follows also where that is lopsided.
    Percentile,
    /// The same, mirrored at the figure (Davison and Hinkley, Bootstrap Methods, 5.2). For figures that come out too large in
    /// every sample of a sample, such as a mean of absolute deviations: the mirror turns that back.
    Mirrored,
}

/// The interval of a figure that came to `figure`, and in the samples to `scatter`; `None` without samples.
pub fn interval(figure: f64, mut scatter: Vec<f64>, ends: Ends, confidence: Confidence) -> Option<Interval> {
    scatter.sort_unstable_by(f64::total_cmp);
    let low = quantile(&scatter, confidence.tail())?;
    let high = quantile(&scatter, 1.0 - confidence.tail())?;
    Some(match ends {
        Ends::Percentile => Interval { low, high },
        Ends::Mirrored => Interval { low: 2.0 * figure - high, high: 2.0 * figure - low },
    })
}

/// What a share of sorted values lies below; between two of them, in proportion.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let [below, above] = [place.floor(), place.ceil()].map(|at| sorted.get(at as usize));
    let (below, above) = (below?, above?);
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_near, confidence};
    use super::*;

    fn mean(values: &[f64], rows: &[usize]) -> f64 {
        rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len() as f64
    }

    fn scatter(values: &[f64], samples: usize, seed: u64) -> Vec<f64> {
        let mut blocks = Blocks::new(values.len(), seed);
        (0..samples).map(|_| mean(values, blocks.draw())).collect()
    }

    /// Values of which each is near the one before: x = share · x before + noise.
    fn sluggish(rows: usize, share: f64, random: &mut ChaCha20Rng) -> Vec<f64> {
        let mut value = 0.0;
        let mut next = || {
            // A sum of twelve is normal enough.
            let noise = (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
            value = share * value + noise;
            value
        };
        (0..rows + 50).map(|_| next()).skip(50).collect()
    }

    #[test]
    fn samples_are_blocks_of_neighbours() {
        let mut blocks = Blocks::new(307, 1);
        assert_eq!(blocks.length(), 7);
        for _ in 0..20 {
            let drawn = blocks.draw().to_vec();
            assert_eq!(drawn.len(), 307);
            for block in drawn.chunks(7) {
                assert!(block.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 307), "{block:?}");
            }
        }
        assert_eq!([0, 1, 2, 8, 9, 1000].map(|rows| Blocks::new(rows, 1).length()), [1, 1, 2, 2, 3, 10]);
        assert!(Blocks::new(0, 1).draw().is_empty());
        assert_eq!(Blocks::new(1, 1).draw(), [0]);
    }

    #[test]
    fn the_same_seed_gives_the_same_samples() {
        let [one, same, other] = [5, 5, 6].map(|seed| {
            let mut blocks = Blocks::new(100, seed);
            [blocks.draw().to_vec(), blocks.draw().to_vec()]
        });
        assert!(one == same && one != other && one[0] != one[1]);
    }

    /// The variance of a mean over blocks can be written down: of n/l blocks drawn from n, that of a block's mean by n/l.
    #[test]
    fn means_scatter_as_they_must() {
        let values = sluggish(125, 0.6, &mut ChaCha20Rng::seed_from_u64(9));
        let (length, all) = (5, values.len());
        let block = |start: usize| (start..start + length).map(|at| values[at % all]).sum::<f64>() / length as f64;
        let blocks: Vec<f64> = (0..all).map(block).collect();
        let variance = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
        };
        let exact = variance(&blocks) * length as f64 / all as f64;
        assert_near(variance(&scatter(&values, 20_000, 3)) / exact, 1.0, 0.04);
    }

    /// Of many samples of dependent values, nearly as many intervals hold the true mean as are meant to; those that take the values to be
    /// independent are far too narrow.
    #[test]
    fn intervals_hold_the_truth() {
        let mut random = ChaCha20Rng::seed_from_u64(11);
        let (mut held, mut held_if_independent) = (0, 0);
        for seed in 0..300 {
            let values = sluggish(343, 0.5, &mut random);
            let all: Vec<usize> = (0..values.len()).collect();
            let found = mean(&values, &all);
            let interval = interval(found, scatter(&values, 300, seed), Ends::Percentile, confidence(0.95)).unwrap();
            held += usize::from(interval.low <= 0.0 && 0.0 <= interval.high);
            let deviation = values.iter().map(|value| (value - found).powi(2)).sum::<f64>() / 343.0;
            held_if_independent += usize::from(found.abs() <= 1.96 * (deviation / 343.0).sqrt());
        }
        assert!((265..=297).contains(&held), "{held} of 300");
        assert!(held_if_independent < 250, "{held_if_independent} of 300");
    }

    #[test]
    fn tails_are_cut_off() {
        let even: Vec<f64> = (0..=1000).rev().map(f64::from).collect();
        let of = |ends| interval(400.0, even.clone(), ends, confidence(0.9)).unwrap();
        let (percentile, mirrored) = (of(Ends::Percentile), of(Ends::Mirrored));
        assert_near(percentile.low, 50.0, 1e-9);
        assert_near(percentile.high, 950.0, 1e-9);
        assert_near(mirrored.low, -150.0, 1e-9);
        assert_near(mirrored.high, 750.0, 1e-9);
        assert_eq!(interval(1.0, Vec::new(), Ends::Percentile, confidence(0.9)), None);
        assert_near(quantile(&[1.0, 2.0], 0.25).unwrap(), 1.25, 1e-12);
    }
}
