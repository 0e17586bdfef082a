//! Where frames go.

use std::time::Duration;

use sizeleak_frame::{Frame, WriteError};
use thiserror::Error;

/// The receiver is gone: a broken pipe or a dropped channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the output is closed")]
pub struct Closed;

/// Takes frames from a stage.
pub trait Emit: Send {
    /// Takes a frame; waits while the receiver is busy.
    ///
    /// # Errors
    /// [`Closed`] once the receiver is gone.
    fn emit(&mut self, frame: Frame) -> Result<(), Closed>;
}

/// The sending end of a link between two nodes.
pub trait Output: Emit {
    /// Takes frames in order and leaves the vector empty.
    ///
    /// # Errors
    /// [`Closed`] once the receiver is gone.
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        frames.drain(..).try_for_each(|frame| self.emit(frame))
    }

    /// Sends what is buffered; called before waiting for input, so that live captures are not delayed.
    ///
    /// # Errors
    /// [`Closed`] once the receiver is gone.
    fn flush(&mut self) -> Result<(), Closed>;

    /// The time spent waiting for the receiver so far, which is not service time of the stage.
    fn waited(&self) -> Duration;

    /// Why it closed, if that was an error and not just a receiver that went away.
    fn failure(&mut self) -> Option<WriteError> {
        None
    }
}

/// Collects frames in memory: for tests and for callers that want a stage's output as a list.
impl Emit for Vec<Frame> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.push(frame);
        Ok(())
    }
}
