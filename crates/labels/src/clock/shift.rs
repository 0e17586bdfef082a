//! A shift of a clock, constant or growing steadily.

use serde::Serialize;
use sizeleak_model::statistics::middle;

use crate::matching::matching_pairs;

/// How often a line is fitted to the commands that it matches.
const ROUNDS: usize = 3;

/// What must be added to the times of a clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ClockShift {
    /// What is added at the reference, in nanoseconds.
    pub offset_ns: i64,
    /// What is added besides for each nanosecond from the reference on; 0 for a constant shift.
    pub drift: f64,
    /// The reference, a time of the clock that is wrong.
    pub reference_ns: i64,
}

impl ClockShift {
    pub fn constant(offset_ns: i64) -> Self {
        Self { offset_ns, ..Self::default() }
    }

    /// A right time from a wrong one.
    pub fn apply(&self, time_ns: i64) -> i64 {
        time_ns.saturating_add(self.at(time_ns))
    }

    /// What is added to a wrong time, in nanoseconds.
    pub fn at(&self, time_ns: i64) -> i64 {
        let since = time_ns.saturating_sub(self.reference_ns);
        // At most some minutes: the drift is that of a clock.
        self.offset_ns.saturating_add((self.drift * since as f64).round() as i64)
    }

    pub(crate) fn applied(&self, times: &[i64]) -> Vec<i64> {
        times.iter().map(|time| self.apply(*time)).collect()
    }

    /// How many labels lie between the first command and the last, by this shift.
    pub(crate) fn labels_within(&self, labels: &[i64], commands: &[i64], tolerance_ns: i64) -> usize {
        let (Some(first), Some(last)) = (commands.iter().min(), commands.iter().max()) else { return 0 };
        let span = first.saturating_sub(tolerance_ns)..=last.saturating_add(tolerance_ns);
        labels.iter().filter(|time| span.contains(&self.apply(**time))).count()
    }

    /// Whether two shifts give labels nearly the same time, at the first label or the last.
    pub(crate) fn is_near(&self, other: &Self, labels: &[i64], distance_ns: i64) -> bool {
        let ends = [labels.iter().min(), labels.iter().max()].into_iter().flatten();
        ends.copied().any(|time| self.at(time).abs_diff(other.at(time)) <= distance_ns.unsigned_abs())
    }

    /// The shift that fits the commands it matches best: the median of the differences, and of the slopes between
    /// labels half of them apart (an incomplete Theil-Sen fit, which some wrong matches do not move).
    pub(crate) fn refined(&self, labels: &[i64], commands: &[i64], tolerance_ns: i64) -> Self {
        let mut shift = *self;
        for _ in 0..ROUNDS {
            let matched = matching_pairs(&shift.applied(labels), commands, tolerance_ns);
            let pairs = matched.iter().filter_map(|(row, at)| Some((*labels.get(*row)?, *commands.get(*at)?)));
            let mut points: Vec<(i64, i64)> =
                pairs.map(|(label, command)| (label, command.saturating_sub(label))).collect();
            points.sort_unstable();
            if self.drift != 0.0 {
                let half = points.len() / 2;
                let slopes = points.iter().zip(points.iter().skip(half)).filter_map(|(before, after)| {
                    let apart = after.0.saturating_sub(before.0);
                    (apart > 0).then(|| after.1.saturating_sub(before.1) as f64 / apart as f64)
                });
                shift.drift = median(slopes.collect(), f64::total_cmp).unwrap_or(shift.drift);
            }
            let line = Self { offset_ns: 0, ..shift };
            let rests = points.iter().map(|(label, difference)| difference.saturating_sub(line.at(*label))).collect();
            shift.offset_ns = median(rests, Ord::cmp).unwrap_or(shift.offset_ns);
        }
        shift
    }
}

fn median<T: Copy>(mut values: Vec<T>, order: impl Fn(&T, &T) -> std::cmp::Ordering) -> Option<T> {
    middle(&mut values, order).map(|[_, upper]| upper)
}
