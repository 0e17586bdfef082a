//! What is taken to be known of commands before any is seen.

use serde::Serialize;

/// How probable commands are before anything is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorKind {
    /// What the model learned of habits, as `decomposer` and `pruner` use it.
    Learned,
    /// Every device is as likely, and every action that it has; the number of actions is as learned.
    Devices,
    /// Every command that the devices allow is as likely.
    Flat,
}

/// What is assumed of commands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Premises {
    /// How probable commands are.
    pub prior: PriorKind,
    /// P(n + 1 actions) / P(n actions), in place of what was learned of the number of actions.
    pub decay: Option<f64>,
}
