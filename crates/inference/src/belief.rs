//! What is believed of a flow: how probable each state of its messages is with each kind of habits, and which habits its
//! commands show.

use std::collections::BTreeMap;

use crate::habits::{HabitCounts, Habits};

/// Where habits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HabitKind {
    /// From the labels that the model was learned from.
    Learned,
    /// From the commands of the flow.
    Shown,
    /// From nowhere: nearly everything is left open.
    Broad,
    /// Sums of actions are as frequent as in the flow, whatever makes them: scenes, for example.
    AnySums,
}

/// A number for each kind of habits.
pub(crate) type ByKind = [f64; HabitKind::ALL.len()];

impl HabitKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Learned, Self::Shown, Self::Broad, Self::AnySums];
}

/// How probable a state is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StateBelief {
    /// With each kind of habits.
    pub(crate) by_kind: ByKind,
    /// As that which strange messages look like.
    pub(crate) strange: f64,
    /// By what commands can be at all in it, however probable.
    pub(crate) possible: f64,
    /// The time of the first command with it, in nanoseconds since the epoch, on the most probable way to it; `None` where
    /// it has always been so.
    pub since_ns: Option<i64>,
}

impl StateBelief {
    /// Whatever the habits.
    pub fn probability(&self) -> f64 {
        self.by_kind.iter().sum()
    }

    /// That messages are not the model's at all, and look like this.
    pub fn strange(&self) -> f64 {
        self.strange
    }

    /// Together with a kind of habits.
    pub fn with(&self, kind: HabitKind) -> f64 {
        self.by_kind[kind as usize]
    }
}

/// Habits as a flow's commands show them, if they are in some state.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) counts: HabitCounts,
    pub(crate) habits: Habits,
    /// How many commands the habits do not contain yet.
    pub(crate) commands: u32,
}

/// What is believed of a flow.
#[derive(Debug, Clone, Default)]
pub struct Belief {
    /// After the last command, by state. Empty before the first one: messages are as they were learned.
    pub(crate) states: Vec<StateBelief>,
    /// The most probable state of all messages.
    pub(crate) best: usize,
    pub(crate) shown: BTreeMap<usize, Shown>,
    /// The habits that commands show if nothing changed, however improbable that is beside the habits that are known:
    /// whoever takes habits for unknown answers by them. They are no evidence, or any habits would speak for that state.
    pub(crate) unchanged: Option<Shown>,
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

    /// The habits that commands show if they are in a state; `None` where it is not followed, as before the first command.
    pub fn shown(&self, state: usize) -> Option<&Habits> {
        let unchanged = self.unchanged.as_ref().filter(|_| state == 0);
        unchanged.or_else(|| self.shown.get(&state)).map(|shown| &shown.habits)
    }
}
