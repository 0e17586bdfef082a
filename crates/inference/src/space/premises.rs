//! What is taken to be known of commands before any is seen, and why nothing can be computed of all commands of a home.

use serde::{Deserialize, Serialize};
use sizeleak_model::{Action, Inventory, InventoryError, Model, Prior};
use thiserror::Error;

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

#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SpaceError {
    /// The model knows labelled commands as a whole, and no sizes of actions.
    #[error(
        "the model has no sizes of actions, only kinds of labelled commands, so that there are no other commands to \
         compare them with: label commands of several actions, and learn again; captures with `--labels` are measured \
         without `--model`"
    )]
    NoSizes,
    /// The same where no command can have several actions.
    #[error(
        "the model has no sizes of actions, only kinds of labelled commands: its home is one device, which gets one \
         action at a time, so that there are no other commands to compare them with; what labelled commands give away, \
         `sizeleak measure CAPTURE --labels FILE` says"
    )]
    OneDevice,
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error("the model has no [prior]: choose another one with `--prior`, `flat` for example")]
    NoPrior,
    #[error("the prior `{0}` needs to know the devices: name an inventory with `--inventory`")]
    NoInventory(&'static str),
    #[error("the model has not learned how many actions commands have: say it with `--decay`, 0.75 for example")]
    NoNumbers,
    #[error(
        "the inventory has too many combinations of devices to sum over: merge kinds of device whose actions are alike, \
         or lower their counts"
    )]
    TooMany,
    /// Probabilities of commands are beyond the range of [`f64`].
    #[error(
        "some commands are too improbable to compute with: raise `--decay`, or lower the counts of devices in the inventory"
    )]
    OutOfRange,
    #[error(
        "the overhead of the model is {overhead} bytes and its smallest action {action}, so that a command of this action \
         would have fewer than 0 bytes: the model is wrong; learn it again"
    )]
    NegativeSize {
        /// The overhead in bytes.
        overhead: i64,
        /// The smallest size of an action in bytes.
        action: i64,
    },
    #[error(
        "the sizes of the actions are up to {0} bytes apart, too far to sum over commands of up to {1} actions: name a \
         smaller inventory"
    )]
    TooWide(usize, u32),
    #[error("there are more than two million commands, too many to list one by one: name a smaller inventory")]
    TooManyCommands,
}

impl SpaceError {
    /// Why there are no figures of a model without sizes of actions, whose home has these devices, if they are known.
    pub fn without_sizes(inventory: Option<&Inventory>) -> Self {
        let devices = inventory.map(|inventory| inventory.devices.iter().map(|device| u64::from(device.count)).sum());
        if devices == Some(1_u64) { Self::OneDevice } else { Self::NoSizes }
    }
}
