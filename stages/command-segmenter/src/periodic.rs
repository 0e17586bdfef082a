//! Records that come at steady times: keep-alives and polls, whatever their size.

use std::collections::VecDeque;

const SECOND: i64 = 1_000_000_000;

/// Occurrences remembered of a kind of record.
const MOST_REMEMBERED: usize = 32;

/// The shortest period of a keep-alive. People press buttons more often, at times quite steadily.
const SHORTEST_PERIOD: i64 = 5 * SECOND;

/// So few occurrences make no beat.
const LEAST_OCCURRENCES: usize = 5;

/// So many intervals of the same length make a period.
const LEAST_INTERVALS: usize = 3;

/// When records of one kind came that nobody had asked for.
#[derive(Debug, Default)]
pub(crate) struct PeriodicTraffic {
    occurrences: VecDeque<Arrival>,
}

/// When a record came, and how long its flow had been silent before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) time_ns: i64,
    pub(crate) silence_ns: Option<i64>,
}

impl PeriodicTraffic {
    /// Remembers an occurrence.
    pub(crate) fn learn(&mut self, occurrence: Arrival) {
        if self.occurrences.len() >= MOST_REMEMBERED {
            self.occurrences.pop_front();
        }
        self.occurrences.push_back(occurrence);
    }

    /// Whether an occurrence comes a period before or after another, of a timer that runs on and that most are of.
    pub(crate) fn is_timed(&self, occurrence: Arrival) -> bool {
        self.timer().is_some_and(|period| self.has_neighbour(occurrence.time_ns, period))
    }

    /// Whether an occurrence comes after a silence of the length that most come after: of a timer that any record sets
    /// back.
    pub(crate) fn is_idle(&self, occurrence: Arrival) -> bool {
        self.idle_timer().is_some_and(|period| occurrence.follows_silence(period))
    }

    /// Whether a time is on a timer whose period is known; `None` where its phase is not, since it was not heard lately.
    pub(crate) fn keeps(&self, time_ns: i64, period: i64) -> Option<bool> {
        let last_ns = self.times().max()?;
        let is_lately = time_ns.saturating_sub(last_ns) <= period.saturating_mul(2).saturating_add(period / 2);
        is_lately.then(|| self.has_neighbour(time_ns, period))
    }

    /// Whether most occurrences are on a beat.
    pub(crate) fn is_steady(&self) -> bool {
        self.timer().is_some() || self.idle_timer().is_some()
    }

    /// The period of a timer that runs on, if most occurrences are its.
    fn timer(&self) -> Option<i64> {
        let period = period_of(&self.times().collect::<Vec<_>>())?;
        let on: Vec<i64> = self.times().filter(|time_ns| self.has_neighbour(*time_ns, period)).collect();
        // A timer leaves none out. Commands by a script, which are of several lengths, leave most out of each length.
        let span = on.last()?.saturating_sub(*on.first()?);
        let is_whole = on.len() as u64 * 5 >= (span / period).unsigned_abs() * 4;
        (is_whole && self.is_most(on.len())).then_some(period)
    }

    /// The silence after which a timer that any record sets back runs out, if most occurrences are its.
    fn idle_timer(&self) -> Option<i64> {
        let period = period(self.occurrences.iter().filter_map(|occurrence| occurrence.silence_ns))?;
        let on = self.occurrences.iter().filter(|occurrence| occurrence.follows_silence(period));
        self.is_most(on.count()).then_some(period)
    }

    /// Whether there is an occurrence a period before or after a time. One may be missing: not captured, or taken for an
    /// answer.
    fn has_neighbour(&self, time_ns: i64, period: i64) -> bool {
        let is_beat = |interval| is_near(interval, period) || is_near(interval, period.saturating_mul(2));
        self.times().any(|other| is_beat(other.abs_diff(time_ns)))
    }

    fn times(&self) -> impl Iterator<Item = i64> {
        self.occurrences.iter().map(|occurrence| occurrence.time_ns)
    }

