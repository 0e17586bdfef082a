//! Counts of rare independent events (Poisson).

use statrs::distribution::{ContinuousCDF, Gamma};

use super::{Confidence, Interval};

/// The exact interval of the mean, given one draw `count` (Garwood, Biometrika 28 (1936) 437).
pub fn interval(count: u64, confidence: Confidence) -> Interval {
    // A count is at least n exactly if the sum of n exponential waiting times is at most 1.
    let quantile = |waits: u64, share: f64| Gamma::new(waits as f64, 1.0).map_or(0.0, |sum| sum.inverse_cdf(share));
    Interval {
        low: if count == 0 { 0.0 } else { quantile(count, confidence.tail()) },
        high: quantile(count.saturating_add(1), 1.0 - confidence.tail()),
    }
}

/// The interval of the second mean less the first: both intervals, squared and added (Zou and Donner, Statistics in
/// Medicine 27 (2008) 1693). It assumes independent counts; if the same event counts in both, it is too wide.
pub fn difference(first: u64, second: u64, confidence: Confidence) -> Interval {
    let [of_first, of_second] = [first, second].map(|count| interval(count, confidence));
    let (first, second) = (first as f64, second as f64);
    let difference = second - first;
    Interval {
        low: difference - (second - of_second.low).hypot(of_first.high - first),
        high: difference + (of_second.high - second).hypot(first - of_first.low),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::sign_test;
    use crate::statistics::tests::{assert_near, confidence};

    /// Garwood's table, to its three digits.
    #[test]
    fn intervals_equal_the_published_ones() {
        for (count, low, high) in
            [(0, 0.0, 3.689), (1, 0.025_3, 5.572), (2, 0.242, 7.225), (5, 1.623, 11.668), (10, 4.795, 18.390)]
        {
            let found = interval(count, confidence(0.95));
            assert_near(found.low, low, 6e-4);
            assert_near(found.high, high, 6e-4);
        }
        let many = interval(1_000_000, confidence(0.95));
        assert_near(many.low, 1e6 - 1.96 * 1e3, 5.0);
    }

    #[test]
    fn difference_changes_sign_with_the_order_of_counts() {
        for (first, second) in [(0, 0), (0, 5), (3, 40), (100, 90)] {
            let [found, reversed] =
                [(first, second), (second, first)].map(|(one, other)| difference(one, other, confidence(0.95)));
            assert_near(found.low, -reversed.high, 1e-9);
            assert!(found.low < found.high);
        }
        assert!(difference(3, 40, confidence(0.95)).excludes_zero() && sign_test(3, 40) < 1e-6);
        assert!(!difference(100, 90, confidence(0.95)).excludes_zero() && sign_test(100, 90) > 0.4);
    }
}
