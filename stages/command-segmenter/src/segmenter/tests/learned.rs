//! The algorithm `learned`: it learns from labelled records and then finds the commands in others of the same gateway.

use std::path::Path;

use sizeleak_model::{GatewayRecords, Model, NoiseStatistics, RecordLayout};

use super::*;
use crate::LabelledTraffic;
use crate::testing::model;

/// A size that the model's actions make up, of one to three plugs.
fn size(n: i64) -> u64 {
    [100, 101, 140, 141, 181, 99, 142, 180][n as usize % 8]
}

fn commands(count: i64) -> Vec<Record> {
    (0..).zip(times(count)).flat_map(|(n, at)| command(at, size(n))).collect()
}

/// What is learned from records with commands that start at the times of `labels`, in milliseconds, and last
/// `duration`.
fn learn_labelled(mut records: Vec<Record>, labels: impl IntoIterator<Item = i64>, duration: i64) -> NoiseStatistics {
    records.sort_by_key(|record| record.time_ns);
    let command = |at| Command {
        time_ns: at * MS,
        end_ns: (at + duration) * MS,
        flow: 1,
        size: 0,
        records: 1,
        ..Command::default()
    };
    let commands: Vec<Command> = labels.into_iter().map(command).collect();
    learn_traffic(&records, &commands, &[], [i64::MIN, i64::MAX])
}

fn learn_traffic(records: &[Record], commands: &[Command], doubtful: &[Command], span: [i64; 2]) -> NoiseStatistics {
    let traffic =
        LabelledTraffic { records, flows: &[], commands, doubtful, span, labels_are_complete: true, labels_fit: true };
    traffic.learn(&model(NoiseStatistics::default()), &Options::default()).unwrap()
}

/// What is learned from 40 commands and other records.
fn learn(others: impl IntoIterator<Item = Record>) -> NoiseStatistics {
    learn_labelled(commands(40).into_iter().chain(others).collect(), times(40), 0)
}

fn segmenter(noise: &NoiseStatistics) -> CommandSegmenter {
    let models = ModelSet::new(vec![model(noise.clone())]).unwrap();
    CommandSegmenter::with_models(
        &Options::default(),
        CommandDirection::To,
        NoiseModels::new(&models, Direction::ToGateway),
        None,
    )
    .unwrap()
}

fn found(noise: &NoiseStatistics, records: Vec<Record>) -> Vec<(i64, u64, u32)> {
    super::found(segmenter(noise), records)
}

fn every(period: i64, count: i64, phase: i64, record: impl Fn(i64) -> Record) -> Vec<Record> {
    (0..count).map(|n| record(n * period + phase + n % 3 * 20)).collect()
}

/// As the answer of a service to a WebSocket's request, which under block ciphers and padding has the size of commands.
#[test]
fn the_first_answer_in_a_connection_that_the_gateway_opens_is_no_command() {
    let noise = learn([]);
    let opened_by = |noise: &NoiseStatistics, client: Option<Direction>, messages: &[Record]| {
        let hello = client.map(|direction| Record { direction, handshake: true, ..from(0, 300) });
        found(noise, hello.into_iter().chain(messages.iter().cloned()).collect())
    };
    let (by_gateway, by_service) = (Some(Direction::FromGateway), Some(Direction::ToGateway));
    let exchange = [from(50, 160), to(80, 100), to(5_000, 100)];
    assert_eq!(opened_by(&noise, by_gateway, &exchange), [(5_000, 100, 0)]);
    assert_eq!(opened_by(&noise, by_service, &exchange).len(), 2, "a settings frame before the request of a webhook");
    assert_eq!(opened_by(&noise, None, &exchange).len(), 2, "nobody saw who opened it");
    let second = [from(50, 160), to(80, 30), from(5_000, 160), to(5_030, 100)];
    assert_eq!(opened_by(&noise, by_gateway, &second), [(5_030, 100, 0)], "the service may send what it likes then");
    assert_eq!(opened_by(&noise, by_gateway, &[to(40, 100), from(50, 160), to(80, 100)]).len(), 2, "it came first");
    assert_eq!(
        opened_by(&noise, by_gateway, &[from(50, 160), to(900, 100)]),
        [(900, 100, 0)],
        "too late for an answer"
    );
    let poll = GatewayRecords { size: 160, times: 40, replies: 0, answered: 20, by: None, commands: 20 };
    let polling = NoiseStatistics { from_gateway: vec![poll], ..noise };
    assert_eq!(opened_by(&polling, by_gateway, &exchange).len(), 2, "answers to its requests are commands");
}

