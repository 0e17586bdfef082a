//! Periodic traffic: records that come at a steady interval, or after a steady silence, as keep-alives and polls do.

use std::cell::OnceCell;

use smallvec::SmallVec;

const SECOND_NS: i64 = 1_000_000_000;

/// Arrivals remembered of the records of one length.
const MAX_ARRIVALS: usize = 32;

/// The shortest period of a keep-alive. People press buttons more often, at times quite steadily.
const MIN_PERIOD_NS: i64 = 5 * SECOND_NS;

/// The longest period of a keep-alive or a poll: routers forget an idle connection after some minutes. What comes by a
/// timer less often, as the commands of a schedule do, may be a command.
const MAX_PERIOD_NS: i64 = 600 * SECOND_NS;

/// Fewer arrivals show no period.
pub(crate) const MIN_ARRIVALS: usize = 5;

/// Fewer intervals of the same length make no period.
const MIN_INTERVALS: usize = 3;

/// As many arrivals at one interval are a timer, however many others come between: those of another timer, or of this one
/// when it had another period. Where records come once a period without a timer, one is a period or two from another, as
/// precisely as timers are, in 1 case of 30 for a minute.
const MIN_RUN: usize = 8;

/// When a record came, and how long its flow had been silent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) time_ns: i64,
    pub(crate) silence_ns: Option<i64>,
}

impl Arrival {
    /// Whether the silence before it was as long as a period.
    pub(crate) fn follows_silence(self, period_ns: i64) -> bool {
        self.silence_ns.is_some_and(|silence_ns| is_near(silence_ns.unsigned_abs(), period_ns))
    }
}

/// The last arrivals of the records of one length.
#[derive(Debug, Default)]
pub(crate) struct PeriodicTraffic {
    /// In place where there is one: most lengths that a busy service sends come once.
    arrivals: SmallVec<[Arrival; 1]>,
    /// The periods of the timers that these arrivals are on, once they were asked for: they are asked for several times
    /// between two arrivals.
    interval_timer: OnceCell<Option<i64>>,
    idle_timer: OnceCell<Option<i64>>,
}

/// A list of times or intervals that mostly needs no memory of its own.
type Times = SmallVec<[i64; 2 * MAX_ARRIVALS]>;

impl PeriodicTraffic {
    pub(crate) fn add(&mut self, arrival: Arrival) {
        if self.arrivals.len() >= MAX_ARRIVALS {
            self.arrivals.remove(0);
        }
        self.arrivals.push(arrival);
        (self.interval_timer, self.idle_timer) = Default::default();
    }

    /// Whether this arrival is on a timer: on one that runs on and that most arrivals or a long run of them are on, or on
    /// one that every record of the flow resets and that most are on.
    pub(crate) fn is_on_timer(&self, arrival: Arrival) -> bool {
        self.is_on_interval_timer(arrival.time_ns)
            || self.idle_timer().is_some_and(|period_ns| arrival.follows_silence(period_ns))
            || self.arrivals.len() >= MIN_RUN - 1 && is_in_run(&sorted(self.times()), arrival.time_ns)
    }

    /// Whether a time is on a timer that runs on and that most arrivals are on.
    pub(crate) fn is_on_interval_timer(&self, time_ns: i64) -> bool {
        self.interval_timer().is_some_and(|period_ns| has_neighbour(&sorted(self.times()), time_ns, period_ns))
    }

    /// Whether a time is on a timer of a known period; `None` if no recent arrival shows the phase of the timer.
    pub(crate) fn is_on_period(&self, time_ns: i64, period_ns: i64) -> Option<bool> {
        let last_ns = self.times().max()?;
        let is_recent = time_ns.saturating_sub(last_ns) <= period_ns.saturating_mul(2).saturating_add(period_ns / 2);
        is_recent.then(|| has_neighbour(&sorted(self.times()), time_ns, period_ns))
    }

    pub(crate) fn is_periodic(&self) -> bool {
        self.interval_timer().is_some() || self.idle_timer().is_some()
    }

    /// The period of a timer that runs on, if most arrivals are on it.
    fn interval_timer(&self) -> Option<i64> {
        if self.arrivals.len() < MIN_ARRIVALS {
            return None;
        }
        *self.interval_timer.get_or_init(|| {
            let times: Times = self.times().collect();
            let period_ns = interval_period(&times)?;
            let on_timer = most_on_timer(&times, period_ns)?;
            // A timer skips no period. Commands sent by a script have several lengths, so each length skips most periods.
            let span_ns = on_timer.last()?.saturating_sub(*on_timer.first()?);
            let is_complete = on_timer.len() as u64 * 5 >= (span_ns / period_ns).unsigned_abs() * 4;
            is_complete.then_some(period_ns)
        })
    }

    /// The period of a timer that every record of the flow resets, if most arrivals are on it.
    fn idle_timer(&self) -> Option<i64> {
        if self.arrivals.len() < MIN_ARRIVALS {
            return None;
        }
        *self.idle_timer.get_or_init(|| {
            let silences: Times = self.arrivals.iter().filter_map(|arrival| arrival.silence_ns).collect();
            let (period_ns, count) = idle_period(&silences)?;
            are_most(count, self.arrivals.len()).then_some(period_ns)
        })
    }

    fn times(&self) -> impl Iterator<Item = i64> {
        self.arrivals.iter().map(|arrival| arrival.time_ns)
    }
}

/// Whether so many of all are enough for a timer.
fn are_most(count: usize, all: usize) -> bool {
    count * 5 >= all * 4
}

/// The period of a timer that most of these times, in order of arrival, are on.
pub(crate) fn interval_period(times: &[i64]) -> Option<i64> {
    // Every second time counts too: another record of the same size may have come between two of the timer.
    let intervals =
        |lag| times.iter().zip(times.iter().skip(lag)).map(|(one, next): (&i64, &i64)| next.saturating_sub(*one));
    steady_interval(intervals(1).chain(intervals(2)))
}

