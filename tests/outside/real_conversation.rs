//! Conversations of real programs through real sockets: the sizes are those of the messages sent, and those that tshark
//! sees.

use std::collections::BTreeMap;
use std::fs;
use support::tshark;

use sizeleak_frame::{ContentType, Direction, Record};
use sizeleak_model::policies::{PaddingPolicy, PolicyFile};
use support::chain::{FlowFinder, Sized};
use support::conversation::{GATEWAY, Message, Namespace, Protection, SERVER_NAME, SERVICE};
use support::tshark::Tshark;
use tempfile::TempDir;

/// Sizes below and above the limits of length fields, segments, fragments and records.
const SIZES: [usize; 12] = [87, 125, 126, 1_000, 1_399, 1_460, 4_096, 16_000, 16_384, 16_385, 20_000, 20_000];

/// Sizes on both sides of those that policies pad to, in pairs: the service pads the second ones. Pipes pass each at
/// once.
const PADDED_SIZES: [usize; 18] =
    [87, 87, 104, 104, 105, 105, 128, 128, 131, 131, 132, 132, 1_999, 1_999, 2_001, 2_001, 4_096, 4_096];

/// How a suite's plaintext follows from the size on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plaintext {
    Exact,
    InRange,
}

const CONVERSATIONS: [(Protection, &str, &str, Plaintext); 9] = {
    use Plaintext::{Exact, InRange};
    const fn with(version: &'static str, suite: &'static str) -> Protection {
        Protection { version, suite }
    }
    [
        (with("-tls1_2", "ECDHE-ECDSA-AES128-GCM-SHA256"), "TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Exact),
        (
            with("-tls1_2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
            "TLS 1.2",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            Exact,
        ),
        (with("-tls1_2", "ECDHE-ECDSA-AES128-SHA"), "TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", InRange),
        (with("-tls1_2", "ECDHE-ECDSA-AES256-SHA384"), "TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", InRange),
        (with("-tls1_3", "TLS_AES_128_GCM_SHA256"), "TLS 1.3", "TLS_AES_128_GCM_SHA256", Exact),
        (with("-tls1_3", "TLS_CHACHA20_POLY1305_SHA256"), "TLS 1.3", "TLS_CHACHA20_POLY1305_SHA256", Exact),
        (
            with("-dtls1_2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
            "DTLS 1.2",
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            Exact,
        ),
        // CoAP's own: the tag is 8 bytes long.
        (
            with("-dtls1_2", "ECDHE-ECDSA-AES128-CCM8:@SECLEVEL=0"),
            "DTLS 1.2",
            "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8",
            Exact,
        ),
        (with("-dtls1_2", "ECDHE-ECDSA-AES128-SHA"), "DTLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", InRange),
    ]
};

#[test]
#[ignore = "second tier: needs root, openssl, tcpdump, tshark, unshare, nsenter, ip and ss"]
fn sizes_are_those_of_the_messages_sent() {
    let folder = TempDir::new().unwrap();
    let namespace = Namespace::new(folder.path()).unwrap();
    let tshark = Tshark::new(&folder.path().join("tshark"));
    for (number, (protection, version, suite, plaintext)) in CONVERSATIONS.into_iter().enumerate() {
        let name = format!("{number}.pcap");
        let (capture, messages) = namespace.converse(&name, protection, &SIZES).unwrap();
        let sized = Sized::of(&capture, Some(GATEWAY.into()));
        assert_eq!(sized.damage, None);
        check_session(&sized, version, suite);
        check_messages(&sized, &messages, plaintext);
        let records = tshark.records(&capture, &["tcp.port==443,tls", "udp.port==443,dtls"]);
        check_against_tshark(&sized, &records);
        println!("{version} {suite}: {} messages, {} records, all as tshark", messages.len(), records.len());
    }
}

#[test]
#[ignore = "second tier: needs root, openssl, tcpdump, tshark, unshare, nsenter, ip and ss"]
fn sizes_are_those_of_the_policy_that_openssl_pads_its_records_by() {
    let folder = TempDir::new().unwrap();
    let namespace = Namespace::new(folder.path()).unwrap();
    let table = PaddingPolicy::Table { buckets: vec![104, 131, 512, 2_000] };
    for (number, policy) in [table, PaddingPolicy::Multiple { bytes: 128 }].into_iter().enumerate() {
        let (file, name) = (folder.path().join("policy.json"), format!("padded-{number}.pcap"));
        fs::write(&file, PolicyFile::new(policy.clone(), None).to_json().unwrap()).unwrap();
        let (capture, mut messages) = namespace.converse_padded(&file, &name, &PADDED_SIZES).unwrap();
        let sized = Sized::of(&capture, Some(GATEWAY.into()));
        assert_eq!(sized.damage, None);
        check_session(&sized, "TLS 1.3", "TLS_AES_128_GCM_SHA256");
        for message in messages.iter_mut().filter(|message| message.to_gateway) {
            message.size = policy.padded(message.size as u64).unwrap() as usize;
        }
        check_messages(&sized, &messages, Plaintext::Exact);
        println!("{policy}: {} messages", messages.len());
    }
}

fn check_session(sized: &Sized, version: &str, suite: &str) {
    assert_eq!(sized.flows.len(), 1, "{:?}", sized.flows);
    let flow = sized.flows.values().next().unwrap();
    assert_eq!((flow.gateway.to_string(), flow.service.ip().to_string()), (GATEWAY.to_string(), SERVICE.to_string()));
    let session = sized.sessions.last().unwrap();
    assert_eq!(session.server_name.as_deref(), Some(SERVER_NAME));
    assert_eq!(session.tls_version.as_deref(), Some(version));
    assert_eq!(session.cipher_suite.as_deref(), Some(suite));
}

/// Checks that the records between a message's start and end add up to it.
fn check_messages(sized: &Sized, messages: &[Message], plaintext: Plaintext) {
    let is_data = |record: &&Record| !record.handshake && record.content_type == ContentType::ApplicationData;
    for message in messages {
        let direction = if message.to_gateway { Direction::ToGateway } else { Direction::FromGateway };
        let carriers: Vec<&Record> = sized
            .records
            .iter()
            .filter(is_data)
            .filter(|record| record.direction == direction)
            .filter(|record| record.start_ns >= message.from_ns && record.time_ns <= message.until_ns)
            .collect();
        let range = carriers.iter().map(|record| record.plaintext.unwrap());
        let [least, most] = range.fold([0, 0], |sum, range| [sum[0] + range[0], sum[1] + range[1]]);
        let size = message.size as u64;
        assert!(least <= size && size <= most, "{message:?}: {least} to {most} in {carriers:?}");
        if plaintext == Plaintext::Exact {
            assert_eq!((least, most), (size, size), "{message:?}: {carriers:?}");
        } else {
            // One block per record, and whether a MAC is counted among the padded bytes or after them.
            assert!(most - least < 32 * carriers.len() as u64, "{message:?}: {least} to {most}");
        }
    }
}

fn check_against_tshark(sized: &Sized, records: &[tshark::Seen]) {
    let mut flow_finder = FlowFinder::new(sized);
    let mut theirs: BTreeMap<(u64, Direction), Vec<(u8, u32)>> = BTreeMap::new();
    for seen in records {
        let place = flow_finder.find(seen.source, seen.destination, seen.time_ns, seen.sequence).unwrap();
        theirs.entry(place).or_default().push((seen.content_type, seen.length));
    }
    let ours: BTreeMap<_, Vec<_>> = sized
        .by_direction()
        .into_iter()
        .map(|(place, records)| {
            (place, records.iter().map(|record| (record.content_type.into(), record.length)).collect())
        })
        .collect();
    assert_eq!(ours, theirs);
}
