//! Intervals and tests for figures counted on a sample of commands.

pub mod bootstrap;
pub mod poisson;
pub mod share;

use serde::Serialize;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};
use statrs::statistics::{Data, OrderStatistics};

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Asserts that two numbers differ by at most `tolerance`.
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
}
