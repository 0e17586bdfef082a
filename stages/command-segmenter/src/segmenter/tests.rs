//! The algorithms `gap` and `record`, and what all share: replies, order, bounds.

use proptest::prelude::*;
use sizeleak_frame::{Command, Direction};

use jiff::SignedDuration;

use super::*;
use crate::options::Algorithm;
use crate::testing::{MS, from, to};

mod adaptive;
mod learned;

fn segment(options: &Options, records: &[Record]) -> Vec<Command> {
    run(CommandSegmenter::new(options).unwrap(), records)
}

fn run(mut segmenter: CommandSegmenter, records: &[Record]) -> Vec<Command> {
    let mut out: Vec<Frame> = Vec::new();
    for record in records {
        segmenter.process(SegmenterInput::Record(record.clone()), &mut out).unwrap();
    }
    segmenter.finish(&mut out).unwrap();
    out.into_iter().filter_map(|frame| Command::try_from(frame).ok()).collect()
}

fn sizes(records: &[Record]) -> Vec<u64> {
    segment(&Options::default(), records).iter().map(|command| command.plaintext.unwrap()[0]).collect()
}

#[test]
fn replies_are_counted_until_the_gateway_is_silent() {
    let commands = segment(
        &Options::default(),
        &[to(0, 300), from(50, 60), from(300, 70), from(1000, 50), from(1900, 80), to(9000, 200)],
    );
    let first = &commands[0];
    assert_eq!((first.replies, first.reply_bytes, first.end_ns), (3, 60 + 70 + 50 + 3 * 24, 0));
    assert_eq!((commands[1].replies, commands[1].time_ns), (0, 9000 * MS));
}

