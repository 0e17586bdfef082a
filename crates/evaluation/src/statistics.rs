//! Intervals and tests for figures counted on a sample of commands: shares, of one set of commands and of the same
//! commands under two pipelines, and counts of rare independent events (Poisson). And the bootstrap: how any figure varies
//! over samples drawn from the one sample there is.
//!
//! Commands close in time are not independent: a lost segment, a busy minute or a changed habit affects several. So the
//! bootstrap draws whole blocks of neighbours, with the end joined to the beginning (the circular block bootstrap of
//! Politis and Romano, 1992). Figures of the same draws are paired.

use std::ops::RangeInclusive;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Gamma, Normal};
use statrs::statistics::{Data, OrderStatistics};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// A share in percent with its interval in whole percents, which is not cut.
pub fn percent_within(share: f64, Interval { low, high }: Interval) -> String {
    format!("{} ({:.0}–{:.0})", sizeleak_text::percent(share), (100.0 * low).floor(), (100.0 * high).ceil())
}

impl Interval {
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor }
    }

    pub fn excludes_zero(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The probability that an interval holds the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Confidence(f64);

impl Confidence {
    pub const USUAL: Self = Self(0.95);

    /// That of each of two intervals that are to hold together as usual (Bonferroni).
    pub const OF_TWO: Self = Self(0.975);

    /// As a share, above 0 and below 1.
    pub fn share(self) -> f64 {
        self.0
    }

    /// The probability left on either side.
    pub fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }

    /// How many standard deviations on either side of the mean of a normal distribution hold it.
    pub fn deviations(self) -> f64 {
        Normal::standard().inverse_cdf(1.0 - self.tail())
    }
}

/// The median; of an even number of values, the mean of the middle two.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    (!values.is_empty()).then(|| OrderStatistics::median(&mut Data::new(values)))
}

/// The probability that a fair coin falls at least as unevenly as `one` to `other`: the exact two-sided sign test. So
/// improbable are counts at least as different as these if their means are equal, given their sum (Przyborowski and
/// Wilenski, Biometrika 31 (1940) 313).
pub fn sign_test(one: u64, other: u64) -> f64 {
    let (fewer, all) = (one.min(other), one.saturating_add(other));
    Binomial::new(0.5, all).map_or(1.0, |coin| (2.0 * coin.cdf(fewer)).min(1.0))
}

/// Wilson's score interval of `part` of `whole`: the shares that a normal approximation would not reject (Newcombe,
/// Statistics in Medicine 17 (1998) 857, method 3). It is 0 to 1 where `whole` is 0.
pub fn wilson(part: u64, whole: u64, confidence: Confidence) -> Interval {
    if whole == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let (part, whole, square) = (part.min(whole) as f64, whole as f64, confidence.deviations().powi(2));
    let middle = 2.0 * part + square;
    let half_width = (square * (square + 4.0 * part * (1.0 - part / whole))).sqrt();
    let ends = [middle - half_width, middle + half_width].map(|end| (end / (2.0 * (whole + square))).clamp(0.0, 1.0));
    let [low, high] = ends;
    // The ends of 0 % and 100 % are exact, regardless of rounding.
    Interval { low: if part == 0.0 { 0.0 } else { low }, high: if part >= whole { 1.0 } else { high } }
}

/// How often two yes-or-no judgements of the same commands are yes: both, the first or the second alone, or neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairedJudgements {
    pub both: u64,
    pub first: u64,
    pub second: u64,
    pub neither: u64,
}

impl PairedJudgements {
    pub fn count(judgements: impl Iterator<Item = (bool, bool)>) -> Self {
        let mut pairs = Self::default();
        for judgement in judgements {
            *match judgement {
                (true, true) => &mut pairs.both,
                (true, false) => &mut pairs.first,
                (false, true) => &mut pairs.second,
                (false, false) => &mut pairs.neither,
            } += 1;
        }
        pairs
    }

    pub fn all(self) -> u64 {
        self.both + self.first + self.second + self.neither
    }

    /// The share of the second less the share of the first.
    pub fn difference(self) -> f64 {
        (self.second as f64 - self.first as f64) / self.all().max(1) as f64
    }

