//! Commands that are not emitted yet: replies may still come, or another command that began earlier.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use sizeleak_frame::{Command, Direction, MAX_EARLIER_COMMANDS, MAX_SINGLE_REPLIES, Record, SingleReply};

use crate::options::TimeLimits;
use crate::record_class::CommandCondition;

const MAX_COMMANDS: usize = 4096;

/// Commands in the order of output.
///
/// A command ends by the time of its own flow. The time of other flows ends it later, by the time that a flow may lag
/// behind the others while the record-sizer waits for missing bytes.
#[derive(Debug, Default)]
pub(crate) struct OpenCommands {
    /// By when they began and their numbers.
    commands: BTreeMap<(i64, u64), Place>,
    /// Those that may still get replies, which each record of their flow asks for.
    open: HashMap<(u64, Direction), HeldCommand, RandomState>,
    /// Whether the gateway ever sent one.
    has_reports: bool,
    started: u64,
    /// Until then no command is complete.
    incomplete_until_ns: Option<i64>,
}

#[derive(Debug)]
enum Place {
    /// Among the open ones, by its flow and direction.
    Open((u64, Direction)),
    Here(Box<HeldCommand>),
}

/// What is a command if the condition is met when it gets no more replies.
#[derive(Debug)]
struct HeldCommand {
    order: (i64, u64),
    command: Command,
    single_replies: Vec<SingleReply>,
    condition: CommandCondition,
    /// The last record of the command or of a reply.
    last_ns: i64,
    /// The commands before it that may still get replies, the latest first.
    earlier: Vec<EarlierCommand>,
}

/// A command that another one followed before the replies to it had ended.
#[derive(Debug, Clone, Copy)]
struct EarlierCommand {
    /// The last time at which replies to it may come.
    replies_until_ns: i64,
    /// How many replies to the later command may be to this one.
    shared: u32,
}

