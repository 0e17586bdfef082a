//! The life of a home over weeks: its habits, attacks on it, and its commands as frames.

use sizeleak_frame::Command;
use sizeleak_simulator::scenario::{Attack, AttackKind};
use sizeleak_simulator::{Scenario, Simulation, TestForm, Truth, simulate_as};
use support::home::living;
use support::streams::frames_of;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

fn frames(scenario: &Scenario) -> Simulation {
    simulate_as(scenario, 5, TestForm::Frames).unwrap()
}

fn attacked(kind: AttackKind, day: u32) -> Simulation {
    let mut scenario = living(20);
    scenario.habits.attacks = vec![Attack { kind, day, at: None }];
    frames(&scenario)
}

/// When each command came, to the second, and its actions.
fn lived(truths: &[Truth]) -> Vec<(i64, Vec<u32>)> {
    truths.iter().map(|truth| (truth.time_ns / SECOND, truth.counts.clone())).collect()
}

#[test]
fn frames_hold_the_commands_of_the_capture() {
    let scenario = living(2);
    let (capture, frames) = (simulate_as(&scenario, 5, TestForm::Capture).unwrap(), frames(&scenario));
    assert_eq!(lived(&capture.test.truths), lived(&frames.test.truths));
    assert_eq!(capture.test.labels.lines().count(), frames.test.labels.lines().count());
    let sizes = |truths: &[Truth]| truths.iter().map(|truth| (truth.wire_size, truth.replies)).collect::<Vec<_>>();
    let sent = sizes(&frames.test.truths);
    assert!(sent.len() > 20 && sizes(&capture.test.truths).iter().zip(&sent).all(|(one, other)| one.0 == other.0));
    let commands = frames_of(&frames.test.bytes).into_iter().filter_map(|frame| Command::try_from(frame).ok());
    let commands: Vec<Command> = commands.collect();
    let read: Vec<_> = commands.iter().map(|command| (command.size as usize, command.replies as usize)).collect();
    assert_eq!(read, sent);
    assert!(commands.iter().all(|command| command.single_replies.len() == command.replies as usize));
}

#[test]
fn more_days_and_attacks_leave_the_days_before_as_they_were() {
    let (short, long) = (frames(&living(10)), frames(&living(20)));
    let (short, long) = (lived(&short.test.truths), lived(&long.test.truths));
    assert!(short.len() > 150 && long.starts_with(&short[..short.len() - 5]));
    for kind in AttackKind::ALL {
        let simulation = attacked(kind, 15);
        let attack = simulation.attacks[0];
        assert_eq!(attack.kind, kind);
        let before = |lived: &[(i64, Vec<u32>)]| {
            lived.iter().filter(|(second, _)| *second < attack.start_ns / SECOND - 86_400).cloned().collect::<Vec<_>>()
        };
        let truths = lived(&simulation.test.truths);
        assert_eq!(before(&truths), before(&long), "{kind}");
        assert_ne!(truths, long, "{kind}");
    }
}

#[test]
fn attacks_do_what_their_names_say() {
    let usual = frames(&living(20)).test.truths;
    let near = |truths: &[Truth], from: i64, until: i64| {
        truths.iter().filter(|truth| (from..until).contains(&truth.time_ns)).count()
    };
    let burst = attacked(AttackKind::Burst, 15);
    let start = burst.attacks[0].start_ns;
    assert!(near(&burst.test.truths, start - SECOND, start + 61 * SECOND) >= 10);
    assert_eq!(burst.test.truths.len(), usual.len() + 10);
    let dead = attacked(AttackKind::DeadGateway, 15);
    let start = dead.attacks[0].start_ns;
    assert_eq!(near(&dead.test.truths, start, start + DAY), 0);
    assert!(near(&usual, start, start + DAY) > 5);
    let new = attacked(AttackKind::NewAction, 15);
    let added = new.test.truths.iter().find(|truth| truth.time_ns >= new.attacks[0].start_ns - 1_000).unwrap();
    let action = added.counts.iter().position(|count| *count > 0).unwrap();
    assert!(usual.iter().all(|truth| truth.counts[action] == 0), "an action that the home does not use");
    let shifted = attacked(AttackKind::ShiftedRoutine, 15);
    assert_eq!(shifted.test.truths.len(), usual.len());
    let stopped = attacked(AttackKind::StoppedAutomation, 10);
    assert!(stopped.test.truths.len() + 4 < usual.len());
}

#[test]
fn routines_follow_the_clock_of_the_home_and_its_holidays() {
    let text = "epoch = \"2026-03-20T08:00:00Z\"\nlearn = { repeats = 0, random = 1 }\n\
                [habits]\ndays = 14\ntime-zone = \"Europe/Berlin\"\nfree-commands = 0.0\n\
                holiday = [{ day = 3, days = 2 }]\n\
                [[habits.routine]]\nat = \"07:10:00\"\ncommands = [{ on = 2 }]\n\
                [[habits.routine]]\nat = \"19:00:00\"\njitter = \"5m\"\ncommands = [{ dim = 1 }]\n";
    let truths = frames(&Scenario::from_toml(text).unwrap()).test.truths;
    let clock = |truth: &Truth| {
        let time = jiff::Timestamp::from_nanosecond(truth.time_ns.into()).unwrap();
        time.in_tz("Europe/Berlin").unwrap().strftime("%H:%M").to_string()
    };
    let (mornings, evenings): (Vec<&Truth>, Vec<&Truth>) = truths.iter().partition(|truth| truth.counts[0] == 2);
    assert_eq!((mornings.len(), evenings.len()), (14, 12), "automations run while people are away");
    assert!(mornings.iter().all(|truth| clock(truth) == "07:10"), "also when clocks have changed");
    assert!(evenings.iter().any(|truth| clock(truth) != "19:00"));
}

#[test]
fn a_rhythm_is_played_at_its_times_with_its_devices() {
    let text = "time,device,action\n2026-01-05T07:00:00,kettle,start\n2026-01-05T07:00:30,lamp,on\n\
                2026-01-05T22:00:00.5,lamp,off\n2026-01-05T23:00:00,shelf,off\n2026-01-05T23:00:05,shelf,on\n";
    let mut scenario = living(0);
    scenario.play(text).unwrap();
    assert_eq!(scenario.action_names(), ["start", "off", "on"]);
    assert_eq!(scenario.devices.iter().map(|kind| kind.count).collect::<Vec<_>>(), [1, 2], "lamp and shelf are alike");
    let truths = frames(&scenario).test.truths;
    let first: jiff::Timestamp = "2026-01-05T06:00:00Z".parse().unwrap();
    let seen: Vec<_> = lived(&truths).into_iter().map(|(time, counts)| (time - first.as_second(), counts)).collect();
    let (on, off) = (vec![0, 0, 1], vec![0, 1, 0]);
    let expected = [(0, vec![1, 0, 0]), (30, on.clone()), (54_000, off.clone()), (57_600, off), (57_605, on)];
    assert_eq!(seen, expected);
    for (text, fault) in [
        ("time,device,action\nsoon,lamp,on\n", "line 2: `soon` is not a time"),
        ("time,device\n2026-01-05T07:00:00,lamp\n", "line 2: "),
        ("time,device,action\n", "at least one `[[device]]`"),
    ] {
        let error = living(0).play(text).unwrap_err().to_string();
        assert!(error.contains(fault), "{error}");
    }
}
