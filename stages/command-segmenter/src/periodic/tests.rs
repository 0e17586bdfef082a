//! Timers that are found, and times that are on none.

use proptest::prelude::*;

use super::*;

fn at(seconds: f64) -> Arrival {
    Arrival { time_ns: (seconds * 1e9) as i64, silence_ns: None }
}

fn traffic(times: impl IntoIterator<Item = f64>) -> PeriodicTraffic {
    let mut traffic = PeriodicTraffic::default();
    times.into_iter().for_each(|seconds| traffic.add(at(seconds)));
    traffic
}

#[test]
fn arrivals_one_or_two_periods_apart_are_on_the_timer() {
    let traffic = traffic([0.0, 120.1, 155.5, 240.0, 360.2, 480.1]);
    assert!([0.0, 240.0, 480.1, 600.0].into_iter().all(|seconds| traffic.is_on_timer(at(seconds))));
    assert!(!traffic.is_on_timer(at(155.5)), "a command of the same size between two");
    assert!(traffic.is_on_timer(at(720.1)), "the one before it is missing");
    assert!(!traffic.is_on_timer(at(545.0)));
}

#[test]
fn arrivals_after_the_usual_silence_are_on_the_idle_timer() {
    let mut traffic = PeriodicTraffic::default();
    let ends = [31.0, 75.4, 101.9, 163.2, 192.0, 271.0];
    for (seconds, silence) in ends.into_iter().zip([25.0, 25.1, 24.95, 25.02, 11.0, 25.0]) {
        traffic.add(Arrival { silence_ns: Some((silence * 1e9) as i64), ..at(seconds) });
    }
    assert!(traffic.is_on_timer(Arrival { silence_ns: Some(25 * SECOND_NS), ..at(333.0) }));
    assert!(!traffic.is_on_timer(Arrival { silence_ns: Some(11 * SECOND_NS), ..at(192.0) }));
    assert!(!traffic.is_on_timer(at(333.0)));
}

#[test]
fn few_fast_or_mostly_irregular_arrivals_are_on_no_timer() {
    assert!(!traffic([0.0, 60.0, 120.0, 180.0]).is_on_timer(at(60.0)), "four could be chance");
    assert!(!traffic((0..30).map(|press| f64::from(press) * 0.6)).is_on_timer(at(6.0)), "somebody presses a button");
    let mixed = [0.0, 60.0, 120.0, 180.0, 240.0, 247.0, 255.5, 279.0, 291.5, 308.1, 333.0, 391.3, 402.2];
    assert!(!traffic(mixed).is_on_timer(at(120.0)));
    let every_third = [0.0, 30.0, 120.0, 180.0, 210.0, 390.0, 420.0, 570.0, 630.0, 660.0, 840.0];
    assert!(!every_third.into_iter().any(|seconds| traffic(every_third).is_on_timer(at(seconds))), "skips periods");
}

#[test]
fn a_long_run_at_one_interval_is_on_a_timer_whatever_comes_between() {
    let run: Vec<f64> = (0..8).map(|n| f64::from(n) * 60.0).collect();
    let other = [3.1, 17.9, 77.7, 101.0, 111.4, 139.8, 193.3, 203.5, 269.9, 290.0, 333.3, 377.1];
    let mut times = [&run[..], &other[..]].concat();
    times.sort_by(f64::total_cmp);
    let mixed = traffic(times.iter().copied());
    assert!(run.iter().all(|seconds| mixed.is_on_timer(at(*seconds))));
    assert!(!other.iter().any(|seconds| mixed.is_on_timer(at(*seconds))));
    let shorter = traffic(times.into_iter().filter(|seconds| *seconds < 420.0));
    assert!(!shorter.is_on_timer(at(60.0)), "seven");
}

#[test]
fn a_timer_of_more_than_ten_minutes_may_be_a_schedule() {
    assert!(traffic((0..20).map(|n| f64::from(n) * 590.0)).is_on_timer(at(590.0)));
    assert!(!traffic((0..20).map(|n| f64::from(n) * 900.0)).is_on_timer(at(900.0)));
}

/// Button presses at random times in an hour, a thousand times each.
#[test]
fn random_times_are_hardly_ever_on_a_timer() {
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31) * 3600.0
    };
    for presses in [5, 7, 12, 30] {
        let mistaken = (0..1_000).filter(|_| {
            let mut times: Vec<f64> = (0..presses).map(|_| random()).collect();
            times.sort_by(f64::total_cmp);
            let traffic = traffic(times.iter().copied());
            times.iter().any(|seconds| traffic.is_on_timer(at(*seconds)))
        });
        assert!(mistaken.count() <= 5, "{presses}");
    }
}

proptest! {
    /// Two connections have the same keep-alive at any offset, each with the jitter of a network.
    #[test]
    fn two_timers_of_one_period_are_both_found(
        offset in 1.0..59.0f64,
        jitter in prop::collection::vec(0.0..0.04f64, 20),
    ) {
        let mut times: Vec<f64> = jitter.iter().enumerate().map(|(n, jitter)| {
            (n / 2) as f64 * 60.0 + if n % 2 == 1 { offset } else { 0.0 } + jitter
        }).collect();
        times.sort_by(f64::total_cmp);
        let traffic = traffic(times.iter().copied());
        prop_assert!(times.iter().all(|seconds| traffic.is_on_timer(at(*seconds))));
    }

    #[test]
    fn any_times_are_accepted_and_memory_is_bounded(
        times in prop::collection::vec(any::<i64>(), 0..50),
        silence in any::<i64>(),
    ) {
        let mut traffic = PeriodicTraffic::default();
        for time_ns in times {
            let arrival = Arrival { time_ns, silence_ns: Some(silence) };
            traffic.add(arrival);
            traffic.is_on_timer(arrival);
            prop_assert!(traffic.arrivals.len() <= MAX_ARRIVALS);
        }
    }
}
