//! Why no model can be learned.

use std::io;

use sizeleak_frame::Shift;
use sizeleak_pipeline::{ConfigError, InputError};
use sizeleak_platform::runtime::ConfigureError;
use thiserror::Error;

use crate::fit::blind::BlindFitError;
use crate::labels::LabelFileError;

pub(crate) type Result<T, E = LearningError> = std::result::Result<T, E>;

#[derive(Debug, Error)]
pub enum LearningError {
    #[error("{file}: {fault}")]
    File { file: String, fault: String },
    #[error(
        "`{0}` is not a cipher suite with known sizes: use its IANA name, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    )]
    UnknownCipherSuite(String),
    #[error("a temporary file for the model cannot be written: {0}")]
    TemporaryFile(#[from] io::Error),
    #[error("the segmenter's options: {0}")]
    SegmenterOptions(#[from] toml::de::Error),
    #[error(transparent)]
    Segmenter(#[from] ConfigureError),
    #[error(transparent)]
    BlindFit(#[from] BlindFitError),
    #[error("{0}: capture more commands, or label some of them (`--labels`)")]
    Unsettled(String),
    #[error(
        "a block cipher hides sizes within a block, and without labels ranges do not tell the sizes of actions: label \
         some commands (`--labels`)"
    )]
    HiddenSizes,
    #[error("the commands show no action that their sizes are made of: label some of them (`--labels`)")]
    NoSizes,
    #[error("{0} commands show no shift of at most 64 bytes: there is nothing to adapt")]
    NoShift(u64),
    #[error(
        "messages that become longer or shorter are not followed with this model, because {0}: learn a new one from labelled \
         commands if they have changed"
    )]
    NotFollowed(&'static str),
    #[error("that {shift} is not certain yet (probability {probability:.2}): capture more commands")]
    UncertainShift { shift: Shift, probability: f64 },
    #[error(
        "flows of the same service differ: in one, {one} than in the model; in another, {other}: give the captures of one \
         of them"
    )]
    ShiftsDiffer { one: Shift, other: String },
    #[error("the adapted model is invalid: {0}")]
    AdaptedModel(String),
    #[error(transparent)]
    Input(#[from] InputError),
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
