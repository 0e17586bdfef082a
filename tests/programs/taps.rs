//! Archives of several taps: what they captured together has the answers of the whole traffic.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout, write};
use support::rotation::{capture, packets, tree};
use tempfile::TempDir;

/// By how much the clock of the gateway's own capture is ahead, in microseconds.
const AHEAD_US: i64 = 37_000_000;

/// The most that the time of a packet differs between the taps besides that, in microseconds.
const JITTER_US: i64 = 300;

/// The bundled home at a mirror port and at the gateway, in the folders `mirror` and `gateway`. Both lose packets, and the
/// gateway's own capture begins late.
struct Taps {
    folder: TempDir,
}

impl Taps {
    fn new() -> Self {
        let (header, packets) = packets(&fs::read(root().join(example("test.pcap"))).unwrap());
        let taps = Self { folder: tempfile::tempdir().unwrap() };
        let late = packets.len() / 3;
        let is_late = |number: usize| number >= late;
        let all = || packets.iter().cloned().enumerate();
        let mirror: Vec<_> = all().filter(|(number, _)| number % 7 != 3 || !is_late(*number)).collect();
        let own = all().filter(|(number, _)| number % 7 != 5 && is_late(*number));
        let own: Vec<_> = own.map(|(number, packet)| delayed(packet, AHEAD_US + jitter(number))).collect();
        let mirror: Vec<_> = mirror.into_iter().map(|(_, packet)| packet).collect();
        let (first, second) = mirror.split_at(1200);
        taps.write("mirror", "1.pcap", &capture(&header, second));
        taps.write("mirror", "2.pcap", &capture(&header, first));
        taps.write("gateway", "own.pcap", &capture(&header, &own));
        taps
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, folder: &str, name: &str, content: &[u8]) {
        fs::create_dir_all(self.path(folder)).unwrap();
        write(&self.path(folder), name, content);
    }

    /// `archive` of these taps into the folder `out`.
    fn archive(&self, out: &str, taps: &[&str]) -> Command {
        let mut command = sizeleak("archive");
        command.current_dir(self.folder.path()).args(["-o", out, "--format", "ndjson", "--gateway", GATEWAY]);
        command.arg("--model").arg(root().join(example("model.toml")));
        for tap in taps {
            command.args(["--tap", tap]);
        }
        command
    }

    /// The answers in a folder of results.
    fn answers(&self, out: &str) -> Vec<Value> {
        let parts = tree(&self.path(out).join("identifications")).into_iter().map(|(_, text)| text);
        parts.flat_map(|text| lines(&text)).collect()
    }

    fn status(&self, out: &str) -> Value {
        serde_json::from_slice(&stdout(sizeleak("archive status --json").arg(self.path(out)))).unwrap()
    }
}

/// A number up to [`JITTER_US`] on both sides of zero.
fn jitter(number: usize) -> i64 {
    let scattered = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    i64::try_from(scattered).unwrap() % (2 * JITTER_US) - JITTER_US
}

/// A packet with another time; the header of its capture has microseconds.
fn delayed(mut packet: Vec<u8>, by_us: i64) -> Vec<u8> {
    let field = |at: usize| i64::from(u32::from_le_bytes(packet[at..at + 4].try_into().unwrap()));
    let time_us = field(0) * 1_000_000 + field(4) + by_us;
    let fields = [time_us / 1_000_000, time_us % 1_000_000].map(|field| u32::try_from(field).unwrap().to_le_bytes());
    packet.splice(..8, fields.concat());
    packet
}

fn lines(text: &[u8]) -> Vec<Value> {
    let identification = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        value.get_mut("identification").map(Value::take).unwrap_or(value)
    };
    std::str::from_utf8(text).unwrap().lines().map(identification).collect()
}

/// The answers of a run over the whole capture.
fn whole_answers() -> Vec<Value> {
    let mut run = sizeleak("run --kind identification --format ndjson --quiet");
    run.arg(root().join(example("test.pcap"))).args(["--gateway", GATEWAY, "--model"]);
    lines(&stdout(run.arg(root().join(example("model.toml")))))
}

