//! `command`: one message that makes devices act or reports what they did, seen by its sizes; `correction`: a command with
//! the probable deviations of its size, by ε and by a shift of all sizes of its flow. Their lists are shared by frames: a
//! clone copies no items, and on the wire they are ordinary lists.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Direction;

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
    /// Lengths of single replies in other words than those that the model was learned from, each with the length that such
    /// a reply had in these; from `epsilon-corrector`. Absent on the wire where there are none.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub reworded: SharedList<[u32; 2]>,
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

    /// The length of a reply in the words that the model was learned from.
    pub fn learned_length(&self, reply: &SingleReply) -> u32 {
        let learned = self.reworded.iter().find(|[length, _]| *length == reply.length);
        learned.map_or(reply.length, |[_, learned]| *learned)
    }

    /// Whether the replies are to this command, as far as times tell: none of them may be to an earlier command, and none
    /// to this one may be counted with a later one.
    pub fn has_own_replies(&self) -> bool {
        !self.overlapped && self.shared_replies.iter().all(|replies| *replies == 0)
    }
}

/// A command and the values ε is likely to have at its size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    #[serde(flatten)]
    pub command: Command,
    /// The values of ε, heaviest first; their weights sum to 1.
    pub epsilons: SharedList<WeightedEpsilon>,
    /// By how much the flow's messages may be longer than the model's, most probable first; empty, and absent on the
    /// wire, where they are as long. The values of ε contain it.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub shifts: SharedList<Shift>,
    /// Factors on the probability of actions by the learned habits, where the flow has others; empty, and absent on the
    /// wire, where it may have the learned ones.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub habits: SharedList<HabitFactors>,
    /// Commands of the flow that came before and may have come again, as far as their sizes are this one's; empty, and
    /// absent on the wire, where there is none.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub recurring: SharedList<RecurringClass>,
}

/// Commands that no size and no reply tells apart, some of which came before.
///
/// For each command that did not come before, `share` commands are such ones because they come again. Among them, actions
/// have the ratio that they have by habits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecurringClass {
    /// The sum of the sizes of their actions in bytes.
    pub bytes: i64,
    /// How many replies of each class of the model they should have; empty where replies say nothing one by one.
    pub replies: SharedList<u32>,
    /// How many there are, at least 0.
    pub share: f64,
}

/// Habits that a flow may have in place of the learned ones.
///
/// The prior probability of a command's actions is that by the learned habits times `1 − Σ weight + Σ weight · factor` over
/// all entries; the factor is the product of those of all its actions and that of their number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HabitFactors {
    /// How probable these habits are, from 0 to 1.
    pub weight: f64,
    /// The factor of each action, in the order of the model.
    pub actions: SharedList<f64>,
    /// The factor of each number of actions, from 1; more have the last one.
    pub numbers: SharedList<f64>,
}

impl Correction {
    /// A correction whose flow has the sizes that the model was learned from.
    pub fn unshifted(command: Command, epsilons: SharedList<WeightedEpsilon>) -> Self {
        let (shifts, habits, recurring) = Default::default();
        Self { command, epsilons, shifts, habits, recurring }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightedEpsilon {
    /// The bytes of |s| that remain after |ac| and the actions.
    pub epsilon: i64,
    /// Its share among all values, from 0 to 1.
    pub weight: f64,
}

/// By how much the messages of a flow may be longer than those that the model was learned from, because the service or
/// the gateway changed them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// By how many bytes commands are longer, or each occurrence of the one action that changed.
    pub bytes: i64,
    /// That action; `None`, and absent on the wire, where commands are longer whatever their actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Box<str>>,
    /// By how many bytes each single reply is longer.
    pub reply_bytes: i64,
    /// How probable that is before the command is seen, from 0 to 1.
    pub probability: f64,
    /// When the first command of the most probable beginning began, in nanoseconds since the epoch; `None` where sizes
    /// are those that the model was learned from.
    pub since_ns: Option<i64>,
}

impl Shift {
    pub fn is_none(&self) -> bool {
        self.bytes == 0 && self.reply_bytes == 0
    }

    /// Whether the same messages are as much longer or shorter.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.bytes, self.reply_bytes, &self.action) == (other.bytes, other.reply_bytes, &other.action)
    }
}

/// What is longer or shorter: `commands and replies are 6 bytes longer`.
impl fmt::Display for Shift {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.action, self.bytes, self.reply_bytes) {
            (Some(action), bytes, _) => write!(out, "the action `{action}` is {}", longer(bytes)),
            (None, 0, 0) => out.write_str("nothing is longer or shorter"),
            (None, bytes, 0) => write!(out, "commands are {}", longer(bytes)),
            (None, 0, bytes) => write!(out, "replies are {}", longer(bytes)),
            (None, bytes, of_replies) if bytes == of_replies => {
                write!(out, "commands and replies are {}", longer(bytes))
            }
            (None, bytes, of_replies) => write!(out, "commands are {}, replies {}", longer(bytes), longer(of_replies)),
        }
    }
}

fn longer(bytes: i64) -> String {
    let number = bytes.unsigned_abs();
    let unit = if number == 1 { "byte" } else { "bytes" };
    format!("{number} {unit} {}", if bytes > 0 { "longer" } else { "shorter" })
}

/// An immutable list, shared by all its clones.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedList<T>(Arc<[T]>);

impl<T> SharedList<T> {
    /// Whether both are clones of the same list, and therefore equal.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Deref for SharedList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for SharedList<T> {
    fn from(list: Vec<T>) -> Self {
        Self(list.into())
    }
}

impl<T> From<Arc<[T]>> for SharedList<T> {
    fn from(list: Arc<[T]>) -> Self {
        Self(list)
    }
}

impl<T, const N: usize> From<[T; N]> for SharedList<T> {
    fn from(list: [T; N]) -> Self {
        Self(list.into())
    }
}

impl<T> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a SharedList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Serialize> Serialize for SharedList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SharedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
