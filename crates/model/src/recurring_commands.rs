//! Commands that recur, such as those of automations: labelled with the same actions far more often than habits explain.

use serde::{Deserialize, Serialize};

/// A command that recurs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurringCommand {
    /// How often each action occurs, in the order of the model.
    pub counts: Vec<u32>,
    /// The share of commands that are this one, beyond those with the same actions by chance.
    pub share: f64,
}

impl RecurringCommand {
    /// The most recurring commands of a model; the most frequent ones are kept.
    pub const MAX_LISTED: usize = 256;
}
