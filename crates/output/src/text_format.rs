//! The trait of the text formats.

use std::io::{self, Write};

use sizeleak_frame::Frame;

/// Writes frames as text.
pub(crate) trait TextFormat: Send {
    /// Writes a selected frame.
    fn write(&mut self, frame: &Frame, output: &mut dyn Write) -> io::Result<()>;

    /// Observes a frame that is not selected but may describe others.
    fn observe(&mut self, _: &Frame) {}

    /// Writes the header once: before the first frame, or at the first flush of a stream without frames.
    fn write_header(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes what comes behind the last frame, once.
    fn write_footer(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
