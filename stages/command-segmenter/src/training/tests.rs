//! Windows of gateways that reply at once, late, in several steps, or never.

use super::*;
use crate::testing::{from, to};

const SECOND: i64 = 1_000;

/// Commands about every ten minutes with the replies that come after these times, in milliseconds.
fn traffic(count: i64, replies: impl Fn(i64) -> Vec<i64>) -> (Vec<Record>, Vec<Command>) {
    let mut records = Vec::new();
    let mut commands = Vec::new();
    for n in 0..count {
        let at = n * 600 * SECOND + n * n * 7_717;
        records.push(to(at, 200));
        records.extend(replies(n).into_iter().map(|after| from(at + after, 70 + (n % 5) as u64)));
        let time_ns = at * MS;
        commands.push(Command { time_ns, end_ns: time_ns, flow: 1, size: 224, records: 1, ..Command::default() });
    }
    (records, commands)
}

/// A request of the gateway each 45 seconds or so.
fn background(count: i64) -> impl Iterator<Item = Record> {
    (0..count).map(|n| from(n * 45 * SECOND + n * n * 13 % 9_000, 33))
}

fn learn(mut records: Vec<Record>, commands: &[Command]) -> Option<ReplyWindows> {
    records.sort_by_key(|record| record.time_ns);
    learn_reply_windows(&records, commands, 16)
}

#[test]
fn replies_in_time_need_no_other_windows() {
    let (records, commands) = traffic(40, |n| vec![60, 200 + n * 10]);
    assert_eq!(learn(records.clone(), &commands), None);
    assert_eq!(learn(records.into_iter().chain(background(700)).collect(), &commands), None);
}

#[test]
fn late_replies_lengthen_the_windows_also_beside_other_traffic() {
    let (records, commands) = traffic(40, |n| vec![2_700 + n * 60, 8_000 + n * 40]);
    let alone = learn(records.clone(), &commands).unwrap();
    assert!((10_000..=14_000).contains(&alone.within_ms) && (5_000..9_000).contains(&alone.gap_ms), "{alone:?}");
    let beside = learn(records.into_iter().chain(background(700)).collect(), &commands).unwrap();
    assert_eq!(beside, alone);
    // Nine in ten come within 9.2 s; twice that is longer than any takes.
    assert_eq!(alone.mostly_ms, alone.within_ms);
}

#[test]
fn replies_that_are_late_once_in_a_while_are_not_those_that_most_wait_for() {
    let (records, commands) = traffic(60, |n| {
        let late = if n % 10 == 0 { vec![9_000] } else { Vec::new() };
        [vec![100 + n, 400 + 2 * n], late].concat()
    });
    let beside = records.into_iter().chain(background(700)).collect();
    let windows = learn(beside, &commands).unwrap();
    assert!(windows.within_ms > 9_000 && (1_000..1_300).contains(&windows.mostly_ms), "{windows:?}");
}

#[test]
fn records_that_come_at_any_time_are_no_replies() {
    let (records, commands) = traffic(40, |_| Vec::new());
    assert_eq!(learn(records.into_iter().chain(background(700)).collect(), &commands), None);
    // Of sizes that vary, so that no length alone shows it.
    let (records, commands) = traffic(40, |_| vec![300]);
    let varied = background(700).enumerate().map(|(n, record)| Record { length: record.length + n as u32, ..record });
    assert_eq!(learn(records.into_iter().chain(varied).collect(), &commands), None);
}

#[test]
fn few_commands_or_replies_show_nothing() {
    let (records, commands) = traffic(7, |_| vec![5_000]);
    assert_eq!(learn(records, &commands), None);
    let (records, commands) = traffic(30, |n| if n < 6 { vec![5_000] } else { Vec::new() });
    assert_eq!(learn(records, &commands), None);
    assert_eq!(learn_reply_windows(&[], &commands, 16), None);
}

#[test]
fn replies_are_looked_for_until_the_next_command_and_for_a_minute_at_most() {
    let (mut records, commands) = traffic(40, |_| vec![300, 70_000]);
    assert_eq!(learn(records.clone(), &commands), None);
    for record in &mut records {
        record.time_ns = i64::MAX;
    }
    assert_eq!(learn(records, &commands), None, "any times are accepted");
}
