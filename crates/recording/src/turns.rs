//! Why the messages of an experiment teach nothing, as its turns show: the time from one command to the next.

use crate::journal::{Outcome, Step};

/// Fewer turns say nothing.
const MIN_TURNS: usize = 8;

/// With fewer turns than this share that have a message, the others are no accident.
const MIN_SEEN: f64 = 2.0 / 3.0;

/// A message is sent at once within this time of its command, in nanoseconds.
const CLOSE_NS: i64 = 200_000_000;

/// A command that was sent, by the clock of the capture, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    start_ns: i64,
    returned_ns: i64,
    was_sent: bool,
}

impl Turn {
    pub(crate) fn of(step: &Step) -> Self {
        let returned_ns = step.returned_ns.unwrap_or(step.handed_over_ns) - step.clock_ahead_ns;
        let was_sent = matches!(step.outcome, Outcome::Sent | Outcome::NotSeen);
        Self { start_ns: step.start_ns(), returned_ns, was_sent }
    }
}

/// Why the commands that were found are not those of the turns, if that shows. `messages` have the time of each, in order.
pub(crate) fn cause(turns: &[Turn], messages: &[i64]) -> Option<String> {
    let ends = turns.iter().skip(1).map(|next| next.start_ns).chain([i64::MAX]);
    let at = |time: i64| messages.partition_point(|other| *other < time);
    let of_turn = |(turn, end): (&Turn, i64)| (*turn, messages.get(at(turn.start_ns)..at(end)).unwrap_or_default());
    let of_turns: Vec<(Turn, &[i64])> = turns.iter().zip(ends).filter(|(turn, _)| turn.was_sent).map(of_turn).collect();
    let sent = of_turns.len();
    if sent < MIN_TURNS || messages.is_empty() {
        return None;
    }
    let seen = of_turns.iter().filter(|(_, messages)| !messages.is_empty()).count();
    if (seen as f64) < MIN_SEEN * sent as f64 {
        let late = of_turns.iter().filter_map(|(turn, messages)| Some(messages.first()? - turn.returned_ns));
        let mut late: Vec<i64> = late.collect();
        late.sort_unstable();
        let longest = late.last().copied().unwrap_or(0) as f64 / 1e9;
        return Some(if late.get(late.len() / 2).is_some_and(|median| *median > CLOSE_NS) {
            format!(
                "only {seen} of {sent} commands have a message of their own, up to {longest:.1} s after the command: the \
                 gateway gathers commands in one message; leave more time between them (`--pause {:.0}s`)",
                (2.0 * longest).ceil() + 1.0
            )
        } else {
            format!(
                "only {seen} of {sent} commands have a message: the gateway or its service drops the others, or the \
                 capture does not see them"
            )
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Commands every second, each done at once.
    fn turns() -> Vec<Turn> {
        (0..40).map(|at| Turn { start_ns: at * SECOND, returned_ns: at * SECOND + 1_000, was_sent: true }).collect()
    }

    fn of(messages: impl IntoIterator<Item = i64>) -> Option<String> {
        cause(&turns(), &messages.into_iter().collect::<Vec<_>>())
    }

    #[test]
    fn gateways_that_gather_or_drop_commands_are_told_apart() {
        let at_once = |at: i64| at * SECOND + 5_000_000;
        assert_eq!(of((0..40).map(at_once)), None);
        assert_eq!(of((0..40).filter(|at| at % 6 > 0).map(at_once)), None);
        let dropped = of((0..40).filter(|at| at % 2 > 0).map(at_once)).unwrap();
        assert!(dropped.contains("only 20 of 40") && dropped.contains("drops"), "{dropped}");
        let gathered = of((0..13).map(|at| 3 * at * SECOND + 2 * SECOND + 600_000_000)).unwrap();
        assert!(gathered.contains("only 13 of 40") && gathered.contains("`--pause 3s`"), "{gathered}");
    }
}
