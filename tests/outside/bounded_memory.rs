//! Floods of flows and of names, and lengths that are only claimed, through the real programs: they succeed within a
//! memory limit.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use sizeleak_frame::{Frame, FrameReader, FrameWriter, Hello, Notice, Packet, Packets, SCHEMA, StageSummary, Summary};

const FLOWS: u32 = 1_000_000;

/// How many bytes a program may allocate: enough for the flows and bytes that it tracks by default, far too few for a
/// million flows.
const FLOW_FILTER_BYTES: u64 = 24 << 20;
const RECORD_SIZER_BYTES: u64 = 64 << 20;
const RUN_BYTES: u64 = 72 << 20;

/// Starts a stage's program with at most this much memory.
fn start(program: &str, arguments: &[&str], most: u64, input: Stdio) -> Child {
    let mut command = Command::new("prlimit");
    command.arg(format!("--data={most}")).args(["--", program]).args(arguments);
    command.stdin(input).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
#[ignore = "second tier: needs prlimit"]
fn a_million_flows_pass_through_a_pipe_within_bounds() {
    let filter = env!("CARGO_BIN_EXE_flow-filter");
    let sizer = env!("CARGO_BIN_EXE_record-sizer");
    let arguments = ["--gateway", "192.0.2.20", "--quiet"];
    let mut filter = start(filter, &arguments, FLOW_FILTER_BYTES, Stdio::piped());
    let into_sizer = Stdio::from(filter.stdout.take().unwrap());
    let mut sizer = start(sizer, &["--quiet"], RECORD_SIZER_BYTES, into_sizer);

    let input = filter.stdin.take().unwrap();
    let flood = thread::spawn(move || write_flood(input));
    let (notices, summary) = read(FrameReader::new(sizer.stdout.take().unwrap()));
    flood.join().unwrap();
    assert!(filter.wait().unwrap().success() && sizer.wait().unwrap().success());

    println!("notices: {notices:?}");
    let counter = |stage: &str, name: &str| {
        let stage = summary.stages.iter().find(|summary| summary.stage == stage).unwrap();
        stage.counters.get(name).copied().unwrap_or(0)
    };
    assert_eq!(counter("flow-filter", "flows"), u64::from(FLOWS));
    for stage in ["flow-filter", "record-sizer"] {
        assert!(notices.contains_key(&(stage.to_owned(), "evicted".to_owned())), "{stage} evicts without a notice");
    }
    assert!(counter("record-sizer", "evicted_flows") > u64::from(FLOWS) / 2);
}

/// The same flood as a capture, through the stages in one process.
#[test]
#[ignore = "second tier: needs prlimit"]
fn a_million_flows_pass_through_one_process_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = folder.path().join("pipeline.toml");
    let stages = ["capture", "flow-filter", "record-sizer"].map(|stage| format!("[[stage]]\nrun = \"{stage}\"\n"));
    std::fs::write(&pipeline, stages.concat()).unwrap();
    let sizeleak = env!("CARGO_BIN_EXE_sizeleak");
    let arguments = ["run", pipeline.to_str().unwrap(), "-", "--gateway", "192.0.2.20", "--format", "frames"];
    let mut run = start(sizeleak, &[&arguments[..], &["--quiet"]].concat(), RUN_BYTES, Stdio::piped());
    let input = run.stdin.take().unwrap();
    let flood = thread::spawn(move || write_flood_as_capture(BufWriter::new(input)));
    let (notices, summary) = read(FrameReader::new(run.stdout.take().unwrap()));
    flood.join().unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(summary.stages[0].frames_in, 2 * u64::from(FLOWS));
    assert!(notices.contains_key(&("record-sizer".to_owned(), "evicted".to_owned())));
}

