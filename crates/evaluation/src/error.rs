//! Why pipelines cannot be evaluated.

use std::io;

use sizeleak_labels::LabelFileError;
use sizeleak_learning::LearningError;
use sizeleak_model::InventoryError;
use sizeleak_pipeline::{ConfigError, InputError};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum EvaluationError {
    #[error(transparent)]
    Labels(#[from] LabelFileError),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Learning(#[from] LearningError),
    #[error("a temporary file for the model cannot be written: {0}")]
    TemporaryFile(#[from] io::Error),
    #[error(
        "the bytes of plaintext in these commands are not known, and policies pad plaintext: capture a handshake, or \
         learn with `--cipher`"
    )]
    NoPlaintext,
    #[error("the model says that commands are padded already: they cannot be padded by another policy")]
    PaddedAlready,
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
