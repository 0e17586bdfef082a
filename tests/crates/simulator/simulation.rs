//! Properties of simulations, checked by reading the captures back.

use std::collections::BTreeMap;

use super::capture_reader::{TlsRecord, packets, records};
use jiff::SignedDuration;
use proptest::prelude::*;
use sizeleak_simulator::scenario::{
    DeviceIds, Framing, IdDraw, InitialSequence, QualityOfService, ReplyMode, Resolution, Suite, Version,
};
use sizeleak_simulator::{Scenario, SimulatedCapture, Truth, simulate};

const FRAMINGS: [Framing; 3] = [Framing::Websocket, Framing::Mqtt, Framing::Http];

fn small() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.learn.repeats = 1;
    scenario.learn.random = 10;
    scenario.test.commands = 20;
    scenario
}

/// The records from the service to the gateway, of all its connections.
fn pushed(scenario: &Scenario, part: &SimulatedCapture) -> Vec<TlsRecord> {
    let network = &scenario.network;
    records(&packets(&part.bytes), network.service, network.gateway).into_values().flatten().collect()
}

/// The records of a command, selected by their times.
fn records_of<'a>(records: &'a [TlsRecord], truth: &Truth) -> Vec<&'a TlsRecord> {
    records.iter().filter(|record| (truth.time_ns..=truth.end_ns).contains(&record.time_ns)).collect()
}

#[test]
fn the_same_seed_produces_the_same_bytes() {
    for framing in FRAMINGS {
        let mut scenario = small();
        scenario.session.framing = framing;
        scenario.tls.version = Version::Tls13;
        let simulation = simulate(&scenario, 7).unwrap();
        assert_eq!(simulation, simulate(&scenario, 7).unwrap());
        let other = simulate(&scenario, 8).unwrap();
        assert_ne!(simulation.test.bytes, other.test.bytes);
        assert_ne!(simulation.test.truths, other.test.truths);
        assert_ne!(simulation.learn.labels, other.learn.labels);
        assert_ne!(simulation.learn.truths.last(), simulation.test.truths.last());
    }
}

#[test]
fn simulations_do_not_depend_on_the_thread() {
    let on_this_thread = simulate(&small(), 3).unwrap();
    let on_another_thread = std::thread::spawn(|| simulate(&small(), 3).unwrap()).join().unwrap();
    assert_eq!(on_this_thread, on_another_thread);
}

#[test]
fn record_lengths_are_plaintext_plus_the_overhead_of_the_suite() {
    let suites = [
        (Version::Tls12, Suite::Aes128Gcm, 24),
        (Version::Tls12, Suite::Aes256Gcm, 24),
        (Version::Tls12, Suite::ChaCha20Poly1305, 16),
        (Version::Tls13, Suite::Aes128Gcm, 17),
        (Version::Tls13, Suite::Aes256Gcm, 17),
        (Version::Tls13, Suite::ChaCha20Poly1305, 17),
    ];
    for (framing, (version, suite, overhead)) in FRAMINGS.into_iter().cycle().zip(suites) {
        let mut scenario = small();
        (scenario.tls.version, scenario.tls.suite, scenario.session.framing) = (version, suite, framing);
        let simulation = simulate(&scenario, 1).unwrap();
        for part in [&simulation.learn, &simulation.test] {
            let records = pushed(&scenario, part);
            for truth in &part.truths {
                let records = records_of(&records, truth);
                assert_eq!(records.len(), 1, "{framing:?} {truth:?}");
                assert_eq!(records[0].content_type, 23);
                assert_eq!(records[0].length, truth.plaintext_size + overhead);
                assert_eq!((truth.records, truth.wire_size), (1, records[0].length));
            }
        }
    }
}