    /// The interval of the difference: the intervals of both shares, squared and added, with their correlation
    /// (Newcombe, Statistics in Medicine 17 (1998) 2635, method 10). It assumes independent commands.
    pub fn interval(self, confidence: Confidence) -> Interval {
        let all = self.all();
        if all == 0 {
            return Interval { low: -1.0, high: 1.0 };
        }
        let distances = |part: u64| {
            let share = part as f64 / all as f64;
            let Interval { low, high } = wilson(part, all, confidence);
            (share - low, high - share)
        };
        let ((down_first, up_first), (down_second, up_second)) =
            (distances(self.both + self.first), distances(self.both + self.second));
        let correlation = self.correlation();
        let combined =
            |one: f64, other: f64| (one * one - 2.0 * correlation * one * other + other * other).max(0.0).sqrt();
        let difference = self.difference();
        Interval {
            low: (difference - combined(down_second, up_first)).max(-1.0),
            high: (difference + combined(up_second, down_first)).min(1.0),
        }
    }

    /// The correlation φ, corrected for continuity if it is positive.
    fn correlation(self) -> f64 {
        let [both, first, second, neither] =
            [self.both, self.first, self.second, self.neither].map(|count| count as f64);
        let product = (both + first) * (second + neither) * (both + second) * (first + neither);
        if product <= 0.0 {
            return 0.0;
        }
        let excess = both * neither - first * second;
        let corrected = if excess > 0.0 { (excess - self.all() as f64 / 2.0).max(0.0) } else { excess };
        corrected / product.sqrt()
    }

    /// McNemar's exact test: the probability of pairs at least as one-sided as these if neither were better.
    pub fn p_value(self) -> f64 {
        sign_test(self.first, self.second)
    }
}

/// The exact interval of the mean, given one draw `count` (Garwood, Biometrika 28 (1936) 437).
pub fn count_interval(count: u64, confidence: Confidence) -> Interval {
    // A count is at least n exactly if the sum of n exponential waiting times is at most 1.
    let quantile = |waits: u64, share: f64| Gamma::new(waits as f64, 1.0).map_or(0.0, |sum| sum.inverse_cdf(share));
    Interval {
        low: if count == 0 { 0.0 } else { quantile(count, confidence.tail()) },
        high: quantile(count.saturating_add(1), 1.0 - confidence.tail()),
    }
}

