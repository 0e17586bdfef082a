//! Commands whose replies may still come, in the order they began.

use std::collections::VecDeque;

use sizeleak_frame::{Command, Record};

use crate::options::Times;

/// More commands than this are never held: time that stands still in a capture must not fill memory.
const MOST_HELD: usize = 4096;

/// Commands that are not handed on yet.
#[derive(Debug, Default)]
pub(crate) struct OpenCommands {
    queue: VecDeque<Held>,
}

#[derive(Debug)]
struct Held {
    command: Command,
    last_reply_ns: i64,
    open: bool,
}

impl OpenCommands {
    /// Begins a command; one that was open on the same flow gets no more replies.
    pub(crate) fn begin(&mut self, record: &Record) {
        for held in self.queue.iter_mut().filter(|held| held.command.flow == record.flow) {
            held.open = false;
        }
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
        self.queue.push_back(Held { command, last_reply_ns: record.time_ns, open: true });
    }

    /// Adds a record to the command that is open on its flow; false where none is.
    pub(crate) fn extend(&mut self, record: &Record) -> bool {
        let Some(held) = self.on_flow(record.flow) else { return false };
        let command = &mut held.command;
        command.end_ns = command.end_ns.max(record.time_ns);
        command.size = command.size.saturating_add(record.length.into());
        command.records = command.records.saturating_add(1);
        command.plaintext = match (command.plaintext, record.plaintext) {
            (Some([least, most]), Some([and_least, and_most])) => {
                Some([least.saturating_add(and_least), most.saturating_add(and_most)])
            }
            _ => None,
        };
        held.last_reply_ns = held.last_reply_ns.max(record.time_ns);
        true
    }

    /// Counts a record of the gateway's as a reply; false where no command waits for one.
    pub(crate) fn reply(&mut self, record: &Record) -> bool {
        let Some(held) = self.on_flow(record.flow) else { return false };
        held.command.replies = held.command.replies.saturating_add(1);
        held.command.reply_bytes = held.command.reply_bytes.saturating_add(record.length.into());
        held.last_reply_ns = held.last_reply_ns.max(record.time_ns);
        true
    }

    /// Takes out the commands that are complete at `now_ns`, the time of the traffic. They leave in the order they
    /// began, so one that is complete waits for those before it.
    pub(crate) fn complete(&mut self, now_ns: i64, times: &Times) -> impl Iterator<Item = Command> {
        for held in &mut self.queue {
            let silent = now_ns.saturating_sub(held.last_reply_ns) > times.reply_gap;
            let late = now_ns.saturating_sub(held.command.end_ns) > times.reply_within;
            held.open &= !(silent || late);
        }
        let surplus = self.queue.len().saturating_sub(MOST_HELD);
        let complete = self.queue.iter().take_while(|held| !held.open).count().max(surplus);
        self.queue.drain(..complete).map(|held| held.command)
    }

    /// Takes out all commands.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Command> {
        self.queue.drain(..).map(|held| held.command)
    }

    fn on_flow(&mut self, flow: u64) -> Option<&mut Held> {
        self.queue.iter_mut().rev().find(|held| held.open && held.command.flow == flow)
    }
}
