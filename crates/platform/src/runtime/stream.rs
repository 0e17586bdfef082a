//! A link between two processes: frames as bytes through a pipe or file.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sizeleak_frame::{BATCH_ROWS, Frame, FrameReader, FrameWriter, ReadError, WriteError};

use crate::runtime::{Closed, Input, InputError, Interrupt, Output, Received};

/// The size of a pipe in bytes: the most Linux allows without privileges.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;

/// Enlarges the buffer of a pipe, so that its two ends wait for each other less often. Does nothing if the system does
/// not allow it, or if it is not a pipe.
pub fn widen_pipe(pipe: &impl AsFd) {
    #[cfg(target_os = "linux")]
    let _widened = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

#[derive(Debug)]
pub struct StreamInput<R> {
    reader: FrameReader<R>,
    /// When the buffered bytes were read; their time in the pipe is unknown.
    since: Instant,
    /// An error after frames that have not been returned yet.
    held: Option<ReadError>,
    /// Ends the input when set. A pipe is drained instead: its writer stops by itself.
    interrupt: Option<Interrupt>,
}

impl<R: Read> StreamInput<R> {
    pub fn new(input: R) -> Self {
        Self { reader: FrameReader::new(input), since: Instant::now(), held: None, interrupt: None }
    }

    /// The same, ending early when `interrupt` is set: for a file, which no writer ends.
    #[must_use]
    pub fn until(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    fn take_buffered(&mut self, parcel: &mut Vec<Frame>) -> Result<(), ReadError> {
        let mut rows = 0;
        while rows < BATCH_ROWS as u64 {
            let Some(frame) = self.reader.buffered_frame()? else { break };
            rows += frame.rows();
            parcel.push(frame);
        }
        Ok(())
    }
}

impl<R: Read> Input for StreamInput<R> {
    fn receive(&mut self, parcel: &mut Vec<Frame>, before_wait: &mut dyn FnMut()) -> Result<Received, InputError> {
        if let Some(error) = self.held.take() {
            return Err(error.into());
        }
        loop {
            if self.interrupt.as_ref().is_some_and(Interrupt::is_set) {
                return Ok(Received::Interrupted);
            }
            let taken = self.take_buffered(parcel);
            match (taken, parcel.is_empty()) {
                (Err(error), true) => return Err(error.into()),
                (Err(error), false) => self.held = Some(error),
                (Ok(()), _) => {}
            }
            if !parcel.is_empty() {
                return Ok(Received::Frames { since: self.since });
            }
            before_wait();
            let filled = self.reader.fill();
            // A pipe that ends because of the interrupt is not cut.
            if self.interrupt.as_ref().is_some_and(Interrupt::is_set) {
                return Ok(Received::Interrupted);
            }
            if !filled? {
                return Ok(Received::End);
            }
            self.since = Instant::now();
        }
    }
}

#[derive(Debug)]
pub struct StreamOutput<W> {
    writer: FrameWriter<TimedWriter<W>>,
    waited: Duration,
    failure: Option<WriteError>,
    closed: bool,
}

impl<W: Write> StreamOutput<W> {
    pub fn new(output: W) -> Self {
        Self {
            writer: FrameWriter::new(TimedWriter { output, waited: Duration::ZERO }),
            waited: Duration::ZERO,
            failure: None,
            closed: false,
        }
    }

    /// Writes, unless it is closed, and keeps why that failed.
    fn write(
        &mut self,
        write: impl FnOnce(&mut FrameWriter<TimedWriter<W>>) -> Result<(), WriteError>,
    ) -> Result<(), Closed> {
        if self.closed {
            return Err(Closed);
        }
        let written = write(&mut self.writer);
        self.waited = self.writer.output().waited;
        written.map_err(|error| {
            self.closed = true;
            let is_unread = matches!(&error, WriteError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe);
            self.failure = (!is_unread).then_some(error);
            Closed
        })
    }
}

impl<W: Write + Send> Output for StreamOutput<W> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        let taken = self.write(|writer| writer.write_all(frames));
        frames.clear();
        taken
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.write(FrameWriter::flush)
    }

    fn waited(&self) -> Duration {
        self.waited
    }

    fn failure(&mut self) -> Option<WriteError> {
        self.failure.take()
    }
}

/// Measures the time of writing, which is waiting for the reader.
#[derive(Debug)]
struct TimedWriter<W> {
    output: W,
    waited: Duration,
}

impl<W: Write> Write for TimedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let start = Instant::now();
        let written = self.output.write(bytes);
        self.waited += start.elapsed();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
