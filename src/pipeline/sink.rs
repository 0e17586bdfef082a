//! Where the frames of a pipeline's last stage go.

use std::io;

use sizeleak_frame::Frame;

/// Takes the frames of a pipeline's last stage, `hello` and `summary` included, on the thread that runs the pipeline.
pub trait Sink {
    /// Takes a frame.
    ///
    /// # Errors
    /// The output's. One of kind [`io::ErrorKind::BrokenPipe`] ends the run quietly, any other is the run's error.
    fn take(&mut self, frame: Frame) -> io::Result<()>;

    /// Takes frames that came together, and leaves none of them.
    ///
    /// # Errors
    /// As [`Sink::take`].
    fn take_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.drain(..).try_for_each(|frame| self.take(frame))
    }

    /// Hands on what has gathered, since no frame is there at the moment.
    ///
    /// # Errors
    /// As [`Sink::take`].
    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(Frame) -> io::Result<()>> Sink for F {
    fn take(&mut self, frame: Frame) -> io::Result<()> {
        self(frame)
    }
}
