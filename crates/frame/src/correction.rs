//! `correction`: a command with the probable deviations of its size.

use serde::{Deserialize, Serialize};

use crate::{Command, SharedList, Shift};

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

/// One value of ε and its weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightedEpsilon {
    /// The bytes of |s| that remain after |ac| and the actions.
    pub epsilon: i64,
    /// Its share among all values, from 0 to 1.
    pub weight: f64,
}
