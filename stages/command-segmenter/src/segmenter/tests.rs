//! The algorithms `gap` and `record`, and what all algorithms share: replies, order, bounds.

use jiff::SignedDuration;
use proptest::prelude::*;
use sizeleak_frame::{Command, Direction, Transport};

use super::*;
use crate::testing::{MS, from, to};

mod adaptive;
mod learned;
mod reports;

/// In milliseconds, like all times of records in these tests.
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

fn gap() -> Options {
    Options { algorithm: Some(Algorithm::Gap), ..Options::default() }
}

fn segment(options: &Options, records: &[Record]) -> Vec<Command> {
    run(CommandSegmenter::new(options).unwrap(), records)
}

fn run(mut segmenter: CommandSegmenter, records: &[Record]) -> Vec<Command> {
    let mut out = process(&mut segmenter, records.iter().cloned());
    segmenter.finish(&mut out).unwrap();
    out.into_iter().filter_map(|frame| Command::try_from(frame).ok()).collect()
}

fn process(segmenter: &mut CommandSegmenter, records: impl IntoIterator<Item = Record>) -> Vec<Frame> {
    let mut out = Vec::new();
    for record in records {
        segmenter.process(SegmenterInput::Frame(record), &mut out).unwrap();
    }
    out
}

/// The commands in records of any order: their times in milliseconds, plaintext sizes and replies.
fn found(segmenter: CommandSegmenter, mut records: Vec<Record>) -> Vec<(i64, u64, u32)> {
    records.sort_by_key(|record| record.time_ns);
    let commands = run(segmenter, &records);
    commands.iter().map(|command| (command.time_ns / MS, command.plaintext.unwrap()[0], command.replies)).collect()
}

fn sizes(records: &[Record]) -> Vec<u64> {
    segment(&gap(), records).iter().map(|command| command.plaintext.unwrap()[0]).collect()
}

fn on(flow: u64, mut record: Record) -> Record {
    record.flow = flow;
    record
}

/// A flow between a gateway and the only service.
fn flow(flow: u64, gateway: &str) -> SegmenterInput {
    let (gateway, service) = (gateway.parse().unwrap(), "203.0.113.10:443".parse().unwrap());
    SegmenterInput::Flow(Flow::new(flow, gateway, service, Transport::Tcp).into())
}

/// Times of commands, in milliseconds: at no steady interval.
fn times(count: i64) -> impl Iterator<Item = i64> {
    (0..count).map(|n| n * 37 * SECOND + n * n * 771 + 1_234)
}

/// A command that the gateway replies to twice.
fn command(at: i64, size: u64) -> Vec<Record> {
    vec![to(at, size), from(at + 60, 45), from(at + 180, 45)]
}

/// Records of up to 3 flows, by direction, time in milliseconds, plaintext size and flow.
fn records(times: std::ops::Range<i64>, max_size: u64, max_count: usize) -> impl Strategy<Value = Vec<Record>> {
    let record = (any::<bool>(), times, 0..max_size, 1u64..4)
        .prop_map(|(is_to, at, size, flow)| on(flow, if is_to { to(at, size) } else { from(at, size) }));
    prop::collection::vec(record, 0..max_count)
}

/// No more parts of commands and replies than there are records of each direction.
fn are_counted_once(commands: &[Command], records: &[Record]) -> bool {
    let all = |direction| records.iter().filter(|record| record.direction == direction).count();
    let parts: u32 = commands.iter().map(|command| command.records).sum();
    let replies: u32 = commands.iter().map(|command| command.replies).sum();
    parts as usize <= all(Direction::ToGateway) && replies as usize <= all(Direction::FromGateway)
}

#[test]
fn a_silence_is_unusual_if_none_of_many_was_a_tenth_as_long() {
    let mut silences = Silences::default();
    for second in 0..99 {
        silences.add(second * 1_000);
        assert_eq!(silences.exceeded_by(i64::MAX), None, "too few records");
    }
    silences.add(98_000 + 5_000);
    assert_eq!((silences.exceeded_by(50_000), silences.exceeded_by(50_010)), (None, Some(5_000)));
    silences.add(i64::MIN);
    silences.add(i64::MAX);
    assert_eq!(silences.exceeded_by(i64::MAX), None);
}

#[test]
fn replies_are_counted_until_the_gateway_is_silent() {
    let commands =
        segment(&gap(), &[to(0, 300), from(50, 60), from(300, 70), from(1000, 50), from(1900, 80), to(9000, 200)]);
    let first = &commands[0];
    assert_eq!((first.replies, first.reply_bytes, first.end_ns), (3, 60 + 70 + 50 + 3 * 24, 0));
    assert_eq!((commands[1].replies, commands[1].time_ns), (0, 9000 * MS));
}

