//! `correction`: a command with what its size may vary by.

use serde::{Deserialize, Serialize};

use crate::{Command, SharedList};

/// A command and the values ε is likely to have at its size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// The command.
    #[serde(flatten)]
    pub command: Command,
    /// The values of ε, heaviest first; their weights sum to 1.
    pub epsilons: SharedList<WeightedEpsilon>,
}

/// One value of ε and how much speaks for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightedEpsilon {
    /// What remains of |s| after |ac| and the actions, in bytes.
    pub epsilon: i64,
    /// Its share among all values offered, from 0 to 1.
    pub weight: f64,
}
