//! Tests of meaningful and impossible frames.

use sizeleak_frame::Packets;

use super::*;
use crate::conformance::recorded_stream::{ConsumedKind, RecordedStream};

fn command(time_ns: i64) -> Command {
    Command {
        time_ns,
        end_ns: time_ns + 5,
        flow: 7,
        size: 100,
        plaintext: Some([70, 80]),
        records: 1,
        replies: 1,
        reply_bytes: 60,
        ..Command::default()
    }
}

#[test]
fn frames_of_the_seven_stages_are_meaningful() {
    for kind in [
        ConsumedKind::Packets,
        ConsumedKind::Segments,
        ConsumedKind::Record,
        ConsumedKind::Command,
        ConsumedKind::Correction,
        ConsumedKind::Identification,
    ] {
        let recorded = RecordedStream::simulated(kind).unwrap();
        let frames: Vec<Frame> = recorded.frames.iter().filter(|frame| frame.kind() == kind.name()).cloned().collect();
        assert!(!frames.is_empty());
        assert_eq!(are_meaningful(&frames, &recorded.frames, "mine"), Ok(()));
        assert_eq!(are_batches_within_limits(&frames), Ok(()));
        assert_eq!(are_times_of_input(&frames, &recorded.frames), Ok(()));
    }
}

#[test]
fn impossible_frames_are_reported() {
    let cases: [(Vec<Command>, &str); 6] = [
        (vec![Command { end_ns: 9, ..command(10) }], "after its end"),
        (vec![command(20), command(10)], "ordered by their start"),
        (vec![Command { plaintext: Some([9, 8]), ..command(1) }], "the minimum comes first"),
        (vec![Command { records: 0, ..command(1) }], "`records` is 0"),
        (vec![Command { replies: 0, ..command(1) }], "without `replies`"),
        (vec![Command { flow: 8, ..command(1) }], "announces its flow 8"),
    ];
    let flow =
        sizeleak_frame::Flow::new(7, [10, 0, 0, 1].into(), ([10, 0, 0, 2], 443).into(), sizeleak_frame::Transport::Tcp);
    for (commands, words) in cases {
        let made: Vec<Frame> = commands.into_iter().map(Frame::from).collect();
        let fault = are_meaningful(&made, &[flow.clone().into()], "mine").unwrap_err();
        assert!(fault.contains(words), "{fault}");
    }
    let seconds: Frame = command(1_767_600_000).into();
    let fault = are_times_of_input(&[seconds], &[command(1_767_600_000_000_000_000).into()]).unwrap_err();
    assert!(fault.contains("1767600000 ns"), "{fault}");
}

#[test]
fn batches_beyond_the_limits_are_reported() {
    let mut batch = Packets::new();
    let packet = |data| sizeleak_frame::Packet {
        time_ns: 1,
        link_type: 1,
        original_length: 70_000,
        data,
        capture: 0,
        number: 1,
    };
    (0..=BATCH_ROWS).for_each(|_| batch.push(packet(&[1])));
    assert!(are_batches_within_limits(&[batch.into()]).unwrap_err().contains("257 rows"));
    let (mut full, data) = (Packets::new(), vec![0; BATCH_BYTES]);
    full.push(packet(&data));
    assert_eq!(are_batches_within_limits(&[full.clone().into()]), Ok(()));
    full.push(packet(&[1]));
    assert!(are_batches_within_limits(&[full.into()]).is_err());
}
