//! The algorithm `adaptive`: what it learns of gateways that behave as real ones do.

use super::*;

/// As after a while: what is learned within ten minutes is known from the first record on.
fn adaptive() -> Options {
    Options { algorithm: Some(Algorithm::Adaptive), look_ahead: SignedDuration::from_mins(10), ..Options::default() }
}

fn found(records: Vec<Record>) -> Vec<(i64, u64, u32)> {
    super::found(CommandSegmenter::new(&adaptive()).unwrap(), records)
}

/// Commands with two replies each, which the service does not answer.
fn commands(count: i64) -> Vec<Record> {
    (0..).zip(times(count)).flat_map(|(n, at)| command(at, 150 + n * 13 % 90)).collect()
}

/// Readings of the gateway, each with a receipt after some milliseconds.
fn readings(count: i64, receipt_after: impl Fn(i64) -> i64) -> Vec<Record> {
    let at = |n: i64| n * 41 * SECOND + n * n * 300;
    (0..count).flat_map(|n| [from(at(n), 60), to(at(n) + receipt_after(n), 19)]).collect()
}

#[test]
fn a_keep_alive_on_the_connection_of_commands_is_learned() {
    let mut records = commands(40);
    let expected = found(records.clone());
    assert_eq!((expected.len(), expected.iter().all(|(_, _, replies)| *replies == 2)), (40, true));
    records.extend((0..15).map(|n| to(n * 2 * MINUTE + 17_000 + n % 3 * 40, 23)));
    assert_eq!(found(records.clone()), expected);
    // Commands of nearly and of exactly that size, at irregular times.
    let small = [(100_600, 22), (161_300, 24), (400_250, 26), (777_700, 20), (801_000, 23), (1_002_000, 23)];
    records.extend(small.iter().map(|(at, size)| to(*at, *size)));
    let with_small = found(records);
    assert_eq!(with_small.len(), 46);
    assert!(small.iter().all(|(at, size)| with_small.iter().any(|command| (command.0, command.1) == (*at, *size))));
}

#[test]
fn the_first_answer_in_a_connection_that_the_gateway_opens_is_no_command() {
    let is_command = |client: Direction| {
        let mut records: Vec<Record> = times(40).flat_map(|at| command(at, 150)).collect();
        let hello = Record { direction: client, handshake: true, ..from(500_000, 300) };
        records.extend([hello, from(500_050, 160), to(500_080, 150), from(500_900, 45)].map(|record| on(2, record)));
        records.sort_by_key(|record| record.time_ns);
        let mut segmenter = CommandSegmenter::new(&adaptive()).unwrap();
        for number in [1, 2] {
            segmenter.process(flow(number, "192.168.1.20"), &mut Vec::new()).unwrap();
        }
        run(segmenter, &records).iter().any(|command| command.time_ns == 500_080 * MS)
    };
    assert!(!is_command(Direction::FromGateway));
    assert!(is_command(Direction::ToGateway), "it opened the connection to send a command");
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
fn a_command_that_follows_a_reply_is_not_an_answer_to_it() {
    let mut records = [commands(12), readings(12, |_| 30)].concat();
    let (command, reply) = (300 * SECOND, 300 * SECOND + 60);
    records.extend([to(command, 200), from(reply, 45), to(reply + 50, 210), from(reply + 110, 45)]);
    let all = found(records);
    assert_eq!(all.len(), 14);
    assert!(all.contains(&(command, 200, 1)) && all.contains(&(reply + 50, 210, 1)), "{all:?}");
}

#[test]
fn a_command_between_a_reading_and_its_receipt_is_found() {
    let mut records = [commands(12), readings(12, |_| 30)].concat();
    records.extend([from(520_000, 60), to(520_015, 200), to(520_030, 19), from(520_080, 45)]);
    let all = found(records);
    assert_eq!((all.len(), all.iter().find(|command| command.0 == 520_015)), (13, Some(&(520_015, 200, 1))));
}

#[test]
fn records_within_the_gap_are_one_command_only_if_all_but_the_last_are_full() {
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
    assert_eq!(sizes, [148, 40, 38], "slow parts are one command, whole messages close together are two");
}

#[test]
fn telemetry_is_not_a_reply_and_hides_no_command() {
    let mut records = commands(20);
    let expected = found(records.clone());
    records.extend((0..140).map(|n| from(n * 5_300 + n % 7 * 600, 77)));
    assert_eq!(found(records), expected);
}

#[test]
fn answers_that_come_late_or_alone_are_still_answers() {
    let mut records: Vec<Record> = (0..30).flat_map(|n| [from(n * MINUTE, 40), to(n * MINUTE + 12, 40)]).collect();
    records.extend([from(1_830_000, 40), to(1_831_500, 40), to(1_890_250, 40), to(1_911_000, 140)]);
    assert_eq!(found(records.clone()), [(1_911_000, 140, 0)]);
    records.extend([to(1_950_250, 40), to(2_010_250, 40), from(2_010_300, 45)]);
    let mut segmenter = CommandSegmenter::new(&adaptive()).unwrap();
    let mut out = process(&mut segmenter, records);
    segmenter.finish(&mut out).unwrap();
    let [Frame::Notice(notice), rest @ ..] = &out[..] else { panic!("{out:?}") };
    assert_eq!((&*notice.what, notice.time_ns, notice.bytes), (what::UNEXPLAINED, Some(1_890_250 * MS), Some(64)));
    assert!(segmenter.counters().contains(&("unexplained", 2)), "two that nothing asked for: one is said");
    assert_eq!(rest.len(), 2, "the last one of that length has a reply: {rest:?}");
}

#[test]
fn answers_that_always_take_longer_than_the_option_are_learned() {
    let records = commands(30);
    let expected = found(records.clone());
    assert_eq!(found([records, readings(25, |n| 250 + n % 4)].concat()), expected);
}

/// Times with random pauses in a range.
fn random_times(pauses: std::ops::Range<i64>) -> impl Iterator<Item = i64> {
    let (mut state, mut at) = (1_u64, 0);
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        at += pauses.start + (state >> 33).cast_signed() % (pauses.end - pauses.start);
        at
    })
}