/// RFC 5246 section 6.2.3.2: initialisation vector, then message, MAC and 1 to 16 bytes of padding in whole blocks.
#[test]
fn cbc_records_are_whole_blocks() {
    let suites = [(Suite::Aes128CbcSha, 20), (Suite::Aes256CbcSha, 20), (Suite::Aes128CbcSha256, 32)];
    for (framing, (suite, mac)) in FRAMINGS.into_iter().zip(suites) {
        let mut scenario = small();
        (scenario.tls.suite, scenario.session.framing) = (suite, framing);
        scenario.tls.chunk = if framing == Framing::Http { 100 } else { 0 };
        let part = simulate(&scenario, 1).unwrap().test;
        assert_eq!(part, simulate(&scenario, 1).unwrap().test);
        let records = pushed(&scenario, &part);
        for truth in &part.truths {
            let records = records_of(&records, truth);
            assert_eq!(records.len(), truth.records);
            let mut left = truth.plaintext_size;
            for record in records {
                let message = if scenario.tls.chunk == 0 { left } else { left.min(scenario.tls.chunk) };
                assert_eq!(record.length, 16 + (message + mac + 1).next_multiple_of(16), "{suite:?} {truth:?}");
                left -= message;
            }
            assert_eq!(left, 0);
        }
    }
}

/// The bytes of a command's JSON, computed from the scenario.
fn body_size(scenario: &Scenario, truth: &Truth) -> usize {
    let sizes = scenario.action_names().into_iter().map(|name| {
        let action = scenario.actions.iter().find(|action| action.name == name).unwrap();
        r#",{"id":"node-00","set":}"#.len() + action.set.to_string().len()
    });
    let actions: usize = sizes.zip(&truth.counts).map(|(size, count)| size * *count as usize).sum();
    r#"{"type":"command","id":,"ts":1767600000000,"actions":[]}"#.len() + truth.message_id_width + actions - 1
}

#[test]
fn sizes_are_linear_except_for_id_width_and_length_fields() {
    for framing in FRAMINGS {
        let mut scenario = small();
        scenario.session.framing = framing;
        scenario.command.message_id.draw = IdDraw::Digits;
        scenario.test.commands = 60;
        let simulation = simulate(&scenario, 2).unwrap();
        let mut overheads: BTreeMap<usize, usize> = BTreeMap::new();
        for truth in simulation.learn.truths.iter().chain(&simulation.test.truths) {
            let body = body_size(&scenario, truth);
            let overhead = truth.plaintext_size - body;
            assert_eq!(*overheads.entry(body).or_insert(overhead), overhead);
        }
        let grows = |least: usize| {
            let (below, above): (Vec<_>, Vec<_>) = overheads.iter().partition(|(body, _)| **body < least);
            let sizes = |part: Vec<(&usize, &usize)>| {
                let mut sizes: Vec<usize> = part.into_iter().map(|(_, overhead)| *overhead).collect();
                sizes.dedup();
                sizes
            };
            (sizes(below), sizes(above))
        };
        match framing {
            Framing::Websocket => assert_eq!(grows(126), (vec![2], vec![4])),
            // The variable header has 15 bytes: topic and identifier.
            Framing::Mqtt => assert_eq!(grows(128 - 15), (vec![2 + 15], vec![3 + 15])),
            Framing::Http => {
                let (below, above) = grows(100);
                assert_eq!((below.len(), above.len()), (1, 1), "{overheads:?}");
                assert_eq!(below[0] + 1, above[0]);
            }
        }
    }
}

#[test]
fn connections_are_complete_and_acknowledged() {
    let mut scenario = small();
    scenario.network.initial_sequence = InitialSequence::NearWrap;
    scenario.session.reconnect_after = SignedDuration::from_secs(60);
    let simulation = simulate(&scenario, 5).unwrap();
    let packets = packets(&simulation.test.bytes);
    let (gateway, service) = (scenario.network.gateway, scenario.network.service);
    assert!(packets.is_sorted_by_key(|packet| packet.time_ns));
    let between = |from, to| {
        packets.iter().filter(move |packet| packet.source == from && packet.destination == to).collect::<Vec<_>>()
    };
    let connections = records(&packets, gateway, service).len();
    assert!(connections >= 3, "{connections}");
    for (from, to) in [(gateway, service), (service, gateway)] {
        let sent = between(from, to);
        let count = |is: fn(&super::capture_reader::ParsedTcp) -> bool| {
            sent.iter().filter(|seen| seen.tcp.as_ref().is_some_and(is)).count()
        };
        assert_eq!((count(|tcp| tcp.syn), count(|tcp| tcp.fin)), (connections, connections));
    }
    assert!(wrapped(&between(service, gateway)), "sequence numbers should wrap");
    assert_acknowledged(&packets, gateway, service);
    assert_acknowledged(&packets, service, gateway);
}