#[test]
fn replies_are_counted_with_the_last_command_and_may_be_to_an_earlier_one() {
    let records = [to(0, 300), from(50, 60), to(400, 310), from(450, 60), to(600, 320), from(650, 60), from(1_300, 60)];
    let told = |commands: &[Command]| -> Vec<(u32, bool, Vec<u32>)> {
        commands.iter().map(|one| (one.replies, one.overlapped, one.shared_replies.to_vec())).collect()
    };
    let commands = segment(&gap(), &records);
    // Most replies come within a second, so the last one is not to the first command.
    assert_eq!(told(&commands), [(1, true, vec![]), (1, true, vec![1]), (2, false, vec![2, 1])]);
    let soon = Options { reply_within: Some(SignedDuration::from_millis(800)), ..gap() };
    assert_eq!(told(&segment(&soon, &records))[2], (2, false, vec![1, 1]));
    // Once the gateway is silent, what comes later is to the next command alone.
    let apart = segment(&gap(), &[to(0, 300), from(50, 60), to(2_000, 310), from(2_050, 60)]);
    assert_eq!(told(&apart), [(1, false, vec![]), (1, false, vec![])]);
}

#[test]
fn keep_alives_acknowledgements_and_handshakes_are_not_commands() {
    assert_eq!(sizes(&[to(0, 4), from(10, 4), to(5000, 2), from(9000, 90), to(9030, 40)]), [0u64; 0]);
    let ticket = Record { handshake: true, ..to(0, 200) };
    let alert = Record { content_type: ContentType::Alert, ..to(10, 200) };
    assert_eq!(sizes(&[ticket, alert]), [0u64; 0]);
}

#[test]
fn one_message_of_the_gateway_has_one_answer() {
    assert_eq!(sizes(&[from(0, 90), to(30, 40), to(60, 300)]), [300]);
    assert_eq!(sizes(&[from(0, 90), from(10, 90), to(30, 40), to(60, 300)]), [0u64; 0]);
    assert_eq!(sizes(&[from(0, 90), to(30_000, 300)]), [300], "a command ends a long poll after half a minute");
}

#[test]
fn a_tiny_acknowledgement_is_the_answer_and_the_next_record_a_command() {
    assert_eq!(sizes(&[from(0, 90), to(30, 4), to(60, 300)]), [300], "MQTT's PUBACK, then a command");
    assert_eq!(sizes(&[from(0, 90), from(10, 2), to(30, 2), to(60, 300)]), [0u64; 0], "the pong to a ping");
    assert_eq!(sizes(&[from(0, 90), from(5, 90), to(30, 4), to(60, 300)]), [0u64; 0], "one of two is unanswered");
    assert_eq!(sizes(&[from(0, 90), from(10, 2), to(30, 2), to(40, 4), to(60, 300)]), [300]);
}

#[test]
fn records_within_the_gap_are_one_command_with_gap_and_several_with_record() {
    let parts = [to(0, 100), to(3, 100), to(6, 50), from(60, 70)];
    let commands = segment(&gap(), &parts);
    let whole = &commands[0];
    assert_eq!((whole.records, whole.size, whole.plaintext), (3, 250 + 72, Some([250, 250])));
    assert_eq!((commands.len(), whole.end_ns, whole.replies), (1, 6 * MS, 1));
    let options = Options { algorithm: Some(Algorithm::Record), ..Options::default() };
    assert_eq!(segment(&options, &parts).len(), 3);
}

#[test]
fn the_last_record_of_a_command_may_be_tiny() {
    let commands = segment(&gap(), &[to(0, 100), to(0, 100), to(0, 3), from(60, 70), to(90, 3)]);
    assert_eq!(commands.iter().map(|command| command.plaintext).collect::<Vec<_>>(), [Some([203, 203])]);
}

#[test]
fn without_a_cipher_suite_sizes_are_those_on_the_wire() {
    let unknown = |record| Record { plaintext: None, ..record };
    let commands = segment(&gap(), &[unknown(to(0, 6)), unknown(to(1000, 200)), to(1001, 10)]);
    assert_eq!(commands.iter().map(|command| (command.size, command.plaintext)).collect::<Vec<_>>(), [(224, None)]);
}

#[test]
fn commands_of_several_flows_keep_their_replies_and_are_ordered_by_start() {
    let commands = segment(
        &gap(),
        &[on(1, to(0, 300)), on(2, to(10, 400)), on(2, from(20, 50)), on(2, to(700, 410)), on(1, from(750, 50))],
    );
    assert_eq!(commands.iter().map(|command| command.time_ns / MS).collect::<Vec<_>>(), [0, 10, 700]);
    assert_eq!(commands.iter().map(|command| command.replies).collect::<Vec<_>>(), [1, 1, 0]);
}

/// The capture misses a segment of flow 1: the records behind it come 3 s late, with their true times.
#[test]
fn a_command_behind_missing_bytes_keeps_its_replies_and_its_place() {
    let records =
        [on(2, to(500, 400)), on(2, from(2950, 2)), to(0, 300), from(60, 50), from(700, 50), on(2, to(9000, 410))];
    let commands = segment(&gap(), &records);
    let shown: Vec<_> = commands.iter().map(|command| (command.time_ns / MS, command.replies)).collect();
    assert_eq!(shown, [(0, 2), (500, 0), (9000, 0)]);
    let late = segment(&gap(), &[to(0, 300), from(60, 50), from(900, 50), from(1000, 50)]);
    assert_eq!(late[0].replies, 1, "the flow's own time ends the replies");
}

