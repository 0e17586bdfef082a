//! Why pipelines cannot be evaluated.

use std::io;

use sizeleak_model::InventoryError;
use sizeleak_pipeline::{ConfigError, RunError};
use thiserror::Error;

use crate::traffic_seen::TrafficSeen;

/// Why labels cannot be used: one sentence that names the file and, if there is one, the line.
#[derive(Debug, Error)]
#[error("{file}: {fault}")]
pub struct LabelFileError {
    pub(crate) file: String,
    pub(crate) fault: String,
}

/// Why a pipeline cannot be evaluated.
#[derive(Debug, Error)]
pub enum EvaluationError {
    /// The labels cannot be used, or fit no command.
    #[error(transparent)]
    Labels(#[from] LabelFileError),
    /// The inventory of the model contradicts itself.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
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
    /// Commands cannot be padded in thought.
    #[error(
        "the bytes of plaintext in these commands are not known, and policies pad plaintext: capture a handshake, or \
         learn with `--cipher`"
    )]
    NoPlaintext,
    /// The commands are padded already.
    #[error("the model says that commands are padded already: they cannot be padded by another policy")]
    PaddedAlready,
    /// The captures hold no command.
    #[error("there is no command in the captures: {0}")]
    NoCommands(Box<TrafficSeen>),
    /// The pipeline names no candidates.
    #[error(
        "the pipeline ends before candidates are made: answers start with the decomposer; `sizeleak compare` compares \
         the stages before it"
    )]
    NoCandidates,
}
