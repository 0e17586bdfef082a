//! Where frames go.

use std::time::Duration;

use sizeleak_frame::{Frame, WriteError};

use crate::Closed;

/// Takes frames from a stage, whichever thread that works on.
pub trait Emit: Send {
    /// Takes a frame, waiting while those before it are not taken yet.
    ///
    /// # Errors
    /// [`Closed`] once nobody takes frames any more.
    fn emit(&mut self, frame: Frame) -> Result<(), Closed>;
}

/// The sending end of a link between two nodes.
pub trait Output: Emit {
    /// Takes frames that were emitted one after the other, and leaves none of them.
    ///
    /// # Errors
    /// [`Closed`] once nobody takes frames any more.
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        frames.drain(..).try_for_each(|frame| self.emit(frame))
    }

    /// Hands on what has gathered; called before waiting for input, so that a live capture is not delayed.
    ///
    /// # Errors
    /// [`Closed`] once nobody takes frames any more.
    fn flush(&mut self) -> Result<(), Closed>;

    /// How long it has waited for the other end so far; not part of the stage's own time.
    fn waited(&self) -> Duration;

    /// Why it closed, if that was an error and not just a reader that went away.
    fn failure(&mut self) -> Option<WriteError> {
        None
    }
}

/// Frames kept in memory: for tests and for callers that want a stage's output as a list.
impl Emit for Vec<Frame> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.push(frame);
        Ok(())
    }
}
