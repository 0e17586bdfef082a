//! Why the messages of an experiment teach nothing, as its turns show: the time from one command to the next.

use std::collections::BTreeSet;

use sizeleak_labels::by_chance;

use crate::journal::{Outcome, Step};

/// Fewer turns say nothing.
const MIN_TURNS: usize = 8;

/// With fewer turns than this share that have a message, the others are no accident.
const MIN_SEEN: f64 = 2.0 / 3.0;

/// A message is sent at once within this time of its command, and two of one command are as close to each other.
const CLOSE_NS: i64 = 200_000_000;

/// Messages on two connections are taken for those of one command below this probability of chance.
const SIGNIFICANT: f64 = 1e-3;

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

/// Why the commands that were found are not those of the turns, if that shows. `messages` have the time and the service
/// of each, in order of time; `is_explained` says whether a model fits them.
pub(crate) fn cause(turns: &[Turn], messages: &[(i64, usize)], names: &[String], is_explained: bool) -> Option<String> {
    let ends = turns.iter().skip(1).map(|next| next.start_ns).chain([i64::MAX]);
    let at = |time: i64| messages.partition_point(|(other, _)| *other < time);
    let of_turn = |(turn, end): (&Turn, i64)| (*turn, messages.get(at(turn.start_ns)..at(end)).unwrap_or_default());
    let of_turns: Vec<(Turn, &[(i64, usize)])> =
        turns.iter().zip(ends).filter(|(turn, _)| turn.was_sent).map(of_turn).collect();
    let sent = of_turns.len();
    if sent < MIN_TURNS || messages.is_empty() {
        return None;
    }
    let seen = of_turns.iter().filter(|(_, messages)| !messages.is_empty()).count();
    if (seen as f64) < MIN_SEEN * sent as f64 {
        let late = of_turns.iter().filter_map(|(turn, messages)| Some(messages.first()?.0 - turn.returned_ns));
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
    if is_explained { None } else { split(&of_turns, messages, names) }
}

/// A sentence if commands travel on two connections, each a part of the command.
fn split(turns: &[(Turn, &[(i64, usize)])], messages: &[(i64, usize)], names: &[String]) -> Option<String> {
    let is_pair = |pair: &&[(i64, usize)]| pair[0].1 != pair[1].1 && pair[1].0 - pair[0].0 <= CLOSE_NS;
    let pairs: Vec<_> = turns.iter().filter_map(|(_, messages)| messages.windows(2).find(is_pair)).collect();
    let span = messages.last()?.0 - messages.first()?.0;
    let most = (0..names.len()).map(|service| messages.iter().filter(|(_, of)| *of == service).count()).max()?;
    // As many messages of other services at any times would be as close with this probability.
    let others = (messages.len() - most.min(messages.len())) as f64;
    let near = 1.0 - (-2.0 * others * CLOSE_NS as f64 / span.max(1) as f64).exp();
    if pairs.len() < MIN_TURNS / 2 || by_chance(pairs.len(), turns.len(), near) > SIGNIFICANT {
        return None;
    }
    let both: BTreeSet<&str> = pairs.first()?.iter().filter_map(|(_, at)| names.get(*at)).map(String::as_str).collect();
    Some(format!(
        "{} of {} commands travel on two connections at once ({}), each with a part of the actions: record the devices of \
         each with an inventory of their own",
        pairs.len(),
        turns.len(),
        both.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Commands every second, each done at once.
    fn turns() -> Vec<Turn> {
        (0..40).map(|at| Turn { start_ns: at * SECOND, returned_ns: at * SECOND + 1_000, was_sent: true }).collect()
    }

    fn of(messages: impl IntoIterator<Item = (i64, usize)>, is_explained: bool) -> Option<String> {
        let messages: Vec<(i64, usize)> = messages.into_iter().collect();
        cause(&turns(), &messages, &["a.example".to_owned(), "b.example".to_owned()], is_explained)
    }

    #[test]
    fn gateways_that_gather_or_drop_commands_are_told_apart() {
        let at_once = |at: &i64| (at * SECOND + 5_000_000, 0);
        assert_eq!(of((0..40).map(|at| at_once(&at)), false), None);
        assert_eq!(of((0..40).filter(|at| at % 6 > 0).map(|at| at_once(&at)), true), None);
        let dropped = of((0..40).filter(|at| at % 2 > 0).map(|at| at_once(&at)), true).unwrap();
        assert!(dropped.contains("only 20 of 40") && dropped.contains("drops"), "{dropped}");
        let gathered = of((0..13).map(|at| (3 * at * SECOND + 2 * SECOND + 600_000_000, 0)), true).unwrap();
        assert!(gathered.contains("only 13 of 40") && gathered.contains("`--pause 3s`"), "{gathered}");
    }

    #[test]
    fn commands_on_two_connections_are_named_unless_a_model_fits() {
        let both = (0..40).flat_map(|at| {
            let second = (at * SECOND + 9_000_000, 1);
            std::iter::once((at * SECOND + 5_000_000, 0)).chain((at % 2 > 0).then_some(second))
        });
        let split = of(both.clone(), false).unwrap();
        assert!(split.contains("20 of 40 commands") && split.contains("a.example, b.example"), "{split}");
        assert_eq!(of(both, true), None);
        // Another connection that says something now and then is no part of them.
        let others =
            (0..40).map(|at| (at * SECOND + 5_000_000, 0)).chain((0..6).map(|at| (7 * at * SECOND + 900_000_000, 1)));
        let mut others: Vec<(i64, usize)> = others.collect();
        others.sort_unstable();
        assert_eq!(of(others, false), None);
    }
}
