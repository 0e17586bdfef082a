//! Why an input cannot be run over, or shows nothing.

use std::io;

use thiserror::Error;

use crate::error::{ConfigError, RunError};
use crate::traffic_seen::TrafficSeen;

/// Why pipelines cannot be run over an input, or find no command in it.
#[derive(Debug, Error)]
pub enum InputError {
    /// The pipeline cannot be prepared, or its input cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// SIGINT or SIGTERM came before the end of the captures.
    #[error("stopped before the captures were read to the end")]
    Interrupted,
    /// The captures are damaged before the first command.
    #[error(transparent)]
    Damaged(#[from] RunError),
    /// The captures hold no command.
    #[error("there is no command in the captures: {0}")]
    NoCommands(Box<TrafficSeen>),
    /// A temporary file for what was read cannot be written or read.
    #[error("a temporary file for the traffic cannot be used: {0}")]
    Recording(io::Error),
}

impl InputError {
    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::Damaged(error) => error.exit_code(),
            Self::Interrupted => 130,
            Self::NoCommands(_) | Self::Recording(_) => 1,
        }
    }

    /// Why a run found no command: the damage of the captures, or what was there instead.
    pub fn no_commands(damage: Option<RunError>, seen: TrafficSeen) -> Self {
        damage.map_or_else(|| Self::NoCommands(Box::new(seen)), Self::Damaged)
    }
}