/// The silence that most of these are about as long as, and how many are.
pub(crate) fn idle_period(silences: &[i64]) -> Option<(i64, usize)> {
    let period_ns = steady_interval(silences.iter().copied())?;
    Some((period_ns, silences.iter().filter(|silence_ns| is_near(silence_ns.unsigned_abs(), period_ns)).count()))
}

/// Those of these times that come one or two periods before or after another.
pub(crate) fn times_on_timer(times: &[i64], period_ns: i64) -> Vec<i64> {
    let sorted = sorted(times.iter().copied());
    times.iter().copied().filter(|time_ns| has_neighbour(&sorted, *time_ns, period_ns)).collect()
}

/// The times on a timer, if they are most of these.
fn most_on_timer(times: &[i64], period_ns: i64) -> Option<Times> {
    let sorted = sorted(times.iter().copied());
    let mut on_timer = Times::new();
    for (tried, time_ns) in times.iter().enumerate() {
        // All that are left would not be enough.
        if !are_most(on_timer.len() + times.len() - tried, times.len()) {
            return None;
        }
        on_timer.extend(has_neighbour(&sorted, *time_ns, period_ns).then_some(*time_ns));
    }
    are_most(on_timer.len(), times.len()).then_some(on_timer)
}

/// Whether a time is in a long run of times at one interval.
fn is_in_run(sorted: &[i64], time_ns: i64) -> bool {
    let periods = sorted.iter().map(|other_ns| time_ns.saturating_sub(*other_ns).saturating_abs());
    periods.filter(|period_ns| (MIN_PERIOD_NS..=MAX_PERIOD_NS).contains(period_ns)).any(|period_ns| {
        let (before, steps_before) = run_length(sorted, time_ns, -period_ns);
        let (behind, steps_behind) = run_length(sorted, time_ns, period_ns);
        let (others, steps) = (before + behind, steps_before + steps_behind);
        // A timer skips no period, but a capture may miss some.
        others + 1 >= MIN_RUN && others * 5 >= steps * 4
    })
}

/// How many of these times follow a time step by step, with at most one missing between two, and how many steps these
/// are. A negative step goes back.
fn run_length(sorted: &[i64], time_ns: i64, step_ns: i64) -> (usize, usize) {
    let (mut at_ns, mut found, mut steps) = (time_ns, 0, 0);
    while found < MAX_ARRIVALS {
        let next = [1, 2].into_iter().find_map(|count: i64| {
            let offset_ns = step_ns.saturating_mul(count);
            time_near(sorted, at_ns.saturating_add(offset_ns), tolerance(offset_ns.saturating_abs()))
                .map(|next_ns| (next_ns, count as usize))
        });
        let Some((next_ns, count)) = next else { break };
        (at_ns, found, steps) = (next_ns, found + 1, steps + count);
    }
    (found, steps)
}

/// One of these times that is near another.
fn time_near(sorted: &[i64], time_ns: i64, tolerance_ns: i64) -> Option<i64> {
    let at = sorted.partition_point(|other_ns| *other_ns < time_ns.saturating_sub(tolerance_ns));
    sorted.get(at).copied().filter(|other_ns| *other_ns <= time_ns.saturating_add(tolerance_ns))
}

/// Whether one of these times is a period before or after a time, or two: one arrival may be missing from the capture,
/// or taken for an answer.
fn has_neighbour(sorted: &[i64], time_ns: i64, period_ns: i64) -> bool {
    [period_ns, period_ns.saturating_mul(2)].into_iter().any(|interval_ns| {
        let offsets = [interval_ns.saturating_neg(), interval_ns];
        let near = |offset| time_near(sorted, time_ns.saturating_add(offset), tolerance(interval_ns));
        offsets.into_iter().any(|offset| near(offset).is_some())
    })
}

fn sorted(times: impl Iterator<Item = i64>) -> Times {
    let mut times: Times = times.collect();
    times.sort_unstable();
    times
}

/// The probability that a record is on a timer by chance.
pub(crate) fn chance_on_timer(period_ns: i64) -> f64 {
    // One or two periods before or after another record, each a little early or late.
    (8.0 * tolerance(period_ns) as f64 / period_ns.max(1) as f64).clamp(0.01, 0.5)
}

/// The length that most of these intervals have, if enough have it.
pub(crate) fn steady_interval(intervals: impl Iterator<Item = i64>) -> Option<i64> {
    let sorted = sorted(intervals.filter(|interval_ns| (MIN_PERIOD_NS..=MAX_PERIOD_NS).contains(interval_ns)));
    let (mut most, mut end): (&[i64], usize) = (&[], 0);
    for (at, shortest_ns) in sorted.iter().enumerate() {
        let longest_ns = shortest_ns.saturating_add(tolerance(*shortest_ns));
        while sorted.get(end).is_some_and(|interval_ns| *interval_ns <= longest_ns) {
            end += 1;
        }
        let same = sorted.get(at..end).unwrap_or_default();
        if same.len() > most.len() {
            most = same;
        }
    }
    if most.len() < MIN_INTERVALS { None } else { most.get(most.len() / 2).copied() }
}

/// Whether an interval is a period, within the precision of timers.
pub(crate) fn is_near(interval_ns: u64, period_ns: i64) -> bool {
    interval_ns.abs_diff(period_ns.unsigned_abs()) <= tolerance(period_ns).unsigned_abs()
}

/// The precision of timers: half a percent, and the jitter of the network.
fn tolerance(period_ns: i64) -> i64 {
    period_ns / 200 + SECOND_NS / 20
}

#[cfg(test)]
mod tests;
