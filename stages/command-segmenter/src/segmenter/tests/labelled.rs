//! The algorithm `learned`: taught by labelled records, then tried on others of the same gateway.

use sizeleak_frame::Transport;
use sizeleak_model::{NoiseStatistics, RecordLayout};

use super::*;
use crate::LabelledTraffic;
use crate::knowledge::Knowledge;
use crate::testing::model;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Times that are not steady.
fn times(count: i64) -> impl Iterator<Item = i64> {
    (0..count).map(|n| n * 37 * SECOND + n * n * 771 + 1_234)
}

/// A command that the gateway replies to twice, after 60 and 180 ms.
fn command(at: i64, size: u64) -> Vec<Record> {
    vec![to(at, size), from(at + 60, 45), from(at + 180, 45)]
}

/// Sizes as the model's actions make them: of one to three plugs.
fn size(n: i64) -> u64 {
    [100, 101, 140, 141, 181, 99, 142, 180][n as usize % 8]
}

fn commands(count: i64) -> Vec<Record> {
    (0..).zip(times(count)).flat_map(|(n, at)| command(at, size(n))).collect()
}

/// What is learned of records where commands begin at these times and last as long as `lasts`, in milliseconds.
fn taught_by(mut records: Vec<Record>, labels: impl IntoIterator<Item = i64>, lasts: i64) -> NoiseStatistics {
    records.sort_by_key(|record| record.time_ns);
    let commands: Vec<Command> = labels
        .into_iter()
        .map(|at| Command {
            time_ns: at * MS,
            end_ns: (at + lasts) * MS,
            flow: 1,
            size: 0,
            plaintext: None,
            records: 1,
            replies: 0,
            reply_bytes: 0,
        })
        .collect();
    let span = [i64::MIN, i64::MAX];
    let traffic = LabelledTraffic { records: &records, flows: &[], commands: &commands, doubtful: &[], span };
    let basis = model(NoiseStatistics::default()).learned.basis;
    traffic.learn(&basis, &Options::default()).unwrap()
}

/// What is learned of 40 commands and other records.
fn taught(others: impl IntoIterator<Item = Record>) -> NoiseStatistics {
    let mut records = commands(40);
    records.extend(others);
    taught_by(records, times(40), 0)
}

fn segmenter(noise: &NoiseStatistics) -> CommandSegmenter {
    let knowledge = Knowledge::of(&model(noise.clone())).unwrap();
    CommandSegmenter::with(Method::Learned(knowledge.into()), &Options::default()).unwrap()
}

/// The commands in records, which may come in any order here: their times in milliseconds, sizes and replies.
fn found(noise: &NoiseStatistics, mut records: Vec<Record>) -> Vec<(i64, u64, u32)> {
    records.sort_by_key(|record| record.time_ns);
    let commands = run(segmenter(noise), &records);
    commands.iter().map(|command| (command.time_ns / MS, command.plaintext.unwrap()[0], command.replies)).collect()
}

fn every(period: i64, count: i64, phase: i64, record: impl Fn(i64) -> Record) -> Vec<Record> {
    (0..count).map(|n| record(n * period + phase + n % 3 * 20)).collect()
}

fn none() -> Vec<(i64, u64, u32)> {
    Vec::new()
}

#[test]
fn a_keep_alive_of_a_size_that_commands_have() {
    let keep_alive = |count, phase| every(2 * MINUTE, count, phase, |at| to(at, 141));
    let noise = taught(keep_alive(13, 17_000));
    let kind = noise.to_gateway[0];
    assert_eq!((kind.size, kind.alone, kind.commands, kind.replied), (141, 13, 5, 0));
    assert!(kind.every_ms.is_some_and(|period| period.abs_diff(120_000) < 50) && kind.on_beat >= 12, "{kind:?}");
    assert_eq!(found(&noise, keep_alive(30, 3_000)), none(), "an hour of it alone, of another phase");
    let mut records = keep_alive(30, 3_000);
    records.extend(command(100_600, 141).into_iter().chain(command(777_700, 142)));
    assert_eq!(found(&noise, records), [(100_600, 141, 2), (777_700, 142, 2)], "a command of that size off its beat");
}

#[test]
fn a_keep_alive_where_the_gateway_never_replies() {
    let silent = |count| (0..).zip(times(count)).map(|(n, at)| to(at, size(n))).collect::<Vec<_>>();
    let keep_alive = |count, phase| every(MINUTE, count, phase, |at| to(at, 120));
    let mut records = silent(40);
    records.extend(keep_alive(25, 9_000));
    let noise = taught_by(records, times(40), 0);
    assert_eq!((noise.commands, noise.replied), (40, 0));
    assert_eq!(found(&noise, keep_alive(60, 31_000)), none());
    let mut records = keep_alive(60, 31_000);
    records.extend([to(200_500, 120), to(300_500, 141)]);
    assert_eq!(found(&noise, records), [(200_500, 120, 0), (300_500, 141, 0)], "off the beat");
}

