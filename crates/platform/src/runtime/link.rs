//! Links, from their two ends: where frames come from, and where they go. Between two threads they go through a bounded
//! channel that carries parcels of frames, between two processes as bytes through a pipe or file.

use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, SendError, Sender, TryRecvError, TrySendError, bounded};
use sizeleak_frame::{BATCH_ROWS, Batch, BatchLimit, Frame, FrameReader, FrameWriter, ReadError, Row};
use thiserror::Error;

use crate::runtime::Interrupt;

pub trait Input {
    /// Appends the available frames to `parcel`, and waits for the first if none is available. Calls `before_wait`
    /// before it waits. An error comes after all whole frames have been returned.
    fn receive(&mut self, parcel: &mut Vec<Frame>, before_wait: &mut dyn FnMut()) -> Result<Received, InputError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// At least one frame, waiting to be processed since then.
    Frames {
        /// When they were sent, or read from the pipe.
        since: Instant,
    },
    /// The stream ended with its summary.
    End,
    Interrupted,
}

#[derive(Debug, Error)]
pub enum InputError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The sending thread ended without a summary.
    #[error("{} ended without its summary", stage.as_deref().unwrap_or("the stage before"))]
    Dropped { stage: Option<String> },
}

impl InputError {
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Dropped { .. } => true,
            Self::Read(error) => error.is_cut(),
        }
    }
}

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

    pub(crate) fn check(&mut self, frame: &Frame) {
        match frame {
            Frame::Hello(hello) => self.writer = Some(hello.stage.clone()),
            Frame::Summary(_) => self.summary = true,
            _ => {}
        }
    }

    pub(crate) fn end(&self) -> Result<Received, InputError> {
        if self.summary { Ok(Received::End) } else { Err(InputError::Dropped { stage: self.writer.clone() }) }
    }
}

/// The receiver is gone: a broken pipe or a dropped channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the output is closed")]
pub struct Closed;

impl From<Closed> for io::Error {
    fn from(_: Closed) -> Self {
        ErrorKind::BrokenPipe.into()
    }
}

pub trait Emit: Send {
    /// Takes a frame; waits while the receiver is busy.
    fn emit(&mut self, frame: Frame) -> Result<(), Closed>;
}

/// Nothing is sent to it after an error: [`ErrorKind::BrokenPipe`] if just the receiver went away.
pub trait Output: Send {
    /// Takes frames in order and leaves the vector empty.
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()>;

    /// Sends what is buffered; called before waiting for input, so that live captures are not delayed.
    fn flush(&mut self) -> io::Result<()>;

    /// The time spent waiting for the receiver so far, which is not service time of the stage.
    fn waited(&self) -> Duration;
}

impl Emit for Vec<Frame> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.push(frame);
        Ok(())
    }
}

/// A parcel is sent once its batches hold this many bytes of data, however few rows they have.
const MAX_BYTES: usize = BatchLimit::InProcess.bytes();

/// A link that holds at most `depth` parcels (about 256 frames or rows each) before its sender waits.
pub fn channel(depth: usize) -> (ChannelOutput, ChannelInput) {
    let (sender, receiver) = bounded(depth.max(1));
    let output = ChannelOutput { sender, parcel: Vec::new(), rows: 0, bytes: 0, waited: Duration::ZERO };
    (output, ChannelInput { receiver, end_check: StreamEndCheck::default() })
}

struct Parcel {
    since: Instant,
    frames: Vec<Frame>,
}

/// The sending end. If it is dropped without a summary, the other end treats that like a process that died.
pub struct ChannelOutput {
    sender: Sender<Parcel>,
    parcel: Vec<Frame>,
    rows: usize,
    bytes: usize,
    waited: Duration,
}

impl Output for ChannelOutput {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        let holds_buffers = frames.iter_mut().fold(false, |any, frame| self.count(frame) | any);
        if self.parcel.is_empty() {
            mem::swap(&mut self.parcel, frames);
        } else {
            self.parcel.append(frames);
        }
        let is_large = self.rows >= BATCH_ROWS || self.bytes >= MAX_BYTES;
        if holds_buffers || is_large { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.parcel.is_empty() {
            return Ok(());
        }
        (self.rows, self.bytes) = (0, 0);
        let since = Instant::now();
        // The next parcel is likely of similar size.
        let next = Vec::with_capacity(self.parcel.len());
        match self.sender.try_send(Parcel { since, frames: mem::replace(&mut self.parcel, next) }) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Closed.into()),
            Err(TrySendError::Full(parcel)) => {
                let sent = self.sender.send(parcel);
                self.waited += since.elapsed();
                sent.map_err(|SendError(_)| Closed.into())
            }
        }
    }

    fn waited(&self) -> Duration {
        self.waited
    }
}

impl ChannelOutput {
    /// Counts a frame and detaches it from reader buffers if it holds little; returns whether it still shares some.
    #[inline]
    fn count(&mut self, frame: &mut Frame) -> bool {
        let (rows, bytes, holds_buffers) = match frame {
            Frame::Packets(batch) => detached(batch),
            Frame::Segments(batch) => detached(batch),
            _ => (1, 0, false),
        };
        self.rows += rows.max(1);
        self.bytes += bytes;
        holds_buffers
    }
}

/// Its rows and the bytes of its data, of which skipped packets have none; and whether it still shares buffers.
fn detached<R: Row>(batch: &mut Batch<R>) -> (usize, usize, bool) {
    batch.detach();
    (batch.len(), batch.data_bytes(), batch.shares_buffers())
}

pub struct ChannelInput {
    receiver: Receiver<Parcel>,
    end_check: StreamEndCheck,
}

impl Input for ChannelInput {
    fn receive(&mut self, parcel: &mut Vec<Frame>, before_wait: &mut dyn FnMut()) -> Result<Received, InputError> {
        let received = match self.receiver.try_recv() {
            Ok(received) => received,
            Err(TryRecvError::Disconnected) => return self.end_check.end(),
            Err(TryRecvError::Empty) => {
                before_wait();
                match self.receiver.recv() {
                    Ok(received) => received,
                    Err(RecvError) => return self.end_check.end(),
                }
            }
        };
        self.end_check.check_all(&received.frames);
        if parcel.is_empty() {
            *parcel = received.frames;
        } else {
            parcel.extend(received.frames);
        }
        Ok(Received::Frames { since: received.since })
    }
}

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
pub struct StreamOutput<W>(FrameWriter<TimedWriter<W>>);

impl<W: Write> StreamOutput<W> {
    pub fn new(output: W) -> Self {
        Self(FrameWriter::new(TimedWriter { output, waited: Duration::ZERO }))
    }
}

impl<W: Write + Send> Output for StreamOutput<W> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        let taken = self.0.write_all(frames);
        frames.clear();
        taken
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn waited(&self) -> Duration {
        self.0.output().waited
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

#[cfg(test)]
mod tests;
