//! Odd times, steps and silences, as a clock of items that are their own numbers sees them.

use proptest::prelude::*;

use super::*;

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// The observations in the order in which they come out, each with its dated time in milliseconds, and what else was
/// found out.
#[derive(Debug, Default, PartialEq)]
struct Clocked {
    items: Vec<(usize, i64)>,
    odd: Vec<(u64, i64)>,
    steps: Vec<i64>,
    most_held: usize,
}

/// Observations by flow and time in milliseconds, with a lag of a second.
fn clocked(observations: &[(u64, i64)]) -> Clocked {
    let mut clock = TrafficClock::new(SECOND);
    let mut clocked = Clocked::default();
    let ns = |number: usize| observations[number].1.saturating_mul(1_000_000);
    for (number, (flow, _)) in observations.iter().enumerate() {
        let time_ns = ns(number);
        if clock.follows(*flow, time_ns) {
            clocked.items.push((number, time_ns / 1_000_000));
            continue;
        }
        clock.add(*flow, time_ns, number);
        clocked.take_events(&mut clock, ns);
        clocked.most_held = clocked.most_held.max(clock.held.len());
    }
    clock.finish();
    clocked.take_events(&mut clock, ns);
    clocked
}

impl Clocked {
    fn take_events(&mut self, clock: &mut TrafficClock<usize>, ns: impl Fn(usize) -> i64) {
        while let Some(event) = clock.next_event() {
            match event {
                ClockEvent::Item { item, ahead_ns } => {
                    self.items.push((item, ns(item).saturating_sub(ahead_ns) / 1_000_000));
                }
                ClockEvent::Odd { flow, ahead_ns, .. } => self.odd.push((flow, ahead_ns / 1_000_000)),
                ClockEvent::Step { from_ns, to_ns, .. } => self.steps.push((to_ns.saturating_sub(from_ns)) / 1_000_000),
            }
        }
    }

    fn times(&self) -> Vec<i64> {
        self.items.iter().map(|(_, time)| *time).collect()
    }
}

/// Two flows that take turns, every 100 ms.
fn turns(from: i64, count: i64) -> impl Iterator<Item = (u64, i64)> {
    (0..count).map(move |n| (1 + n.unsigned_abs() % 2, from + n * 100))
}

const HOUR_MS: i64 = HOUR / 1_000_000;

#[test]
fn a_lone_packet_after_a_quiet_hour_is_confirmed_by_what_follows() {
    for flow in [1, 2, 3] {
        let mut observations: Vec<_> = turns(0, 10).collect();
        observations.push((flow, HOUR_MS));
        observations.extend(turns(HOUR_MS + 50, 10));
        let clocked = clocked(&observations);
        assert_eq!(clocked.times(), observations.iter().map(|(_, time)| *time).collect::<Vec<_>>());
        assert_eq!((clocked.odd.len(), clocked.steps.len()), (0, 1), "flow {flow}");
    }
}

#[test]
fn the_only_flow_confirms_itself_and_one_of_several_after_a_while() {
    let alone = clocked(&[(1, 0), (1, 10), (1, HOUR_MS), (1, HOUR_MS + 20)]);
    assert_eq!((alone.times(), alone.most_held), (vec![0, 10, HOUR_MS, HOUR_MS + 20], 1));
    let mut observations: Vec<_> = turns(0, 10).collect();
    observations.extend((0..80).map(|n| (1, HOUR_MS + n * 1_000)));
    let one_of_several = clocked(&observations);
    assert_eq!(one_of_several.steps.len(), 1);
    assert!((15..25).contains(&one_of_several.most_held), "{}", one_of_several.most_held);
    assert!(one_of_several.times().is_sorted());
}