#[test]
fn what_no_actions_make_up_is_no_command_and_told_where_it_is_new() {
    let noise = taught(every(2 * MINUTE, 13, 17_000, |at| to(at, 23)));
    assert_eq!(found(&noise, vec![to(50_000, 23), to(99_000, 60), to(180_000, 4000)]), none());
    let mut segmenter = segmenter(&noise);
    let mut out: Vec<Frame> = Vec::new();
    for record in [to(50_000, 23), to(99_000, 60)] {
        segmenter.process(Input::Record(record), &mut out).unwrap();
    }
    let [Frame::Notice(notice)] = &out[..] else { panic!("{out:?}") };
    assert_eq!((&*notice.what, notice.bytes), (what::UNEXPLAINED, Some(84)));
    assert!(segmenter.counters().contains(&("unexplained", 1)));
}

/// The gateway polls every minute, in two records, and is answered in three, of sizes that commands have.
#[test]
fn polls_of_several_records() {
    let polls = |count, phase: i64| {
        (0..count)
            .flat_map(|n| {
                let at = n * MINUTE + phase + n * 7;
                [from(at, 300), from(at + 12, 160), to(at + 40, 141), to(at + 46, 115), to(at + 52, 116)]
            })
            .collect::<Vec<_>>()
    };
    let noise = taught(polls(25, 5_000));
    assert_eq!(found(&noise, polls(60, 11_000)), none(), "an hour of them alone");
    let mut records = polls(60, 11_000);
    records.extend(command(100_600, 141).into_iter().chain(command(131_030, 181)));
    assert_eq!(found(&noise, records), [(100_600, 141, 2), (131_030, 181, 2)], "one between the records of a poll");
}

#[test]
fn telemetry_is_no_reply_and_its_receipt_no_command() {
    let readings = |count| {
        (0..count).flat_map(|n| [from(n * 5_300 + n % 7 * 600, 77), to(n * 5_300 + n % 7 * 600 + 30, 110)]).collect()
    };
    let readings: &dyn Fn(i64) -> Vec<Record> = &readings;
    let noise = taught(readings(280));
    assert!(noise.from_gateway.iter().find(|kind| kind.size == 77).unwrap().is_telemetry());
    assert_eq!(found(&noise, readings(680)), none(), "an hour of it alone");
    let mut records = readings(680);
    records.extend(command(2_000, 110));
    // Between a reading, at 5900 ms, and its receipt; and after that, while nothing else is due.
    records.extend(command(5_915, 141).into_iter().chain(command(60_000, 140)));
    let expected = [(2_000, 110, 2), (5_915, 141, 2), (60_000, 140, 2)];
    assert_eq!(found(&noise, records), expected);
}

#[test]
fn commands_while_replies_still_come_and_two_within_the_gap() {
    let noise = taught([]);
    assert_eq!(noise.written, RecordLayout::Whole);
    let records = [command(1_000, 100), command(1_090, 141), vec![to(9_000, 140), to(9_010, 101)]].concat();
    assert_eq!(found(&noise, records), [(1_000, 100, 1), (1_090, 141, 3), (9_000, 140, 0), (9_010, 101, 0)]);
}

#[test]
fn commands_cut_into_records() {
    // Records of 64 bytes at most.
    let cut = |at: i64, size: u64| {
        let pieces = (0..size.div_ceil(64)).zip(at..).map(move |(n, at)| to(at, (size - 64 * n).min(64)));
        pieces.chain([from(at + 60, 45)]).collect::<Vec<_>>()
    };
    let records = (0..).zip(times(40)).flat_map(|(n, at)| cut(at, size(n))).collect();
    let noise = taught_by(records, times(40), 5);
    assert_eq!((noise.full_to_gateway, noise.written), (Some(64), RecordLayout::Whole));
    let records = [cut(1_000, 141), cut(1_040, 128), cut(9_000, 181), cut(20_000, 20)].concat();
    assert_eq!(found(&noise, records), [(1_000, 141, 0), (1_040, 128, 2), (9_000, 181, 1)], "128 are two full ones");
}

#[test]
fn commands_written_in_parts() {
    let parts = |at: i64, size: u64| [to(at, 30), to(at + 2, size - 30), from(at + 60, 45)];
    let records = (0..).zip(times(40)).flat_map(|(n, at)| parts(at, size(n))).collect();
    let noise = taught_by(records, times(40), 5);
    assert_eq!(noise.written, RecordLayout::Parts);
    let records = [parts(1_000, 141), parts(1_100, 101)].concat();
    assert_eq!(found(&noise, records), [(1_000, 141, 1), (1_100, 101, 1)]);
}

