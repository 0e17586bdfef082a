//! A link between two threads: a bounded channel that carries parcels of frames.

use std::mem;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, SendError, Sender, TryRecvError, TrySendError, bounded};
use sizeleak_frame::{BATCH_ROWS, BatchLimit, Frame};

use crate::runtime::link::StreamEndCheck;
use crate::runtime::{Closed, Input, InputError, Output, Received};

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
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        let holds_buffers = frames.iter_mut().fold(false, |any, frame| self.count(frame) | any);
        if self.parcel.is_empty() {
            mem::swap(&mut self.parcel, frames);
        } else {
            self.parcel.append(frames);
        }
        let is_large = self.rows >= BATCH_ROWS || self.bytes >= MAX_BYTES;
        if holds_buffers || is_large { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Closed> {
        if self.parcel.is_empty() {
            return Ok(());
        }
        (self.rows, self.bytes) = (0, 0);
        let since = Instant::now();
        // The next parcel is likely of similar size.
        let next = Vec::with_capacity(self.parcel.len());
        match self.sender.try_send(Parcel { since, frames: mem::replace(&mut self.parcel, next) }) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Closed),
            Err(TrySendError::Full(parcel)) => {
                let sent = self.sender.send(parcel);
                self.waited += since.elapsed();
                sent.map_err(|SendError(_)| Closed)
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
            Frame::Packets(batch) => {
                batch.detach();
                // Skipped packets take no room.
                (batch.len(), batch.data_bytes(), batch.shares_buffers())
            }
            Frame::Segments(batch) => {
                batch.detach();
                (batch.len(), batch.data_bytes(), batch.shares_buffers())
            }
            _ => (1, 0, false),
        };
        self.rows += rows.max(1);
        self.bytes += bytes;
        holds_buffers
    }
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

#[cfg(test)]
mod tests;
