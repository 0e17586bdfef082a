//! Tests of the clock's estimate on planted shifts.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_767_600_000 * SECOND;
const TOLERANCE: i64 = 2 * SECOND;

/// Commands at random distances, labels of some of them, and other commands between.
struct Events {
    labels: Vec<i64>,
    commands: Vec<i64>,
}

/// `shift` says what the label of a command at a time is off by.
fn events(seed: u64, labels: usize, jitter: i64, polls: usize, shift: impl Fn(i64) -> i64) -> Events {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut time, mut events) = (START, Events { labels: Vec::new(), commands: Vec::new() });
    for _ in 0..labels {
        time += random.random_range(5 * SECOND..90 * SECOND);
        let error = if jitter == 0 { 0 } else { random.random_range(-jitter..=jitter) };
        events.labels.push(time - shift(time) + error);
        events.commands.push(time);
    }
    for _ in 0..polls {
        events.commands.push(random.random_range(START..time));
    }
    events
}

fn estimate(events: &Events) -> LabelClock {
    LabelClock::estimate(&events.labels, &events.commands, TOLERANCE)
}

fn found(clock: &LabelClock) -> &ClockFit {
    match clock {
        LabelClock::Differs(fit) => fit,
        other => panic!("no certain shift: {other:?}"),
    }
}

#[test]
fn planted_shifts_are_found_despite_jitter_losses_and_polls() {
    let hour = 3600;
    for (seed, seconds) in [-7, 23, 300, hour, -hour, 2 * hour + 3, 26 * hour, -26 * hour, 9].into_iter().enumerate() {
        let mut events = events(seed as u64, 43, 3 * SECOND / 2, 200, |_| seconds * SECOND);
        // Two commands were not captured.
        events.commands.drain(10..12);
        let clock = estimate(&events);
        let fit = found(&clock);
        assert!(fit.shift.offset_ns.abs_diff(seconds * SECOND) < SECOND.unsigned_abs(), "{seconds}: {fit:?}");
        assert!(fit.matched >= 40 && fit.by_chance < 1e-6, "{fit:?}");
    }
}

#[test]
fn exact_labels_give_the_exact_shift() {
    let clock = estimate(&events(1, 20, 0, 0, |_| 23 * SECOND));
    assert_eq!((found(&clock).shift, found(&clock).matched), (ClockShift::constant(23 * SECOND), 20));
    assert_eq!(clock.shift().map(|shift| shift.apply(0)), Some(23 * SECOND));
}

#[test]
fn few_labels_suffice_where_nothing_else_fits() {
    let clock = estimate(&events(3, 6, SECOND, 0, |_| -7 * SECOND));
    assert!(found(&clock).shift.offset_ns.abs_diff(-7 * SECOND) < 1_500_000_000, "{clock:?}");
    assert_eq!(estimate(&events(3, 2, 0, 0, |_| 23 * SECOND)), LabelClock::Agrees);
}

#[test]
fn right_clocks_are_left_alone() {
    for seed in 0..40 {
        assert_eq!(estimate(&events(seed, 43, 3 * SECOND / 2, 100, |_| 0)), LabelClock::Agrees, "{seed}");
    }
}

#[test]
fn drift_is_found() {
    for (seed, from, to) in [(1, 0, 10), (2, 0, -10), (3, 20, 31), (4, -3600, -3590)] {
        let end = f64::from(60 * 48) * 1e9;
        let drift = move |time: i64| {
            let share = (time - START) as f64 / end;
            ((f64::from(from) + share * f64::from(to - from)) * 1e9) as i64
        };
        let events = events(seed, 60, SECOND, 60, drift);
        let clock = estimate(&events);
        let fit = found(&clock);
        assert!(fit.matched >= 56, "{fit:?}");
        for (label, command) in events.labels.iter().zip(&events.commands) {
            assert!(fit.shift.apply(*label).abs_diff(*command) < 2_200_000_000, "{from} to {to}: {fit:?}");
        }
    }
}

#[test]
fn labels_at_equal_distances_leave_the_shift_open() {
    for seconds in [7, 60, 67] {
        let commands: Vec<i64> = (0..30).map(|at| START + at * 60 * SECOND).collect();
        let labels: Vec<i64> = commands.iter().map(|time| time - seconds * SECOND).collect();
        let clock = LabelClock::estimate(&labels, &commands, TOLERANCE);
        assert_eq!(clock.shift(), None, "{clock:?}");
        assert_eq!(matches!(clock, LabelClock::Ambiguous(_)), seconds != 60, "{clock:?}");
    }
}

/// Of labels that have nothing to do with the commands, fewer than one in a hundred files gets a shift.
#[test]
fn random_labels_get_no_confident_shift() {
    let mut alarms = 0;
    for seed in 0..300 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (labels, commands) = (random.random_range(3..60), random.random_range(3..400));
        let mut times =
            |count: usize| -> Vec<i64> { (0..count).map(|_| START + random.random_range(0..7200 * SECOND)).collect() };
        let (labels, commands) = (times(labels), times(commands));
        let clock = LabelClock::estimate(&labels, &commands, TOLERANCE);
        alarms += usize::from(clock.shift().is_some());
    }
    assert!(alarms <= 2, "{alarms} of 300");
}

#[test]
fn extreme_times_do_not_overflow() {
    let times = [i64::MIN, i64::MAX, 0, 1, i64::MAX - 1];
    for tolerance in [i64::MIN, -1, 0, 1, i64::MAX] {
        let _ = LabelClock::estimate(&times, &times, tolerance);
        let _ = LabelClock::estimate(&times, &[0], tolerance);
        let _ = LabelClock::estimate(&[], &times, tolerance);
        let _ = chance_of_matches(&times, &times, tolerance, 3);
    }
    let shift = ClockShift { offset_ns: i64::MAX, drift: 1e9, reference_ns: i64::MIN };
    assert_eq!(shift.apply(i64::MAX), i64::MAX);
}

#[test]
fn many_labels_and_commands_are_searched_in_bounded_memory() {
    let clock = estimate(&events(5, 4000, SECOND, 4000, |_| 23 * SECOND));
    assert!(found(&clock).shift.offset_ns.abs_diff(23 * SECOND) < 500_000_000, "{clock:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn shifts_add_up(seconds in -90_000_i64..90_000, seed in any::<u64>(), polls in 0_usize..100) {
        // Shorter ones than the tolerance and the jitter need no correction.
        prop_assume!(seconds.abs() > 8);
        let clock = estimate(&events(seed, 40, SECOND, polls, |_| seconds * SECOND));
        let shift = clock.shift().unwrap_or_default();
        prop_assert!(shift.offset_ns.abs_diff(seconds * SECOND) < SECOND.unsigned_abs(), "{:?}", clock);
    }
}

#[test]
fn chance_is_the_tail_of_a_binomial_distribution() {
    for (matched, labels, near, wanted) in
        [(1, 2, 0.5, 0.75), (2, 2, 0.5, 0.25), (0, 5, 0.1, 1.0), (1, 5, 0.0, 0.0), (5, 5, 1.0, 1.0)]
    {
        assert!((by_chance(matched, labels, near) - wanted).abs() < 1e-12);
    }
    assert!(by_chance(5, 5, 0.01) < 1.1e-10 && (by_chance(60, 1000, 0.05) - 0.087).abs() < 0.01);
}