fn wrapped(sent: &[&super::capture_reader::ParsedPacket]) -> bool {
    let sequences = sent.iter().filter_map(|seen| seen.tcp.as_ref()).map(|tcp| tcp.sequence);
    let (high, low): (Vec<u32>, Vec<u32>) = sequences.partition(|sequence| *sequence > 1 << 31);
    !high.is_empty() && !low.is_empty()
}

/// Only captured bytes are acknowledged, and in the end all are.
fn assert_acknowledged(packets: &[super::capture_reader::ParsedPacket], from: std::net::IpAddr, to: std::net::IpAddr) {
    let mut sent: BTreeMap<(u16, u16), u32> = BTreeMap::new();
    let mut acknowledged = sent.clone();
    for packet in packets {
        let Some(tcp) = &packet.tcp else { continue };
        if (packet.source, packet.destination) == (from, to) {
            let length = tcp.payload.len() + usize::from(tcp.syn) + usize::from(tcp.fin);
            let end = tcp.sequence.wrapping_add(u32::try_from(length).unwrap());
            let most = sent.entry(packet.ports).or_insert(end);
            *most = if end.wrapping_sub(*most) < 1 << 31 { end } else { *most };
        } else if (packet.source, packet.destination) == (to, from)
            && let Some(ack) = tcp.ack
        {
            let ports = (packet.ports.1, packet.ports.0);
            assert!(sent[&ports].wrapping_sub(ack) < 1 << 31, "acknowledged before it was captured");
            acknowledged.insert(ports, ack);
        }
    }
    assert_eq!(sent, acknowledged);
}

#[test]
fn the_default_scenario_is_small_and_has_the_papers_experiments() {
    let scenario = Scenario::default();
    for seed in 1..=3 {
        let simulation = simulate(&scenario, seed).unwrap();
        assert_eq!((simulation.learn.truths.len(), simulation.test.truths.len()), (7 * 2 * 3 + 150, 307));
        let size = simulation.learn.bytes.len() + simulation.test.bytes.len();
        assert!(size < 900_000, "{size} bytes");
        let all = simulation.learn.truths.iter().chain(&simulation.test.truths);
        let actions: u32 = all.clone().flat_map(|truth| &truth.counts).sum();
        let replies: usize = all.map(|truth| truth.replies).sum();
        let lost = 1.0 - replies as f64 / f64::from(actions);
        assert!((0.005..0.06).contains(&lost), "{replies} replies to {actions} actions");
    }
}

#[test]
fn label_times_are_inexact_within_the_configured_error() {
    let scenario = small();
    let part = simulate(&scenario, 9).unwrap().test;
    let mut lines = part.labels.lines();
    assert_eq!(lines.next(), Some("time,on,off,toggle,timer,dim,white,colour"));
    let mut exact = 0;
    for (line, truth) in lines.by_ref().zip(&part.truths) {
        let (time, counts) = line.split_once(',').unwrap();
        let (seconds, decimals) = time.split_once('.').unwrap();
        assert_eq!(decimals.len(), 6);
        let time_ns = seconds.parse::<i64>().unwrap() * 1_000_000_000 + decimals.parse::<i64>().unwrap() * 1_000;
        assert!((time_ns - truth.time_ns).abs() <= 300_001_000, "{line}");
        exact += i32::from(time_ns == truth.time_ns);
        let counts: Vec<u32> = counts.split(',').map(|count| count.parse().unwrap()).collect();
        assert_eq!(counts, truth.counts);
    }
    assert_eq!((lines.next(), part.labels.lines().count()), (None, 21));
    assert!(exact < 3, "label times should be inexact");
}

