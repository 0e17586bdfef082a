//! A link between two processes: frames as bytes through a pipe or file.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sizeleak_frame::{BATCH_ROWS, Frame, FrameReader, FrameWriter, ReadError, WriteError};

use crate::{Closed, Emit, Input, InputError, Interrupt, Output, Received};

/// What a pipe may hold, in bytes: as much as Linux gives a program without privileges.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;

/// Has a pipe hold more than it does by default, so that its two ends wait for each other less often. Where the system does
/// not let it, or it is no pipe, all stays as it is.
pub fn widen_pipe(pipe: &impl AsFd) {
    #[cfg(target_os = "linux")]
    let _widened = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

/// Frames read from bytes.
#[derive(Debug)]
pub struct StreamInput<R> {
    reader: FrameReader<R>,
    /// When the bytes now buffered were read. What they waited in the pipe before cannot be seen from here.
    since: Instant,
    /// An error found behind frames that are still to be given.
    held: Option<ReadError>,
    /// Set where the user's wish to stop ends the input; a pipe is drained instead, since its writer stops itself.
    interrupt: Option<Interrupt>,
}

impl<R: Read> StreamInput<R> {
    /// Frames from a pipe.
    pub fn new(input: R) -> Self {
        Self { reader: FrameReader::new(input), since: Instant::now(), held: None, interrupt: None }
    }

    /// The same, ending early when `interrupt` is set: for a file, which no process upstream would stop.
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
            // A pipe that ends since the user asked to stop is not cut.
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

/// Frames written as bytes.
#[derive(Debug)]
pub struct StreamOutput<W> {
    writer: FrameWriter<Timed<W>>,
    waited: Duration,
    failure: Option<WriteError>,
    closed: bool,
}

impl<W: Write> StreamOutput<W> {
    /// Frames to `output`, which needs no buffer of its own.
    pub fn new(output: W) -> Self {
        Self {
            writer: FrameWriter::new(Timed { output, waited: Duration::ZERO }),
            waited: Duration::ZERO,
            failure: None,
            closed: false,
        }
    }

    fn settle(&mut self, written: Result<(), WriteError>) -> Result<(), Closed> {
        self.waited = self.writer.output().waited;
        match written {
            Ok(()) => Ok(()),
            Err(WriteError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Err(Closed)
            }
            Err(error) => {
                self.closed = true;
                self.failure = Some(error);
                Err(Closed)
            }
        }
    }
}

impl<W: Write + Send> Emit for StreamOutput<W> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if self.closed {
            return Err(Closed);
        }
        let written = self.writer.write(&frame);
        self.settle(written)
    }
}

impl<W: Write + Send> Output for StreamOutput<W> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        let written = if self.closed { Ok(()) } else { self.writer.write_all(frames) };
        Frame::clear(frames);
        if self.closed { Err(Closed) } else { self.settle(written) }
    }

    fn flush(&mut self) -> Result<(), Closed> {
        if self.closed {
            return Err(Closed);
        }
        let written = self.writer.flush();
        self.settle(written)
    }

    fn waited(&self) -> Duration {
        self.waited
    }

    fn failure(&mut self) -> Option<WriteError> {
        self.failure.take()
    }
}

/// Counts the time writing takes, which is waiting for the reader.
#[derive(Debug)]
struct Timed<W> {
    output: W,
    waited: Duration,
}

impl<W: Write> Write for Timed<W> {
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
