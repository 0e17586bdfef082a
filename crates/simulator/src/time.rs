//! Times of the simulation, in nanoseconds.

use jiff::SignedDuration;

pub(crate) const MICROSECOND: i64 = 1_000;
pub(crate) const MILLISECOND: i64 = 1_000 * MICROSECOND;
pub(crate) const SECOND: i64 = 1_000 * MILLISECOND;
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// A duration of the scenario in nanoseconds. Checked scenarios have none above a day.
pub(crate) fn nanoseconds(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
