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
