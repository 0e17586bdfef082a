//! Why no model can be learned.

use std::io;

use sizeleak_fit::blind::BlindFitError;
use sizeleak_frame::Shift;
use sizeleak_labels::LabelFileError;
use sizeleak_pipeline::{ConfigError, InputError};
use sizeleak_platform::runtime::ConfigureError;
use thiserror::Error;

/// Why no model can be learned.
#[derive(Debug, Error)]
pub enum LearningError {
    /// A capture cannot be read, or is no file.
    #[error("{file}: {fault}")]
    File {
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
    /// The options of the segmenter are invalid.
    #[error("the segmenter's options: {0}")]
    SegmenterOptions(#[from] toml::de::Error),
    /// The segmenter cannot learn with its options.
    #[error(transparent)]
    Segmenter(#[from] ConfigureError),
    /// The commands do not tell sizes without labels.
    #[error(transparent)]
    BlindFit(#[from] BlindFitError),
    /// The commands leave sizes open.
    #[error("{0}: capture more commands, or label some of them (`--labels`)")]
    Unsettled(String),
    /// Sizes are known only as ranges.
    #[error(
        "a block cipher hides sizes within a block, and without labels ranges do not tell the sizes of actions: label \
         some commands (`--labels`)"
    )]
    HiddenSizes,
    /// No action was found.
    #[error("the commands show no action that their sizes are made of: label some of them (`--labels`)")]
    NoSizes,
    /// Nothing changed since the model was learned.
    #[error(
        "the sizes of {0} commands are those that the model was learned from, or follow no shift of at most 8 bytes: there \
         is nothing to adapt"
    )]
    NoShift(u64),
    /// A change is too recent.
    #[error("that {shift} is not certain yet (probability {probability:.2}): capture more commands")]
    UncertainShift {
        /// What seems to be longer.
        shift: Shift,
        /// How probable that is.
        probability: f64,
    },
    /// Two flows of a service are not alike.
    #[error(
        "flows of the same service differ: in one, {one} than in the model; in another, {other}: give the captures of one \
         of them"
    )]
    ShiftsDiffer {
        /// In the flow that changed last.
        one: Shift,
        /// In another one.
        other: String,
    },
    /// The adapted model is invalid.
    #[error("the adapted model is invalid: {0}")]
    AdaptedModel(String),
    /// The pipeline does not run over the captures, or finds no command in them.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The labels cannot be used, or fit no command.
    #[error(transparent)]
    Labels(#[from] LabelFileError),
}

impl From<ConfigError> for LearningError {
    fn from(error: ConfigError) -> Self {
        Self::Input(error.into())
    }
}

impl LearningError {
    /// The cause without the name of a file.
    pub fn cause(&self) -> String {
        match self {
            Self::File { fault, .. } => fault.clone(),
            Self::Labels(error) => error.fault().to_owned(),
            error => error.to_string(),
        }
    }
}