/// Commands with other messages among them, each so long after the last record, or after the last of them; none within
/// 200 ms of a record of a command.
fn every_so_often(
    commands: &[Record],
    is_idle: bool,
    after: impl Fn(i64) -> i64,
    messages: impl Fn(i64) -> Vec<Record>,
) -> Vec<Record> {
    let (mut last, mut n, mut all) = (0, 0, commands.to_vec());
    for record in commands {
        let next = record.time_ns / MS;
        while last + after(n) < next - 200 || !is_idle && last + after(n) < next + 200 {
            last += after(n);
            n += 1;
            all.extend(if last < next - 200 { messages(last) } else { Vec::new() });
        }
        last = if is_idle { next } else { last };
    }
    all
}

/// Their sender looks once a second whether they are due, or is as often early as late.
#[test]
fn keep_alives_that_are_up_to_a_second_early_or_late_are_no_commands() {
    let commands = commands(60);
    let expected = found(commands.clone());
    assert_eq!(expected.len(), 60);
    for period in [12, 20, 25, 30, 45, 60] {
        let options = Options { look_ahead: SignedDuration::from_secs(15 * period), ..adaptive() };
        for (early, late) in [(0, 500), (0, 1_000), (500, 500), (1_000, 1_000)] {
            let after = |n: i64| period * SECOND - early + n * n * 7_919 % (early + late + 1);
            for is_idle in [false, true] {
                let records = every_so_often(&commands, is_idle, after, |at| vec![to(at, 60)]);
                let found = super::found(CommandSegmenter::new(&options).unwrap(), records);
                assert_eq!(found, expected, "{period} s, {early} and {late} ms, {is_idle}");
            }
        }
    }
}

/// An HTTP/2 PING has 17 bytes, as has what acknowledges it; either side sends some, at any time.
#[test]
fn pings_of_either_side_at_any_time_are_no_commands() {
    let commands = commands(60);
    let expected = found(commands.clone());
    let after = |n: i64| 5_000 + n * n * 7_919 % 55_000;
    let pings = every_so_often(&commands, false, after, |at| {
        if at % 2 == 0 { vec![to(at, 17), from(at + 15, 17)] } else { vec![from(at, 17), to(at + 15, 17)] }
    });
    assert!(pings.len() > 2 * commands.len());
    assert_eq!(found_by_default(pings.clone()), found_by_default(commands));
    assert_eq!(found(pings), expected);
}

/// A script sends a command every half minute, to record something to learn from.
#[test]
fn commands_of_a_script_are_not_keep_alives() {
    let sizes = [150, 163, 150, 171, 163, 188, 171, 150, 188, 163];
    let script = (0..60).flat_map(|n| {
        let at = n * 30 * SECOND;
        let size = sizes[(n * n % 7 + n) as usize % sizes.len()];
        [to(at, size), from(at + 60 + n % 5 * 30, 45)]
    });
    assert_eq!(found(script.collect()).len(), 60);
}

