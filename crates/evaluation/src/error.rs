//! Why pipelines cannot be evaluated.

use sizeleak_model::InventoryError;
use sizeleak_pipeline::RunError;
use thiserror::Error;

use crate::label_file::LabelFileError;
use crate::observe::ObserveError;

/// Why a pipeline cannot be evaluated.
#[derive(Debug, Error)]
pub enum EvaluationError {
    /// The labels cannot be used, or fit no command.
    #[error(transparent)]
    Labels(#[from] LabelFileError),
    /// The inventory of the model contradicts itself.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// The pipeline does not run.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The captures are damaged before the first command.
    #[error(transparent)]
    Damaged(#[from] RunError),
    /// The captures hold no command.
    #[error("there is no command in the captures")]
    NoCommands,
    /// The pipeline names no candidates.
    #[error(
        "the pipeline ends before candidates are made: answers start with the decomposer; `sizeleak compare` compares \
         the stages before it"
    )]
    NoCandidates,
}
