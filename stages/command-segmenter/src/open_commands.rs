//! Commands that are not handed on yet, in the order they began.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use sizeleak_frame::{Command, Record};

use crate::likelihood::CommandCondition;
use crate::options::TimeLimits;

/// More commands than this are never held: time that stands still in a capture must not fill memory.
const MOST_HELD: usize = 4096;

/// Commands whose replies may still come, or before which another may still turn up.
///
/// A flow's own records tell when its command is over. The time of other flows tells it later by what a flow may lag
/// behind them, as one does whose missing bytes are waited for.
#[derive(Debug, Default)]
pub(crate) struct OpenCommands {
    /// In the order of output.
    queue: VecDeque<Waiting>,
    /// The flow of the record before, which most records are of, and the command that is open on it.
    flow: u64,
    at_hand: Option<Open>,
    /// The command that is open on each other flow. Only looked up: its order shows nowhere.
    others: HashMap<u64, Open, RandomState>,
    begun: u64,
    /// Until when nothing is complete, whatever replies come; `None` where that is not known.
    quiet_until_ns: Option<i64>,
}

/// A command's place in the order of output: when it began, then how many had begun before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CommandOrder {
    time_ns: i64,
    number: u64,
}

/// A place, and what waits there for its turn.
#[derive(Debug)]
struct Waiting {
    place: CommandOrder,
    held: Held,
}

/// What waits for its turn.
#[derive(Debug)]
enum Held {
    /// The command that is open on a flow.
    Open(u64),
    /// One that gets no more replies.
    Closed(FinishedCommand),
}

/// A command that may get replies.
#[derive(Debug)]
struct Open {
    place: CommandOrder,
    command: Box<Command>,
    last_reply_ns: i64,
    belief: CommandCondition,
}

impl Open {
    /// The last time of its flow at which replies may come.
    fn until_ns(&self, times: &TimeLimits) -> i64 {
        let silent_ns = self.last_reply_ns.saturating_add(times.reply_gap);
        silent_ns.min(self.command.end_ns.saturating_add(times.reply_within))
    }

    /// Whether it is a command, now that its replies are over.
    fn is_command(&self) -> bool {
        match self.belief {
            CommandCondition::Command => true,
            CommandCondition::Noise => false,
            CommandCondition::IfReplied => self.command.replies > 0,
            CommandCondition::IfSilent => self.command.replies == 0,
        }
    }
}

/// What a command that is over turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FinishedCommand {
    /// A command.
    Command(Box<Command>),
    /// None: so say the replies, or that there are none.
    Noise,
}

impl From<Open> for FinishedCommand {
    fn from(open: Open) -> Self {
        if open.is_command() { Self::Command(open.command) } else { Self::Noise }
    }
}

impl OpenCommands {
    /// Begins what is taken for a command; one that was open on the same flow gets no more replies.
    pub(crate) fn begin(&mut self, record: &Record, belief: CommandCondition) {
        let place = CommandOrder { time_ns: record.start_ns, number: self.begun };
        self.begun += 1;
        let open = Open { place, command: begun(record).into(), last_reply_ns: record.time_ns, belief };
        if self.on(record.flow).is_some() {
            self.close();
        }
        self.at_hand = Some(open);
        self.wait(Waiting { place, held: Held::Open(record.flow) });
    }

    /// Adds a record to the command that is open on its flow, which with it is taken for what is said here; false where
    /// none is open. It may still turn out to be a piece of something else.
    pub(crate) fn extend(&mut self, record: &Record, belief: CommandCondition) -> bool {
        let Some(open) = self.on(record.flow) else { return false };
        let command = &mut open.command;
        command.end_ns = command.end_ns.max(record.time_ns);
        command.size = command.size.saturating_add(record.length.into());
        command.records = command.records.saturating_add(1);
        command.plaintext = match (command.plaintext, record.plaintext) {
            (Some([least, most]), Some([and_least, and_most])) => {
                Some([least.saturating_add(and_least), most.saturating_add(and_most)])
            }
            _ => None,
        };
        open.last_reply_ns = open.last_reply_ns.max(record.time_ns);
        open.belief = belief;
        true
    }

    /// Counts a record of the gateway's as a reply; false where no command waits for one.
    #[inline]
    pub(crate) fn reply(&mut self, record: &Record) -> bool {
        let Some(open) = self.on(record.flow) else { return false };
        open.command.replies = open.command.replies.saturating_add(1);
        open.command.reply_bytes = open.command.reply_bytes.saturating_add(record.length.into());
        open.last_reply_ns = open.last_reply_ns.max(record.time_ns);
        true
    }

