//! `correction`: a command with the probable deviations of its size.

use serde::{Deserialize, Serialize};

use crate::{Command, SharedList, Shift};

/// A command and the values ε is likely to have at its size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// The command.
    #[serde(flatten)]
    pub command: Command,
    /// The values of ε, heaviest first; their weights sum to 1.
    pub epsilons: SharedList<WeightedEpsilon>,
    /// By how much the flow's messages may be longer than the model's, most probable first; empty, and absent on the
    /// wire, where they are as long. The values of ε contain it.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub shifts: SharedList<Shift>,
}

impl Correction {
    /// A correction whose flow has the sizes that the model was learned from.
    pub fn unshifted(command: Command, epsilons: SharedList<WeightedEpsilon>) -> Self {
        Self { command, epsilons, shifts: SharedList::default() }
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
