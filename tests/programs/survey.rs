//! `sizeleak survey`: what it says of homes, of captures without a gateway, and of captures that are damaged or hostile.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use support::damage::cut_packets;
use support::found;

use serde_json::Value;
use support::home::run;
use support::injected::{HOME, Syn, Traffic, tcp, udp};
use support::programs::{GATEWAY, example, interrupt, root, sizeleak, start, stderr, supply, write};
use tempfile::TempDir;

fn survey(captures: &[&Path], more: &[&str]) -> Output {
    run(sizeleak("survey").args(captures).args(more))
}

/// The survey as JSON.
fn json(captures: &[&Path], more: &[&str]) -> Value {
    let output = survey(captures, &[&["--format=json"], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The survey for people.
fn text(captures: &[&Path], more: &[&str]) -> String {
    let output = survey(captures, more);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn bundled() -> PathBuf {
    root().join(example("test.pcap"))
}

/// The addresses with this verdict.
fn with_verdict<'a>(report: &'a Value, verdict: &str) -> Vec<&'a str> {
    let addresses = report["addresses"].as_array().unwrap().iter();
    addresses.filter(|one| one["verdict"] == verdict).map(|one| one["address"].as_str().unwrap()).collect()
}

/// How many messages of a service are of a kind.
fn count(service: &Value, direction: &str, kind: &str) -> u64 {
    let kinds = service["traffic"]["kinds"].as_array().unwrap();
    let found = kinds.iter().find(|one| one["direction"] == direction && one["kind"] == kind);
    found.map_or(0, |found| found["count"].as_u64().unwrap())
}

/// Captures of packets that are made here.
struct Made {
    folder: TempDir,
    traffic: Traffic,
}

impl Made {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), traffic: Traffic(Vec::new()) }
    }

    fn add(&mut self, at_ms: u64, frame: Vec<u8>) {
        self.traffic.0.push((Duration::from_millis(1_767_600_000_000 + at_ms), frame));
    }

    /// A connection that a client opens, and the records that its server sends, all of this length.
    fn download(&mut self, at_ms: u64, ends: [[u8; 4]; 2], port: u16, lengths: &[usize]) {
        let [client, server] = ends;
        self.add(at_ms, tcp(client, server, [port, 443], 99, Syn::Set, &[]));
        self.add(at_ms + 10, tcp(client, server, [port, 443], 100, Syn::Clear, &record(120)));
        let mut sequence = 100;
        for (number, length) in (1..).zip(lengths) {
            for part in record(*length).chunks(1400) {
                self.add(at_ms + 10 + 10 * number, tcp(server, client, [443, port], sequence, Syn::Clear, part));
                sequence += part.len() as u32;
            }
        }
    }

    fn write(&mut self) -> PathBuf {
        self.traffic.0.sort_by_key(|(time, _)| *time);
        write(self.folder.path(), "made.pcap", self.traffic.to_pcap())
    }
}

/// A TLS record of application data.
fn record(length: usize) -> Vec<u8> {
    [&[23, 3, 3], &(length as u16).to_be_bytes()[..], &vec![7; length]].concat()
}

/// The command lines that a survey prints, without the programs' name.
fn printed_commands(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| line.strip_prefix("    sizeleak "));
    lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn a_computer_that_reads_pages_is_no_gateway() {
    let mut made = Made::new();
    for page in 0..60_u16 {
        let server = [198, 51, 100, page as u8 + 1];
        made.download(u64::from(page) * 20_000, [[192, 168, 1, 30], server], 50_000 + page, &[16_000; 6]);
    }
    let capture = made.write();
    let report = json(&[&capture], &[]);
    assert_eq!(report["addresses"].as_array().map(Vec::len), Some(1));
    assert_eq!(with_verdict(&report, "unlikely"), ["192.168.1.30"], "{report:#}");
    let text = text(&[&capture], &[]);
    assert!(
        text.starts_with("19 min") && text.replace('\n', " ").contains("no address looks like a gateway"),
        "{text}"
    );
}

#[test]
fn a_web_server_is_named_as_a_server_and_its_clients_are_no_gateways() {
    let mut made = Made::new();
    for client in 0..40_u16 {
        let ends = [[198, 51, 100, client as u8 + 1], [203, 0, 113, 80]];
        made.download(u64::from(client) * 30_000, ends, 50_000, &[900, 16_000, 300]);
    }
    let capture = made.write();
    let report = json(&[&capture], &[]);
    assert_eq!((with_verdict(&report, "likely").len(), with_verdict(&report, "possible").len()), (0, 0), "{report:#}");
    assert_eq!(report["servers"][0]["address"], "203.0.113.80");
    assert_eq!(report["servers"][0]["clients"], 40);
    let folder = tempfile::tempdir().unwrap();
    let said = stderr(&run(sizeleak("run --kind record").arg(&capture).current_dir(folder.path())));
    assert!(said.contains("; or else 203.0.113.80, to which only others opened connections"), "{said}");
}

