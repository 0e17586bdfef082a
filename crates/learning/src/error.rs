//! Why no model can be learned.

use std::io;

use sizeleak_evaluation::EvaluationError;
use sizeleak_pipeline::ConfigError;
use sizeleak_runtime::ConfigureError;
use thiserror::Error;

/// Why no model can be learned.
#[derive(Debug, Error)]
pub enum LearningError {
    /// A file is unusable: the labels do not determine a model, or a capture cannot be read.
    #[error("{file}: {fault}")]
    File {
        /// The file.
        file: String,
        /// The fault and its remedy.
        fault: String,
    },
    /// The name of an unknown cipher suite.
    #[error(
        "`{0}` is not a cipher suite with known sizes: use its IANA name, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    )]
    UnknownCipherSuite(String),
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
    /// The pipeline does not run, or the labels fit no command.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}

impl LearningError {
    /// The cause without the name of a file.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::File { fault, .. } => fault.clone(),
            error => error.to_string(),
        }
    }
}
