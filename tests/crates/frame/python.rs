//! The Python stage at the end of the document, run unchanged.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use sizeleak_frame::{Frame, Hello, Record, Summary, Unknown};

use super::document::decode;
use super::samples::{Nulls, samples};
use super::specification::code;
use support::streams::stream_of;

/// Runs the stage on a stream; it drops records of less than 100 bytes.
fn run(stream: &[u8]) -> Output {
    let mut python = Command::new("python3");
    let stage = python.args(["-c", &code("python"), "100"]);
    let mut child =
        stage.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("python3 starts");
    child.stdin.take().unwrap().write_all(stream).unwrap();
    child.wait_with_output().unwrap()
}

fn input() -> [Frame; 5] {
    let sample = samples(Nulls::Given).into_iter().find_map(|frame| Record::try_from(frame).ok());
    let record = |length| Frame::from(Record { length, ..sample.clone().unwrap() });
    let value = b"\x81\xa9acme_rssi\x81\x01\xc4\x01\xff".to_vec();
    [
        Hello { schema: 1, stage: "record-sizer".into(), version: "x".into(), upstream: vec!["capture".into()] }.into(),
        record(300),
        Unknown { kind: "acme_rssi".into(), value }.into(),
        record(99),
        Summary::default().into(),
    ]
}

#[test]
#[ignore = "second tier: needs python3 with msgpack"]
fn python_stage_passes_long_records_on() {
    let frames = input();
    let output = run(&stream_of(&frames));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let written = decode(&output.stdout).unwrap();
    let [Frame::Hello(hello), record, unknown, Frame::Summary(summary)] = &written[..] else { panic!("{written:?}") };
    assert_eq!((&*hello.stage, &*hello.upstream.join(" ")), ("long-records", "capture record-sizer"));
    assert_eq!([record, unknown], [&frames[1], &frames[2]]);
    let [row] = &summary.stages[..] else { panic!("{summary:?}") };
    assert_eq!((&*row.stage, row.frames_in, row.frames_out, row.bytes_in), ("long-records", 2, 1, 399));
    assert_eq!(row.counters, [("dropped".to_owned(), 1)].into());
}

#[test]
#[ignore = "second tier: needs python3 with msgpack"]
fn python_stage_reports_a_cut_stream() {
    let stream = stream_of(&input());
    let cuts = [stream_of(&input()[..4]).len(), stream.len() - 3, 0];
    for end in cuts {
        let output = run(&stream[..end]);
        assert_eq!(output.status.code(), Some(3), "cut at {end}: {output:?}");
        assert!(decode(&output.stdout).is_err(), "no summary after a cut");
        assert!(String::from_utf8_lossy(&output.stderr).contains("long-records: the input ended without its summary"));
    }
}
