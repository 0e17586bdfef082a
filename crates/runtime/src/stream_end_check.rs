//! What the receiving end of a link remembers of the stream, to tell how it ended.

use sizeleak_frame::Frame;

use crate::{InputError, Received};

/// Who wrote a stream, and whether its summary came.
#[derive(Debug, Default)]
pub(crate) struct StreamEndCheck {
    writer: Option<String>,
    summary: bool,
}

impl StreamEndCheck {
    /// Looks at frames of the stream, in their order: a hello is the first of all, and a summary the last.
    pub(crate) fn see_all(&mut self, frames: &[Frame]) {
        [frames.first(), frames.last()].into_iter().flatten().for_each(|frame| self.see(frame));
    }

    /// Looks at a frame of the stream.
    pub(crate) fn see(&mut self, frame: &Frame) {
        match frame {
            Frame::Hello(hello) => self.writer = Some(hello.stage.clone()),
            Frame::Summary(_) => self.summary = true,
            _ => {}
        }
    }

    /// How the stream ended, now that its writer is gone.
    pub(crate) fn end(&self) -> Result<Received, InputError> {
        if self.summary { Ok(Received::End) } else { Err(InputError::Dropped { stage: self.writer.clone() }) }
    }
}
