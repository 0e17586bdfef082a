//! Where the frames of a pipeline's last stage go.

use std::io;

use sizeleak_frame::Frame;

/// Takes the frames of a pipeline's last stage, `hello` and `summary` included, on the thread that runs the pipeline.
pub trait Sink {
    /// Takes frames that came together, and leaves none of them.
    ///
    /// # Errors
    /// The output's. One of kind [`io::ErrorKind::BrokenPipe`] ends the run quietly, any other is the run's error.
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()>;

    /// Hands on what has gathered, since no frame is there at the moment.
    ///
    /// # Errors
    /// As [`Sink::take`].
    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(Frame) -> io::Result<()>> Sink for F {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.drain(..).try_for_each(self)
    }
}
