//! Why an input cannot be run over, or shows nothing.

use std::io;

use sizeleak_text::TimeRange;
use thiserror::Error;

use crate::error::{ConfigError, RunError};
use crate::traffic_seen::TrafficSeen;

/// Why pipelines cannot be run over an input, or find no command in it.
#[derive(Debug, Error)]
pub enum InputError {
    /// The pipeline cannot be prepared.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// SIGINT or SIGTERM came before the end of the captures.
    #[error("stopped before the captures were read to the end")]
    Interrupted,
    /// The signal handlers cannot be installed.
    #[error("signals cannot be caught: {0}")]
    Signals(io::Error),
    /// The captures are damaged before the first command.
    #[error(transparent)]
    Damaged(#[from] RunError),
    /// The captures hold no command.
    #[error("there is no command in the captures: {0}")]
    NoCommands(Box<TrafficSeen>),
    /// None of so many commands is of this time.
    #[error("none of the {0} commands is {1}")]
    OtherTimes(u64, TimeRange),
    /// A temporary file for what was read cannot be written or read.
    #[error("a temporary file for the traffic cannot be used: {0}")]
    Recording(io::Error),
    /// Files that are read one after another hold the same time.
    #[error(
        "{one} and {other} hold traffic of the same time: as captures they are read together (`--input`), saved \
         streams only one after another"
    )]
    Overlap {
        /// The first.
        one: String,
        /// The other one.
        other: String,
    },
    /// A saved stream holds several gateways, and the user named none.
    #[error("{files}: there are several gateways ({gateways}): name one with `--gateway`")]
    SeveralGateways {
        /// The streams.
        files: String,
        /// Their gateways.
        gateways: String,
    },
    /// A saved stream holds no gateway that the user named.
    #[error("{files}: there is no flow of the gateway that `--gateway` names, but of {gateways}")]
    OtherGateways {
        /// The streams.
        files: String,
        /// Their gateways.
        gateways: String,
    },
    /// The address of a gateway is invalid.
    #[error("flow-filter.gateway: {0}")]
    Gateway(String),
    /// The first stages are not the usual ones, so that files cannot be read one after another.
    #[error(
        "the pipeline's first stages are not `capture`, `flow-filter` and `record-sizer`: it cannot read files one \
         after another or continue from them"
    )]
    UnknownFront,
}

impl InputError {
    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::Damaged(error) => error.exit_code(),
            Self::Interrupted => 130,
            Self::SeveralGateways { .. } | Self::Gateway(_) | Self::UnknownFront => 2,
            _ => 1,
        }
    }

    /// Why a run found no command: the damage of the captures, or what was there instead.
    pub fn no_commands(damage: Option<RunError>, seen: TrafficSeen) -> Self {
        damage.map_or_else(|| Self::NoCommands(Box::new(seen)), Self::Damaged)
    }
}
