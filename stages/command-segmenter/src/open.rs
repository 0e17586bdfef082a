//! Commands that are not handed on yet, in the order they began.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use sizeleak_frame::{Command, Record};

use crate::options::Times;
use crate::weigh::Belief;

/// More commands than this are never held: time that stands still in a capture must not fill memory.
const MOST_HELD: usize = 4096;

/// Commands whose replies may still come, or before which another may still turn up.
///
/// A flow's own records tell when its command is over. The time of other flows tells it later by what a flow may lag
/// behind them, as one does whose missing bytes are waited for.
#[derive(Debug, Default)]
pub(crate) struct OpenCommands {
    queue: BTreeMap<Place, Held>,
    /// The command that is open on each flow. Only looked up: its order shows nowhere.
    open: HashMap<u64, Open, RandomState>,
    begun: u64,
}

/// A command's place in the order of output: when it began, then how many had begun before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    time_ns: i64,
    number: u64,
}

/// What waits for its turn.
#[derive(Debug)]
enum Held {
    /// The command that is open on a flow.
    Open(u64),
    /// One that gets no more replies.
    Closed(Over),
}

/// A command that may get replies.
#[derive(Debug)]
struct Open {
    place: Place,
    command: Box<Command>,
    last_reply_ns: i64,
    belief: Belief,
}

impl Open {
    /// Whether its replies have ended, if its flow has come to this time.
    fn is_over(&self, flow_ns: i64, times: &Times) -> bool {
        flow_ns.saturating_sub(self.last_reply_ns) > times.reply_gap
            || flow_ns.saturating_sub(self.command.end_ns) > times.reply_within
    }

    /// Whether it is a command, now that its replies are over.
    fn is_command(&self) -> bool {
        match self.belief {
            Belief::Command => true,
            Belief::Noise => false,
            Belief::IfReplied => self.command.replies > 0,
            Belief::IfSilent => self.command.replies == 0,
        }
    }
}

/// What a command that is over turned out to be.
#[derive(Debug)]
pub(crate) enum Over {
    /// A command.
    Command(Box<Command>),
    /// None: so say the replies, or that there are none.
    Noise,
}

impl From<Open> for Over {
    fn from(open: Open) -> Self {
        if open.is_command() { Self::Command(open.command) } else { Self::Noise }
    }
}

impl OpenCommands {
    /// Begins what is taken for a command; one that was open on the same flow gets no more replies.
    pub(crate) fn begin(&mut self, record: &Record, belief: Belief) {
        let command = Command {
            time_ns: record.start_ns,
            end_ns: record.time_ns,
            flow: record.flow,
            size: record.length.into(),
            plaintext: record.plaintext,
            records: 1,
            replies: 0,
            reply_bytes: 0,
        };
        let place = Place { time_ns: record.start_ns, number: self.begun };
        self.begun += 1;
        let open = Open { place, command: command.into(), last_reply_ns: record.time_ns, belief };
        if let Some(before) = self.open.insert(record.flow, open) {
            self.queue.insert(before.place, Held::Closed(before.into()));
        }
        self.queue.insert(place, Held::Open(record.flow));
    }

    /// Adds a record to the command that is open on its flow, which with it is taken for what is said here; false where
    /// none is open. It may still turn out to be a piece of something else.
    pub(crate) fn extend(&mut self, record: &Record, belief: Belief) -> bool {
        let Some(open) = self.open.get_mut(&record.flow) else { return false };
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
    pub(crate) fn reply(&mut self, record: &Record) -> bool {
        let Some(open) = self.open.get_mut(&record.flow) else { return false };
        open.command.replies = open.command.replies.saturating_add(1);
        open.command.reply_bytes = open.command.reply_bytes.saturating_add(record.length.into());
        open.last_reply_ns = open.last_reply_ns.max(record.time_ns);
        true
    }

    /// A flow has come to a time: the command on it may be over.
    pub(crate) fn advance(&mut self, flow: u64, time_ns: i64, times: &Times) {
        if self.open.get(&flow).is_some_and(|open| open.is_over(time_ns, times)) {
            self.close(flow);
        }
    }

    /// Takes out the next command that is complete at `now_ns`, the time of the traffic. Commands leave in the order
    /// they began, so one that is complete waits for those before it.
    pub(crate) fn complete(&mut self, now_ns: i64, times: &Times) -> Option<Over> {
        let surplus = self.queue.len() > MOST_HELD;
        let slowest_ns = now_ns.saturating_sub(times.hole_wait);
        let (first, held) = self.queue.first_key_value()?;
        let may_be_preceded = first.time_ns >= slowest_ns;
        let is_over = || match held {
            Held::Open(flow) => self.open.get(flow).is_none_or(|open| open.is_over(slowest_ns, times)),
            Held::Closed(_) => true,
        };
        if !surplus && (may_be_preceded || !is_over()) {
            return None;
        }
        let (_, held) = self.queue.pop_first()?;
        self.over(held)
    }

    /// Takes out all commands.
    pub(crate) fn drain(&mut self) -> Vec<Over> {
        let queue = std::mem::take(&mut self.queue);
        queue.into_values().filter_map(|held| self.over(held)).collect()
    }

    fn close(&mut self, flow: u64) {
        if let Some(open) = self.open.remove(&flow) {
            self.queue.insert(open.place, Held::Closed(open.into()));
        }
    }

    fn over(&mut self, held: Held) -> Option<Over> {
        match held {
            Held::Open(flow) => self.open.remove(&flow).map(Over::from),
            Held::Closed(over) => Some(over),
        }
    }
}
