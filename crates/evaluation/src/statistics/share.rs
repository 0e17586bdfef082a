//! Shares: of one set of commands, and of the same commands under two pipelines.

use super::{Confidence, Interval, sign_test};

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
    // The ends of 0 % and 100 % are exact, whatever the rounding.
    Interval { low: if part == 0.0 { 0.0 } else { low }, high: if part >= whole { 1.0 } else { high } }
}

/// How often two yes-or-no judgements of the same commands agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairedJudgements {
    /// Both say yes.
    pub both: u64,
    /// Only the first does.
    pub first: u64,
    /// Only the second does.
    pub second: u64,
    /// Neither does.
    pub neither: u64,
}

impl PairedJudgements {
    /// Counts pairs of judgements.
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

    /// The number of pairs.
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

    /// The correlation φ, corrected for continuity where it is positive.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::statistics::tests::{assert_near, confidence};

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
        let of = |part, whole| wilson(part, whole, confidence(0.95));
        assert_is(of(81, 263), [0.2553, 0.3662]);
        assert_is(of(15, 148), [0.0624, 0.1605]);
        assert_is(of(0, 20), [0.0, 0.1611]);
        assert_is(of(1, 29), [0.0061, 0.1718]);
        assert_eq!((of(0, 20).low, of(20, 20).high, of(0, 0)), (0.0, 1.0, Interval { low: 0.0, high: 1.0 }));
    }

    /// Examples of Newcombe's paper on pairs with the sign reversed: his difference is the first less the second.
    #[test]
    fn paired_intervals_equal_the_published_ones() {
        let of = |counts| pairs(counts).interval(confidence(0.95));
        assert_is(of([36, 2, 12, 0]), [0.0569, 0.3404]);
        assert_is(of([20, 2, 12, 16]), [0.0562, 0.3292]);
        assert_is(of([2, 0, 14, 34]), [0.1474, 0.4157]);
        assert_is(of([54, 0, 0, 0]), [-0.0664, 0.0664]);
        assert_is(of([1, 1, 97, 1]), [0.8737, 0.9850]);
        assert_eq!(of([0; 4]), Interval { low: -1.0, high: 1.0 });
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
        fn higher_confidence_gives_a_wider_interval(part in 0_u64..100, more in 0_u64..100) {
            let [narrow, wide] = [0.5, 0.99].map(|share| wilson(part, part + more, confidence(share)));
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        }
    }
}
