//! The algorithm `adaptive`: what it learns of gateways that do what real ones do.

use sizeleak_frame::Transport;

use super::*;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;

fn adaptive() -> Options {
    Options { algorithm: Some(Algorithm::Adaptive), ..Options::default() }
}

/// The commands in records, which may come in any order here: their times in milliseconds, sizes and replies.
fn found(mut records: Vec<Record>) -> Vec<(i64, u64, u32)> {
    records.sort_by_key(|record| record.time_ns);
    let commands = segment(&adaptive(), &records);
    commands.iter().map(|command| (command.time_ns / MS, command.plaintext.unwrap()[0], command.replies)).collect()
}

/// Commands at times that are not steady, each with two replies that nobody answers.
fn commands(count: i64) -> Vec<Record> {
    let at = |n: i64| n * 37 * SECOND + n * n * 771 + 1_234;
    (0..count)
        .flat_map(|n| [to(at(n), 150 + (n * 13) as u64 % 90), from(at(n) + 60, 45), from(at(n) + 180, 45)])
        .collect()
}

#[test]
fn a_keep_alive_on_the_connection_of_commands_is_learned() {
    let mut records = commands(40);
    let expected = found(records.clone());
    assert_eq!((expected.len(), expected.iter().all(|(_, _, replies)| *replies == 2)), (40, true));
    records.extend((0..15).map(|n| to(n * 2 * MINUTE + 17_000 + n % 3 * 40, 23)));
    assert_eq!(found(records.clone()), expected);
    // Commands of nearly and of exactly that size, which come when they like.
    let small = [(100_600, 22), (161_300, 24), (400_250, 26), (777_700, 20), (801_000, 23), (1_002_000, 23)];
    records.extend(small.iter().map(|(at, size)| to(*at, *size)));
    let with_small = found(records);
    assert_eq!(with_small.len(), 46);
    assert!(small.iter().all(|(at, size)| with_small.iter().any(|command| (command.0, command.1) == (*at, *size))));
}

#[test]
fn polls_of_several_records_have_answers_of_several() {
    let mut records = commands(30);
    let expected = found(records.clone());
    for n in 0..20 {
        let at = n * MINUTE + 7_000;
        records.extend([from(at, 300), from(at + 12, 160), to(at + 40, 410), to(at + 46, 95), to(at + 52, 96)]);
    }
    assert_eq!(found(records), expected);
}

#[test]
fn a_command_that_follows_a_reply_is_no_answer_to_it() {
    let mut records = commands(12);
    let readings: Vec<Record> = (0..12)
        .flat_map(|n| [from(n * 41 * SECOND + n * n * 300, 60), to(n * 41 * SECOND + n * n * 300 + 30, 19)])
        .collect();
    records.extend(readings);
    let (command, reply) = (300 * SECOND, 300 * SECOND + 60);
    records.extend([to(command, 200), from(reply, 45), to(reply + 50, 210), from(reply + 110, 45)]);
    let all = found(records);
    assert_eq!(all.len(), 14);
    assert!(all.contains(&(command, 200, 1)) && all.contains(&(reply + 50, 210, 1)), "{all:?}");
}

#[test]
fn a_command_between_a_reading_and_its_receipt_is_told_from_it() {
    let mut records = commands(12);
    records.extend(
        (0..12).flat_map(|n| [from(n * 41 * SECOND + n * n * 300, 60), to(n * 41 * SECOND + n * n * 300 + 30, 19)]),
    );
    records.extend([from(520_000, 60), to(520_015, 200), to(520_030, 19), from(520_080, 45)]);
    let all = found(records);
    assert_eq!((all.len(), all.iter().find(|command| command.0 == 520_015)), (13, Some(&(520_015, 200, 1))));
}

#[test]
fn records_within_the_gap_are_pieces_only_if_all_but_the_last_are_full() {
    let mut records = commands(10);
    for n in 0..6 {
        let at = 500 * SECOND + n * 21 * SECOND + n * n * 1_700;
        records.extend([to(at, 64), to(at + 1, 64), to(at + 2, 64), to(at + 7, n as u64 + 3), from(at + 70, 45)]);
    }
    let whole = found(records.clone());
    assert_eq!(whole.len(), 16);
    assert_eq!(whole.iter().filter(|command| (195..=200).contains(&command.1)).count(), 6, "{whole:?}");
    records.extend([to(900_000, 64), to(900_025, 64), to(900_050, 20), to(950_000, 40), to(950_020, 38)]);
    let sizes: Vec<u64> = found(records).iter().skip(16).map(|command| command.1).collect();
    assert_eq!(sizes, [148, 40, 38], "pieces that come slowly are one command, whole ones close together are two");
}