    /// Four in five, and enough of them.
    fn is_most(&self, count: usize) -> bool {
        self.occurrences.len() >= LEAST_OCCURRENCES && count * 5 >= self.occurrences.len() * 4
    }
}

impl Arrival {
    /// Whether it came after a silence about this long.
    pub(crate) fn follows_silence(self, period: i64) -> bool {
        self.silence_ns.is_some_and(|silence_ns| is_near(silence_ns.unsigned_abs(), period))
    }
}

/// The period of a timer that most of these times, in order, are of.
pub(crate) fn period_of(times: &[i64]) -> Option<i64> {
    // To the next but one too: a record of the same size may have come between.
    let intervals =
        |lag| times.iter().zip(times.iter().skip(lag)).map(|(one, next): (&i64, &i64)| next.saturating_sub(*one));
    period(intervals(1).chain(intervals(2)))
}

/// How many of these times come a period, or two, before or after another.
pub(crate) fn count_timed(times: &[i64], period: i64) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let is_there = |time_ns: i64, tolerance: i64| {
        let from = sorted.partition_point(|other| *other < time_ns.saturating_sub(tolerance));
        sorted.get(from).is_some_and(|other| *other <= time_ns.saturating_add(tolerance))
    };
    let has_neighbour = |time_ns: &&i64| {
        [period, period.saturating_mul(2)].into_iter().any(|interval| {
            let near = tolerance(interval);
            is_there(time_ns.saturating_sub(interval), near) || is_there(time_ns.saturating_add(interval), near)
        })
    };
    times.iter().filter(has_neighbour).count() as u64
}

/// The silence that most of these are as long as, four in five and enough of them, and how many are.
pub(crate) fn idle_timer(silences: &[i64]) -> Option<(i64, u64)> {
    let period = period(silences.iter().copied())?;
    let on = silences.iter().filter(|silence| is_near(silence.unsigned_abs(), period)).count();
    (on >= LEAST_OCCURRENCES && on * 5 >= silences.len() * 4).then_some((period, on as u64))
}

/// How probable it is to be on a timer by chance.
pub(crate) fn chance(period: i64) -> f64 {
    // A period before or after another, or two, and a little early or late.
    (8.0 * tolerance(period) as f64 / period.max(1) as f64).clamp(0.01, 0.5)
}

/// The length that most of these intervals have, if enough have it.
pub(crate) fn period(intervals: impl Iterator<Item = i64>) -> Option<i64> {
    let mut sorted: Vec<i64> = intervals.filter(|interval| *interval >= SHORTEST_PERIOD).collect();
    sorted.sort_unstable();
    let mut best: &[i64] = &[];
    for (at, least) in sorted.iter().enumerate() {
        let reach = least.saturating_add(tolerance(*least));
        let end = sorted.partition_point(|interval| *interval <= reach);
        let same = sorted.get(at..end).unwrap_or_default();
        if same.len() > best.len() {
            best = same;
        }
    }
    if best.len() < LEAST_INTERVALS { None } else { best.get(best.len() / 2).copied() }
}

/// Whether an interval is a period, as exact as timers are.
pub(crate) fn is_near(interval: u64, period: i64) -> bool {
    interval.abs_diff(period.unsigned_abs()) <= tolerance(period).unsigned_abs()
}