#[test]
fn mid_stream_captures_have_no_handshake() {
    for framing in FRAMINGS {
        let mut scenario = small();
        scenario.capture.mid_stream = true;
        scenario.capture.resolution = Resolution::Nanosecond;
        scenario.session.framing = framing;
        let simulation = simulate(&scenario, 4).unwrap();
        let network = &scenario.network;
        let packets = packets(&simulation.test.bytes);
        let seen = records(&packets, network.service, network.gateway);
        let seen: Vec<TlsRecord> = seen.into_values().flatten().collect();
        assert!(seen.iter().all(|record| record.content_type == 23 || record.content_type == 21));
        let matched = simulation.test.truths.iter().filter(|truth| records_of(&seen, truth).len() == 1).count();
        assert_eq!(matched, 20);
        let opens = |packet: &&super::capture_reader::ParsedPacket| {
            packet.destination == network.service && packet.tcp.as_ref().is_some_and(|tcp| tcp.syn)
        };
        assert_eq!(packets.iter().filter(opens).count(), 0);
    }
}

#[test]
fn chunks_and_segments_preserve_the_total_size() {
    let mut scenario = small();
    scenario.tls.chunk = 50;
    scenario.network.segment_size = 100;
    let part = simulate(&scenario, 6).unwrap().test;
    let records = pushed(&scenario, &part);
    for truth in &part.truths {
        let records = records_of(&records, truth);
        assert_eq!(records.len(), truth.plaintext_size.div_ceil(50));
        assert_eq!(truth.records, records.len());
        let plaintext: usize = records.iter().map(|record| record.length - 24).sum();
        assert_eq!(plaintext, truth.plaintext_size);
        assert!(truth.end_ns > truth.time_ns);
    }
}

#[test]
fn long_messages_are_split_into_full_records() {
    for framing in FRAMINGS {
        let mut scenario = small();
        scenario.session.framing = framing;
        scenario.actions[0].set = "x".repeat(70_000).into();
        scenario.learn.random = 0;
        scenario.test.commands = 1;
        let part = simulate(&scenario, 6).unwrap().learn;
        let records = pushed(&scenario, &part);
        let truth = &part.truths[0];
        assert!(truth.plaintext_size > 70_000);
        let plaintext: usize = records_of(&records, truth).iter().map(|record| record.length - 24).sum();
        assert_eq!(plaintext, truth.plaintext_size);
        assert_eq!(truth.records, truth.plaintext_size.div_ceil(16_384));
    }
}

#[test]
fn a_disturbed_capture_has_the_same_traffic() {
    let scenario = small();
    let clean = packets(&simulate(&scenario, 2).unwrap().test.bytes);
    let disturbed = |change: fn(&mut Scenario)| {
        let mut scenario = scenario.clone();
        change(&mut scenario);
        packets(&simulate(&scenario, 2).unwrap().test.bytes)
    };
    let lossy = disturbed(|scenario| scenario.capture.loss = 0.1);
    assert!(lossy.len() < clean.len() * 95 / 100 && lossy.len() > clean.len() * 85 / 100);
    assert!(lossy.iter().all(|packet| clean.contains(packet)));
    let doubled = disturbed(|scenario| scenario.capture.duplication = 0.1);
    let mut unique = doubled.clone();
    unique.dedup();
    assert!(doubled.len() > clean.len());
    assert_eq!(unique, clean);
    let disordered = disturbed(|scenario| scenario.capture.reordering = 0.5);
    assert_eq!(disordered.len(), clean.len());
    let tcp = |packets: &[super::capture_reader::ParsedPacket]| {
        packets.iter().map(|packet| packet.tcp.clone()).collect::<Vec<_>>()
    };
    assert_ne!(tcp(&disordered), tcp(&clean));
}

