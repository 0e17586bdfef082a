//! The segmenter of the examples as a program: records on stdin become commands on stdout, between its `hello` and its `summary`.

use std::process::Command;

use sizeleak_frame::{
    self as frame, ContentType, Direction, Frame, Hello, Protocol, Record, SCHEMA, StageSummary, Summary,
};
use support::programs::feed;
use support::segmenters;
use support::streams::{frames_of, stream_of};

use Direction::{FromGateway, ToGateway};

const MS: i64 = 1_000_000;

fn record(at_ms: i64, flow: u64, direction: Direction, length: u32) -> Record {
    let (time_ns, content_type, protocol) = (at_ms * MS, ContentType::ApplicationData, Protocol::Tls);
    let plaintext = Some([u64::from(length) - 24; 2]);
    Record { time_ns, start_ns: time_ns, flow, direction, content_type, length, plaintext, handshake: false, protocol }
}

/// What the program writes of these records.
fn written(silence: &str, records: impl IntoIterator<Item = Record>) -> Vec<Frame> {
    let hello = Hello { schema: SCHEMA, stage: "record-sizer".into(), version: "1".into(), upstream: Vec::new() };
    let sizer = StageSummary { stage: "record-sizer".into(), ..StageSummary::default() };
    let frames = std::iter::once(hello.into()).chain(records.into_iter().map(Frame::from));
    let stream = stream_of(&frames.chain([Summary { stages: vec![sizer] }.into()]).collect::<Vec<_>>());
    let mut program = Command::new(&segmenters::rust()[0]);
    program.args(["--silence", silence]);
    let output = feed(program, stream);
    assert!(output.status.success());
    frames_of(&output.stdout)
}

fn commands(silence: &str, records: impl IntoIterator<Item = Record>) -> Vec<frame::Command> {
    written(silence, records).into_iter().filter_map(|frame| frame::Command::try_from(frame).ok()).collect()
}

#[test]
fn records_become_commands_between_hello_and_summary() {
    let frames = written("80ms", [(0, 200), (30, 100), (120, 300)].map(|(at, size)| record(at, 1, ToGateway, size)));
    let [Frame::Hello(hello), one, other, Frame::Summary(summary)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((&*hello.stage, &*hello.upstream), ("burst-segmenter", &["record-sizer".to_owned()][..]));
    for (command, at_ms, size) in [(one, 0, 300), (other, 120, 300)] {
        let Frame::Command(command) = command else { panic!("{command:?}") };
        assert_eq!((command.time_ns, command.size), (at_ms * MS, size));
    }
    let counts: Vec<_> = summary.stages.iter().map(|row| (&*row.stage, row.frames_in, row.frames_out)).collect();
    assert_eq!(counts, [("record-sizer", 0, 0), ("burst-segmenter", 3, 2)]);
}

#[test]
fn a_silence_ends_a_command_and_replies_within_three_seconds_are_counted() {
    let found = commands(
        "40ms",
        [
            record(0, 1, ToGateway, 200),
            record(40, 1, ToGateway, 100),
            record(50, 1, FromGateway, 60),
            record(60, 1, ToGateway, 49),
            record(81, 1, ToGateway, 300),
            record(3082, 1, FromGateway, 70),
        ],
    );
    let [first, second] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.time_ns, first.end_ns, first.size, first.records), (0, 40 * MS, 300, 2));
    assert_eq!((first.plaintext, first.replies, first.reply_bytes), (Some([252; 2]), 1, 60));
    assert_eq!((second.size, second.replies), (300, 0), "a record 3.001 s later is no reply");
}

#[test]
fn commands_are_in_order_of_start_although_one_flow_is_never_silent_and_others_are_late() {
    let steady = (0..2000).map(|at| record(at * 20, 1, ToGateway, 100));
    let late = [record(39_000, 2, ToGateway, 100), record(38_500, 3, ToGateway, 100)];
    let found = commands("40ms", steady.chain(late));
    assert_eq!(found.iter().filter(|command| command.flow == 1).count(), 4);
    assert!(found.is_sorted_by_key(|command| command.time_ns));
    assert_eq!(found.len(), 6);
}

/// Commands that are written before their replies are counted are more than the ten thousand that may wait.
#[test]
fn the_number_of_waiting_commands_is_bounded() {
    let frames = written("0s", (0..10_007).map(|flow| record(5, flow, ToGateway, 100)));
    let Some(Frame::Summary(summary)) = frames.last() else { panic!("no summary") };
    let counters = &summary.stages.last().unwrap().counters;
    assert_eq!(counters.get("told_early"), Some(&7), "{counters:?}");
}

#[test]
fn extreme_times_are_accepted() {
    let at = |time_ns| Record { time_ns, start_ns: time_ns, ..record(0, 1, ToGateway, 100) };
    assert_eq!(commands("40ms", [at(i64::MIN), at(i64::MAX), at(i64::MIN), at(0)]).len(), 3);
}