#[test]
fn the_time_of_other_flows_completes_a_command_on_a_silent_flow() {
    let mut segmenter = CommandSegmenter::new(&gap()).unwrap();
    assert!(process(&mut segmenter, [to(0, 300), on(2, from(3700, 90))]).is_empty());
    assert_eq!(process(&mut segmenter, [on(2, from(3900, 90))]).len(), 1);
}

#[test]
fn a_record_of_another_flow_an_hour_late_ends_no_replies() {
    for algorithm in [Algorithm::Gap, Algorithm::Adaptive] {
        let options = Options { algorithm: Some(algorithm), ..Options::default() };
        let mut segmenter = CommandSegmenter::new(&options).unwrap();
        let late = on(2, from(HOUR, 90));
        let mut out = process(&mut segmenter, [on(2, from(-500, 90)), to(0, 300), late, from(50, 60), from(300, 70)]);
        segmenter.finish(&mut out).unwrap();
        let notices: Vec<_> = out.iter().filter(|frame| matches!(frame, Frame::Notice(_))).collect();
        let [Frame::Notice(notice)] = &notices[..] else { panic!("{out:?}") };
        assert_eq!((&*notice.what, notice.flow), (what::CLOCK, Some(2)));
        let commands: Vec<_> = out.into_iter().filter_map(|frame| Command::try_from(frame).ok()).collect();
        assert_eq!(commands.iter().map(|command| command.replies).collect::<Vec<_>>(), [2], "{algorithm:?}");
        assert!(segmenter.counters().contains(&("odd_times", 1)));
    }
}

#[test]
fn a_step_back_of_all_times_completes_the_commands_before_and_keeps_those_behind() {
    for algorithm in [Algorithm::Gap, Algorithm::Adaptive] {
        let options = Options { algorithm: Some(algorithm), ..Options::default() };
        let mut segmenter = CommandSegmenter::new(&options).unwrap();
        let day = times(20).flat_map(|at| command(at, 300));
        let again = times(20).flat_map(|at| command(at - HOUR, 300));
        let mut out = process(&mut segmenter, day.chain(again));
        segmenter.finish(&mut out).unwrap();
        assert!(segmenter.counters().contains(&("clock_steps", 1)));
        let commands: Vec<_> = out.into_iter().filter_map(|frame| Command::try_from(frame).ok()).collect();
        assert_eq!(commands.iter().map(|command| command.replies).collect::<Vec<_>>(), [2; 40], "{algorithm:?}");
        let (before, behind) = commands.split_at(20);
        assert!([before, behind].iter().all(|commands| commands.is_sorted_by_key(|command| command.time_ns)));
    }
}

#[test]
fn a_usual_silence_is_not_reported_and_costs_nothing() {
    let records: Vec<Record> = (0..200).flat_map(|n| command(n * HOUR, 300)).collect();
    let mut segmenter = CommandSegmenter::new(&gap()).unwrap();
    let mut out = process(&mut segmenter, records);
    segmenter.finish(&mut out).unwrap();
    let replies: Vec<_> = out.iter().map(|frame| Command::try_from(frame.clone()).unwrap().replies).collect();
    assert_eq!(replies, [2; 200]);
}

#[test]
fn memory_is_bounded_while_time_stands_still() {
    let mut segmenter = CommandSegmenter::new(&gap()).unwrap();
    let mut out = process(&mut segmenter, (0..10_000).map(|flow| on(flow, to(0, 300))));
    assert!(out.len() > 5_000);
    segmenter.finish(&mut out).unwrap();
    assert_eq!(out.len(), 10_000);
}

#[test]
fn flows_evicted_by_a_flood_are_reported_once() {
    let mut segmenter = CommandSegmenter::new(&gap()).unwrap();
    let out = process(&mut segmenter, (0..=MAX_FLOWS as u32).map(|flow| on(flow.into(), from(flow.into(), 90))));
    let [Frame::Notice(notice)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(notice.what, what::EVICTED);
    assert!(segmenter.counters().contains(&("evicted_flows", MAX_FLOWS as u64 / 2)));
}

#[test]
fn a_negative_time_is_refused() {
    let options = Options { gap: Some(SignedDuration::from_secs(-1)), ..Options::default() };
    assert!(CommandSegmenter::new(&options).is_err());
}

proptest! {
    #[test]
    fn each_record_is_in_at_most_one_command(records in records(-100..5000, 400, 80)) {
        for algorithm in [Algorithm::Gap, Algorithm::Record, Algorithm::Adaptive] {
            let commands = segment(&Options { algorithm: Some(algorithm), ..Options::default() }, &records);
            prop_assert!(are_counted_once(&commands, &records));
        }
    }

    #[test]
    fn the_commands_of_a_flow_do_not_depend_on_other_flows(mut records in records(0..5000, 400, 80)) {
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
