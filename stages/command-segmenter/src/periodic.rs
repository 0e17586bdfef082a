//! Periodic traffic: records that come at a steady interval, or after a steady silence, as keep-alives and polls do.

use std::cell::OnceCell;

use smallvec::SmallVec;

const SECOND_NS: i64 = 1_000_000_000;

/// How early or late a timer is, besides the network's jitter, whose sender looks once a second whether it is due.
const LATE_NS: i64 = SECOND_NS;

/// Arrivals remembered of the records of one length.
const MAX_ARRIVALS: usize = 32;

/// The shortest period of a keep-alive. People press buttons more often, at times quite steadily.
const MIN_PERIOD_NS: i64 = 5 * SECOND_NS;

/// The longest period of a keep-alive or a poll: routers forget an idle connection after some minutes. What comes by a
/// timer less often, as the commands of a schedule do, may be a command.
const MAX_PERIOD_NS: i64 = 600 * SECOND_NS;

pub(crate) const MIN_ARRIVALS: usize = 5;

/// As many arrivals at one interval are a timer, however many others come between: those of another timer, or of this one
/// when it had another period. Where records come once a period without a timer, one is a period or two from another, as
/// precisely as timers are, in 1 case of 30 for a minute.
const MIN_RUN: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) time_ns: i64,
    pub(crate) silence_ns: Option<i64>,
}

/// A timer: its period, and how early or late it is, besides the network's jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) period_ns: i64,
    pub(crate) late_ns: i64,
}