/// How exact timers are: half a percent, and what the network adds.
fn tolerance(period: i64) -> i64 {
    period / 200 + SECOND / 20
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl PeriodicTraffic {
        fn has(&self, occurrence: Arrival) -> bool {
            self.is_timed(occurrence) || self.is_idle(occurrence)
        }
    }

    fn at(seconds: f64) -> Arrival {
        Arrival { time_ns: (seconds * 1e9) as i64, silence_ns: None }
    }

    fn beat(times: impl IntoIterator<Item = f64>) -> PeriodicTraffic {
        let mut beat = PeriodicTraffic::default();
        times.into_iter().for_each(|seconds| beat.learn(at(seconds)));
        beat
    }

    #[test]
    fn a_timer_that_runs_on() {
        let beat = beat([0.0, 120.1, 155.5, 240.0, 360.2, 480.1]);
        assert!([0.0, 240.0, 480.1, 600.0].into_iter().all(|seconds| beat.has(at(seconds))));
        assert!(!beat.has(at(155.5)), "a command of the same size between two");
        assert!(beat.has(at(720.1)), "the one before it is missing");
        assert!(!beat.has(at(545.0)));
    }

    #[test]
    fn a_timer_that_is_set_back() {
        let mut beat = PeriodicTraffic::default();
        let ends = [31.0, 75.4, 101.9, 163.2, 192.0, 271.0];
        for (seconds, silence) in ends.into_iter().zip([25.0, 25.1, 24.95, 25.02, 11.0, 25.0]) {
            beat.learn(Arrival { silence_ns: Some((silence * 1e9) as i64), ..at(seconds) });
        }
        assert!(beat.has(Arrival { silence_ns: Some(25 * SECOND), ..at(333.0) }));
        assert!(!beat.has(Arrival { silence_ns: Some(11 * SECOND), ..at(192.0) }));
        assert!(!beat.has(at(333.0)));
    }

    #[test]
    fn few_or_fast_or_mostly_other_times_are_no_beat() {
        assert!(!beat([0.0, 60.0, 120.0, 180.0]).has(at(60.0)), "four could be chance");
        assert!(!beat((0..30).map(|press| f64::from(press) * 0.6)).has(at(6.0)), "somebody presses a button");
        let mixed = [0.0, 60.0, 120.0, 180.0, 240.0, 247.0, 255.5, 279.0, 291.5, 308.1, 333.0, 391.3, 402.2];
        assert!(!beat(mixed).has(at(120.0)));
    }

    /// Chance makes hardly a beat: of presses spread over an hour at random, a thousand times few and many.
    #[test]
    fn times_at_random() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31) * 3600.0
        };
        for presses in [5, 7, 12, 30] {
            let mistaken = (0..1_000).filter(|_| {
                let mut times: Vec<f64> = (0..presses).map(|_| random()).collect();
                times.sort_by(f64::total_cmp);
                let beat = beat(times.iter().copied());
                times.iter().any(|seconds| beat.has(at(*seconds)))
            });
            assert!(mistaken.count() <= 5, "{presses}");
        }
    }

    #[test]
    fn a_timer_leaves_none_out() {
        let every_third = [0.0, 30.0, 120.0, 180.0, 210.0, 390.0, 420.0, 570.0, 630.0, 660.0, 840.0];
        assert!(!every_third.into_iter().any(|seconds| beat(every_third).has(at(seconds))));
    }

    proptest! {
        /// Two connections with the same keep-alive at any offset, each with the jitter of a network.
        #[test]
        fn two_timers_at_once(offset in 1.0..59.0f64, jitter in prop::collection::vec(0.0..0.04f64, 20)) {
            let mut times: Vec<f64> = jitter.iter().enumerate().map(|(n, jitter)| {
                (n / 2) as f64 * 60.0 + if n % 2 == 1 { offset } else { 0.0 } + jitter
            }).collect();
            times.sort_by(f64::total_cmp);
            let beat = beat(times.iter().copied());
            let on = times.iter().filter(|seconds| beat.has(at(**seconds))).count();
            prop_assert_eq!(on, times.len());
        }

        #[test]
        fn any_times_can_be_learned(times in prop::collection::vec(any::<i64>(), 0..50), silence in any::<i64>()) {
            let mut beat = PeriodicTraffic::default();
            for time_ns in times {
                let occurrence = Arrival { time_ns, silence_ns: Some(silence) };
                beat.learn(occurrence);
                beat.has(occurrence);
                prop_assert!(beat.occurrences.len() <= MOST_REMEMBERED);
            }
        }
    }
}