    /// A flow has come to a time: the command on it may be over.
    #[inline]
    pub(crate) fn advance(&mut self, flow: u64, time_ns: i64, times: &TimeLimits) {
        if self.on(flow).as_ref().is_some_and(|open| time_ns > open.until_ns(times)) {
            self.close();
        }
    }

    /// Whether it is known that no command is complete at `now_ns`.
    #[inline]
    pub(crate) fn is_quiet(&self, now_ns: i64) -> bool {
        self.quiet_until_ns.is_some_and(|until_ns| now_ns <= until_ns)
    }

    /// Takes out the next command that is complete at `now_ns`, the time of the traffic. Commands leave in the order
    /// they began, so one that is complete waits for those before it.
    pub(crate) fn complete(&mut self, now_ns: i64, times: &TimeLimits) -> Option<FinishedCommand> {
        if self.is_quiet(now_ns) {
            return None;
        }
        let until_ns = self.first_until_ns(times);
        if now_ns <= until_ns && self.queue.len() <= MOST_HELD {
            self.quiet_until_ns = Some(until_ns);
            return None;
        }
        self.quiet_until_ns = None;
        let first = self.queue.pop_front()?;
        self.over(first.held)
    }

    /// Takes out all commands.
    pub(crate) fn drain(&mut self) -> Vec<FinishedCommand> {
        let queue = std::mem::take(&mut self.queue);
        queue.into_iter().filter_map(|waiting| self.over(waiting.held)).collect()
    }

    /// The command that is open on a flow, from now on the one at hand.
    #[inline]
    fn on(&mut self, flow: u64) -> &mut Option<Open> {
        if self.flow != flow {
            self.turn_to(flow);
        }
        &mut self.at_hand
    }

    fn turn_to(&mut self, flow: u64) {
        let open = self.others.remove(&flow);
        if let Some(before) = std::mem::replace(&mut self.at_hand, open) {
            self.others.insert(self.flow, before);
        }
        self.flow = flow;
    }

    /// Until when the first command is not complete: until then its own flow, which may lag, may bring it replies, or
    /// another flow one that began before it.
    fn first_until_ns(&self, times: &TimeLimits) -> i64 {
        let Some(Waiting { place, held }) = self.queue.front() else { return i64::MAX };
        let open = match held {
            Held::Open(flow) if *flow == self.flow => self.at_hand.as_ref(),
            Held::Open(flow) => self.others.get(flow),
            Held::Closed(_) => None,
        };
        open.map_or(place.time_ns, |open| open.until_ns(times).max(place.time_ns)).saturating_add(times.hole_wait)
    }

    /// Puts what waits at its place, where something may wait already: nearly always the last one, or behind it.
    fn wait(&mut self, waiting: Waiting) {
        self.quiet_until_ns = None;
        match self.queue.back_mut() {
            Some(last) if last.place == waiting.place => *last = waiting,
            Some(last) if last.place > waiting.place => self.wait_between(waiting),
            Some(_) | None => self.queue.push_back(waiting),
        }
    }

    fn wait_between(&mut self, waiting: Waiting) {
        match self.queue.binary_search_by_key(&waiting.place, |other| other.place) {
            Ok(at) => {
                if let Some(other) = self.queue.get_mut(at) {
                    *other = waiting;
                }
            }
            Err(at) => self.queue.insert(at, waiting),
        }
    }

    /// The command at hand gets no more replies.
    fn close(&mut self) {
        if let Some(open) = self.at_hand.take() {
            self.wait(Waiting { place: open.place, held: Held::Closed(open.into()) });
        }
    }

    fn over(&mut self, held: Held) -> Option<FinishedCommand> {
        match held {
            Held::Open(flow) => self.on(flow).take().map(FinishedCommand::from),
            Held::Closed(over) => Some(over),
        }
    }
}

