//! Why a capture cannot be stripped.

use std::io;

use sizeleak_platform::runtime::{ConfigureError, StageError};
use thiserror::Error;

/// Why a capture cannot be stripped.
#[derive(Debug, Error)]
pub enum StripError {
    /// An option is missing or invalid.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// A stage that looks for records failed: no packet is the gateway's, for example.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The stripped capture cannot be written.
    #[error("the capture cannot be written")]
    Write(#[from] io::Error),
}