#[test]
fn on_its_timer_a_keep_alive_with_the_size_of_commands_is_not_a_command() {
    let keep_alive = |count, phase| every(2 * MINUTE, count, phase, |at| to(at, 141));
    let noise = learn(keep_alive(13, 17_000));
    let of_141 = noise.to_gateway[0];
    assert_eq!((of_141.size, of_141.alone, of_141.commands, of_141.replied), (141, 13, 5, 0));
    assert!(of_141.every_ms.is_some_and(|period| period.abs_diff(120_000) < 50) && of_141.on_beat >= 12, "{of_141:?}");
    assert_eq!(found(&noise, keep_alive(30, 3_000)), [], "an hour of it alone, of another phase");
    let mut records = keep_alive(30, 3_000);
    records.extend(command(100_600, 141).into_iter().chain(command(777_700, 142)));
    assert_eq!(found(&noise, records), [(100_600, 141, 2), (777_700, 142, 2)], "a command of that size off its timer");
}

/// Their sender looks once a second whether they are due.
#[test]
fn a_keep_alive_with_the_size_of_commands_that_is_up_to_a_second_late_is_no_command() {
    let late = |count: i64, phase: i64| {
        let mut at = phase;
        (0..count).map(move |n| {
            at += 30 * SECOND + n * n * 7_919 % 1_001;
            to(at, 141)
        })
    };
    let noise = learn(late(60, 17_000));
    let of_141 = noise.to_gateway[0];
    assert_eq!((of_141.size, of_141.alone, of_141.jitter_ms), (141, 60, 1_000));
    assert!(of_141.every_ms.is_some_and(|period| (30_000..31_000).contains(&period)), "{of_141:?}");
    assert_eq!(found(&noise, late(120, 3_000).collect()), []);
    let records = late(120, 3_000).chain(command(110_000, 141)).collect();
    assert_eq!(found(&noise, records), [(110_000, 141, 2)], "a command of that size between two");
}

#[test]
fn off_its_timer_a_keep_alive_is_a_command_if_the_gateway_never_replies() {
    let keep_alive = |count, phase| every(MINUTE, count, phase, |at| to(at, 120));
    let mut records = keep_alive(25, 9_000);
    records.extend((0..).zip(times(40)).map(|(n, at)| to(at, size(n))));
    let noise = learn_labelled(records, times(40), 0);
    assert_eq!((noise.commands, noise.replied), (40, 0));
    assert_eq!(found(&noise, keep_alive(60, 31_000)), []);
    let mut records = keep_alive(60, 31_000);
    records.extend([to(200_500, 120), to(300_500, 141)]);
    assert_eq!(found(&noise, records), [(200_500, 120, 0), (300_500, 141, 0)], "off the timer");
}

#[test]
fn a_size_that_no_actions_make_up_is_not_a_command_and_is_reported_if_new() {
    let noise = learn(every(2 * MINUTE, 13, 17_000, |at| to(at, 23)));
    assert_eq!(found(&noise, vec![to(50_000, 23), to(99_000, 60), to(180_000, 4000)]), []);
    let mut segmenter = segmenter(&noise);
    let out = process(&mut segmenter, [to(50_000, 23), to(99_000, 60)]);
    let [Frame::Notice(notice)] = &out[..] else { panic!("{out:?}") };
    assert_eq!((&*notice.what, notice.bytes), (what::UNEXPLAINED, Some(84)));
    assert!(segmenter.counters().contains(&("unexplained", 1)));
}

/// The gateway polls every minute, in two records, and is answered in three, of sizes that commands have.
#[test]
fn answers_to_polls_of_several_records_are_not_commands() {
    let polls = |count, phase: i64| {
        (0..count)
            .flat_map(|n| {
                let at = n * MINUTE + phase + n * 7;
                [from(at, 300), from(at + 12, 160), to(at + 40, 141), to(at + 46, 115), to(at + 52, 116)]
            })
            .collect::<Vec<_>>()
    };
    let noise = learn(polls(25, 5_000));
    assert_eq!(found(&noise, polls(60, 11_000)), [], "an hour of them alone");
    let mut records = polls(60, 11_000);
    records.extend(command(100_600, 141).into_iter().chain(command(131_030, 181)));
    assert_eq!(found(&noise, records), [(100_600, 141, 2), (131_030, 181, 2)], "one is between the records of a poll");
}

