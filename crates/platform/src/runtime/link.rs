//! The two ends of a link: where frames come from, and where they go.

use std::time::{Duration, Instant};

use sizeleak_frame::{Frame, ReadError, WriteError};
use thiserror::Error;

/// The receiving end of a link between two nodes.
pub trait Input {
    /// Appends the available frames to `parcel`, and waits for the first if none is available. Calls `before_wait`
    /// before it waits.
    ///
    /// # Errors
    /// [`InputError`], after all whole frames have been returned.
    fn receive(&mut self, parcel: &mut Vec<Frame>, before_wait: &mut dyn FnMut()) -> Result<Received, InputError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// At least one frame, waiting to be processed since then.
    Frames {
        /// When they were sent, or read from the pipe.
        since: Instant,
    },
    /// The stream ended with its summary.
    End,
    Interrupted,
}

#[derive(Debug, Error)]
pub enum InputError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The sending thread ended without a summary.
    #[error("{} ended without its summary", stage.as_deref().unwrap_or("the stage before"))]
    Dropped { stage: Option<String> },
}

impl InputError {
    /// Whether the stream was cut, rather than invalid.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Dropped { .. } => true,
            Self::Read(error) => error.is_cut(),
        }
    }
}

/// Who wrote the stream, and whether its summary arrived.
#[derive(Debug, Default)]
pub(crate) struct StreamEndCheck {
    writer: Option<String>,
    summary: bool,
}

impl StreamEndCheck {
    /// Checks frames in order: only the first can be a hello, only the last a summary.
    pub(crate) fn check_all(&mut self, frames: &[Frame]) {
        [frames.first(), frames.last()].into_iter().flatten().for_each(|frame| self.check(frame));
    }

    pub(crate) fn check(&mut self, frame: &Frame) {
        match frame {
            Frame::Hello(hello) => self.writer = Some(hello.stage.clone()),
            Frame::Summary(_) => self.summary = true,
            _ => {}
        }
    }

    /// How the stream ended, once its writer is gone.
    pub(crate) fn end(&self) -> Result<Received, InputError> {
        if self.summary { Ok(Received::End) } else { Err(InputError::Dropped { stage: self.writer.clone() }) }
    }
}

/// The receiver is gone: a broken pipe or a dropped channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the output is closed")]
pub struct Closed;

pub trait Emit: Send {
    /// Takes a frame; waits while the receiver is busy.
    fn emit(&mut self, frame: Frame) -> Result<(), Closed>;
}

/// The sending end of a link between two nodes.
pub trait Output: Send {
    /// Takes frames in order and leaves the vector empty.
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed>;

    /// Sends what is buffered; called before waiting for input, so that live captures are not delayed.
    fn flush(&mut self) -> Result<(), Closed>;

    /// The time spent waiting for the receiver so far, which is not service time of the stage.
    fn waited(&self) -> Duration;

    /// Why it closed, if that was an error and not just a receiver that went away.
    fn failure(&mut self) -> Option<WriteError> {
        None
    }
}

impl Emit for Vec<Frame> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.push(frame);
        Ok(())
    }
}