#[test]
fn all_connections_of_a_gateway_to_a_service_share_what_is_learned() {
    let mut segmenter = CommandSegmenter::new(&Options { look_ahead: SignedDuration::ZERO, ..adaptive() }).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    let mut counts = Vec::new();
    for connection in 1..=4_u32 {
        segmenter.process(flow(connection.into(), "192.168.1.20"), &mut out).unwrap();
        let keep_alive = |n| on(connection.into(), to((i64::from(connection) * 6 + n) * MINUTE, 90));
        process(&mut segmenter, (0..6).map(keep_alive));
        counts.push(segmenter.counts.commands);
    }
    assert!(counts[0] > 0 && counts[0] < 6, "nothing is known of a first connection: {counts:?}");
    assert!(counts.iter().all(|count| *count == counts[0]), "everything is known of the next: {counts:?}");
    assert_eq!(out.iter().filter(|frame| matches!(frame, Frame::Flow(_))).count(), 4);
}

/// The sizes that are found where nothing is known of the gateway, by the default options, with their number.
fn found_by_default(records: Vec<Record>) -> Vec<(u64, usize)> {
    let found = super::found(CommandSegmenter::new(&Options::default()).unwrap(), records);
    let sizes: std::collections::BTreeSet<u64> = found.iter().map(|command| command.1).collect();
    sizes.into_iter().map(|size| (size, found.iter().filter(|command| command.1 == size).count())).collect()
}

/// A poll of the other side, to which the gateway says what it says to a command.
fn poll(at: i64, size: u64) -> [Record; 2] {
    [to(at, size), from(at + 18, 4_000)]
}

/// A few milliseconds early or late, never twice the same.
fn jitter(n: i64, most_ms: i64) -> i64 {
    n * n * 7_919 % (2 * most_ms + 1) - most_ms
}

#[test]
fn polls_by_a_timer_that_is_a_little_early_or_late_are_no_commands() {
    let polls = (0..40).flat_map(|n| poll(n * 10 * SECOND + jitter(n, 25), 55));
    assert_eq!(found_by_default(polls.chain(command(137_300, 105)).collect()), [(105, 1)]);
}

#[test]
fn polls_of_which_some_are_missing_are_no_commands() {
    let polls = (0..60).filter(|n| n % 7 != 5).flat_map(|n| poll(n * 10 * SECOND + jitter(n, 20), 55));
    assert_eq!(found_by_default(polls.chain(command(137_300, 105)).collect()), [(105, 1)]);
}

#[test]
fn two_polls_of_one_size_or_of_two_with_periods_of_their_own_are_no_commands() {
    for sizes in [[55, 70], [55, 55]] {
        let one = (0..60).flat_map(|n| poll(n * 10 * SECOND, sizes[0]));
        let other = (0..40).flat_map(|n| poll(n * 15 * SECOND + 3_700, sizes[1]));
        assert_eq!(found_by_default(one.chain(other).chain(command(136_000, 105)).collect()), [(105, 1)], "{sizes:?}");
    }
}

#[test]
fn polls_whose_period_changes_are_no_commands() {
    let slower = (0..40).flat_map(|n| poll(n * 10 * SECOND, 55));
    let faster = (0..40).flat_map(|n| poll(400 * SECOND + n * 16 * SECOND, 55));
    assert_eq!(found_by_default(slower.chain(faster).chain(command(137_300, 105)).collect()), [(105, 1)]);
}

/// Every quarter of an hour: no router needs to be told so rarely that a connection is in use.
#[test]
fn commands_of_a_schedule_are_commands() {
    let commands: Vec<Record> = (0..60).flat_map(|n| command(n * 15 * MINUTE + jitter(n, 20), 105)).collect();
    assert_eq!(found_by_default(commands), [(105, 60)]);
}

/// A script that switches a lamp on and off every 20 seconds: the two sizes alternate.
#[test]
fn commands_of_several_sizes_by_a_timer_are_commands() {
    let commands: Vec<Record> = (0..60).flat_map(|n| command(n * 20 * SECOND, [105, 106][n as usize % 2])).collect();
    assert_eq!(found_by_default(commands), [(105, 30), (106, 30)]);
}