#[derive(Debug, Default)]
pub(crate) struct PeriodicTraffic {
    /// In place where there is one: most lengths that a busy service sends come once.
    arrivals: SmallVec<[Arrival; 1]>,
    /// The periods of the timers that these arrivals are on, once they were asked for: they are asked for several times
    /// between two arrivals.
    interval_timer: OnceCell<Option<Timer>>,
    idle_timer: OnceCell<Option<Timer>>,
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
            || self.idle_timer().zip(arrival.silence_ns).is_some_and(|(timer, silence_ns)| timer.is(silence_ns))
            || self.arrivals.len() >= MIN_RUN - 1 && is_in_run(&sorted(self.times()), arrival.time_ns)
    }

    /// Whether a time is on a timer that runs on and that most arrivals are on.
    pub(crate) fn is_on_interval_timer(&self, time_ns: i64) -> bool {
        self.interval_timer().is_some_and(|timer| timer.has_neighbour(&sorted(self.times()), time_ns))
    }

    /// Whether a time is on a timer of a known period; `None` if no recent arrival shows the phase of the timer.
    pub(crate) fn is_on(&self, timer: Timer, time_ns: i64) -> Option<bool> {
        let (last_ns, period_ns) = (self.times().max()?, timer.period_ns);
        let is_recent = time_ns.saturating_sub(last_ns) <= period_ns.saturating_mul(2).saturating_add(period_ns / 2);
        is_recent.then(|| timer.has_neighbour(&sorted(self.times()), time_ns))
    }

    pub(crate) fn is_periodic(&self) -> bool {
        self.interval_timer().is_some() || self.idle_timer().is_some()
    }

    /// The timer that runs on, if most arrivals are on it.
    fn interval_timer(&self) -> Option<Timer> {
        if self.arrivals.len() < MIN_ARRIVALS {
            return None;
        }
        *self.interval_timer.get_or_init(|| {
            let times: Times = self.times().collect();
            let counted = interval_timers(&times).filter_map(|timer| Some((timer, timer.runs_through(&times)?)));
            counted.max_by_key(|(_, count)| *count).map(|(timer, _)| timer)
        })
    }

    /// The timer that every record of the flow resets, if most arrivals are on it.
    fn idle_timer(&self) -> Option<Timer> {
        if self.arrivals.len() < MIN_ARRIVALS {
            return None;
        }
        *self.idle_timer.get_or_init(|| {
            let (timer, count) = usual_timer(self.arrivals.iter().filter_map(|arrival| arrival.silence_ns))?;
            are_most(count, self.arrivals.len()).then_some(timer)
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

/// The timers that most of these times, in order of arrival, may be on.
pub(crate) fn interval_timers(times: &[i64]) -> impl Iterator<Item = Timer> {
    // Every second time counts too: there may be two timers of one period.
    [2, 1].into_iter().filter_map(|lag| {
        let intervals = times.iter().zip(times.iter().skip(lag)).map(|(one, next)| next.saturating_sub(*one));
        let (found, _) = usual_timer(intervals)?;
        (lag == 1 || found.late_ns == 0).then_some(found)
    })
}

/// The timer that more than half of these intervals are a period of, and how many are. It has no jitter of its own, or it
/// explains more and most, more surely than chance.
pub(crate) fn usual_timer(intervals: impl Iterator<Item = i64>) -> Option<(Timer, usize)> {
    let mut intervals: Times = intervals.collect();
    let all = intervals.len();
    let periods = intervals.iter().filter(|interval_ns| (MIN_PERIOD_NS..=MAX_PERIOD_NS).contains(*interval_ns)).count();
    let middle = Some(all / 2).filter(|_| all >= MIN_ARRIVALS - 1 && periods * 2 > all)?;
    let period_ns = *intervals.select_nth_unstable(middle).1;
    let precise = Timer { period_ns, late_ns: 0 };
    // The middle one may be early, and others late.
    let around = Timer { period_ns, late_ns: 2 * LATE_NS };
    let near = || intervals.iter().copied().filter(|interval_ns| around.is(*interval_ns));
    let late = Timer { period_ns: near().min()?.midpoint(near().max()?), late_ns: LATE_NS };
    let counted = [late, precise].into_iter().filter_map(|timer| {
        let count = intervals.iter().filter(|interval_ns| timer.is(**interval_ns)).count();
        // Of random times, four intervals are alike within a fifth of their length in 4 cases of 10,000, and six of seven
        // within two fifths in 5.
        let is_clear = timer.tolerance(timer.period_ns) <= timer.period_ns / 10 || all >= MIN_RUN - 1;
        (timer == precise && count * 2 > all || is_clear && are_most(count, all)).then_some((timer, count))
    });
    counted.max_by_key(|(_, count)| *count)
}

impl Timer {
    pub(crate) fn is(self, interval_ns: i64) -> bool {
        interval_ns.saturating_sub(self.period_ns).saturating_abs() <= self.tolerance(self.period_ns)
    }

    /// The precision of timers: half a percent, and the jitter of the network.
    fn tolerance(self, interval_ns: i64) -> i64 {
        (interval_ns / 200 + SECOND_NS / 20).saturating_add(self.late_ns)
    }

    pub(crate) fn chance(self) -> f64 {
        // One or two periods before or after another record, each a little early or late.
        (8.0 * self.tolerance(self.period_ns) as f64 / self.period_ns.max(1) as f64).clamp(0.01, 0.5)
    }

    /// How many of these times come one or two periods before or after another.
    pub(crate) fn count_on(self, times: &[i64]) -> usize {
        let sorted = sorted(times.iter().copied());
        times.iter().filter(|time_ns| self.has_neighbour(&sorted, **time_ns)).count()
    }

    /// How many of these times are on it, if most are and it skips no period. Commands sent by a script have several
    /// lengths, so each length skips most periods.
    fn runs_through(self, times: &[i64]) -> Option<usize> {
        let sorted = sorted(times.iter().copied());
        let (mut on_timer, mut others) = (Times::new(), times.len() / 5);
        for time_ns in times {
            if self.has_neighbour(&sorted, *time_ns) {
                on_timer.push(*time_ns);
            } else {
                others = others.checked_sub(1)?;
            }
        }
        let periods = (on_timer.last()?.saturating_sub(*on_timer.first()?) / self.period_ns).unsigned_abs();
        (on_timer.len() as u64 * 5 >= periods.saturating_mul(4)).then_some(on_timer.len())
    }

    /// Whether one of these times is a period before or after a time, or two: one arrival may be missing from the
    /// capture, or taken for an answer.
    fn has_neighbour(self, sorted: &[i64], time_ns: i64) -> bool {
        [self.period_ns, self.period_ns.saturating_mul(2)].into_iter().any(|interval_ns| {
            let offsets = [interval_ns.saturating_neg(), interval_ns];
            let near = |offset| time_near(sorted, time_ns.saturating_add(offset), self.tolerance(interval_ns));
            offsets.into_iter().any(|offset| near(offset).is_some())
        })
    }
}

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
            let tolerance_ns = Timer { period_ns: step_ns, late_ns: 0 }.tolerance(offset_ns.saturating_abs());
            time_near(sorted, at_ns.saturating_add(offset_ns), tolerance_ns).map(|next_ns| (next_ns, count as usize))
        });
        let Some((next_ns, count)) = next else { break };
        (at_ns, found, steps) = (next_ns, found + 1, steps + count);
    }
    (found, steps)
}

fn time_near(sorted: &[i64], time_ns: i64, tolerance_ns: i64) -> Option<i64> {
    let at = sorted.partition_point(|other_ns| *other_ns < time_ns.saturating_sub(tolerance_ns));
    sorted.get(at).copied().filter(|other_ns| *other_ns <= time_ns.saturating_add(tolerance_ns))
}

fn sorted(times: impl Iterator<Item = i64>) -> Times {
    let mut times: Times = times.collect();
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests;
