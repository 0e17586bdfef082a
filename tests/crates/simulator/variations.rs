//! What the settings that are off by default do to the commands and records of a simulation.

use std::collections::{BTreeMap, BTreeSet};

use super::capture_reader::{packets, records};
use sizeleak_simulator::scenario::{Compression, Framing, IdDraw, Parameter, ReplyPadding};
use sizeleak_simulator::{Scenario, SimulatedCapture, Simulation, Truth, simulate};

const FRAMINGS: [Framing; 3] = [Framing::Websocket, Framing::Mqtt, Framing::Http];
/// Bytes of a record beyond its plaintext, with AES-128-GCM under TLS 1.2.
const OVERHEAD: usize = 24;
const MILLISECOND: i64 = 1_000_000;

/// A home without loss and other traffic of the gateway, whose message ids have one width.
fn quiet() -> Scenario {
    let mut scenario = Scenario::default();
    (scenario.replies.loss, scenario.replies.coalesce) = (0.0, 0.0);
    (scenario.command.message_id.min_digits, scenario.command.message_id.max_digits) = (6, 6);
    scenario.telemetry.period = jiff::SignedDuration::ZERO;
    scenario.session.keep_alive = jiff::SignedDuration::ZERO;
    (scenario.learn.random, scenario.test.commands) = (40, 120);
    scenario
}

fn truths(simulation: &Simulation) -> impl Iterator<Item = &Truth> {
    simulation.learn.truths.iter().chain(&simulation.test.truths)
}

/// The plaintext sizes of commands with the same actions.
fn sizes(truths: &[Truth]) -> BTreeMap<Vec<u32>, BTreeSet<usize>> {
    let mut sizes: BTreeMap<Vec<u32>, BTreeSet<usize>> = BTreeMap::new();
    for truth in truths {
        sizes.entry(truth.counts.clone()).or_default().insert(truth.plaintext_size);
    }
    sizes
}

/// The plaintext sizes of the gateway's records in the 600 ms after each command, in order of size.
fn replies(scenario: &Scenario, part: &SimulatedCapture) -> Vec<Vec<usize>> {
    let network = &scenario.network;
    let records = records(&packets(&part.bytes), network.gateway, network.service);
    let records: Vec<_> = records.into_values().flatten().filter(|record| record.content_type == 23).collect();
    let after = |truth: &Truth| {
        let end_ns = truth.end_ns + 600 * MILLISECOND;
        let found = records.iter().filter(|record| (truth.end_ns..end_ns).contains(&record.time_ns));
        let mut sizes: Vec<usize> = found.map(|record| record.length - OVERHEAD).collect();
        sizes.sort_unstable();
        sizes
    };
    part.truths.iter().map(after).collect()
}

#[test]
fn each_action_has_replies_of_its_own_number_and_sizes() {
    let mut scenario = quiet();
    let padding = |min, max| ReplyPadding { min, max };
    scenario.actions[0].replies = Some(Vec::new());
    scenario.actions[1].replies = Some(vec![padding(1, 1), padding(30, 30)]);
    scenario.actions[2].replies = Some(vec![padding(10, 12)]);
    for framing in [Framing::Websocket, Framing::Mqtt] {
        scenario.session.framing = framing;
        let part = simulate(&scenario, 3).unwrap().learn;
        let of_each = [0, 2, 1, 1, 1, 1, 1];
        let plain = replies(&scenario, &part).iter().flatten().copied().min().unwrap();
        for (truth, seen) in part.truths.iter().zip(replies(&scenario, &part)) {
            let expected: usize =
                truth.counts.iter().zip(of_each).map(|(count, replies)| *count as usize * replies).sum();
            assert_eq!(truth.replies, expected, "{truth:?}");
            // A broker is told of commands too: its acknowledgements are shorter.
            let seen: Vec<usize> = seen.into_iter().filter(|size| *size >= plain).collect();
            let of = |range: std::ops::RangeInclusive<usize>| {
                seen.iter().filter(|size| range.contains(&(**size - plain))).count() as u32
            };
            if framing == Framing::Websocket {
                assert_eq!((of(1..=1), of(30..=30)), (truth.counts[1], truth.counts[1]), "{truth:?} {seen:?}");
                assert_eq!(of(10..=12), truth.counts[2], "{truth:?} {seen:?}");
            }
        }
    }
}

#[test]
fn parameters_vary_the_sizes_of_their_actions() {
    let mut scenario = quiet();
    scenario.learn.repeats = 100;
    scenario.actions[4].parameter = Some(Parameter::Number { min: 1, max: 100 });
    scenario.actions[6].parameter = Some(Parameter::Name(vec!["Bad".into(), "Küche".into()]));
    for framing in FRAMINGS {
        scenario.session.framing = framing;
        let sizes = sizes(&simulate(&scenario, 3).unwrap().learn.truths);
        let of = |action: usize| {
            let mut counts = vec![0; 7];
            counts[action] = 1;
            sizes[&counts].iter().copied().collect::<Vec<_>>()
        };
        assert_eq!(of(0).len(), 1);
        // Two in a hundred numbers have one or three digits.
        let dimmed = of(4);
        assert!(dimmed.len() >= 2 && dimmed.last().unwrap() - dimmed[0] <= 2, "{dimmed:?}");
        let named = of(6);
        assert_eq!((named.len(), named[1] - named[0]), (2, 3), "five letters and one more byte, against three letters");
    }
}