/// What an answer says besides times: the size and the replies of the command, and its candidates.
fn said(answer: &Value) -> Vec<Value> {
    let mut said: Vec<_> =
        ["flow", "size", "replies", "reply_bytes", "candidate_count"].map(|field| answer[field].clone()).to_vec();
    said.extend(answer["candidates"].as_array().unwrap().iter().map(|candidate| candidate["actions"].clone()));
    said
}

fn assert_same_answers(found: &[Value], expected: &[Value], tolerance_ns: i64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(said(found), said(expected));
        let [found_ns, expected_ns] = [found, expected].map(|answer| answer["time_ns"].as_i64().unwrap());
        assert!((found_ns - expected_ns).abs() <= tolerance_ns, "{found_ns} and {expected_ns}");
    }
}

fn fault(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), stderr(output))
}

const MIRROR: &str = "lan=mirror/*.pcap";
const OWN: &str = "wan=gateway";

#[test]
fn answers_are_those_of_the_whole_traffic_by_the_clock_of_the_first_tap() {
    let taps = Taps::new();
    stdout(&mut taps.archive("out", &[MIRROR, OWN]));
    let whole = whole_answers();
    assert_same_answers(&taps.answers("out"), &whole, 4 * JITTER_US * 1000);
    let point = taps.status("out")["points"][0].clone();
    assert_eq!((&point["point"], &point["captures"]), (&Value::from("lan+wan"), &Value::from(3)));
    let [lan, wan] = [0, 1].map(|tap| point["taps"][tap].clone());
    let off_by = wan["offset_ns"].as_i64().unwrap() - AHEAD_US * 1000;
    assert!(off_by.abs() < JITTER_US * 1000 && wan["spread_ns"].as_i64().unwrap() < JITTER_US * 1000, "{wan}");
    let count = |tap: &Value, field: &str| tap[field].as_u64().unwrap();
    assert!(
        count(&wan, "matches") > 500 && count(&wan, "filled_bytes") > 1000 && count(&wan, "duplicate_segments") > 1000
    );
    assert_eq!((&lan["name"], &lan["offset_ns"]), (&Value::from("lan"), &Value::from(0)));
    let table = String::from_utf8(stdout(sizeleak("archive status").arg(taps.path("out")))).unwrap();
    assert!(
        table.contains("Taps of lan+wan:") && (table.contains("+37.000 s") || table.contains("+36.999 s")),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn first_tap_sets_the_clock_and_another_order_is_noticed() {
    let taps = Taps::new();
    stdout(&mut taps.archive("out", &[MIRROR, OWN]));
    // Files that have just been written may still change.
    thread::sleep(Duration::from_secs(3));
    stdout(&mut taps.archive("out", &[MIRROR, OWN]));
    let plan =
        |taps_named: &[&str]| String::from_utf8(stdout(taps.archive("out", taps_named).arg("--dry-run"))).unwrap();
    assert!(plan(&[MIRROR, OWN]).contains("up to date") && plan(&[OWN, MIRROR]).contains("read 3 files"));
    let before = taps.answers("out");
    stdout(&mut taps.archive("out", &[OWN, MIRROR]));
    let after = taps.answers("out");
    let ahead = |at: usize| after[at]["time_ns"].as_i64().unwrap() - before[at]["time_ns"].as_i64().unwrap();
    assert!((0..before.len()).all(|at| (ahead(at) - AHEAD_US * 1000).abs() < 4 * JITTER_US * 1000));
    stdout(&mut taps.archive("fresh", &[OWN, MIRROR]));
    assert!(tree(&taps.path("out")) == tree(&taps.path("fresh")), "as if the taps had always been in this order");
}

#[test]
fn taps_beside_folders_leave_the_other_files_there() {
    let taps = Taps::new();
    taps.write("mirror", "notes.txt", b"a mirror port");
    taps.write("mirror", "cut.pcap", &fs::read(taps.path("mirror/2.pcap")).unwrap()[..5000]);
    let output = taps.archive("out", &["lan=mirror/?.pcap", OWN]).arg("mirror").arg("gateway").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let status = taps.status("out");
    let points: Vec<_> = status["points"].as_array().unwrap().iter().map(|point| point["point"].clone()).collect();
    assert_eq!(points, ["lan+wan", "mirror"]);
    let file = |end: &str| {
        let files = status["files"].as_array().unwrap();
        files.iter().find(|file| file["path"].as_str().unwrap().ends_with(end)).unwrap()["point"].clone()
    };
    assert_eq!(["1.pcap", "own.pcap", "notes.txt", "cut.pcap"].map(file), ["lan+wan", "lan+wan", "mirror", "mirror"]);
}

#[test]
fn a_damaged_capture_of_a_tap_is_read_as_far_as_it_goes() {
    let taps = Taps::new();
    let own = fs::read(taps.path("gateway/own.pcap")).unwrap();
    taps.write("gateway", "own.pcap", &own[..own.len() - 7]);
    taps.write("gateway", "empty.pcap", &own[..24]);
    let (code, said) = fault(&taps.archive("out", &[MIRROR, OWN]).output().unwrap());
    assert!(code == Some(1) && said.contains("own.pcap: is cut at byte"), "{said}");
    assert_same_answers(&taps.answers("out"), &whole_answers(), 4 * JITTER_US * 1000);
}

#[test]
fn taps_that_share_nothing_keep_their_clocks_and_one_tap_is_one() {
    let taps = Taps::new();
    let (header, packets) = packets(&fs::read(root().join(example("test.pcap"))).unwrap());
    let (first, second) = packets.split_at(1000);
    taps.write("first", "a", &capture(&header, first));
    taps.write("second", "b", &capture(&header, second));
    let output = taps.archive("out", &["one=first", "two=second/b"]).arg("-v").output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("tap `two` has no segment in common"), "{said}");
    assert_same_answers(&taps.answers("out"), &whole_answers(), 0);
    assert_eq!(taps.status("out")["points"][0]["taps"][1]["matches"], 0);
    taps.write("whole", "c", &capture(&header, &packets));
    stdout(&mut taps.archive("single", &["one=whole"]));
    assert_same_answers(&taps.answers("single"), &whole_answers(), 0);
    assert_eq!(taps.status("single")["points"][0]["point"], "one");
}

#[test]
fn taps_that_cannot_be_used_are_named() {
    let taps = Taps::new();
    let refused = [
        (&["lan"][..], "write NAME=GLOB"),
        (&["l/n=mirror"], "write NAME=GLOB"),
        (&[MIRROR, "wan=nowhere/*.pcap"], "tap `wan`: no file matches nowhere/*.pcap"),
        (&[MIRROR, "wan=mirror/1*"], "mirror/1.pcap is of tap `lan` and of tap `wan`"),
        (&["lan=mirror/[1.pcap"], "mirror/[1.pcap is no pattern"),
    ];
    for (named, words) in refused {
        let (code, said) = fault(&taps.archive("out", named).output().unwrap());
        assert!(code == Some(2) && said.contains(words), "{named:?}: {said}");
    }
    let mut given = taps.archive("out", &[MIRROR, OWN]);
    let (code, said) = fault(&given.args(["--set", "capture.order=given"]).output().unwrap());
    assert!(code == Some(2) && said.contains("by the times of their packets"), "{said}");
    assert!(!taps.path("out").exists());
    let mut other = sizeleak("archive --gateway 10.9.8.7 -o out --tap");
    other.arg(MIRROR).args(["--tap", OWN, "--model"]).arg(root().join(example("model.toml")));
    let (code, said) = fault(&other.current_dir(taps.path("")).output().unwrap());
    assert!(code == Some(1) && said.contains("no packet of any tap is from or to the gateway"), "{said}");
    assert!(Path::new(&taps.path("out/manifest.ndjson")).exists());
}
