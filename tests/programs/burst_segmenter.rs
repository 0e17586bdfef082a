//! The segmenter of the examples as a program: records on stdin become commands on stdout, between its `hello` and its `summary`.

use std::io::Write;
use std::process::{Command, Stdio};

use sizeleak_frame::{
    ContentType, Direction, Frame, FrameReader, FrameWriter, Hello, Protocol, Record, SCHEMA, StageSummary, Summary,
};
use support::segmenters;

fn record(at_ms: i64, length: u32) -> Frame {
    let (time_ns, content_type, protocol) = (at_ms * 1_000_000, ContentType::ApplicationData, Protocol::Tls);
    let (direction, plaintext, handshake) = (Direction::ToGateway, None, false);
    Record { time_ns, start_ns: time_ns, flow: 1, direction, content_type, length, plaintext, handshake, protocol }
        .into()
}

#[test]
fn records_become_commands_between_hello_and_summary() {
    let hello = Hello { schema: SCHEMA, stage: "record-sizer".into(), version: "1".into(), upstream: Vec::new() };
    let sizer = StageSummary { stage: "record-sizer".into(), ..StageSummary::default() };
    let frames =
        [hello.into(), record(0, 200), record(30, 100), record(120, 300), Summary { stages: vec![sizer] }.into()];
    let mut writer = FrameWriter::new(Vec::new());
    writer.write_all(&frames).unwrap();
    let stream = writer.into_output().unwrap();

    let mut program = Command::new(&segmenters::rust()[0]);
    let program = program.args(["--silence", "80ms"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&stream).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());

    let mut reader = FrameReader::new(&output.stdout[..]);
    let frames: Vec<Frame> = std::iter::from_fn(|| reader.next_frame().unwrap()).collect();
    let [Frame::Hello(hello), one, other, Frame::Summary(summary)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((&*hello.stage, &*hello.upstream), ("burst-segmenter", &["record-sizer".to_owned()][..]));
    for (command, at_ms, size) in [(one, 0, 300), (other, 120, 300)] {
        let Frame::Command(command) = command else { panic!("{command:?}") };
        assert_eq!((command.time_ns, command.size), (at_ms * 1_000_000, size));
    }
    let counts: Vec<_> = summary.stages.iter().map(|row| (&*row.stage, row.frames_in, row.frames_out)).collect();
    assert_eq!(counts, [("record-sizer", 0, 0), ("burst-segmenter", 3, 2)]);
}
