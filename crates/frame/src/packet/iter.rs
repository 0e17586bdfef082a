//! The packets of a batch, on their way out.

use std::slice;

use super::{Packet, Packets, Row, Run};
use crate::store::OWN;

/// The packets of a batch, one after the other.
#[derive(Debug, Clone)]
pub struct PacketIter<'a> {
    batch: &'a Packets,
    rows: slice::Iter<'a, Row>,
    /// The runs behind the present one.
    runs: slice::Iter<'a, Run>,
    run: Run,
    /// How many of its packets are left.
    left: usize,
    /// The buffer their data are in.
    data: &'a [u8],
}

impl<'a> PacketIter<'a> {
    pub(super) fn new(batch: &'a Packets) -> Self {
        // None has come yet.
        let run = Run { from: 0, time_ns: 0, number: 0, buffer: OWN, capture: 0, link_type: 0 };
        Self { batch, rows: batch.rows.iter(), runs: batch.runs.iter(), run, left: 0, data: &[] }
    }

    /// The next packet, which stays the next one until it is [advanced](Self::advance).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "nobody needs all of it")]
    pub fn peek(&mut self) -> Option<Packet<'a>> {
        let row = self.rows.as_slice().first()?;
        if self.left == 0 {
            self.turn();
        }
        let Run { time_ns, number, buffer, capture, link_type, .. } = self.run;
        Some(Packet {
            time_ns: time_ns + i64::from(row.after_ns),
            link_type,
            original_length: row.original_length,
            data: row.place(buffer).of(self.data),
            capture,
            // Of the first packet behind the run, less those that are left.
            number: number.wrapping_sub(self.left as u64),
        })
    }

    /// Goes on behind the next packet.
    #[inline]
    pub fn advance(&mut self) {
        if self.rows.next().is_some() {
            if self.left == 0 {
                self.turn();
            }
            self.left -= 1;
        }
    }

    /// The data of the packet that comes so many behind the next one. None are told of one that has not all in common with
    /// those seen last.
    #[inline]
    pub fn data_ahead(&self, packets: usize) -> &'a [u8] {
        let row = self.rows.as_slice().get(packets).filter(|_| packets < self.left);
        row.map_or(&[], |row| row.place(self.run.buffer).of(self.data))
    }

    /// Goes on to the next run.
    #[cold]
    fn turn(&mut self) {
        let Some(run) = self.runs.next() else { return };
        let end = self.runs.as_slice().first().map_or(self.batch.rows.len(), |next| next.from);
        self.left = end - run.from;
        self.run = Run { number: run.number.wrapping_add(self.left as u64), ..*run };
        self.data = self.batch.store.buffer(run.buffer);
    }
}

impl<'a> Iterator for PacketIter<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        let packet = self.peek()?;
        self.advance();
        Some(packet)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for PacketIter<'_> {}

impl<'a> IntoIterator for &'a Packets {
    type Item = Packet<'a>;
    type IntoIter = PacketIter<'a>;

    fn into_iter(self) -> PacketIter<'a> {
        self.iter()
    }
}
