//! `correction`: a command with the probable deviations of its size, by ε and by a shift of all sizes of its flow.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Command, SharedList};

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
    /// Whether neither commands nor replies are longer or shorter.
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

/// `6 bytes longer`.
fn longer(bytes: i64) -> String {
    let number = bytes.unsigned_abs();
    let unit = if number == 1 { "byte" } else { "bytes" };
    format!("{number} {unit} {}", if bytes > 0 { "longer" } else { "shorter" })
}
