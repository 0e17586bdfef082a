//! Where frames come from.

use std::time::Instant;

use sizeleak_frame::{Frame, ReadError};
use thiserror::Error;

/// The receiving end of a link between two nodes.
pub trait Input {
    /// Appends the frames that are there to `parcel`, waiting for the first if there is none. Calls `before_wait`
    /// before it waits.
    ///
    /// # Errors
    /// [`InputError`], after all frames that were whole have been given.
    fn receive(&mut self, parcel: &mut Vec<Frame>, before_wait: &mut dyn FnMut()) -> Result<Received, InputError>;
}

/// What came of waiting for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// At least one frame. They have waited to be processed since then.
    Frames {
        /// When they were sent, or read from the pipe.
        since: Instant,
    },
    /// The end of a stream that ended with its summary.
    End,
    /// The user asked to stop.
    Interrupted,
}

/// Why no more frames come.
#[derive(Debug, Error)]
pub enum InputError {
    /// The stream of bytes cannot be read on.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The sending thread is gone and has sent no summary.
    #[error("{} ended without its summary", stage.as_deref().unwrap_or("the stage before"))]
    Dropped {
        /// The stage that sent, if it said hello.
        stage: Option<String>,
    },
}

impl InputError {
    /// Whether the stream was cut, rather than being wrong in itself.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Dropped { .. } => true,
            Self::Read(error) => error.is_cut(),
        }
    }
}