/// Saved streams that make a reader believe a length or remember a name: `run` takes them within the same limit.
#[test]
#[ignore = "second tier: needs prlimit"]
fn claimed_lengths_and_distinct_names_take_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.frames");
    let words = (0..300_000).map(|number| notice(format!("a word of no stage {number:060}"), None));
    let long = (0..300).map(|number| notice(format!("{number}{}", "x".repeat(1 << 20)), Some("y".repeat(1 << 20))));
    for (frames, latency, shown) in [
        (Vec::new(), claiming_histogram(), "pruner"),
        (words.collect::<Vec<Notice>>(), Vec::new(), "other 299800"),
        (long.collect(), Vec::new(), "other 300"),
    ] {
        let mut writer = FrameWriter::new(BufWriter::new(std::fs::File::create(&saved).unwrap()));
        let (stage, version) = ("pruner".to_owned(), "0".to_owned());
        writer.write(&Hello { schema: SCHEMA, stage, version, upstream: vec![] }.into()).unwrap();
        for notice in frames {
            writer.write(&notice.into()).unwrap();
        }
        let row = StageSummary { stage: "pruner".to_owned(), latency, ..StageSummary::default() };
        writer.write(&Summary { stages: vec![row] }.into()).unwrap();
        writer.flush().unwrap();
        let mut run = Command::new("prlimit");
        run.arg(format!("--data={RUN_BYTES}")).args(["--", env!("CARGO_BIN_EXE_sizeleak"), "run", "--from"]);
        let output = run.arg(&saved).args(["--latency", "--format", "ndjson"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && stderr.contains(shown),
            "{shown}: {}",
            stderr.get(..1000).unwrap_or(&stderr)
        );
    }
}

fn notice(what: String, detail: Option<String>) -> Notice {
    Notice { time_ns: None, stage: "pruner".into(), flow: None, what: what.into(), bytes: None, detail }
}

/// A histogram of a few bytes that claims to have two gigabytes of counts.
fn claiming_histogram() -> Vec<u8> {
    let header = [0x1c84_9313, i32::MAX.cast_unsigned(), 0, 3].map(u32::to_be_bytes).concat();
    let bounds = [1, 1 << 40, 1.0_f64.to_bits()].map(u64::to_be_bytes).concat();
    [header, bounds, vec![2; 200]].concat()
}

/// Counts the notices of each stage and kind, and returns them with the summary.
fn read(mut frames: FrameReader<impl std::io::Read>) -> (BTreeMap<(String, String), u64>, Summary) {
    let mut notices = BTreeMap::new();
    loop {
        match frames.next_frame().unwrap().unwrap() {
            Frame::Notice(notice) => {
                *notices.entry((notice.stage.into_owned(), notice.what.into_owned())).or_default() += 1;
            }
            Frame::Summary(summary) => return (notices, summary),
            _ => {}
        }
    }
}

/// A SYN and, after a gap, a segment that has to be held.
fn packets(flow: u32) -> [Vec<u8>; 2] {
    [tcp(flow, 1_000, 2, &[]), tcp(flow, 3_000, 16, &[0x17; 80])]
}

fn write_flood_as_capture(mut output: impl Write) {
    output.write_all(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]).unwrap();
    for (time_us, data) in (0u32..).zip((0..FLOWS).flat_map(packets)) {
        let length = data.len() as u32;
        let header = [time_us / 1_000_000, time_us % 1_000_000, length, length].map(u32::to_le_bytes);
        output.write_all(&[header.as_flattened(), &data].concat()).unwrap();
    }
    output.flush().unwrap();
}

fn write_flood(output: impl Write) {
    let mut writer = FrameWriter::new(output);
    let (stage, version) = ("capture".to_owned(), "0".to_owned());
    writer.write(&Hello { schema: SCHEMA, stage, version, upstream: vec![] }.into()).unwrap();
    let mut batch = Packets::new();
    for flow in 0..FLOWS {
        for (number, data) in (0..).zip(packets(flow)) {
            let number = u64::from(flow) * 2 + number + 1;
            let (time_ns, original_length) = (number.cast_signed() * 1_000, data.len() as u32);
            batch.push(Packet { time_ns, link_type: 101, original_length, data: &data, capture: 0, number });
        }
        if batch.is_full(sizeleak_frame::BatchLimit::Contract) {
            writer.write(&std::mem::take(&mut batch).into()).unwrap();
        }
    }
    writer.write(&batch.into()).unwrap();
    writer.write(&Summary::default().into()).unwrap();
    writer.flush().unwrap();
}

/// An IPv4 packet of TCP from one of a million ends to the gateway.
fn tcp(flow: u32, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = flow.to_be_bytes();
    let [length_high, length_low] = (40 + payload.len() as u16).to_be_bytes();
    let ip = [0x45, 0, length_high, length_low, 0, 0, 0, 0, 64, 6, 0, 0, 10, high, middle, low, 192, 0, 2, 20];
    let ports = [40_000_u16.to_be_bytes(), 443_u16.to_be_bytes()];
    let rest = [0x50, flags, 0xff, 0xff, 0, 0, 0, 0];
    [&ip[..], ports.as_flattened(), &sequence.to_be_bytes(), &[0; 4], &rest, payload].concat()
}
