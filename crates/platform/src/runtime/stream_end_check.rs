//! Decides at the receiving end of a link how the stream ended.

use sizeleak_frame::Frame;

use crate::runtime::{InputError, Received};

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

    /// Checks one frame.
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
