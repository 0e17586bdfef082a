//! A link between two threads: a bounded channel that carries frames in parcels.

use std::mem;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, SendError, Sender, TryRecvError, TrySendError, bounded};
use sizeleak_frame::{BATCH_ROWS, Frame};

use crate::witness::Witness;
use crate::{Closed, Emit, Input, InputError, Output, Received};

/// A link that holds at most `depth` parcels (about 256 frames or rows each) before its sender waits.
pub fn channel(depth: usize) -> (ChannelOutput, ChannelInput) {
    let (sender, receiver) = bounded(depth.max(1));
    let output = ChannelOutput { sender, parcel: Vec::new(), rows: 0, waited: Duration::ZERO };
    (output, ChannelInput { receiver, witness: Witness::default() })
}

struct Parcel {
    since: Instant,
    frames: Vec<Frame>,
}

/// The sending end. Dropping it without a summary looks, at the other end, like a process that died.
pub struct ChannelOutput {
    sender: Sender<Parcel>,
    parcel: Vec<Frame>,
    rows: u64,
    waited: Duration,
}

impl Emit for ChannelOutput {
    fn emit(&mut self, mut frame: Frame) -> Result<(), Closed> {
        let holds_buffers = match &mut frame {
            Frame::Segments(batch) => {
                batch.detach();
                batch.shares_buffers()
            }
            _ => false,
        };
        self.rows += frame.rows();
        self.parcel.push(frame);
        if holds_buffers || self.rows >= BATCH_ROWS as u64 { self.flush() } else { Ok(()) }
    }
}

impl Output for ChannelOutput {
    fn flush(&mut self) -> Result<(), Closed> {
        if self.parcel.is_empty() {
            return Ok(());
        }
        self.rows = 0;
        let since = Instant::now();
        // The next one will be much like it.
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

/// The receiving end.
pub struct ChannelInput {
    receiver: Receiver<Parcel>,
    witness: Witness,
}

impl Input for ChannelInput {
    fn receive(&mut self, parcel: &mut Vec<Frame>, before_wait: &mut dyn FnMut()) -> Result<Received, InputError> {
        let received = match self.receiver.try_recv() {
            Ok(received) => received,
            Err(TryRecvError::Disconnected) => return self.witness.end(),
            Err(TryRecvError::Empty) => {
                before_wait();
                match self.receiver.recv() {
                    Ok(received) => received,
                    Err(RecvError) => return self.witness.end(),
                }
            }
        };
        received.frames.iter().for_each(|frame| self.witness.see(frame));
        if parcel.is_empty() {
            *parcel = received.frames;
        } else {
            parcel.extend(received.frames);
        }
        Ok(Received::Frames { since: received.since })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::{BATCH_BYTES, Direction, Packet, Packets, Segment, Segments};

    use super::*;

    /// A batch of one segment of all that is in a reader's buffer.
    fn segments(buffer: &Arc<Vec<u8>>) -> Segments {
        let (mut packets, mut segments, length) = (Packets::new(), Segments::new(), buffer.len() as u32);
        let packet = Packet { time_ns: 0, link_type: 1, original_length: length, data: buffer, capture: 0, number: 1 };
        packets.push_shared(packet, buffer);
        let (direction, flags) = (Direction::ToGateway, Segment::ACK);
        let segment = Segment { time_ns: 0, flow: 1, direction, sequence: 0, flags, length, payload: buffer };
        segments.push_from(segment, &packets);
        segments
    }

    #[test]
    fn what_waits_to_be_sent_holds_no_buffer() {
        let (mut output, mut input) = channel(1);
        let [few, many] = [100, BATCH_BYTES].map(|bytes| Arc::new(vec![7; bytes]));
        let (first, second) = (segments(&few), segments(&many));
        output.emit(first.clone().into()).unwrap();
        drop(first);
        assert_eq!((Arc::strong_count(&few), output.parcel.len()), (1, 1), "copied, and waits for more");
        output.emit(second.clone().into()).unwrap();
        assert!(output.parcel.is_empty(), "sent at once");
        let mut parcel = Vec::new();
        input.receive(&mut parcel, &mut || {}).unwrap();
        assert!(parcel == [segments(&few).into(), second.into()]);
        drop(parcel);
        assert_eq!(Arc::strong_count(&many), 1);
    }
}