#[test]
fn the_next_command_ends_the_replies_to_the_last() {
    let commands = segment(&Options::default(), &[to(0, 300), from(50, 60), to(400, 310), from(450, 60)]);
    assert_eq!(commands.iter().map(|command| command.replies).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn keep_alives_and_acknowledgements_are_no_commands() {
    assert_eq!(sizes(&[to(0, 4), from(10, 4), to(5000, 2), from(9000, 90), to(9030, 40)]), [0u64; 0]);
    let mut ticket = to(0, 200);
    ticket.handshake = true;
    let mut alert = to(10, 200);
    alert.content_type = ContentType::Alert;
    assert_eq!(sizes(&[ticket, alert]), [0u64; 0]);
}

#[test]
fn one_message_of_the_gateway_has_one_answer() {
    assert_eq!(sizes(&[from(0, 90), to(30, 40), to(60, 300)]), [300]);
    assert_eq!(sizes(&[from(0, 90), from(10, 90), to(30, 40), to(60, 300)]), [0u64; 0]);
    assert_eq!(sizes(&[from(0, 90), to(30_000, 300)]), [300], "a poll that a command ends, half a minute later");
}

#[test]
fn a_tiny_acknowledgement_is_the_answer_and_the_next_record_a_command() {
    assert_eq!(sizes(&[from(0, 90), to(30, 4), to(60, 300)]), [300], "MQTT's PUBACK, then a command");
    assert_eq!(sizes(&[from(0, 90), from(10, 2), to(30, 2), to(60, 300)]), [0u64; 0], "the pong to a ping");
    assert_eq!(sizes(&[from(0, 90), from(5, 90), to(30, 4), to(60, 300)]), [0u64; 0], "one of two is unanswered");
    assert_eq!(sizes(&[from(0, 90), from(10, 2), to(30, 2), to(40, 4), to(60, 300)]), [300]);
}

#[test]
fn a_command_in_pieces_is_one_with_gap_and_several_with_record() {
    let pieces = [to(0, 100), to(3, 100), to(6, 50), from(60, 70)];
    let commands = segment(&Options::default(), &pieces);
    let whole = &commands[0];
    assert_eq!((whole.records, whole.size, whole.plaintext), (3, 250 + 72, Some([250, 250])));
    assert_eq!((commands.len(), whole.end_ns, whole.replies), (1, 6 * MS, 1));
    let options = Options { algorithm: Some(Algorithm::Record), ..Options::default() };
    assert_eq!(segment(&options, &pieces).len(), 3);
}

#[test]
fn the_last_piece_of_a_command_may_be_tiny() {
    let commands = segment(&Options::default(), &[to(0, 100), to(0, 100), to(0, 3), from(60, 70), to(90, 3)]);
    assert_eq!(commands.iter().map(|command| command.plaintext).collect::<Vec<_>>(), [Some([203, 203])]);
}

#[test]
fn without_a_cipher_sizes_are_those_on_the_wire() {
    let mut tiny = to(0, 6);
    tiny.plaintext = None;
    let mut unknown = to(1000, 200);
    unknown.plaintext = None;
    let commands = segment(&Options::default(), &[tiny, unknown, to(1001, 10)]);
    assert_eq!(commands.iter().map(|command| (command.size, command.plaintext)).collect::<Vec<_>>(), [(224, None)]);
}

#[test]
fn flows_do_not_disturb_each_other_and_order_is_that_of_beginning() {
    let on = |flow, mut record: Record| {
        record.flow = flow;
        record
    };
    let commands = segment(
        &Options::default(),
        &[on(1, to(0, 300)), on(2, to(10, 400)), on(2, from(20, 50)), on(2, to(700, 410)), on(1, from(750, 50))],
    );
    assert_eq!(commands.iter().map(|command| command.time_ns / MS).collect::<Vec<_>>(), [0, 10, 700]);
    assert_eq!(commands.iter().map(|command| command.replies).collect::<Vec<_>>(), [1, 1, 0]);
}

/// A segment of flow 1 is missing from the capture: what follows it comes 3 s late, with its true times.
#[test]
fn a_command_behind_a_hole_keeps_its_replies_and_its_place() {
    let on = |flow, record: Record| Record { flow, ..record };
    let records =
        [on(2, to(500, 400)), on(2, from(2950, 2)), to(0, 300), from(60, 50), from(700, 50), on(2, to(9000, 410))];
    let commands = segment(&Options::default(), &records);
    let shown: Vec<_> = commands.iter().map(|command| (command.time_ns / MS, command.replies)).collect();
    assert_eq!(shown, [(0, 2), (500, 0), (9000, 0)]);
    let late = segment(&Options::default(), &[to(0, 300), from(60, 50), from(900, 50), from(1000, 50)]);
    assert_eq!(late[0].replies, 1, "the flow's own time ends the replies");
}

#[test]
fn a_flow_that_falls_silent_is_ended_by_the_time_of_others() {
    let mut segmenter = CommandSegmenter::new(&Options::default()).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    for (flow, record) in [(1, to(0, 300)), (2, from(3700, 90)), (2, from(3900, 90))] {
        assert!(out.is_empty());
        segmenter.process(SegmenterInput::Record(Record { flow, ..record }), &mut out).unwrap();
    }
    assert_eq!(out.len(), 1);
}

#[test]
fn time_that_stands_still_fills_no_memory() {
    let mut segmenter = CommandSegmenter::new(&Options::default()).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    for flow in 0..10_000 {
        segmenter.process(SegmenterInput::Record(Record { flow, ..to(0, 300) }), &mut out).unwrap();
    }
    assert!(out.len() > 5_000);
    segmenter.finish(&mut out).unwrap();
    assert_eq!(out.len(), 10_000);
}

#[test]
fn a_flood_of_flows_is_bounded_and_told() {
    let mut segmenter = CommandSegmenter::new(&Options::default()).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    for flow in 0..=MOST_FLOWS as u32 {
        segmenter
            .process(SegmenterInput::Record(Record { flow: flow.into(), ..from(flow.into(), 90) }), &mut out)
            .unwrap();
    }
    let AlgorithmState::Rules { conversations, .. } = &segmenter.algorithm else { panic!("`gap` has rules") };
    assert_eq!(conversations.len(), MOST_FLOWS / 2 + 1);
    assert!(conversations.contains_key(&(MOST_FLOWS as u64)));
    assert_eq!(out.len(), 1);
}

#[test]
fn times_are_checked() {
    let options = Options { gap: SignedDuration::from_secs(-1), ..Options::default() };
    assert!(CommandSegmenter::new(&options).is_err());
}

proptest! {
    /// Whatever comes, each record from the service is in one command at most, and commands leave in order.
    #[test]
    fn nothing_is_counted_twice(
        records in prop::collection::vec((any::<bool>(), -100i64..5000, 0u64..400, 1u64..3), 0..80),
    ) {
        let records: Vec<Record> = records.into_iter().map(|(toward, at, size, flow)| {
            Record { flow, ..if toward { to(at, size) } else { from(at, size) } }
        }).collect();
        for algorithm in [Algorithm::Gap, Algorithm::Record, Algorithm::Adaptive] {
            let commands = segment(&Options { algorithm: Some(algorithm), ..Options::default() }, &records);
            let pieces: u32 = commands.iter().map(|command| command.records).sum();
            let replies: u32 = commands.iter().map(|command| command.replies).sum();
            let all = |direction| records.iter().filter(|record| record.direction == direction).count();
            prop_assert!(pieces as usize <= all(Direction::ToGateway));
            prop_assert!(replies as usize <= all(Direction::FromGateway));
        }
    }

    /// What is found on a flow does not depend on what else there is.
    #[test]
    fn flows_are_found_alike_alone_and_together(
        records in prop::collection::vec((any::<bool>(), 0i64..5000, 0u64..400, 1u64..4), 0..80),
    ) {
        let mut records: Vec<Record> = records.into_iter().map(|(toward, at, size, flow)| {
            Record { flow, ..if toward { to(at, size) } else { from(at, size) } }
        }).collect();
        records.sort_by_key(|record| record.time_ns);
        for algorithm in [Algorithm::Gap, Algorithm::Record] {
            let options = Options { algorithm: Some(algorithm), ..Options::default() };
            let together = segment(&options, &records);
            prop_assert!(together.is_sorted_by_key(|command| command.time_ns));
            for flow in 1..4 {
                let on_flow: Vec<Record> = records.iter().filter(|record| record.flow == flow).cloned().collect();
                let found: Vec<Command> = together.iter().filter(|command| command.flow == flow).cloned().collect();
                prop_assert_eq!(segment(&options, &on_flow), found);
            }
        }
    }
}
