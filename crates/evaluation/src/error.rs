//! Why pipelines cannot be evaluated.

use std::io;

use sizeleak_labels::LabelFileError;
use sizeleak_learning::LearningError;
use sizeleak_model::InventoryError;
use sizeleak_pipeline::{ConfigError, InputError};
use thiserror::Error;

/// Why a pipeline cannot be evaluated.
#[derive(Debug, Error)]
pub enum EvaluationError {
    /// The labels cannot be used, or fit no command.
    #[error(transparent)]
    Labels(#[from] LabelFileError),
    /// The inventory of the model contradicts itself.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// The pipeline does not run over the captures, or finds no command in them.
    #[error(transparent)]
    Input(#[from] InputError),
    /// No model can be learned.
    #[error(transparent)]
    Learning(#[from] LearningError),
    /// A temporary file for a model cannot be written.
    #[error("a temporary file for the model cannot be written: {0}")]
    TemporaryFile(#[from] io::Error),
    /// Commands cannot be padded in thought.
    #[error(
        "the bytes of plaintext in these commands are not known, and policies pad plaintext: capture a handshake, or \
         learn with `--cipher`"
    )]
    NoPlaintext,
    /// The commands are padded already.
    #[error("the model says that commands are padded already: they cannot be padded by another policy")]
    PaddedAlready,
    /// The pipeline names no candidates.
    #[error(
        "the pipeline ends before candidates are made: answers start with the decomposer; `sizeleak evaluate` compares the stages \
         before it in several pipelines"
    )]
    NoCandidates,
}

impl From<ConfigError> for EvaluationError {
    fn from(error: ConfigError) -> Self {
        Self::Input(error.into())
    }
}