#[test]
fn a_last_piece_is_one_where_no_labelled_command_was_cut() {
    let noise = taught([]);
    let records = vec![to(1_000, 181), to(1_002, 9), from(1_060, 45), to(5_000, 181), to(5_100, 9)];
    assert_eq!(found(&noise, records), [(1_000, 190, 1), (5_000, 181, 0)]);
}

/// The gateway asks all the time and is told that there is nothing, after half a minute; or it is told a command.
#[test]
fn long_polls() {
    let polls = |commands: &[i64], until: i64| {
        let (mut at, mut records) = (500, Vec::new());
        while at < until {
            records.push(from(at, 106));
            let next = commands.iter().find(|time| (at..at + 25_000).contains(*time));
            if let Some(time) = next {
                records.extend([to(*time, size(*time)), from(time + 90, 190), to(time + 115, 115)]);
                at = time + 130;
            } else {
                records.push(to(at + 25_000, 115));
                at += 25_040;
            }
        }
        records
    };
    let labels: Vec<i64> = times(40).collect();
    let noise = taught_by(polls(&labels, 31 * MINUTE), labels, 0);
    assert_eq!(found(&noise, polls(&[], HOUR)), none(), "an hour of them alone");
    let sent = [7_000, 7_170, 60_000, 3_000_000];
    let found: Vec<i64> = found(&noise, polls(&sent, HOUR)).iter().map(|command| command.0).collect();
    assert_eq!(found, sent, "one of them while the next poll has just begun");
}

#[test]
fn several_gateways_and_connections_keep_their_own_beat() {
    let noise = taught(every(MINUTE, 25, 9_000, |at| to(at, 120)));
    let on = |flow, records: Vec<Record>| records.into_iter().map(move |record| Record { flow, ..record });
    let mut records: Vec<Record> = (1..=6_u64)
        .flat_map(|flow| on(flow, every(MINUTE, 60, flow.cast_signed() * 7_300, |at| to(at, 120))))
        .chain(on(2, command(200_100, 120)))
        .chain(on(5, command(200_150, 141)))
        .collect();
    records.sort_by_key(|record| record.time_ns);
    let mut segmenter = segmenter(&noise);
    let mut out: Vec<Frame> = Vec::new();
    // Flows 1 to 3 are of one gateway, the others of another.
    for flow in 1..=6 {
        let gateway = if flow <= 3 { "192.168.1.20" } else { "192.168.1.21" }.parse().unwrap();
        let service = "203.0.113.10:443".parse().unwrap();
        segmenter
            .process(Input::Flow(Flow { flow, gateway, service, transport: Transport::Tcp }.into()), &mut out)
            .unwrap();
    }
    let found: Vec<_> = run(segmenter, &records).iter().map(|command| (command.flow, command.time_ns / MS)).collect();
    assert_eq!(found, [(2, 200_100), (5, 200_150)]);
}

/// A connection breaks after the first piece of a command, and the next one begins with a greeting of a size that
/// commands have.
#[test]
fn a_connection_that_breaks_in_a_command() {
    let greeting = |at: i64| vec![from(at, 160), to(at + 30, 129)];
    let noise = taught(greeting(500));
    let on_next = |records: Vec<Record>| records.into_iter().map(|record| Record { flow: 2, ..record });
    let mut records = command(1_000, 141);
    records.extend(on_next(greeting(60_000)).chain(on_next(command(60_100, 181))));
    assert_eq!(found(&noise, records.clone()), [(1_000, 141, 2), (60_100, 181, 2)]);
    // Neither was seen before: the capture to learn from began later.
    assert_eq!(found(&taught([]), records), [(1_000, 141, 2), (60_100, 181, 2)]);
}

#[test]
fn labels_that_are_missing_make_no_noise_of_commands() {
    let keep_alive = every(2 * MINUTE, 13, 17_000, |at| to(at, 141));
    let mut records = commands(40);
    records.extend(keep_alive.clone());
    let noise = taught_by(records, times(40).enumerate().filter(|(n, _)| n % 3 > 0).map(|(_, at)| at), 0);
    assert!(noise.to_gateway.len() > 5, "a third of the commands seem to be noise: {noise:?}");
    let mut records = commands(60);
    let expected = found(&noise, records.clone());
    assert_eq!(expected.len(), 60);
    records.extend(keep_alive);
    assert_eq!(found(&noise, records), expected);
}

