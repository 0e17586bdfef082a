//! The order of output, and the check that is skipped while no command can be complete.

use proptest::prelude::*;

use super::*;
use crate::options::Options;
use crate::testing::{MS, from, to};

fn condition() -> impl Strategy<Value = CommandCondition> {
    prop_oneof![
        Just(CommandCondition::Always),
        Just(CommandCondition::Never),
        Just(CommandCondition::IfReplied),
        Just(CommandCondition::IfSilent)
    ]
}

#[test]
fn the_replies_decide_whether_a_conditional_command_is_one() {
    for (condition, if_silent, if_replied) in [
        (CommandCondition::Always, true, true),
        (CommandCondition::Never, false, false),
        (CommandCondition::IfReplied, false, true),
        (CommandCondition::IfSilent, true, false),
    ] {
        let limits = Options::default().time_limits(None).unwrap();
        let mut commands = OpenCommands::default();
        commands.start(&to(0, 100), condition, &limits);
        commands.start(&to(10, 100), condition, &limits);
        commands.add_reply(&from(20, 40));
        let are_commands = commands.drain().map(|finished| matches!(finished, FinishedCommand::Command(_)));
        assert_eq!(are_commands.collect::<Vec<_>>(), [if_silent, if_replied], "{condition:?}");
    }
}

#[test]
fn a_complete_command_waits_for_an_open_one_that_started_earlier() {
    let limits = Options::default().time_limits(None).unwrap();
    let mut commands = OpenCommands::default();
    commands.start(&to(0, 100), CommandCondition::Always, &limits);
    commands.start(&Record { flow: 2, ..to(100, 100) }, CommandCondition::Always, &limits);
    commands.add_reply(&from(700, 40));
    commands.advance(2, 1_000 * MS, &limits);
    let last_incomplete_ms = 700 + 800 + 3_000;
    assert_eq!(commands.next_complete(last_incomplete_ms * MS, &limits), None, "the first may still get replies");
    let mut starts = Vec::new();
    while let Some(FinishedCommand::Command(command)) = commands.next_complete(last_incomplete_ms * MS + 1, &limits) {
        starts.push((command.time_ns / MS, command.replies));
    }
    assert_eq!(starts, [(0, 1), (100, 0)]);
}

proptest! {
    #[test]
    fn the_same_commands_are_complete_if_every_record_is_checked(
        steps in prop::collection::vec((0u64..3, 0u8..4, 0i64..2500, 0i64..4000, condition()), 0..120),
    ) {
        let limits = Options::default().time_limits(None).unwrap();
        let (mut commands, mut always_checked) = (OpenCommands::default(), OpenCommands::default());
        let (mut at_ms, mut now_ns) = (0, i64::MIN);
        for (flow, step, later_ms, lag_ms, condition) in steps {
            // Half of all come at once, and a flow may lag behind the others.
            at_ms += (later_ms - 1250).max(0);
            let record = Record { flow, ..to(at_ms - (lag_ms - 2000).max(0), 100) };
            now_ns = now_ns.max(record.time_ns);
            for commands in [&mut commands, &mut always_checked] {
                commands.advance(flow, record.time_ns, &limits);
            }
            loop {
                always_checked.incomplete_until_ns = None;
                let expected = always_checked.next_complete(now_ns, &limits);
                let is_last = expected.is_none();
                prop_assert_eq!(commands.next_complete(now_ns, &limits), expected);
                if is_last {
                    break;
                }
            }
            for commands in [&mut commands, &mut always_checked] {
                match step {
                    0 => commands.start(&record, condition, &limits),
                    1 => drop(commands.extend(&record, condition)),
                    _ => drop(commands.add_reply(&record)),
                }
            }
        }
    }
}