/// The interval of the second mean less the first: both intervals, squared and added (Zou and Donner, Statistics in
/// Medicine 27 (2008) 1693). It assumes independent counts; if the same event counts in both, it is too wide.
pub fn count_difference(first: u64, second: u64, confidence: Confidence) -> Interval {
    let [of_first, of_second] = [first, second].map(|count| count_interval(count, confidence));
    let (first, second) = (first as f64, second as f64);
    let difference = second - first;
    Interval {
        low: difference - (second - of_second.low).hypot(of_first.high - first),
        high: difference + (of_second.high - second).hypot(first - of_first.low),
    }
}

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
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn assert_near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance, "{found}, not {wanted}");
    }

    pub(crate) fn confidence(share: f64) -> Confidence {
        Confidence(share)
    }

    #[test]
    fn deviations_are_those_of_a_normal_distribution() {
        assert_near(confidence(0.95).deviations(), 1.959_963_984_540_054, 1e-12);
        assert_near(confidence(0.99).deviations(), 2.575_829_303_548_901, 1e-12);
    }

    #[test]
    fn sign_test_is_the_binomial_tail() {
        let by_hand = |one: u64, other: u64| {
            let choose = |all: u64, of: u64| (1..=of).map(|at| (all - of + at) as f64 / at as f64).product::<f64>();
            let all = one + other;
            let tail: f64 = (0..=one.min(other)).map(|heads| choose(all, heads)).sum();
            (2.0 * tail / 2_f64.powi(i32::try_from(all).unwrap())).min(1.0)
        };
        for (one, other) in [(0, 0), (0, 1), (1, 1), (2, 12), (12, 2), (0, 14), (30, 41), (5, 5)] {
            assert_near(sign_test(one, other), by_hand(one, other), 1e-12);
        }
        assert!(sign_test(u64::MAX, u64::MAX).is_finite());
    }

    #[test]
    fn median_of_an_even_number_is_between_the_middle_two() {
        let medians =
            [&[][..], &[3.0], &[9.0, 1.0, 2.0], &[4.0, 1.0, 9.0, 2.0]].map(|values| median(values.iter().copied()));
        assert_eq!(medians, [None, Some(3.0), Some(2.0), Some(3.0)]);
    }

    #[test]
    fn hull_contains_both_intervals_and_scaling_multiplies_both_ends() {
        let interval = |low, high| Interval { low, high };
        assert_eq!(interval(-1.0, 2.0).hull(interval(0.0, 3.0)), interval(-1.0, 3.0));
        assert_eq!(interval(-1.0, 2.0).scaled(2.0), interval(-2.0, 4.0));
        assert!(interval(0.1, 1.0).excludes_zero() && interval(-2.0, -1.0).excludes_zero());
        assert!(!interval(0.0, 1.0).excludes_zero() && !interval(-1.0, 1.0).excludes_zero());
    }

    fn assert_is(found: Interval, [low, high]: [f64; 2]) {
        assert_near(found.low, low, 5e-5);
        assert_near(found.high, high, 5e-5);
    }

    fn pairs([both, first, second, neither]: [u64; 4]) -> PairedJudgements {
        PairedJudgements { both, first, second, neither }
    }

    /// The examples of Newcombe's table I.
    #[test]
    fn wilson_intervals_equal_the_published_ones() {
        let interval = |part, whole| wilson(part, whole, confidence(0.95));
        assert_is(interval(81, 263), [0.2553, 0.3662]);
        assert_is(interval(15, 148), [0.0624, 0.1605]);
        assert_is(interval(0, 20), [0.0, 0.1611]);
        assert_is(interval(1, 29), [0.0061, 0.1718]);
        assert_eq!(
            (interval(0, 20).low, interval(20, 20).high, interval(0, 0)),
            (0.0, 1.0, Interval { low: 0.0, high: 1.0 })
        );
    }

    /// Examples of Newcombe's paper on pairs with the sign reversed: his difference is the first less the second.
    #[test]
    fn paired_intervals_equal_the_published_ones() {
        let interval = |counts| pairs(counts).interval(confidence(0.95));
        assert_is(interval([36, 2, 12, 0]), [0.0569, 0.3404]);
        assert_is(interval([20, 2, 12, 16]), [0.0562, 0.3292]);
        assert_is(interval([2, 0, 14, 34]), [0.1474, 0.4157]);
        assert_is(interval([54, 0, 0, 0]), [-0.0664, 0.0664]);
        assert_is(interval([1, 1, 97, 1]), [0.8737, 0.9850]);
        assert_eq!(interval([0; 4]), Interval { low: -1.0, high: 1.0 });
    }

    #[test]
    fn pairs_are_counted_by_agreement() {
        let judged = [(true, true), (true, false), (false, true), (false, true), (false, false)];
        let counted = PairedJudgements::count(judged.into_iter());
        assert_eq!(counted, pairs([1, 1, 2, 1]));
        assert_near(counted.difference(), 0.2, 1e-12);
        assert_near(pairs([40, 1, 9, 3]).p_value(), 22.0 / 1024.0, 1e-12);
    }

    proptest! {
        #[test]
        fn difference_lies_in_its_interval_and_changes_sign_with_the_pair(counts in prop::array::uniform4(0_u64..50)) {
            let one = pairs(counts);
            let other = PairedJudgements { first: one.second, second: one.first, ..one };
            let [interval, reversed] = [one, other].map(|pairs| pairs.interval(confidence(0.9)));
            prop_assert!(interval.low <= one.difference() && one.difference() <= interval.high);
            prop_assert!((interval.low + reversed.high).abs() < 1e-9 && (interval.high + reversed.low).abs() < 1e-9);
            prop_assert!((one.p_value() - other.p_value()).abs() < 1e-12 && one.p_value() <= 1.0);
        }

        #[test]
        fn higher_confidence_widens_the_interval(part in 0_u64..100, more in 0_u64..100) {
            let [narrow, wide] = [0.5, 0.99].map(|share| wilson(part, part + more, confidence(share)));
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        }
    }

    /// Garwood's table, to its three digits.
    #[test]
    fn intervals_equal_the_published_ones() {
        for (count, low, high) in
            [(0, 0.0, 3.689), (1, 0.025_3, 5.572), (2, 0.242, 7.225), (5, 1.623, 11.668), (10, 4.795, 18.390)]
        {
            let found = count_interval(count, confidence(0.95));
            assert_near(found.low, low, 6e-4);
            assert_near(found.high, high, 6e-4);
        }
        let many = count_interval(1_000_000, confidence(0.95));
        assert_near(many.low, 1e6 - 1.96 * 1e3, 5.0);
    }

    #[test]
    fn difference_changes_sign_with_the_order_of_counts() {
        for (first, second) in [(0, 0), (0, 5), (3, 40), (100, 90)] {
            let [found, reversed] =
                [(first, second), (second, first)].map(|(one, other)| count_difference(one, other, confidence(0.95)));
            assert_near(found.low, -reversed.high, 1e-9);
            assert!(found.low < found.high);
        }
        assert!(count_difference(3, 40, confidence(0.95)).excludes_zero() && sign_test(3, 40) < 1e-6);
        assert!(!count_difference(100, 90, confidence(0.95)).excludes_zero() && sign_test(100, 90) > 0.4);
    }

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