#[test]
fn telemetry_is_no_reply_and_hides_no_command() {
    let mut records = commands(20);
    let expected = found(records.clone());
    records.extend((0..140).map(|n| from(n * 5_300 + n % 7 * 600, 77)));
    assert_eq!(found(records), expected);
}

#[test]
fn answers_that_come_late_or_alone_are_still_answers() {
    let mut records: Vec<Record> = (0..30).flat_map(|n| [from(n * MINUTE, 40), to(n * MINUTE + 12, 40)]).collect();
    records.extend([from(1_830_000, 40), to(1_831_500, 40), to(1_890_250, 40), to(1_911_000, 140)]);
    assert_eq!(found(records), [(1_911_000, 140, 0)]);
}

/// Receipts come a quarter of a second after readings: later than answers are looked for at first.
#[test]
fn a_service_far_away_is_waited_for() {
    let mut records = commands(30);
    let expected = found(records.clone());
    let at = |n: i64| n * 41 * SECOND + n * n * 300;
    records.extend((0..25).flat_map(|n| [from(at(n), 60), to(at(n) + 250 + n % 4, 19)]));
    assert_eq!(found(records), expected);
}

/// Somebody lets a script send a command every half minute, to record what is to be learned from.
#[test]
fn commands_by_a_script_are_no_keep_alives() {
    let sizes = [150, 163, 150, 171, 163, 188, 171, 150, 188, 163];
    let script = (0..60).flat_map(|n| {
        let at = n * 30 * SECOND;
        let size = sizes[(n * n % 7 + n) as usize % sizes.len()];
        [to(at, size), from(at + 60 + n % 5 * 30, 45)]
    });
    assert_eq!(found(script.collect()).len(), 60);
}

#[test]
fn habits_are_those_of_a_pair_over_all_its_connections() {
    let mut segmenter = CommandSegmenter::new(&Options { look_ahead: SignedDuration::ZERO, ..adaptive() }).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    let (gateway, service) = ("192.168.1.20".parse().unwrap(), "203.0.113.10:443".parse().unwrap());
    let mut counts = Vec::new();
    for connection in 1..=4_u32 {
        let flow = connection.into();
        let ends = Flow { flow, gateway, service, transport: Transport::Tcp };
        segmenter.process(SegmenterInput::Flow(ends.into()), &mut out).unwrap();
        for n in 0..6 {
            let beat = Record { flow, ..to((i64::from(connection) * 6 + n) * MINUTE, 90) };
            segmenter.process(SegmenterInput::Record(beat), &mut out).unwrap();
        }
        counts.push(segmenter.counts.commands);
    }
    assert!(counts[0] > 0 && counts[0] < 6, "nothing is known of a first connection: {counts:?}");
    assert!(counts.iter().all(|count| *count == counts[0]), "all is known of the next: {counts:?}");
    assert_eq!(out.iter().filter(|frame| matches!(frame, Frame::Flow(_))).count(), 4);
}

#[test]
fn what_waits_is_bounded() {
    let options = Options { look_ahead: SignedDuration::from_hours(24), ..adaptive() };
    let mut segmenter = CommandSegmenter::new(&options).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    for n in 0..70_000 {
        segmenter.process(SegmenterInput::Record(from(n, 90)), &mut out).unwrap();
    }
    let early = segmenter.counters().into_iter().find(|(name, _)| *name == "decided_early").unwrap().1;
    assert_eq!(early, 70_000 - (1 << 16));
}

proptest! {
    /// Commands one after another are found whatever else there is: readings with receipts, pings, and a keep-alive of
    /// any size that none of them has.
    #[test]
    fn commands_are_found_among_all_else(
        pauses in prop::collection::vec(2_000i64..40_000, 10..60),
        keep_alive in 16u64..140,
        period in 20_000i64..95_000,
        phase in 0i64..20_000,
    ) {
        let mut records = Vec::new();
        let mut at = 3_000;
        for (n, pause) in pauses.iter().enumerate() {
            at += pause;
            records.extend([to(at, 150 + n as u64), from(at + 45, 45), from(at + 90, 45)]);
        }
        let end = at.max(12 * period);
        records.extend((0..end / 30_000).flat_map(|n| [from(n * 30_000 + 9, 4), to(n * 30_000 + 35, 4)]));
        records.extend((0..=end / period).map(|n| to(n * period + phase, keep_alive)));
        let all = found(records);
        let sizes: Vec<u64> = all.iter().map(|command| command.1).collect();
        let expected: Vec<u64> = (0..pauses.len() as u64).map(|n| 150 + n).collect();
        prop_assert_eq!(sizes, expected);
    }
}