#[test]
fn telemetry_is_not_a_reply_and_its_receipt_not_a_command() {
    let readings = |count| -> Vec<Record> {
        (0..count).flat_map(|n| [from(n * 5_300 + n % 7 * 600, 77), to(n * 5_300 + n % 7 * 600 + 30, 110)]).collect()
    };
    let noise = learn(readings(280));
    assert!(noise.from_gateway.iter().find(|records| records.size == 77).unwrap().is_telemetry());
    assert_eq!(found(&noise, readings(680)), [], "an hour of it alone");
    let mut records = readings(680);
    records.extend(command(2_000, 110));
    // Between a reading, at 5900 ms, and its receipt; and after that, while nothing else is due.
    records.extend(command(5_915, 141).into_iter().chain(command(60_000, 140)));
    let expected = [(2_000, 110, 2), (5_915, 141, 2), (60_000, 140, 2)];
    assert_eq!(found(&noise, records), expected);
}

#[test]
fn commands_before_the_last_reply_or_within_the_gap_are_separate() {
    let noise = learn([]);
    assert_eq!(noise.written, RecordLayout::Whole);
    let records = [command(1_000, 100), command(1_090, 141), vec![to(9_000, 140), to(9_010, 101)]].concat();
    assert_eq!(found(&noise, records), [(1_000, 100, 1), (1_090, 141, 3), (9_000, 140, 0), (9_010, 101, 0)]);
}

#[test]
fn full_records_and_the_next_one_are_one_command() {
    // Records hold at most 64 bytes.
    let cut = |at: i64, size: u64| {
        let parts = (0..size.div_ceil(64)).zip(at..).map(move |(n, at)| to(at, (size - 64 * n).min(64)));
        parts.chain([from(at + 60, 45)]).collect::<Vec<_>>()
    };
    let records = (0..).zip(times(40)).flat_map(|(n, at)| cut(at, size(n))).collect();
    let noise = learn_labelled(records, times(40), 5);
    assert_eq!((noise.full_to_gateway, noise.written), (Some(64), RecordLayout::Whole));
    let records = [cut(1_000, 141), cut(1_040, 128), cut(9_000, 181), cut(20_000, 20)].concat();
    assert_eq!(
        found(&noise, records),
        [(1_000, 141, 0), (1_040, 128, 2), (9_000, 181, 1)],
        "128 bytes are two full records"
    );
}

#[test]
fn parts_of_a_command_that_are_written_at_once_are_one_command() {
    let parts = |at: i64, size: u64| [to(at, 30), to(at + 2, size - 30), from(at + 60, 45)];
    let records = (0..).zip(times(40)).flat_map(|(n, at)| parts(at, size(n))).collect();
    let noise = learn_labelled(records, times(40), 5);
    assert_eq!(noise.written, RecordLayout::Parts);
    let records = [parts(1_000, 141), parts(1_100, 101)].concat();
    assert_eq!(found(&noise, records), [(1_000, 141, 1), (1_100, 101, 1)]);
}

/// The gateway replies to the head of a command before the service sends the rest.
fn asked(at: i64, size: u64, wait: i64) -> [Record; 4] {
    [to(at, 30), from(at + wait / 2, 45), to(at + wait, size - 30), from(at + wait + 60, 45)]
}

/// Of 83 commands every fourth has a reply in between, which is another command where that was not learned.
#[test]
fn a_command_that_was_learned_to_go_on_goes_on_behind_a_reply() {
    let parts = |at: i64, size: u64| [to(at, 30), to(at + 2, size - 30), from(at + 60, 45)];
    let noise = learn_labelled((0..).zip(times(40)).flat_map(|(n, at)| parts(at, size(n))).collect(), times(40), 5);
    assert_eq!(noise.continued, [30]);
    for wait in [10, 40, 200, 700] {
        let sent =
            |n| if n % 4 == 0 { asked(n * 9_000, size(n), wait).to_vec() } else { parts(n * 9_000, size(n)).to_vec() };
        let all = found(&noise, (0..83).flat_map(sent).collect());
        let expected: Vec<_> = (0..83).map(|n| (n * 9_000, size(n), if n % 4 == 0 { 2 } else { 1 })).collect();
        assert_eq!(all, expected, "{wait} ms");
    }
}

