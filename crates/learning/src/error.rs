//! Why no model can be learned.

use std::io;

use sizeleak_evaluation::{EvaluationError, LabelFileError, ObserveError};
use sizeleak_model::InventoryError;
use sizeleak_pipeline::ConfigError;
use sizeleak_runtime::ConfigureError;
use thiserror::Error;

/// Why no model can be learned.
#[derive(Debug, Error)]
pub enum LearningError {
    /// The labels fit no command.
    #[error(transparent)]
    Labels(#[from] LabelFileError),
    /// The inventory does not fit the labels.
    #[error("{file}: {error}")]
    Inventory {
        /// The label file.
        file: String,
        /// Why not.
        error: InventoryError,
    },
    /// The labelled commands do not determine a model.
    #[error("{file}: {fault}")]
    Fit {
        /// The label file.
        file: String,
        /// Why not, with the commands to record next.
        fault: String,
    },
    /// A label that no message can have.
    #[error("{file}: {line}: no message has such counts or a command of such a size")]
    OutOfBounds {
        /// The label file.
        file: String,
        /// The line and time of the label.
        line: String,
    },
    /// The name of no cipher suite.
    #[error(
        "`{0}` is no cipher suite with known sizes: use its IANA name, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    )]
    UnknownCipherSuite(String),
    /// Too few labels to hold some out.
    #[error(
        "{file}: too few labels to hold some out: label at least {least} commands, or test on others (`--test-capture`, \
         `--test-labels`)"
    )]
    TooFewLabels {
        /// The label file.
        file: String,
        /// How many labels it takes.
        least: usize,
    },
    /// A capture cannot be read.
    #[error("{0}: {1}")]
    Capture(String, io::Error),
    /// A capture is a folder.
    #[error("{0} is a folder: name the captures in it")]
    CaptureFolder(String),
    /// A temporary file for a model cannot be written.
    #[error("a temporary file for the model cannot be written: {0}")]
    TemporaryFile(#[from] io::Error),
    /// The options of the pipeline are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The options of the segmenter are invalid.
    #[error("the segmenter's options: {0}")]
    SegmenterOptions(#[from] toml::de::Error),
    /// The segmenter cannot learn with its options.
    #[error(transparent)]
    Segmenter(#[from] ConfigureError),
    /// The pipeline does not run.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// A model cannot be evaluated.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}

impl LearningError {
    /// The cause without the name of the label file.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Inventory { error, .. } => error.to_string(),
            Self::Fit { fault, .. } => fault.clone(),
            error => error.to_string(),
        }
    }
}
