//! Writes frames to a stream of bytes, or hands them to whoever takes them.

use std::io::{self, Write};

use thiserror::Error;

use crate::limit::{BATCH_BYTES, MAX_VALUE_BYTES};
use crate::{Frame, codec};

/// Writes frames through a buffer. Call [`FrameWriter::flush`] before waiting for input.
#[derive(Debug)]
pub struct FrameWriter<W> {
    output: W,
    buffer: Vec<u8>,
}

#[derive(Debug, Error)]
pub enum WriteError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "a frame of kind `{kind}` would take {bytes} bytes, more than the {MAX_VALUE_BYTES} a frame may have: list \
         fewer candidates"
    )]
    TooLarge { kind: String, bytes: usize },
    #[error("a frame of kind `{kind}` cannot be encoded: {fault}")]
    Encode { kind: String, fault: String },
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io(error) => error,
            other => Self::other(other),
        }
    }
}

impl<W: Write> FrameWriter<W> {
    pub fn new(output: W) -> Self {
        Self { output, buffer: Vec::with_capacity(2 * BATCH_BYTES) }
    }

    /// Adds a frame; it reaches the output when the buffer is full or at the next [`FrameWriter::flush`].
    ///
    /// # Errors
    /// [`WriteError`]; the stream still ends after a whole frame.
    #[inline]
    pub fn write(&mut self, frame: &Frame) -> Result<(), WriteError> {
        let start = self.buffer.len();
        let encoded = codec::encode(frame, &mut self.buffer);
        let bytes = self.buffer.len() - start;
        if encoded.is_err() || bytes > MAX_VALUE_BYTES {
            self.buffer.truncate(start);
        }
        let kind = || frame.kind().to_owned();
        encoded.map_err(|error| WriteError::Encode { kind: kind(), fault: error.to_string() })?;
        if bytes > MAX_VALUE_BYTES {
            return Err(WriteError::TooLarge { kind: kind(), bytes });
        }
        if self.buffer.len() >= BATCH_BYTES {
            self.write_buffer()?;
        }
        Ok(())
    }

    /// Adds frames in order.
    ///
    /// # Errors
    /// [`WriteError`]; the frames before are written, and the stream still ends after a whole frame.
    pub fn write_all(&mut self, frames: &[Frame]) -> Result<(), WriteError> {
        frames.iter().try_for_each(|frame| self.write(frame))
    }

    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.write_buffer()?;
        Ok(self.output.flush()?)
    }

    pub fn output(&self) -> &W {
        &self.output
    }

    /// The output, after everything has been written.
    pub fn into_output(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.output)
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let written = self.output.write_all(&self.buffer);
        self.buffer.clear();
        written
    }
}

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