/// The labels were found to be those of the heads, which all have one size.
#[test]
fn a_record_that_always_follows_a_command_belongs_to_it_if_the_labels_do_not_fit_without() {
    let learn = |labels_fit, rest: fn(i64) -> u64| {
        let records: Vec<Record> =
            (0..).zip(times(40)).flat_map(|(n, at)| asked(at, rest(n), 90)).chain(polls_answered(30)).collect();
        let mut records = records;
        records.sort_by_key(|record| record.time_ns);
        let heads = run(CommandSegmenter::new(&gap()).unwrap(), &records);
        let heads: Vec<Command> = heads.into_iter().filter(|command| command.plaintext == Some([30; 2])).collect();
        assert_eq!(heads.len(), 40);
        let span = [i64::MIN, i64::MAX];
        let (commands, doubtful) = (&heads[..], &[][..]);
        let traffic = LabelledTraffic {
            records: &records,
            flows: &[],
            commands,
            doubtful,
            span,
            labels_are_complete: false,
            labels_fit,
        };
        traffic.learn(&model(NoiseStatistics::default()), &Options::default()).unwrap()
    };
    assert_eq!(learn(true, size).continued, [0_u32; 0], "the heads explain their labels");
    assert_eq!(learn(false, |_| 101).continued, [0_u32; 0], "what is always as long is an answer");
    let noise = learn(false, size);
    assert_eq!(noise.continued, [30]);
    let all = found(&noise, (0..83).flat_map(|n| asked(n * 9_000, size(n), 90)).collect());
    assert_eq!(all, (0..83).map(|n| (n * 9_000, size(n), 2)).collect::<Vec<_>>());
}

/// The gateway asks every 20 s, and is answered with as many bytes.
fn polls_answered(count: i64) -> impl Iterator<Item = Record> {
    (0..count).flat_map(|n| [from(n * 20_011 + 15_000, 77), to(n * 20_011 + 15_030, 77)])
}

#[test]
fn a_small_record_continues_a_command_if_no_labelled_command_was_cut() {
    let noise = learn([]);
    let records = vec![to(1_000, 181), to(1_002, 9), from(1_060, 45), to(5_000, 181), to(5_100, 9)];
    assert_eq!(found(&noise, records), [(1_000, 190, 1), (5_000, 181, 0)]);
}

/// The gateway always polls; the service answers with a command or, after half a minute, with an empty answer.
#[test]
fn commands_that_end_long_polls_are_found_among_empty_answers() {
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
    let noise = learn_labelled(polls(&labels, 31 * MINUTE), labels, 0);
    assert_eq!(found(&noise, polls(&[], HOUR)), [], "an hour of them alone");
    let sent = [7_000, 7_170, 60_000, 3_000_000];
    let found: Vec<i64> = found(&noise, polls(&sent, HOUR)).iter().map(|command| command.0).collect();
    assert_eq!(found, sent, "one of them just after the next poll has started");
}

#[test]
fn each_gateway_and_connection_has_its_own_timer_phase() {
    let noise = learn(every(MINUTE, 25, 9_000, |at| to(at, 120)));
    let all_on = |number, records: Vec<Record>| records.into_iter().map(move |record| on(number, record));
    let mut records: Vec<Record> = (1..=6_u64)
        .flat_map(|number| all_on(number, every(MINUTE, 60, number.cast_signed() * 7_300, |at| to(at, 120))))
        .chain(all_on(2, command(200_100, 120)))
        .chain(all_on(5, command(200_150, 141)))
        .collect();
    records.sort_by_key(|record| record.time_ns);
    let mut segmenter = segmenter(&noise);
    for number in 1..=6 {
        let gateway = if number <= 3 { "192.168.1.20" } else { "192.168.1.21" };
        segmenter.process(flow(number, gateway), &mut Vec::<Frame>::new()).unwrap();
    }
    let found: Vec<_> = run(segmenter, &records).iter().map(|command| (command.flow, command.time_ns / MS)).collect();
    assert_eq!(found, [(2, 200_100), (5, 200_150)]);
}

/// A connection breaks, and the next one begins with a greeting of a size that commands have.
#[test]
fn the_greeting_of_a_new_connection_is_not_a_command() {
    let greeting = |at: i64| vec![from(at, 160), to(at + 30, 129)];
    let noise = learn(greeting(500));
    let on_next = |records: Vec<Record>| records.into_iter().map(|record| on(2, record));
    let mut records = command(1_000, 141);
    records.extend(on_next(greeting(60_000)).chain(on_next(command(60_100, 181))));
    assert_eq!(found(&noise, records.clone()), [(1_000, 141, 2), (60_100, 181, 2)]);
    let began_later = learn([]);
    assert_eq!(found(&began_later, records), [(1_000, 141, 2), (60_100, 181, 2)], "the greeting was not captured");
}