/// The gateway asks a service that never begins by itself; the answer takes its time, and comes behind a receipt.
#[test]
fn late_answers_of_a_service_that_never_begins_are_no_commands() {
    let asked = [(24, 118, 103, 680), (54, 145, 335, 430), (235, 172, 335, 2_020)];
    let records = asked.iter().flat_map(|(at, size, answer, after)| {
        let at = at * SECOND;
        [from(at, *size), to(at + 36, 4), to(at + after, *answer)]
    });
    let mut records: Vec<Record> = records.collect();
    assert_eq!(found_by_default(records.clone()), []);
    records.extend(command(600 * SECOND, 105));
    assert_eq!(found_by_default(records.clone()), [(105, 1)]);
    let later = 700 * SECOND;
    records.extend([from(later, 200), to(later + 36, 4), to(later + 680, 335)]);
    assert_eq!(found_by_default(records), [(105, 1), (335, 1)], "by then the service is known to begin by itself");
}

/// The gateway asks after half a minute of silence, or by the clock; of its commands some are as long as the answers, and
/// most if all of them are.
#[test]
fn commands_as_long_as_the_answers_to_polls_are_found_or_said() {
    for (period, is_idle) in [(30, true), (30, false), (10, true), (10, false)] {
        for (sizes, as_long) in [([53, 64, 83, 64], 15), ([53, 64, 83, 53], 30), ([53; 4], 60)] {
            for has_reply in [true, false] {
                let commands: Vec<Record> = (0..60)
                    .zip(random_times(3_000..90_000))
                    .flat_map(|(n, at)| {
                        let command = to(at, sizes[n % 4]);
                        std::iter::once(command).chain(has_reply.then(|| from(at + 65, 37)))
                    })
                    .collect();
                let after = |n: i64| period * SECOND + n * 17 % 50;
                let mut records = every_so_often(&commands, is_idle, after, |at| vec![from(at, 53), to(at + 15, 53)]);
                records.sort_by_key(|record| record.time_ns);
                let mut segmenter = CommandSegmenter::new(&Options::default()).unwrap();
                let mut out = process(&mut segmenter, records);
                segmenter.finish(&mut out).unwrap();
                let notices = out.iter().filter(|frame| matches!(frame, Frame::Notice(_))).count();
                let found: Vec<Command> = out.into_iter().filter_map(|frame| Command::try_from(frame).ok()).collect();
                let unexplained =
                    segmenter.counters().iter().find(|(name, _)| *name == "unexplained").unwrap().1 as usize;
                let case = (period, is_idle, as_long, has_reply, unexplained);
                assert_eq!(found.len() + unexplained, 60, "{case:?}");
                assert_eq!(notices, unexplained.min(1), "{case:?}");
                assert!(unexplained == 0 || !has_reply, "{case:?}");
                let others = found.iter().filter(|command| command.plaintext != Some([53; 2])).count();
                assert_eq!(others, 60 - as_long, "{case:?}");
            }
        }
    }
}

/// A small request and its large answer: `min-size` does not make the answer a command.
#[test]
fn a_large_answer_to_a_small_request_is_no_command() {
    let mut records: Vec<Record> = (0..10)
        .flat_map(|n| [from(n * 20 * SECOND + n * n * 771, 12), to(n * 20 * SECOND + n * n * 771 + 40, 18)])
        .collect();
    records.extend(command(500 * SECOND, 105));
    assert_eq!(found_by_default(records), [(105, 1)]);
}

/// HTTP/2: the gateway widens its window (a frame of 13 bytes) as soon as the headers are there.
#[test]
fn a_small_record_of_the_gateway_does_not_end_a_message() {
    let request = |at: i64, body: u64| [to(at, 209), from(at + 1, 13), to(at + 2, body), from(at + 90, 65)];
    let sizes: Vec<u64> = (0..12).map(|n| 150 + n * 13 % 90).collect();
    let records = times(12).zip(&sizes).flat_map(|(at, body)| request(at, *body)).collect();
    let found: Vec<(u64, u32)> = found(records).into_iter().map(|(_, size, replies)| (size, replies)).collect();
    assert_eq!(found, sizes.iter().map(|body| (209 + body, 1)).collect::<Vec<_>>());
}

/// The gateway has forgotten the connection, and is silent.
#[test]
fn a_message_on_a_connection_without_a_word_of_the_gateway_is_no_command() {
    let dead = [on(2, to(0, 391)), on(3, to(9_000, 18))];
    let records: Vec<Record> = dead.into_iter().chain(command(20 * SECOND, 105)).collect();
    assert_eq!(found_by_default(records), [(105, 1)], "the first on its connection too, but the gateway replies");
    let records = vec![to(0, 105), from(20 * SECOND, 60)];
    assert_eq!(found_by_default(records), [(105, 1)], "the gateway is there");
}