#[test]
fn nothing_is_learned_before_the_first_label_and_after_the_last() {
    let records = commands(40);
    let labels: Vec<Command> = run(CommandSegmenter::new(&Options::default()).unwrap(), &records);
    let basis = model(NoiseStatistics::default()).learned.basis;
    let learn = |commands: &[Command], doubtful: &[Command]| {
        let span = [commands[0].time_ns, commands[commands.len() - 1].time_ns];
        let traffic = LabelledTraffic { records: &records, flows: &[], commands, doubtful, span };
        traffic.learn(&basis, &Options::default()).unwrap()
    };
    assert_eq!(learn(&labels[10..20], &[]).to_gateway, []);
    let some: Vec<Command> = labels.iter().step_by(10).cloned().collect();
    let rest: Vec<Command> = labels.iter().enumerate().filter(|(n, _)| n % 10 > 0).map(|(_, it)| it.clone()).collect();
    assert_eq!(learn(&some, &rest).to_gateway, [], "nor of what is doubtful");
    assert!(!learn(&some, &[]).to_gateway.is_empty());
}

/// Records of one command each, its size a byte or three more or less; on, off and dim within two bytes of each other; a
/// keep-alive of 23 bytes on the same connection; polls of several records; pings and acknowledgements.
#[test]
fn a_smart_plug() {
    let surroundings = |minutes: i64, phase: i64| {
        let mut records = every(2 * MINUTE, minutes / 2, phase, |at| to(at, 23));
        records.extend((0..minutes).flat_map(|n| {
            let at = n * MINUTE + phase / 3 + n * 5;
            [
                from(at, 104),
                from(at + 8, 131),
                to(at + 33, 118),
                to(at + 41, 97),
                from(at + 30_000, 2),
                to(at + 30_030, 2),
            ]
        }));
        records
    };
    let pressed = |n: i64, at: i64| {
        let size = (100 + n % 3 + n * n % 4 - 1) as u64;
        [to(at, size), from(at + 45, 4), from(at + 210, 61), to(at + 240, 4)]
    };
    let mut records = surroundings(26, 12_000);
    records.extend((0..).zip(times(40)).flat_map(|(n, at)| pressed(n, at)));
    let noise = taught_by(records, times(40), 0);
    assert_eq!(found(&noise, surroundings(60, 40_000)), none());
    let mut records = surroundings(60, 40_000);
    let pressed_at: Vec<i64> = (0..50).map(|n| 9_000 + n * 61_300 + n % 7 * 911).collect();
    records.extend((0..).zip(&pressed_at).flat_map(|(n, at)| pressed(n, *at)));
    let found: Vec<i64> = found(&noise, records).iter().map(|command| command.0).collect();
    assert_eq!(found, pressed_at);
}

#[test]
fn its_options_are_checked() {
    let learned = Options { algorithm: Some(Algorithm::Learned), ..Options::default() };
    let fault = |options: &Options| CommandSegmenter::new(options).map(|_| "a segmenter").unwrap_err();
    assert_eq!(fault(&learned).exit_code(), 2);
    let file = tempfile::NamedTempFile::new().unwrap();
    let with_model = Options { model: Some(file.path().into()), ..learned };
    let missing = Options { model: Some("no-such-folder/model.toml".into()), ..with_model.clone() };
    assert!(fault(&missing).to_string().contains("no-such-folder/model.toml"));
    let write = |noise: Option<NoiseStatistics>| {
        std::fs::write(&file, sizeleak_model::Model { noise, ..model(NoiseStatistics::default()) }.to_toml()).unwrap();
    };
    write(None);
    let error = fault(&with_model);
    assert!(error.exit_code() == 1 && error.to_string().contains("no [noise]"), "{error}");
    let unsaid = Options { algorithm: None, ..with_model.clone() };
    let state = |options: &Options| CommandSegmenter::new(options).unwrap().algorithm;
    assert!(matches!(state(&unsaid), State::Rules { .. }));
    write(Some(NoiseStatistics::default()));
    assert!(matches!(state(&unsaid), State::Learned(_)) && matches!(state(&with_model), State::Learned(_)));
    assert!(matches!(state(&Options::default()), State::Rules { .. }), "without a model there must be no need of one");
}

proptest! {
    /// Whatever comes, each record is counted once at most, and commands leave in order.
    #[test]
    fn anything_may_come(
        records in prop::collection::vec((any::<bool>(), -100i64..900_000, 0u64..200, 1u64..3), 0..120),
        full in prop::option::of(10u32..150),
    ) {
        let mut noise = taught(every(MINUTE, 25, 9_000, |at| to(at, 120)));
        noise.full_to_gateway = full;
        let records: Vec<Record> = records.into_iter().map(|(toward, at, size, flow)| {
            Record { flow, ..if toward { to(at, size) } else { from(at, size) } }
        }).collect();
        let commands = run(segmenter(&noise), &records);
        let all = |direction| records.iter().filter(|record| record.direction == direction).count();
        let pieces: u32 = commands.iter().map(|command| command.records).sum();
        let replies: u32 = commands.iter().map(|command| command.replies).sum();
        prop_assert!(pieces as usize <= all(Direction::ToGateway) && replies as usize <= all(Direction::FromGateway));
    }
}
