//! Tests of `share`.

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