#[test]
fn connections_without_tls_and_quic_are_said_to_be_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut traffic = found::without_tls();
    // An `Initial` with an id of 8 bytes, no token, and 1232 bytes that nobody can decrypt.
    let quic = [&[0xc3, 0, 0, 0, 1, 8][..], &[9; 8], &[0, 0, 0x44, 0xd0], &[9; 1232]].concat();
    traffic.insert_behind(50, [udp(HOME, [198, 51, 100, 7], [55_555, 443], &quic)]);
    let capture = write(folder.path(), "plain.pcap", traffic.to_pcap());
    let report = json(&[&capture], &[]);
    let services = report["addresses"][0]["services"].as_array().unwrap();
    let of = |end: &str| services.iter().find(|service| service["ends"][0] == end).unwrap();
    assert_eq!(of("203.0.113.10:443")["protocol"], "tcp");
    assert_eq!(of("203.0.113.10:443")["connections"][0]["joined_mid_stream"], Value::Null);
    assert_eq!(of("198.51.100.7:443")["protocol"], "quic");
    let text = text(&[&capture], &[]);
    assert!(text.contains("no TLS, no QUIC; bursts of TCP segments stand for"), "{text}");
    assert!(text.contains("QUIC, suite unknown"), "{text}");
    assert!(printed_commands(&text).iter().all(|line| line.contains(&"record-sizer.plain-tcp=true".to_owned())));
}

#[test]
fn datagrams_from_the_middle_of_a_session_are_no_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let mut traffic = found::without_tls();
    let both = |ports: [u16; 2], at: u8, payload: &[u8]| {
        let service = [198, 51, 100, 7];
        if at.is_multiple_of(2) {
            udp(HOME, service, ports, payload)
        } else {
            udp(service, HOME, [ports[1], ports[0]], payload)
        }
    };
    let data = |at: u8| [&[23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, at, 0, 60][..], &[at; 60]].concat();
    let short = |at: u8| [&[0x41][..], &[7 + at % 2; 8], &[at.wrapping_mul(37); 60]].concat();
    // Each stands before those that came before it.
    for at in (1..30).rev() {
        let datagrams = [both([50_000, 5684], at, &data(at)), both([50_000, 443], at, &short(at))];
        traffic.insert_behind(50, datagrams);
    }
    let capture = write(folder.path(), "middle.pcap", traffic.to_pcap());
    let report = json(&[&capture], &[]);
    let services = report["addresses"][0]["services"].as_array().unwrap();
    for (end, protocol) in [("198.51.100.7:5684", "dtls"), ("198.51.100.7:443", "quic")] {
        let service = services.iter().find(|service| service["ends"][0] == end).unwrap();
        assert_eq!((&service["protocol"], &service["joined_mid_stream"]), (&protocol.into(), &1.into()), "{report:#}");
        assert_eq!(service["connections"][0]["joined_mid_stream"], true, "{report:#}");
    }
}

#[test]
fn connections_of_as_many_messages_are_shown_by_their_time() {
    let mut made = Made::new();
    for (at_ms, port) in [(0, 50_009), (5_000, 50_003), (10_000, 50_007), (15_000, 50_001), (20_000, 50_005)] {
        made.download(at_ms, [[192, 168, 1, 20], [203, 0, 113, 5]], port, &[100, 200]);
    }
    let text = text(&[&made.write()], &[]);
    let began = |line: &&str| line.trim_start().starts_with("2026-");
    let began: Vec<&str> = text.lines().filter(began).collect();
    assert!(began.len() == 3 && began.is_sorted(), "{text}");
    assert!(text.contains("… 2 more connections with as many messages or fewer"), "{text}");
}

#[test]
fn a_handshake_that_was_cut_is_no_late_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let cut = write(folder.path(), "cut.pcap", cut_packets(&std::fs::read(bundled()).unwrap(), 60));
    let surveyed = text(&[&cut], &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(surveyed.contains("no handshake seen at its beginning"), "{surveyed}");
    assert!(surveyed.contains("at the beginning of 3 of 3 connections"), "{surveyed}");
}

#[test]
fn a_survey_that_is_stopped_shows_what_was_read_until_then() {
    let mut child = start(&mut sizeleak("survey - --format=json"));
    // Written means read, but for what a pipe holds.
    let stdin = supply(&mut child, std::fs::read(bundled()).unwrap()).join().unwrap();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("the survey covers everything read until then"), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(with_verdict(&report, "likely"), [GATEWAY]);
}

#[test]
#[ignore = "second tier: needs prlimit"]
fn a_flood_of_connections_hides_no_gateway_and_takes_bounded_memory() {
    const MAX_BYTES: u64 = 160 << 20;
    let mut made = Made::new();
    made.traffic = Traffic::bundled();
    let begin = made.traffic.0[0].0;
    let data = record(40);
    for number in 0..60_000_u32 {
        let [_, b, c, d] = number.to_be_bytes();
        let frame = tcp([10, b, c, d], [198, 51, c, d], [50_000, 443], 7, Syn::Clear, &[&data[..], &data].concat());
        made.traffic.0.push((begin + Duration::from_millis(u64::from(number)), frame));
    }
    let capture = made.write();
    let mut command = Command::new("prlimit");
    command.arg(format!("--data={MAX_BYTES}")).args(["--", env!("CARGO_BIN_EXE_sizeleak"), "survey", "--format=json"]);
    let output = run(command.arg(&capture));
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(with_verdict(&report, "likely"), [GATEWAY]);
    assert_eq!(count(&report["addresses"][0]["services"][0], "to_gateway", "commands"), 307);
    assert!(report["left_out"].as_u64().unwrap() > 50_000, "{}", report["left_out"]);
}
