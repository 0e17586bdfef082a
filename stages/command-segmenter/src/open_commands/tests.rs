//! Commands and replies, held to a plain list that is searched for each record.

use proptest::prelude::*;

use super::*;
use crate::options::Options;
use crate::testing::to;

/// The commands in order, each with whether it may still get replies.
#[derive(Default)]
struct PlainCommands(Vec<(CommandOrder, bool, HeldCommand)>);

impl PlainCommands {
    fn open(&mut self, flow: u64) -> Option<(&mut bool, &mut HeldCommand)> {
        let mut all = self.0.iter_mut();
        all.find(|(_, is_open, held)| *is_open && held.command.flow == flow).map(|(_, is_open, held)| (is_open, held))
    }

    fn advance(&mut self, flow: u64, time_ns: i64, limits: &TimeLimits) {
        if let Some((is_open, held)) = self.open(flow) {
            *is_open = !is_over(held, time_ns, limits);
        }
    }

    fn start(&mut self, record: &Record, condition: CommandCondition, number: u64) {
        if let Some((is_open, _)) = self.open(record.flow) {
            *is_open = false;
        }
        let held = HeldCommand { command: first_record(record).into(), condition, last_ns: record.time_ns };
        self.0.push((CommandOrder { time_ns: record.start_ns, number }, true, held));
        self.0.sort_by_key(|(order, ..)| *order);
    }

    fn extend(&mut self, record: &Record, condition: CommandCondition) -> bool {
        let Some((_, held)) = self.open(record.flow) else { return false };
        let command = &mut held.command;
        command.end_ns = command.end_ns.max(record.time_ns);
        command.size += u64::from(record.length);
        command.plaintext = command.plaintext.zip(record.plaintext).map(|(a, b)| [a[0] + b[0], a[1] + b[1]]);
        command.records += 1;
        (held.last_ns, held.condition) = (held.last_ns.max(record.time_ns), condition);
        true
    }

    fn add_reply(&mut self, record: &Record) -> bool {
        let Some((_, held)) = self.open(record.flow) else { return false };
        held.command.replies += 1;
        held.command.reply_bytes += u64::from(record.length);
        held.last_ns = held.last_ns.max(record.time_ns);
        true
    }

    fn next_complete(&mut self, now_ns: i64, limits: &TimeLimits) -> Option<FinishedCommand> {
        let slowest_ns = now_ns.saturating_sub(limits.hole_wait_ns);
        let (order, is_open, held) = self.0.first()?;
        if order.time_ns >= slowest_ns || (*is_open && !is_over(held, slowest_ns, limits)) {
            return None;
        }
        Some(self.0.remove(0).2.into())
    }
}

fn is_over(held: &HeldCommand, time_ns: i64, limits: &TimeLimits) -> bool {
    time_ns.saturating_sub(held.last_ns) > limits.reply_gap_ns
        || time_ns.saturating_sub(held.command.end_ns) > limits.reply_within_ns
}

fn condition() -> impl Strategy<Value = CommandCondition> {
    prop_oneof![
        Just(CommandCondition::Always),
        Just(CommandCondition::Never),
        Just(CommandCondition::IfReplied),
        Just(CommandCondition::IfSilent)
    ]
}

proptest! {
    #[test]
    fn the_same_commands_are_complete_at_the_same_time_as_in_the_plain_list(
        steps in prop::collection::vec((0u64..3, 0u8..4, 0i64..2500, 0i64..4000, condition()), 0..120),
    ) {
        let limits = Options::default().time_limits().unwrap();
        let (mut commands, mut plain) = (OpenCommands::default(), PlainCommands::default());
        let (mut at_ms, mut now_ns) = (0, i64::MIN);
        for ((flow, step, later_ms, lag_ms, condition), number) in steps.into_iter().zip(0..) {
            // Half of all come at once, and a flow may lag behind the others.
            at_ms += (later_ms - 1250).max(0);
            let record = Record { flow, ..to(at_ms - (lag_ms - 2000).max(0), 100 + number) };
            now_ns = now_ns.max(record.time_ns);
            commands.advance(flow, record.time_ns, &limits);
            plain.advance(flow, record.time_ns, &limits);
            loop {
                let expected = plain.next_complete(now_ns, &limits);
                let is_last = expected.is_none();
                prop_assert_eq!(commands.next_complete(now_ns, &limits), expected);
                if is_last {
                    break;
                }
            }
            match step {
                0 => {
                    commands.start(&record, condition);
                    plain.start(&record, condition, number);
                }
                1 => prop_assert_eq!(commands.extend(&record, condition), plain.extend(&record, condition)),
                _ => prop_assert_eq!(commands.add_reply(&record), plain.add_reply(&record)),
            }
        }
        let rest: Vec<FinishedCommand> = plain.0.into_iter().map(|(.., held)| held.into()).collect();
        prop_assert_eq!(commands.drain().collect::<Vec<_>>(), rest);
    }
}
