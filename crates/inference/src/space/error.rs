//! Why nothing can be computed of all commands of a home.

use sizeleak_model::InventoryError;
use thiserror::Error;

#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SpaceError {
    /// The model knows labelled commands as a whole, and no sizes of actions.
    #[error(
        "the model has no sizes of actions, only kinds of labelled commands, so that there are no other commands to \
         compare them with: label commands of several actions, and learn again; or name captures and their `--labels`, \
         on which the leak is measured without a model"
    )]
    NoSizes,
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
