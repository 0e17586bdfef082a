//! What is believed of a flow: how probable each state of its messages is, and which habits its commands show.

use std::collections::BTreeMap;

use crate::habit_belief::HabitBelief;

/// How probable a state is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StateBelief {
    /// Whatever the habits.
    pub probability: f64,
    /// As that which strange messages look like: they are not the model's at all, and look like this.
    pub strange: f64,
    /// The time of the first command with it, in nanoseconds since the epoch, on the most probable way to it; `None` where
    /// it has always been so.
    pub since_ns: Option<i64>,
}

/// What is believed of a flow.
#[derive(Debug, Clone, Default)]
pub struct Belief {
    /// After the last command, by state. Empty before the first one: messages are as they were learned.
    pub states: Vec<StateBelief>,
    /// The most probable state of all messages.
    pub best: usize,
    /// The habits in each state that is probable enough. Others are judged by those of the most probable one. None where
    /// habits cannot be told, as before the first command.
    pub followed: BTreeMap<usize, HabitBelief>,
}
