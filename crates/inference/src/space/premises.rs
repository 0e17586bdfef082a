//! What is taken to be known of commands before any is seen.

use serde::{Deserialize, Serialize};
use sizeleak_model::{Action, Inventory, Model, Prior};

/// Commands of more actions are not counted; where an inventory allows them, [`super::CommandSpace::left_out`] says how
/// probable they are.
pub const MAX_ACTIONS: u32 = 64;

/// How probable commands are before anything is seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum, schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PriorName {
    /// As learned of habits alone: how many actions commands have, and how often each one occurs
    Learned,
    /// As learned of habits, and single commands recur, such as those of automations, as often as they were labelled
    #[default]
    Recurring,
    /// Each device is as likely, and each of its actions; the number of actions is as learned
    Devices,
    /// Every command is as likely
    Flat,
}

/// What is assumed of commands.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Premises {
    pub prior: PriorName,
    /// P(n + 1 actions) / P(n actions), in place of what was learned of the number of actions.
    pub decay: Option<f64>,
}

/// The actions of a home, which a model or a scenario describes.
#[derive(Debug, Clone, Copy)]
pub struct Home<'a> {
    /// The bytes of a command without actions and ε.
    pub overhead: i64,
    /// The actions; of those whose sizes vary, the most frequent size counts.
    pub actions: &'a [Action],
    /// The devices; `None` if any number of any action is possible.
    pub inventory: Option<&'a Inventory>,
    /// What was learned of habits.
    pub prior: Option<&'a Prior>,
    /// The most actions of a command, whatever devices there are.
    pub max_actions: u32,
}

impl<'a> From<&'a Model> for Home<'a> {
    fn from(model: &'a Model) -> Self {
        Self {
            overhead: model.overhead,
            actions: &model.actions,
            inventory: model.inventory.as_ref(),
            prior: model.prior.as_ref(),
            max_actions: u32::MAX,
        }
    }
}