#[test]
fn retransmissions_do_not_change_records() {
    let mut scenario = small();
    scenario.network.retransmission = 0.2;
    let simulation = simulate(&scenario, 2).unwrap();
    let records = pushed(&scenario, &simulation.test);
    assert!(simulation.test.truths.iter().all(|truth| records_of(&records, truth).len() == 1));
    let mut seen: BTreeMap<(std::net::IpAddr, u16, u32, Vec<u8>), u32> = BTreeMap::new();
    for packet in packets(&simulation.test.bytes) {
        if let Some(tcp) = packet.tcp.filter(|tcp| !tcp.payload.is_empty()) {
            *seen.entry((packet.source, packet.ports.0, tcp.sequence, tcp.payload)).or_default() += 1;
        }
    }
    assert!(seen.values().filter(|count| **count == 2).count() > seen.len() / 10);
}

#[test]
fn ipv6_addresses_make_an_ipv6_network() {
    let mut scenario = small();
    scenario.network.gateway = "fd00:0:0:1::20".parse().unwrap();
    scenario.network.service = "2001:db8::10".parse().unwrap();
    let simulation = simulate(&scenario, 2).unwrap();
    assert!(packets(&simulation.test.bytes).iter().all(|packet| packet.source.is_ipv6()));
    let records = pushed(&scenario, &simulation.test);
    assert!(simulation.test.truths.iter().all(|truth| records_of(&records, truth).len() == 1));
}

#[test]
fn numbers_of_replies_and_device_ids_follow_the_scenario() {
    let mut scenario = small();
    scenario.replies.mode = ReplyMode::None;
    assert!(simulate(&scenario, 2).unwrap().test.truths.iter().all(|truth| truth.replies == 0));
    scenario.replies.mode = ReplyMode::PerCommand;
    scenario.replies.loss = 0.0;
    scenario.session.framing = Framing::Mqtt;
    scenario.session.quality_of_service = QualityOfService::AtMostOnce;
    assert!(simulate(&scenario, 2).unwrap().test.truths.iter().all(|truth| truth.replies == 1));
    scenario.command.device_ids = DeviceIds::Varying;
    let truths = simulate(&scenario, 2).unwrap().learn.truths;
    let varies = truths.iter().any(|truth| {
        let same = |other: &&Truth| {
            (&other.counts, other.message_id_width) == (&truth.counts, truth.message_id_width)
                && other.plaintext_size != truth.plaintext_size
        };
        truths.iter().find(same).is_some()
    });
    assert!(varies, "sizes should depend on the device");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However messages are split and encrypted, the records add up to the plaintext and the overhead.
    #[test]
    fn records_of_any_scenario_add_up_to_its_messages(
        seed: u64,
        framing in prop::sample::select(FRAMINGS.to_vec()),
        (version, suite, overhead) in prop::sample::select(vec![
            (Version::Tls12, Suite::Aes128Gcm, 24),
            (Version::Tls12, Suite::ChaCha20Poly1305, 16),
            (Version::Tls13, Suite::Aes256Gcm, 17),
        ]),
        chunk in prop_oneof![Just(0), 1_usize..300],
        segment_size in 64_u16..2_000,
        interval in 50_i64..5_000,
        round_trip in 1_i64..300,
        retransmission in 0.0..0.3,
    ) {
        let mut scenario = small();
        (scenario.session.framing, scenario.tls.version, scenario.tls.suite) = (framing, version, suite);
        (scenario.tls.chunk, scenario.network.segment_size) = (chunk, segment_size);
        scenario.command.interval.min = SignedDuration::from_millis(interval);
        scenario.network.round_trip = SignedDuration::from_millis(round_trip);
        scenario.network.retransmission = retransmission;
        let part = simulate(&scenario, seed).unwrap().test;
        prop_assert_eq!(part.truths.len(), 20);
        let records = pushed(&scenario, &part);
        for truth in &part.truths {
            let records = records_of(&records, truth);
            prop_assert_eq!(records.len(), truth.records);
            let length: usize = records.iter().map(|record| record.length).sum();
            prop_assert_eq!(length, truth.wire_size);
            prop_assert_eq!(truth.wire_size, truth.plaintext_size + truth.records * overhead);
        }
    }
}