#[test]
fn commands_without_a_label_do_not_become_noise() {
    let keep_alive = every(2 * MINUTE, 13, 17_000, |at| to(at, 141));
    let mut records = commands(40);
    records.extend(keep_alive.clone());
    let noise = learn_labelled(records, times(40).enumerate().filter(|(n, _)| n % 3 > 0).map(|(_, at)| at), 0);
    assert!(noise.to_gateway.len() > 5, "a third of the commands seem to be noise: {noise:?}");
    let mut records = commands(60);
    let expected = found(&noise, records.clone());
    assert_eq!(expected.len(), 60);
    records.extend(keep_alive);
    assert_eq!(found(&noise, records), expected);
}

#[test]
fn nothing_is_learned_outside_of_the_labels_or_from_doubtful_commands() {
    let records = commands(40);
    let labels: Vec<Command> = run(CommandSegmenter::new(&gap()).unwrap(), &records);
    let learn = |commands: &[Command], doubtful: &[Command]| {
        let span = [commands[0].time_ns, commands[commands.len() - 1].time_ns];
        learn_traffic(&records, commands, doubtful, span)
    };
    assert_eq!(learn(&labels[10..20], &[]).to_gateway, []);
    let some: Vec<Command> = labels.iter().step_by(10).cloned().collect();
    let rest: Vec<Command> = labels.iter().enumerate().filter(|(n, _)| n % 10 > 0).map(|(_, it)| it.clone()).collect();
    assert_eq!(learn(&some, &rest).to_gateway, []);
    assert!(!learn(&some, &[]).to_gateway.is_empty());
}

/// Commands of one record whose sizes vary by three bytes; on the same connection a keep-alive of 23 bytes, polls of
/// several records, pings and acknowledgements.
#[test]
fn commands_of_a_smart_plug_are_found_among_its_other_traffic() {
    let other_traffic = |minutes: i64, phase: i64| {
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
    let mut records = other_traffic(26, 12_000);
    records.extend((0..).zip(times(40)).flat_map(|(n, at)| pressed(n, at)));
    let noise = learn_labelled(records, times(40), 0);
    assert_eq!(found(&noise, other_traffic(60, 40_000)), []);
    let mut records = other_traffic(60, 40_000);
    let pressed_at: Vec<i64> = (0..50).map(|n| 9_000 + n * 61_300 + n % 7 * 911).collect();
    records.extend((0..).zip(&pressed_at).flat_map(|(n, at)| pressed(n, *at)));
    let found: Vec<i64> = found(&noise, records).iter().map(|command| command.0).collect();
    assert_eq!(found, pressed_at);
}

/// A file with a model that has this noise.
fn model_file(noise: Option<NoiseStatistics>) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, Model { noise, ..model(NoiseStatistics::default()) }.to_toml()).unwrap();
    file
}

#[test]
fn learned_is_refused_without_a_model_that_has_noise() {
    let fault = |model: Option<&Path>| {
        let (algorithm, model) = (Some(Algorithm::Learned), model.map(Path::to_owned).into_iter().collect());
        CommandSegmenter::new(&Options { algorithm, model, ..Options::default() }).map(|_| "a segmenter").unwrap_err()
    };
    assert_eq!(fault(None).exit_code(), 2);
    assert!(fault(Some("no-such-folder/model.toml".as_ref())).to_string().contains("no-such-folder/model.toml"));
    let error = fault(Some(model_file(None).path()));
    assert!(error.exit_code() == 1 && error.to_string().contains("no [noise]"), "{error}");
}

#[test]
fn the_default_algorithm_is_learned_only_with_a_model_that_has_noise() {
    let is_learned = |model: Option<&Path>| {
        let options = Options { model: model.map(Path::to_owned).into_iter().collect(), ..Options::default() };
        matches!(CommandSegmenter::new(&options).unwrap().algorithm, AlgorithmState::Learned(_))
    };
    assert!(is_learned(Some(model_file(Some(NoiseStatistics::default())).path())));
    assert!(!is_learned(Some(model_file(None).path())) && !is_learned(None));
}

proptest! {
    #[test]
    fn each_record_is_in_at_most_one_command_if_messages_are_cut_anywhere(
        records in records(-100..900_000, 200, 120),
        full in prop::option::of(10u32..150),
    ) {
        let mut noise = learn(every(MINUTE, 25, 9_000, |at| to(at, 120)));
        noise.full_to_gateway = full;
        prop_assert!(are_counted_once(&run(segmenter(&noise), &records), &records));
    }
}
