//! The trait of a stage: frames in, frames out.

use std::error::Error;

use sizeleak_frame::Frame;
use thiserror::Error;

use crate::Emit;

/// A step of the pipeline. It holds its own state and takes all time from frames.
pub trait Stage: Send {
    /// The stage's name, which is also its program's.
    const NAME: &'static str;

    /// What it consumes. A frame that is none of it comes back and is passed on.
    type Input: TryFrom<Frame, Error = Frame>;

    /// Takes one frame and emits what follows from it.
    ///
    /// # Errors
    /// [`StageError`]; the whole run ends with it.
    fn process(&mut self, input: Self::Input, out: &mut dyn Emit) -> Result<(), StageError>;

    /// Emits what is still held when input has ended, also where it ended too early.
    ///
    /// # Errors
    /// [`StageError`]; the whole run ends with it.
    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError>;

    /// What it counts beyond frames and bytes, for its row of `summary`.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Why a stage cannot go on.
#[derive(Debug, Error)]
pub enum StageError {
    /// Nobody takes its frames any more.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// Something is wrong with what it was given.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl StageError {
    /// The stage's own error.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

/// Nobody takes frames any more: a broken pipe or a dropped receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("nobody takes the output any more")]
pub struct Closed;
