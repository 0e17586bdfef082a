//! The trait of a stage: frames in, frames out.

use std::error::Error;

use sizeleak_frame::Frame;
use thiserror::Error;

use crate::runtime::{Closed, Emit, StateError};

/// A step of the pipeline. It holds its own state and takes all time from frames.
pub trait Stage: Send {
    /// The name of the stage and of its program.
    const NAME: &'static str;

    /// The frames it consumes. Conversion returns any other frame, which is passed on.
    type Input: TryFrom<Frame, Error = Frame>;

    /// Processes one frame and emits what follows from it.
    ///
    /// # Errors
    /// [`StageError`]; the whole run ends with it.
    fn process(&mut self, input: Self::Input, out: &mut dyn Emit) -> Result<(), StageError>;

    /// Emits everything that is still pending at the end of the input, even if the input was cut.
    ///
    /// # Errors
    /// [`StageError`]; the whole run ends with it.
    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError>;

    /// Further counters, in addition to frames and bytes, for its row of `summary`.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Its state between two frames, from which a stage with the same options continues; `None` if it cannot be saved.
    fn save(&self) -> Result<Option<Vec<u8>>, StateError> {
        Ok(None)
    }

    /// Continues from a state that a stage with the same options has saved. It may be of any bytes.
    ///
    /// # Errors
    /// [`StateError`] if no stage with these options can be in that state; it must not run then.
    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let _ = state;
        Err(StateError::Unsupported)
    }
}

/// Why a stage cannot continue.
#[derive(Debug, Error)]
pub enum StageError {
    /// The output is closed.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// Its input is invalid, or it failed itself.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl StageError {
    /// The stage's own error.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}