/// A command that begins with a record.
fn begun(record: &Record) -> Command {
    Command {
        time_ns: record.start_ns,
        end_ns: record.time_ns,
        flow: record.flow,
        size: record.length.into(),
        plaintext: record.plaintext,
        records: 1,
        replies: 0,
        reply_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::Options;
    use crate::testing::to;

    /// What should come out, told the plain way: every command in one list, of which each is asked each time.
    #[derive(Default)]
    struct Plain(Vec<(CommandOrder, bool, Command, i64, CommandCondition)>);

    impl Plain {
        fn open(&mut self, flow: u64) -> Option<&mut (CommandOrder, bool, Command, i64, CommandCondition)> {
            self.0.iter_mut().find(|(_, is_open, command, ..)| *is_open && command.flow == flow)
        }

        fn advance(&mut self, flow: u64, time_ns: i64, times: &TimeLimits) {
            let is_over = |last_ns: i64, end_ns| {
                time_ns.saturating_sub(last_ns) > times.reply_gap || time_ns.saturating_sub(end_ns) > times.reply_within
            };
            if let Some((_, is_open, command, last_ns, _)) = self.open(flow) {
                *is_open = !is_over(*last_ns, command.end_ns);
            }
        }

        fn begin(&mut self, record: &Record, belief: CommandCondition, number: u64) {
            if let Some((_, is_open, ..)) = self.open(record.flow) {
                *is_open = false;
            }
            self.0.push((
                CommandOrder { time_ns: record.start_ns, number },
                true,
                begun(record),
                record.time_ns,
                belief,
            ));
            self.0.sort_by_key(|(place, ..)| *place);
        }

        fn extend(&mut self, record: &Record, belief: CommandCondition) -> bool {
            let Some((_, _, command, last_ns, believed)) = self.open(record.flow) else { return false };
            command.end_ns = command.end_ns.max(record.time_ns);
            command.size += u64::from(record.length);
            command.plaintext = command.plaintext.zip(record.plaintext).map(|(a, b)| [a[0] + b[0], a[1] + b[1]]);
            command.records += 1;
            (*last_ns, *believed) = ((*last_ns).max(record.time_ns), belief);
            true
        }

        fn reply(&mut self, record: &Record) -> bool {
            let Some((_, _, command, last_ns, _)) = self.open(record.flow) else { return false };
            command.replies += 1;
            command.reply_bytes += u64::from(record.length);
            *last_ns = (*last_ns).max(record.time_ns);
            true
        }

        fn complete(&mut self, now_ns: i64, times: &TimeLimits) -> Option<FinishedCommand> {
            let slowest_ns = now_ns.saturating_sub(times.hole_wait);
            let (place, is_open, command, last_ns, _) = self.0.first()?;
            let is_over = slowest_ns.saturating_sub(*last_ns) > times.reply_gap
                || slowest_ns.saturating_sub(command.end_ns) > times.reply_within;
            if place.time_ns >= slowest_ns || (*is_open && !is_over) {
                return None;
            }
            Some(Self::over(self.0.remove(0)))
        }

        fn over((_, _, command, _, belief): (CommandOrder, bool, Command, i64, CommandCondition)) -> FinishedCommand {
            let is_command = match belief {
                CommandCondition::Command => true,
                CommandCondition::Noise => false,
                CommandCondition::IfReplied => command.replies > 0,
                CommandCondition::IfSilent => command.replies == 0,
            };
            if is_command { FinishedCommand::Command(command.into()) } else { FinishedCommand::Noise }
        }
    }

    fn belief() -> impl Strategy<Value = CommandCondition> {
        prop_oneof![
            Just(CommandCondition::Command),
            Just(CommandCondition::Noise),
            Just(CommandCondition::IfReplied),
            Just(CommandCondition::IfSilent)
        ]
    }

    proptest! {
        /// The same comes out at the same time, whichever flow is at hand and however long nothing is looked at.
        #[test]
        fn commands_come_out_as_in_the_plain_way(
            steps in prop::collection::vec((0u64..3, 0u8..4, 0i64..2500, 0i64..4000, belief()), 0..120),
        ) {
            let times = Options::default().times().unwrap();
            let (mut open, mut plain) = (OpenCommands::default(), Plain::default());
            let (mut at_ms, mut now_ns) = (0, i64::MIN);
            for ((flow, step, later_ms, lag_ms, belief), number) in steps.into_iter().zip(0..) {
                // Half of all come at once, and a flow may lag behind the others.
                at_ms += (later_ms - 1250).max(0);
                let record = Record { flow, ..to(at_ms - (lag_ms - 2000).max(0), 100 + number) };
                now_ns = now_ns.max(record.time_ns);
                open.advance(flow, record.time_ns, &times);
                plain.advance(flow, record.time_ns, &times);
                loop {
                    let expected = plain.complete(now_ns, &times);
                    prop_assert!(expected.is_none() || !open.is_quiet(now_ns));
                    let is_all = expected.is_none();
                    prop_assert_eq!(open.complete(now_ns, &times), expected);
                    if is_all {
                        break;
                    }
                }
                match step {
                    0 => {
                        open.begin(&record, belief);
                        plain.begin(&record, belief, number);
                    }
                    1 => prop_assert_eq!(open.extend(&record, belief), plain.extend(&record, belief)),
                    _ => prop_assert_eq!(open.reply(&record), plain.reply(&record)),
                }
            }
            prop_assert_eq!(open.drain(), plain.0.into_iter().map(Plain::over).collect::<Vec<_>>());
        }
    }
}
