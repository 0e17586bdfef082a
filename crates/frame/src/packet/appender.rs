//! Packets that follow each other, on their way into a batch.

use std::sync::Arc;

use super::{Packet, Packets, Row, Run};
use crate::store::{OWN, offset_in};

/// Adds packets to a batch that follow each other.
#[derive(Debug)]
pub struct PacketAppender<'a> {
    batch: &'a mut Packets,
    /// What they share, unless they are copied.
    buffer: Option<&'a Arc<Vec<u8>>>,
    /// The run that the last one was put into.
    run: Run,
    /// The number of the last one.
    number: u64,
}

impl<'a> PacketAppender<'a> {
    pub(super) fn new(batch: &'a mut Packets, capture: u32, number: u64, buffer: Option<&'a Arc<Vec<u8>>>) -> Self {
        let run = Run { from: 0, time_ns: 0, number: 0, buffer: OWN, capture, link_type: 0 };
        Self { batch, buffer, run, number }
    }

    /// Adds the next one; see [`Packet`].
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions a packet")]
    pub fn push(&mut self, time_ns: i64, link_type: u16, original_length: u32, data: &[u8]) {
        let after_ns = time_ns.checked_sub(self.run.time_ns).and_then(|after_ns| u32::try_from(after_ns).ok());
        self.number += 1;
        if self.run.buffer != OWN
            && let Some(after_ns) = after_ns
            && link_type == self.run.link_type
            && let Some(start) = self.buffer.and_then(|buffer| offset_in(buffer, data))
        {
            let length = data.len() as u32;
            self.batch.data_bytes += data.len();
            self.batch.rows.push(Row { after_ns, start, length, original_length });
        } else {
            self.push_first(time_ns, link_type, original_length, data);
        }
    }

    /// Adds one that may not have everything in common with the one before.
    #[inline(never)]
    fn push_first(&mut self, time_ns: i64, link_type: u16, original_length: u32, data: &[u8]) {
        let (capture, number) = (self.run.capture, self.number);
        let packet = Packet { time_ns, link_type, original_length, data, capture, number };
        match self.buffer {
            Some(buffer) => self.batch.push_shared(packet, buffer),
            None => self.batch.push(packet),
        }
        if let Some(run) = self.batch.runs.last() {
            self.run = *run;
        }
    }

    /// The number of the last one.
    pub fn number(&self) -> u64 {
        self.number
    }
}
