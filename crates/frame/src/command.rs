//! `command`: one message that makes devices act or reports what they did, seen by its sizes.

use serde::{Deserialize, Serialize};

use crate::{Direction, SharedList};

pub const MAX_SINGLE_REPLIES: usize = 64;

pub const MAX_EARLIER_COMMANDS: usize = 8;

/// One command: the records that carry it, and what the other side sent in reply. A command from the gateway is a report
/// of what its devices did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// When its first record began, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// When its last record ended, in nanoseconds since the epoch.
    pub end_ns: i64,
    pub flow: u64,
    /// The sum of its records' lengths on the wire in bytes, |s| in the paper.
    pub size: u64,
    /// The least and the most bytes of plaintext in its records, if every cipher suite is known.
    pub plaintext: Option<[u64; 2]>,
    /// How many TLS records carry it.
    pub records: u32,
    /// How many records the other side sent in reply: the gateway to a command, the service to a report.
    pub replies: u32,
    /// The sum of those records' lengths, in bytes.
    pub reply_bytes: u64,
    /// Who sent it: the service a command, the gateway a report. Old streams lack it and hold commands alone.
    #[serde(default)]
    pub direction: Direction,
    /// The first [`MAX_SINGLE_REPLIES`] of those records, in order of time. Old streams lack it.
    #[serde(default)]
    pub single_replies: SharedList<SingleReply>,
    /// Whether the next command of its flow and direction began while replies to this one could still come. They are then
    /// among the replies to that one. Absent on the wire where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlapped: bool,
    /// Which of its replies may be to an earlier command: its first as many to the command before it, the first as many
    /// as the second number to the one before that, and so on; at most [`MAX_EARLIER_COMMANDS`]. Absent on the wire where
    /// there are none.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub shared_replies: SharedList<u32>,
}

/// One record that the other side sent in reply; a pair in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u32)", into = "(u64, u32)")]
pub struct SingleReply {
    /// How long after the start of the command it began, in nanoseconds.
    pub after_ns: u64,
    /// Its length on the wire in bytes.
    pub length: u32,
}

impl From<(u64, u32)> for SingleReply {
    fn from((after_ns, length): (u64, u32)) -> Self {
        Self { after_ns, length }
    }
}

impl From<SingleReply> for (u64, u32) {
    fn from(reply: SingleReply) -> Self {
        (reply.after_ns, reply.length)
    }
}

impl Command {
    /// The single replies, if all of them are listed and are to this command ([`Self::has_own_replies`]).
    pub fn all_single_replies(&self) -> Option<&[SingleReply]> {
        self.listed_replies().filter(|_| self.has_own_replies())
    }

    /// The single replies, if all of them are listed, whichever command they are to.
    pub fn listed_replies(&self) -> Option<&[SingleReply]> {
        (self.single_replies.len() as u64 == u64::from(self.replies)).then_some(&*self.single_replies)
    }

    /// Whether the replies are to this command, as far as times tell: none of them may be to an earlier command, and none
    /// to this one may be counted with a later one.
    pub fn has_own_replies(&self) -> bool {
        !self.overlapped && self.shared_replies.iter().all(|replies| *replies == 0)
    }
}