impl HeldCommand {
    fn replies_until_ns(&self, limits: &TimeLimits) -> i64 {
        let silent_ns = self.last_ns.saturating_add(limits.reply_gap_ns);
        silent_ns.min(self.command.end_ns.saturating_add(limits.reply_within_ns))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FinishedCommand {
    Command(Box<Command>),
    Noise(Box<Command>, CommandCondition),
}

impl From<HeldCommand> for FinishedCommand {
    fn from(held: HeldCommand) -> Self {
        if held.condition.is_met(held.command.replies) {
            let single_replies = held.single_replies.into();
            let shared_replies = held.earlier.iter().map(|earlier| earlier.shared).collect();
            Self::Command(Box::new(Command { single_replies, shared_replies, ..held.command }))
        } else {
            Self::Noise(Box::new(held.command), held.condition)
        }
    }
}

impl OpenCommands {
    /// Starts a command with a record. Replies are counted with it from now on, though they may be to the command before it
    /// of the same flow and direction, if that is still open.
    pub(crate) fn start(&mut self, record: &Record, condition: CommandCondition, limits: &TimeLimits) {
        let order = (record.start_ns, self.started);
        self.started += 1;
        self.incomplete_until_ns = None;
        let command = first_record(record);
        let key = (record.flow, record.direction);
        self.has_reports |= record.direction == Direction::FromGateway;
        let earlier = self.interrupt(key, record.start_ns, limits);
        let (single_replies, last_ns) = (Vec::new(), record.time_ns);
        self.commands.insert(order, Place::Open(key));
        self.open.insert(key, HeldCommand { order, command, single_replies, condition, last_ns, earlier });
    }

    fn close(&mut self, held: HeldCommand) {
        self.commands.insert(held.order, Place::Here(Box::new(held)));
    }

    fn take(open: &mut HashMap<(u64, Direction), HeldCommand, RandomState>, place: Place) -> Option<HeldCommand> {
        match place {
            Place::Open(key) => open.remove(&key),
            Place::Here(held) => Some(*held),
        }
    }

    /// Closes the open command of a flow and direction because another one begins. Returns the commands that may still get
    /// replies, the latest first.
    fn interrupt(&mut self, key: (u64, Direction), now_ns: i64, limits: &TimeLimits) -> Vec<EarlierCommand> {
        let Some(mut open) = self.open.remove(&key) else { return Vec::new() };
        let mut earlier = Vec::new();
        let replies_until_ns = open.command.end_ns.saturating_add(limits.reply_mostly_within_ns);
        if now_ns <= replies_until_ns && open.condition.is_met(open.command.replies) {
            open.command.overlapped = true;
            earlier.push(EarlierCommand { replies_until_ns, shared: 0 });
        }
        let before = open.earlier.iter().filter(|earlier| earlier.replies_until_ns >= now_ns);
        earlier.extend(before.map(|earlier| EarlierCommand { shared: 0, ..*earlier }));
        earlier.truncate(MAX_EARLIER_COMMANDS);
        self.close(open);
        earlier
    }

    pub(crate) fn extend(&mut self, record: &Record, condition: CommandCondition) -> bool {
        let Some(open) = self.open.get_mut(&(record.flow, record.direction)) else { return false };
        let command = &mut open.command;
        command.end_ns = command.end_ns.max(record.time_ns);
        command.size = command.size.saturating_add(record.length.into());
        command.records = command.records.saturating_add(1);
        command.plaintext = command
            .plaintext
            .zip(record.plaintext)
            .map(|([min, max], [more_min, more_max])| [min.saturating_add(more_min), max.saturating_add(more_max)]);
        open.last_ns = open.last_ns.max(record.time_ns);
        open.condition = condition;
        true
    }

    /// Counts a record as a reply to what the other side sent; false if no command of its flow is open.
    #[inline]
    pub(crate) fn add_reply(&mut self, record: &Record) -> bool {
        let Some(open) = self.open.get_mut(&(record.flow, record.direction.reversed())) else { return false };
        open.command.replies = open.command.replies.saturating_add(1);
        open.command.reply_bytes = open.command.reply_bytes.saturating_add(record.length.into());
        if open.single_replies.len() < MAX_SINGLE_REPLIES {
            let after_ns = record.start_ns.saturating_sub(open.command.time_ns);
            open.single_replies.push(SingleReply { after_ns: after_ns.max(0).unsigned_abs(), length: record.length });
        }
        for earlier in open.earlier.iter_mut().filter(|earlier| record.time_ns <= earlier.replies_until_ns) {
            earlier.shared = earlier.shared.saturating_add(1);
        }
        open.last_ns = open.last_ns.max(record.time_ns);
        true
    }

    #[inline]
    pub(crate) fn advance(&mut self, flow: u64, time_ns: i64, limits: &TimeLimits) {
        let directions = if self.has_reports { &Direction::BOTH[..] } else { &[Direction::ToGateway] };
        for direction in directions {
            let key = (flow, *direction);
            if self.open.get(&key).is_some_and(|open| time_ns > open.replies_until_ns(limits)) {
                self.open.remove(&key).into_iter().for_each(|held| self.close(held));
                self.incomplete_until_ns = None;
            }
        }
    }

    /// Removes the next command that is complete at `now_ns`, the time of all traffic. A complete command waits for
    /// those that started before it.
    #[inline]
    pub(crate) fn next_complete(&mut self, now_ns: i64, limits: &TimeLimits) -> Option<FinishedCommand> {
        if self.incomplete_until_ns.is_some_and(|until_ns| now_ns <= until_ns) {
            return None;
        }
        let (&(begun_ns, _), place) = self.commands.first_key_value()?;
        // Until then its own flow, which may lag, may bring replies, or another flow a command that started earlier.
        let flow_until_ns = match place {
            Place::Open(key) => self.open.get(key)?.replies_until_ns(limits).max(begun_ns),
            Place::Here(_) => begun_ns,
        };
        let until_ns = flow_until_ns.saturating_add(limits.hole_wait_ns);
        if now_ns <= until_ns && self.commands.len() <= MAX_COMMANDS {
            self.incomplete_until_ns = Some(until_ns);
            return None;
        }
        self.incomplete_until_ns = None;
        let (_, place) = self.commands.pop_first()?;
        Self::take(&mut self.open, place).map(FinishedCommand::from)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = FinishedCommand> + use<> {
        let mut open = std::mem::take(&mut self.open);
        let places = std::mem::take(&mut self.commands).into_values();
        places.filter_map(move |place| Self::take(&mut open, place)).map(FinishedCommand::from)
    }
}

fn first_record(record: &Record) -> Command {
    Command {
        time_ns: record.start_ns,
        end_ns: record.time_ns,
        flow: record.flow,
        size: record.length.into(),
        plaintext: record.plaintext,
        records: 1,
        direction: record.direction,
        ..Command::default()
    }
}

#[cfg(test)]
mod tests;
