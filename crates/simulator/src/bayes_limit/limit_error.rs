//! Why a limit cannot be computed.

use thiserror::Error;

use crate::{ScenarioError, SimulateError};

/// Why a limit cannot be computed.
#[derive(Debug, Error)]
pub enum BayesLimitError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Sizes depend on the device.
    #[error("the limit can be computed only if `command.device-ids` is \"fixed\"")]
    DeviceIds,
    /// What an observer learns under a setting is not known.
    #[error("the limit is not known where {0}")]
    Setting(&'static str),
    /// There are too many different commands or replies.
    #[error(
        "the limit cannot be computed: there are too many different commands and replies; lower `command.most-actions`"
    )]
    TooMany,
    /// A message does not fit its framing.
    #[error(transparent)]
    Message(#[from] SimulateError),
}