/// The times of both are true, but the stream has all that the service sent before what the gateway did.
#[test]
fn records_are_learned_in_the_order_of_their_times() {
    let records: Vec<Record> = (0..20)
        .flat_map(|n| {
            let at = n * 90 * SECOND + n * n * 771;
            [to(at, 420), to(at + 150, 60), from(at + 4, 400), from(at + 149, 60)]
        })
        .collect();
    let mut segmenter = CommandSegmenter::new(&Options::default()).unwrap();
    let mut out = process(&mut segmenter, records);
    segmenter.finish(&mut out).unwrap();
    let commands: Vec<Command> = out.into_iter().filter_map(|frame| Command::try_from(frame).ok()).collect();
    assert_eq!(commands.len(), 20);
    assert!(commands.iter().all(|command| command.plaintext == Some([420; 2])), "{commands:?}");
}

#[test]
fn the_number_of_waiting_records_is_bounded() {
    let options = Options { look_ahead: SignedDuration::from_hours(24), ..adaptive() };
    let mut segmenter = CommandSegmenter::new(&options).unwrap();
    process(&mut segmenter, (0..70_000).map(|n| from(n, 90)));
    assert!(segmenter.counters().contains(&("decided_early", 70_001 - (1 << 16))));
}

/// A ping of the gateway twice a minute, and a keep-alive of the service.
#[derive(Debug, Clone, Copy)]
struct Timers {
    ping: u64,
    keep_alive: u64,
    period: i64,
    phase: i64,
}

impl Timers {
    /// The sizes that are found among commands of 150 bytes and more, and those of the commands.
    fn found_and_sent(self, pauses: &[i64]) -> (Vec<u64>, Vec<u64>) {
        let Self { ping, keep_alive, period, phase } = self;
        let mut records = Vec::new();
        let mut at = 3_000;
        for (n, pause) in pauses.iter().enumerate() {
            at += pause;
            records.extend([to(at, 150 + n as u64), from(at + 45, 45), from(at + 90, 45)]);
        }
        let end = at.max(12 * period);
        records.extend((0..end / 30_000).flat_map(|n| [from(n * 30_000 + 9, ping), to(n * 30_000 + 35, ping)]));
        records.extend((0..=end / period).map(|n| to(n * period + phase, keep_alive)));
        let sizes = found(records).iter().map(|command| command.1).collect();
        (sizes, (0..pauses.len() as u64).map(|n| 150 + n).collect())
    }
}

/// Of 13, all but the first, second and third come far from a ping: the second 21 ms behind the answer to one, the third
/// with one.
#[test]
fn a_keep_alive_is_known_by_those_close_behind_a_ping_too() {
    let timers = Timers { ping: 4, keep_alive: 16, period: 59_979, phase: 77 };
    let (found, sent) = timers.found_and_sent(&[2_000; 10]);
    assert_eq!(found, sent);
}

/// They come close behind the ping, then close behind the answer, then later and later: a large one looks like the answer
/// to a large ping, or like a part of it.
#[test]
fn keep_alives_that_drift_past_pings_of_any_size_are_no_commands() {
    for ping in [4, 16, 145] {
        for (period, phase) in [(60_010, 13), (59_985, 137), (89_991, 103), (20_000, 60)] {
            let timers = Timers { ping, keep_alive: 64, period, phase };
            let (found, sent) = timers.found_and_sent(&[4_201, 2_951, 12_410, 33_113, 4_344, 2_433, 7_784]);
            assert_eq!(found, sent, "{timers:?}");
        }
    }
}

proptest! {
    /// The keep-alive may have any size that no command has.
    #[test]
    fn commands_are_found_among_pings_and_a_keep_alive(
        pauses in prop::collection::vec(2_000i64..40_000, 10..60),
        keep_alive in 16u64..140,
        period in 20_000i64..95_000,
        phase in 0i64..20_000,
    ) {
        let (found, sent) = Timers { ping: 4, keep_alive, period, phase }.found_and_sent(&pauses);
        prop_assert_eq!(found, sent);
    }

    /// Nearly in step with the pings, so that many keep-alives come close to one.
    #[test]
    fn commands_are_found_among_pings_and_a_keep_alive_nearly_in_step(
        pauses in prop::collection::vec(2_000i64..40_000, 10..60),
        keep_alive in 16u64..140,
        step in prop::sample::select(vec![20_000i64, 30_000, 40_000, 45_000, 60_000, 75_000, 90_000]),
        early_or_late in -60i64..=60,
        phase in 0i64..300,
    ) {
        let timers = Timers { ping: 4, keep_alive, period: step + early_or_late, phase };
        let (found, sent) = timers.found_and_sent(&pauses);
        prop_assert_eq!(found, sent);
    }
}