#[test]
fn options_of_commands_leave_the_commands_as_they_are() {
    let plain = simulate(&quiet(), 3).unwrap();
    let mut scenario = quiet();
    scenario.actions[4].parameter = Some(Parameter::Number { min: 1, max: 100 });
    scenario.command.second_app = 0.4;
    scenario.command.overlap.share = 0.3;
    scenario.firmware_change.bytes = 6;
    scenario.session.compression = Compression::Deflate;
    let varied = simulate(&scenario, 3).unwrap();
    let counts = |simulation: &Simulation| truths(simulation).map(|truth| truth.counts.clone()).collect::<Vec<_>>();
    assert_eq!(counts(&plain), counts(&varied));
}

/// Repeated keys are nearly free, so that a command of several actions is far shorter than their sum.
#[test]
fn compressed_bodies_do_not_add_up() {
    for framing in FRAMINGS {
        let mut scenario = quiet();
        scenario.session.framing = framing;
        let plain = simulate(&scenario, 3).unwrap();
        scenario.session.compression = Compression::Deflate;
        let packed = simulate(&scenario, 3).unwrap();
        // What a second action adds: the paper's experiments come in pairs.
        let added = |simulation: &Simulation| {
            let pairs = simulation.learn.truths[..14].chunks(2);
            pairs.map(|pair| pair[1].plaintext_size - pair[0].plaintext_size).sum::<usize>()
        };
        assert!(3 * added(&packed) < added(&plain), "{framing:?}: {} of {}", added(&packed), added(&plain));
        let longest = |simulation: &Simulation| truths(simulation).map(|truth| truth.plaintext_size).max().unwrap();
        assert!(2 * longest(&packed) < longest(&plain), "{framing:?}: {} of {}", longest(&packed), longest(&plain));
    }
}

#[test]
fn the_second_app_sends_other_sizes() {
    let mut scenario = quiet();
    (scenario.command.second_app, scenario.learn.repeats) = (0.4, 10);
    let part = simulate(&scenario, 3).unwrap().learn;
    let sizes = sizes(&part.truths);
    // WebSocket's length field is longer from 126 bytes on.
    let of_one = sizes.iter().filter(|(counts, sizes)| counts.iter().sum::<u32>() == 1 && sizes.len() == 2);
    let differences: BTreeSet<usize> =
        of_one.map(|(_, sizes)| sizes.last().unwrap() - sizes.first().unwrap()).collect();
    assert_eq!(differences.into_iter().collect::<Vec<_>>(), [7], "one byte more beside the actions, six in each");
    let both = sizes.values().filter(|sizes| sizes.len() == 2).count();
    assert!(both >= 12 && sizes.values().all(|sizes| sizes.len() <= 2), "{sizes:?}");
}

#[test]
fn new_firmware_lengthens_commands_and_replies() {
    for framing in FRAMINGS {
        let mut scenario = quiet();
        scenario.session.framing = framing;
        let plain = simulate(&scenario, 3).unwrap();
        (scenario.firmware_change.after, scenario.firmware_change.bytes) = (0.25, 9);
        let changed = simulate(&scenario, 3).unwrap();
        assert_eq!(plain.learn, changed.learn);
        // Length fields grow now and then.
        let differences = plain.test.truths.iter().zip(&changed.test.truths);
        let differences: Vec<usize> =
            differences.map(|(one, other)| other.plaintext_size - one.plaintext_size).collect();
        assert!(differences[..30].iter().all(|difference| *difference == 0));
        assert!(differences[30..].iter().all(|difference| (9..=11).contains(difference)), "{differences:?}");
        assert!(differences[30..].iter().filter(|difference| **difference == 9).count() > 60, "{differences:?}");
        if framing == Framing::Websocket {
            let (before, after) = (replies(&scenario, &plain.test), replies(&scenario, &changed.test));
            let longer = |replies: &[usize]| replies.iter().map(|size| size + 9).collect::<Vec<_>>();
            assert_eq!(before[..30], after[..30]);
            assert!(before[30..119].iter().zip(&after[30..119]).all(|(one, other)| longer(one) == *other));
        }
    }
}

#[test]
fn message_ids_grow_while_testing() {
    let mut scenario = quiet();
    let id = &mut scenario.command.message_id;
    (id.min_digits, id.max_digits, id.draw) = (4, 7, IdDraw::Growing);
    let simulation = simulate(&scenario, 3).unwrap();
    assert!(simulation.learn.truths.iter().all(|truth| truth.message_id_width == 4));
    let widths: Vec<usize> = simulation.test.truths.iter().map(|truth| truth.message_id_width).collect();
    assert!(widths.is_sorted() && (4..=7).all(|width| widths.contains(&width)), "{widths:?}");
}

#[test]
fn commands_overlap_with_the_replies_to_the_one_before() {
    let mut scenario = quiet();
    scenario.command.overlap.share = 0.3;
    for framing in [Framing::Websocket, Framing::Mqtt] {
        scenario.session.framing = framing;
        let truths = simulate(&scenario, 3).unwrap().test.truths;
        let gaps: Vec<i64> = truths.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns).collect();
        let close = gaps.iter().filter(|gap| (90 * MILLISECOND..=310 * MILLISECOND).contains(*gap)).count();
        assert!((20..60).contains(&close), "{close}");
        assert!(gaps.iter().filter(|gap| **gap < 3_900 * MILLISECOND).count() == close, "{gaps:?}");
    }
}
