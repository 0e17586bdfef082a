//! How the clock of a tap differs from that of the first one, by the segments that both saw.

use serde::{Deserialize, Serialize};

/// A piece of a clock's course is of at least this many segments.
const MIN_OF_PIECE: usize = 16;

/// The most pieces.
const MAX_PIECES: usize = 256;

/// The offsets of pieces drift if one differs from that of all by more than so many times the spread.
const MIN_DRIFT: i64 = 3;

/// What was found out about the clock of a tap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapClock {
    /// By how much it is ahead of the clock of all, in nanoseconds: the median over all segments that were compared.
    pub offset_ns: i64,
    /// How far the offset of a segment is from that, in nanoseconds: the median deviation, without drift.
    pub spread_ns: i64,
    /// By how much more it is ahead at the end than at the beginning, in nanoseconds; 0 if the segments show no drift.
    pub drift_ns: i64,
    /// How many segments were compared. Without any the clock is taken as it is, like that of the first tap.
    pub matches: u64,
    /// The course of the offset: times of this clock, with the offset there. Empty without matches.
    #[serde(skip)]
    course: Vec<(i64, i64)>,
}

impl TapClock {
    /// A clock that is taken as it is.
    pub(crate) fn as_it_is() -> Self {
        Self::default()
    }

    /// The clock of a tap by segments of which it has the first time, and the clock of all the second one.
    pub(crate) fn estimated(times: &[(i64, i64)]) -> Self {
        let mut offsets: Vec<(i64, i64)> =
            times.iter().map(|(own_ns, right_ns)| (*own_ns, own_ns.saturating_sub(*right_ns))).collect();
        offsets.sort_unstable();
        let Some(offset_ns) = median(offsets.iter().map(|(_, offset)| *offset)) else { return Self::as_it_is() };
        let pieces = (offsets.len() / MIN_OF_PIECE).clamp(1, MAX_PIECES);
        let mut course = Vec::new();
        let mut deviations = Vec::new();
        for piece in offsets.chunks(offsets.len().div_ceil(pieces)) {
            let times = median(piece.iter().map(|(own_ns, _)| *own_ns));
            let Some(point) = times.zip(median(piece.iter().map(|(_, offset)| *offset))) else { continue };
            deviations.extend(piece.iter().map(|(_, offset)| offset.saturating_sub(point.1).saturating_abs()));
            course.push(point);
        }
        let spread_ns = median(deviations.into_iter()).unwrap_or_default();
        let least = spread_ns.saturating_mul(MIN_DRIFT);
        if course.iter().all(|(_, offset)| offset.saturating_sub(offset_ns).saturating_abs() <= least) {
            course = vec![(0, offset_ns)];
        }
        let ends = course.first().zip(course.last());
        let drift_ns = ends.map_or(0, |((_, first), (_, last))| last.saturating_sub(*first));
        Self { offset_ns, spread_ns, drift_ns, matches: times.len() as u64, course }
    }

    /// A time of this clock as the clock of all has it. Between the pieces of its course the offset changes evenly;
    /// before and behind them it is that of the nearest.
    pub(crate) fn corrected(&self, time_ns: i64) -> i64 {
        let next = self.course.partition_point(|(own_ns, _)| *own_ns <= time_ns);
        let before = next.checked_sub(1).and_then(|before| self.course.get(before));
        let offset = match (before, self.course.get(next)) {
            (Some(before), Some(after)) => between(*before, *after, time_ns),
            (Some((_, offset)), None) | (None, Some((_, offset))) => *offset,
            (None, None) => 0,
        };
        time_ns.saturating_sub(offset)
    }
}

/// The offset at a time between two points.
fn between(before: (i64, i64), after: (i64, i64), time_ns: i64) -> i64 {
    let length = i128::from(after.0) - i128::from(before.0);
    let part = i128::from(time_ns) - i128::from(before.0);
    let change = i128::from(after.1) - i128::from(before.1);
    // It lies between two offsets.
    before.1.saturating_add((change * part).checked_div(length).unwrap_or_default() as i64)
}

fn median(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut values: Vec<i64> = values.collect();
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Times of a clock with jitter of up to a millisecond.
    fn observed(count: i64, offset: impl Fn(i64) -> i64) -> Vec<(i64, i64)> {
        let time = |number: i64| (number * 100 * MS, ((number * 2_654_435_761) >> 7) % 2_000_000 - MS);
        (0..count).map(time).map(|(right, jitter)| (right + offset(right) + jitter, right)).collect()
    }

    #[test]
    fn offset_is_found_whatever_a_third_of_the_segments_says() {
        let mut times = observed(1000, |_| 37_000 * MS);
        times.iter_mut().step_by(3).for_each(|(own_ns, _)| *own_ns += 300 * MS);
        let clock = TapClock::estimated(&times);
        assert!((clock.offset_ns - 37_000 * MS).abs() < MS && clock.spread_ns < 2 * MS, "{clock:?}");
        assert_eq!((clock.matches, clock.drift_ns), (1000, 0));
        assert!((clock.corrected(99_000 * MS) - 62_000 * MS).abs() < MS);
    }

    #[test]
    fn drift_is_followed_and_ends_with_the_last_common_segment() {
        // 100 parts in a million, for three hours.
        let clock = TapClock::estimated(&observed(100_000, |right| right / 10_000 - 5 * MS));
        assert!((clock.drift_ns - 1000 * MS).abs() < 10 * MS, "{clock:?}");
        for right in [0, 777_000, 5_000_000, 9_999_000].map(|ms| ms * MS) {
            let own = right + right / 10_000 - 5 * MS;
            assert!((clock.corrected(own) - right).abs() < 3 * MS, "at {right}: {}", clock.corrected(own) - right);
        }
        let late = clock.corrected(20_000_000 * MS);
        assert!((late - (20_000_000 - 995) * MS).abs() < 10 * MS, "{late}");
    }

    #[test]
    fn clock_without_a_common_segment_is_taken_as_it_is() {
        let clock = TapClock::estimated(&[]);
        assert_eq!((clock.corrected(i64::MIN), clock.corrected(17), clock.matches), (i64::MIN, 17, 0));
    }

    #[test]
    fn any_times_are_corrected_without_overflow() {
        for times in [[(i64::MAX, i64::MIN); 2], [(i64::MIN, i64::MAX); 2], [(i64::MIN, 0), (i64::MAX, 0)]] {
            let clock = TapClock::estimated(&times);
            let corrected = [i64::MIN, -1, 0, i64::MAX].map(|time_ns| clock.corrected(time_ns));
            assert!(corrected.is_sorted(), "{corrected:?}");
        }
    }
}
