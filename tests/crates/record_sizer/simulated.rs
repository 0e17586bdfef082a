//! Known messages through real TLS: plaintext sizes, sessions, and which records belong to the handshake.

use std::collections::BTreeMap;

use super::wire::{OwnedSegment, size};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use sizeleak_frame::{ContentType, Direction, Frame, Record, Segment, Session};
use sizeleak_simulator::scenario::{Framing, Suite, Version};
use sizeleak_simulator::{Scenario, SimulatedCapture, Truth, simulate};

/// The segments between gateway and service; the ports are the flow.
fn segments(scenario: &Scenario, part: &SimulatedCapture) -> Vec<OwnedSegment> {
    let (gateway, service) = (scenario.network.gateway, scenario.network.service);
    let mut reader = PcapReader::new(part.bytes.as_slice()).unwrap();
    let mut segments = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let sliced = SlicedPacket::from_ethernet(&packet.data).unwrap();
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (&sliced.net, &sliced.transport) else {
            continue;
        };
        let (source, destination) = (ip.header().source_addr(), ip.header().destination_addr());
        let direction = match (source == service, destination == service) {
            (true, false) if destination == gateway => Direction::ToGateway,
            (false, true) if source == gateway => Direction::FromGateway,
            _ => continue,
        };
        let header = tcp.to_header();
        segments.push(OwnedSegment {
            time_ns: packet.timestamp.as_nanos() as i64,
            flow: u64::from(header.source_port) + u64::from(header.destination_port),
            direction,
            sequence: header.sequence_number,
            flags: if header.syn { Segment::SYN } else { Segment::ACK },
            length: tcp.payload().len() as u32,
            payload: tcp.payload().to_vec(),
            acknowledgement: header.ack.then_some(header.acknowledgment_number),
        });
    }
    segments
}

fn scenario(version: Version, suite: Suite, framing: Framing) -> Scenario {
    let mut scenario = Scenario::default();
    (scenario.tls.version, scenario.tls.suite, scenario.session.framing) = (version, suite, framing);
    (scenario.learn.repeats, scenario.learn.random, scenario.test.commands) = (1, 4, 30);
    scenario
}

fn records_and_sessions(frames: Vec<Frame>) -> (Vec<Record>, Vec<Session>) {
    let (mut records, mut sessions) = (Vec::new(), Vec::new());
    for frame in frames {
        match frame {
            Frame::Record(record) => records.push(record),
            Frame::Session(session) => sessions.push(*session),
            other => panic!("{other:?}"),
        }
    }
    (records, sessions)
}

/// The records of a command.
fn carriers<'a>(records: &'a [Record], truth: &Truth) -> Vec<&'a Record> {
    let to_gateway = records.iter().filter(|record| record.direction == Direction::ToGateway);
    to_gateway.filter(|record| (truth.time_ns..=truth.end_ns).contains(&record.time_ns)).collect()
}

/// The plaintext of records, at least and at most.
fn plaintext(records: &[&Record]) -> [u64; 2] {
    let sizes = records.iter().map(|record| record.plaintext.unwrap());
    sizes.fold([0, 0], |sum, range| [sum[0] + range[0], sum[1] + range[1]])
}

#[test]
fn plaintext_sizes_of_commands_are_exact_with_aead() {
    let cases = [
        (Version::Tls12, Suite::Aes128Gcm, Framing::Websocket, "TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        (
            Version::Tls12,
            Suite::ChaCha20Poly1305,
            Framing::Http,
            "TLS 1.2",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        ),
        (Version::Tls13, Suite::Aes128Gcm, Framing::Mqtt, "TLS 1.3", "TLS_AES_128_GCM_SHA256"),
        (Version::Tls13, Suite::Aes256Gcm, Framing::Websocket, "TLS 1.3", "TLS_AES_256_GCM_SHA384"),
        (Version::Tls13, Suite::ChaCha20Poly1305, Framing::Http, "TLS 1.3", "TLS_CHACHA20_POLY1305_SHA256"),
    ];
    for (version, suite, framing, tls_version, cipher_suite) in cases {
        let scenario = scenario(version, suite, framing);
        let part = simulate(&scenario, 21).unwrap().test;
        let (records, sessions) = records_and_sessions(size(&segments(&scenario, &part)));
        for session in &sessions {
            assert_eq!(session.server_name.as_deref(), Some(scenario.network.name.as_str()));
            assert_eq!(
                (session.tls_version.as_deref(), session.cipher_suite.as_deref()),
                (Some(tls_version), Some(cipher_suite))
            );
        }
        assert!(!sessions.is_empty());
        for truth in &part.truths {
            let carriers = carriers(&records, truth);
            assert_eq!(carriers.len(), truth.records, "{tls_version} {framing:?}");
            assert!(carriers.iter().all(|record| !record.handshake));
            assert_eq!(plaintext(&carriers), [truth.plaintext_size as u64; 2]);
        }
    }
}

/// A range has sixteen sizes, or one if the record is too short for more.
#[test]
fn ranges_of_cbc_contain_the_plaintext_sizes_of_commands() {
    let cases = [
        (Suite::Aes128CbcSha, Framing::Websocket, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
        (Suite::Aes256CbcSha, Framing::Mqtt, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
        (Suite::Aes128CbcSha256, Framing::Http, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    ];
    for (suite, framing, cipher_suite) in cases {
        for chunk in [0, 100] {
            let mut scenario = scenario(Version::Tls12, suite, framing);
            scenario.tls.chunk = chunk;
            let part = simulate(&scenario, 21).unwrap().test;
            let (records, sessions) = records_and_sessions(size(&segments(&scenario, &part)));
            assert!(sessions.iter().all(|session| session.cipher_suite.as_deref() == Some(cipher_suite)));
            assert!(!sessions.is_empty());
            for truth in &part.truths {
                let carriers = carriers(&records, truth);
                assert_eq!(carriers.len(), truth.records);
                let mut sizes = carriers.iter().map(|record| record.plaintext.unwrap());
                assert!(sizes.all(|[least, most]| most - least == 15 || least == 0));
                let [least, most] = plaintext(&carriers);
                assert!((least..=most).contains(&(truth.plaintext_size as u64)), "{least} to {most}: {truth:?}");
            }
        }
    }
}

/// All records before the gateway's first message belong to the handshake, tickets included.
#[test]
fn handshake_ends_with_the_first_message_of_the_gateway() {
    for (version, suite) in [(Version::Tls12, Suite::Aes128Gcm), (Version::Tls13, Suite::Aes256Gcm)] {
        for framing in [Framing::Websocket, Framing::Mqtt, Framing::Http] {
            let scenario = scenario(version, suite, framing);
            let part = simulate(&scenario, 22).unwrap().test;
            let (records, _) = records_and_sessions(size(&segments(&scenario, &part)));
            let mut flows: BTreeMap<u64, Vec<&Record>> = BTreeMap::new();
            for record in &records {
                flows.entry(record.flow).or_default().push(record);
            }
            for records in flows.values() {
                let first = records.iter().position(|record| !record.handshake).unwrap();
                assert_eq!(records[first].direction, Direction::FromGateway, "{version:?} {framing:?}");
                assert_eq!(records[first].content_type, ContentType::ApplicationData);
                let tickets = records[first..].iter().filter(|record| record.handshake);
                assert!(tickets.clone().all(|record| record.direction == Direction::ToGateway));
                assert!(tickets.count() <= 4);
            }
        }
    }
}