#[test]
fn an_odd_time_is_dated_to_its_neighbours_and_moves_no_other() {
    for ahead in [HOUR_MS, -HOUR_MS, 130_000, -5_000, i64::MAX / 4_000_000, i64::MIN / 4_000_000] {
        for at in 0..12 {
            let mut observations: Vec<_> = turns(0, 20).collect();
            observations[at].1 += ahead;
            let clocked = clocked(&observations);
            for (number, (flow, time)) in turns(0, 20).enumerate() {
                let (_, dated) = *clocked.items.iter().find(|(item, _)| *item == number).unwrap();
                // Nothing confirms the first time, so that the second one may be the odd one.
                let allowed = if number == at || flow == observations[at].0 || at == 0 { 200 } else { 0 };
                assert!(at == 0 || dated.abs_diff(time) <= allowed, "{ahead} at {at}: {number} is dated {dated}");
            }
            assert!(at == 0 || clocked.odd.len() == 1, "{ahead} at {at}: {:?}", clocked.odd);
        }
    }
}

#[test]
fn a_flow_that_leaps_less_than_two_minutes_moves_the_clock_until_another_contradicts_it() {
    let clocked = clocked(&[(1, 0), (2, 100), (1, 30_200), (2, 300), (1, 30_400), (2, 500), (1, 600), (2, 700)]);
    assert_eq!(clocked.odd, [(1, 30_100)]);
    assert_eq!(clocked.times(), [0, 100, 30_200, 300, 300, 500, 600, 700], "the offset is known from the second on");
}

#[test]
fn a_flow_with_an_offset_keeps_its_own_intervals() {
    let observations: Vec<_> =
        turns(0, 40).map(|(flow, time)| (flow, time + if flow == 2 { HOUR_MS } else { 0 })).collect();
    let clocked = clocked(&observations);
    assert_eq!((clocked.odd.len(), clocked.steps.len()), (1, 0));
    assert!(clocked.times().windows(2).all(|pair| (pair[1] - pair[0]).abs() <= 200), "{:?}", clocked.times());
}

#[test]
fn the_clock_goes_back_when_several_flows_do() {
    let mut observations: Vec<_> = turns(HOUR_MS, 10).collect();
    observations.extend(turns(0, 10));
    let several = clocked(&observations);
    assert_eq!((several.steps.as_slice(), several.odd.len()), (&[-HOUR_MS - 900][..], 0));
    assert_eq!(several.times(), observations.iter().map(|(_, time)| *time).collect::<Vec<_>>());
    // Two forged packets of two flows are too few.
    let mut observations: Vec<_> = turns(HOUR_MS, 20).collect();
    observations[10].1 = 0;
    observations[11].1 = 0;
    let forged = clocked(&observations);
    assert_eq!((forged.steps.len(), forged.odd.len()), (0, 2));
}

proptest! {
    #[test]
    fn every_item_comes_out_once_and_few_are_held(
        observations in prop::collection::vec(
            (0u64..4, prop_oneof![
                10 => 0i64..100_000, 2 => 3_600_000i64..3_700_000, 1 => any::<i64>(),
            ]),
            0..300,
        ),
    ) {
        let clocked = clocked(&observations);
        let mut numbers: Vec<_> = clocked.items.iter().map(|(number, _)| *number).collect();
        prop_assert!(numbers.is_sorted(), "items keep their order");
        numbers.dedup();
        prop_assert_eq!(numbers.len(), observations.len());
        prop_assert!(clocked.most_held < MAX_HELD);
    }

    #[test]
    fn ordinary_traffic_is_never_held_or_dated(
        steps in prop::collection::vec((0u64..4, -900i64..1_000, 0i64..119_000), 1..200),
    ) {
        let mut now = 0;
        let observations: Vec<_> = steps.iter().map(|(flow, jitter, silence)| {
            // Out of order only while nothing is silent for long.
            now += if silence % 10 == 0 { *silence } else { 5 };
            (*flow, if silence % 10 == 0 { now } else { now + jitter / 10 })
        }).collect();
        let clocked = clocked(&observations);
        prop_assert_eq!(clocked.times(), observations.iter().map(|(_, time)| *time).collect::<Vec<_>>());
        prop_assert_eq!((clocked.odd.len(), clocked.steps.len(), clocked.most_held), (0, 0, 0));
    }
}
