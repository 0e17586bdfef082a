//! The directions `from` and `both`: reports of the gateway.

use super::*;
use crate::record_class::{ClassifiedRecord, RecordRole};

fn options(direction: CommandDirection) -> Options {
    Options { direction: Some(direction), look_ahead: SignedDuration::from_mins(10), ..Options::default() }
}

/// What is found: direction, time in milliseconds, plaintext size and replies.
fn found(direction: CommandDirection, mut records: Vec<Record>) -> Vec<(Direction, i64, u64, u32)> {
    records.sort_by_key(|record| record.time_ns);
    let commands = run(CommandSegmenter::new(&options(direction)).unwrap(), &records);
    let shown =
        |command: &Command| (command.direction, command.time_ns / MS, command.plaintext.unwrap()[0], command.replies);
    commands.iter().map(shown).collect()
}

/// Somebody presses a button at the lamp: the gateway reports it, and the service confirms that.
fn report(at: i64, size: u64) -> Vec<Record> {
    vec![from(at, size), to(at + 100, 30)]
}

/// Times of reports, after no steady silence.
fn report_times() -> impl Iterator<Item = i64> {
    times(10).zip(0..).map(|(at, n)| at + 17 * SECOND + n * n * 131)
}

/// Ten commands, and ten reports that nothing prompted.
fn traffic() -> Vec<Record> {
    let commands = times(10).flat_map(|at| command(at, 150));
    commands.chain(report_times().flat_map(|at| report(at, 90))).collect()
}

#[test]
fn to_finds_commands_alone() {
    let found = found(CommandDirection::To, traffic());
    assert!(found.iter().all(|(direction, ..)| *direction == Direction::ToGateway), "{found:?}");
    assert_eq!(found.iter().filter(|(_, _, size, replies)| (*size, *replies) == (150, 2)).count(), 10);
}

#[test]
fn from_finds_reports_with_the_replies_of_the_service() {
    let reports = found(CommandDirection::From, times(10).flat_map(|at| report(at, 90)).collect());
    assert_eq!(reports, times(10).map(|at| (Direction::FromGateway, at, 90, 1)).collect::<Vec<_>>());
}

#[test]
fn both_finds_commands_with_their_replies_and_reports_that_are_no_replies() {
    let all = found(CommandDirection::Both, traffic());
    let of =
        |direction: Direction| all.iter().filter(move |found| found.0 == direction).map(|found| (found.1, found.2));
    let commands = all.iter().filter(|found| found.0 == Direction::ToGateway && found.2 == 150);
    assert!(commands.clone().all(|found| found.3 == 2) && commands.count() == 10, "{all:?}");
    assert_eq!(of(Direction::FromGateway).collect::<Vec<_>>(), report_times().map(|at| (at, 90)).collect::<Vec<_>>());
    assert!(all.is_sorted_by_key(|found| found.1));
}

#[test]
fn each_record_is_counted_once_with_both() {
    let mut records = traffic();
    records.sort_by_key(|record| record.time_ns);
    let mut segmenter = CommandSegmenter::new(&options(CommandDirection::Both)).unwrap();
    let mut found = process(&mut segmenter, records.iter().cloned());
    segmenter.finish(&mut found).unwrap();
    let counters = segmenter.counters();
    let of = |names: &[&str]| -> u64 {
        counters.iter().filter(|(name, _)| names.contains(name)).map(|(_, count)| count).sum()
    };
    assert_eq!((of(&["reports"]), of(&["commands"])), (10, 10), "{counters:?}");
    // The others confirm the reports.
    assert_eq!(of(&["reports", "commands", "replies", "keep_alives", "tiny", "unprompted"]), records.len() as u64 - 10);
}

#[test]
fn a_state_that_comes_long_after_its_command_is_a_report_with_both() {
    let late = [to(0, 150), from(60, 45), from(9 * SECOND, 105), to(9 * SECOND + 100, 30)];
    let records = times(5).flat_map(|at| command(at + MINUTE, 150)).chain(late).collect();
    let all = found(CommandDirection::Both, records);
    assert!(all.contains(&(Direction::FromGateway, 9 * SECOND, 105, 1)), "{all:?}");
    assert!(all.contains(&(Direction::ToGateway, 0, 150, 1)), "{all:?}");
}

#[test]
fn periodic_requests_of_the_gateway_are_no_reports() {
    let polls = (0..40).flat_map(|n| [from(n * 30 * SECOND + 900, 60), to(n * 30 * SECOND + 940, 40)]);
    let records: Vec<Record> = polls.chain(report(333_333, 90)).collect();
    for direction in [CommandDirection::From, CommandDirection::Both] {
        let reports = found(direction, records.clone());
        let of_gateway: Vec<i64> =
            reports.iter().filter(|found| found.0 == Direction::FromGateway).map(|found| found.1).collect();
        assert_eq!(of_gateway, [333_333], "{direction:?}");
    }
}

proptest! {
    #[test]
    fn each_record_is_in_one_command_or_report_at_most(records in records(-100..5000, 400, 80)) {
        for algorithm in [Algorithm::Gap, Algorithm::Record, Algorithm::Adaptive] {
            for direction in [CommandDirection::From, CommandDirection::Both] {
                let options = Options { algorithm: Some(algorithm), ..options(direction) };
                let commands = segment(&options, &records);
                let parts: u32 = commands.iter().map(|command| command.records + command.replies).sum();
                prop_assert!(parts as usize <= records.len());
            }
        }
    }
}

#[test]
fn every_record_has_one_role_and_keeping_roles_changes_no_command() {
    let poll = |at: i64| [from(at, 60), to(at + 50, 40)];
    let polls = (0..40).flat_map(|number| poll(number * 30 * SECOND + 7_777));
    let mut records: Vec<Record> = traffic().into_iter().chain(polls).collect();
    records.sort_by_key(|record| record.time_ns);
    let segmenter = || CommandSegmenter::new(&options(CommandDirection::Both)).unwrap();
    let mut keeping = segmenter().keeping_roles();
    let (mut out, mut roles) = (Vec::new(), Vec::new());
    for record in &records {
        out.extend(process(&mut keeping, [record.clone()]));
        roles.extend(keeping.take_roles());
    }
    keeping.finish(&mut out).unwrap();
    roles.extend(keeping.take_roles());
    let commands: Vec<Command> = out.into_iter().filter_map(|frame| Command::try_from(frame).ok()).collect();
    assert_eq!(commands, run(segmenter(), &records));
    assert_eq!(roles.len(), records.len());
    let mut not_asked = segmenter();
    process(&mut not_asked, records.iter().cloned());
    assert_eq!(not_asked.take_roles(), [], "nothing is kept that nobody asks for");
    let count = |direction, plaintext: u32, role| {
        let is_it = |found: &&ClassifiedRecord| {
            (found.direction, found.length, found.role) == (direction, plaintext + 24, role)
        };
        roles.iter().filter(is_it).count()
    };
    assert_eq!(count(Direction::ToGateway, 150, RecordRole::Message), 10);
    assert_eq!(count(Direction::FromGateway, 90, RecordRole::Message), 10);
    assert!(count(Direction::FromGateway, 60, RecordRole::Periodic) >= 36, "{roles:?}");
    assert!(count(Direction::ToGateway, 40, RecordRole::Answer) >= 36, "{roles:?}");
}
