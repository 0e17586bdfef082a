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
    pub(crate) states: Vec<StateBelief>,
    /// The most probable state of all messages.
    pub(crate) best: usize,
    /// The habits in each state that is probable enough. Others are judged by those of the most probable one.
    pub(crate) followed: BTreeMap<usize, HabitBelief>,
}

impl Belief {
    /// The belief in each state after the last command.
    pub fn states(&self) -> &[StateBelief] {
        &self.states
    }

    /// The most probable state of all messages.
    pub fn best(&self) -> usize {
        self.best
    }

    /// Forgets what can be computed again, which takes most of a belief's memory.
    pub fn forget_known(&self) {
        self.followed.values().for_each(HabitBelief::forget_known);
    }

    /// The habits of the flow in each state that is probable enough; none where they cannot be told, as before the first
    /// command.
    pub fn followed(&self) -> impl Iterator<Item = (usize, &HabitBelief)> {
        self.followed.iter().map(|(state, habits)| (*state, habits))
    }
}
