//! The consumer of a stream of frames.

use std::io;

use crate::Frame;

/// Takes the frames of a stream, `hello` and `summary` included.
pub trait FrameSink: Send {
    /// Takes a batch of frames and leaves the vector empty.
    ///
    /// # Errors
    /// I/O errors of the output. [`io::ErrorKind::BrokenPipe`] ends a run quietly, any other error fails it.
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()>;

    /// Flushes buffered output: the input has paused.
    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(Frame) -> io::Result<()> + Send> FrameSink for F {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.drain(..).try_for_each(self)
    }
}
