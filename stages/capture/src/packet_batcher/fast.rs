//! Takes packets straight from a read buffer: those in a batch share it, and those passed over are only counted.
//!
//! Without this file and the call of [`PacketBatcher::fill`], packets are pushed one by one, with the same result.

use std::sync::Arc;

use sizeleak_frame::{Packet, SkippedPackets};
use sizeleak_packet::AddressPrefilter;

use super::PacketBatcher;
use crate::merge::OpenCapture;
use crate::window::{CapturedPacket, PacketVisitor, Visited};

/// The fewest bytes that a packet takes in a capture besides its data.
const MIN_OVERHEAD: usize = 16;

impl PacketBatcher {
    /// Takes the packets before `before_ns` that are in the buffer of `capture`, until the batch is due.
    pub(super) fn fill(&mut self, capture: &mut OpenCapture, before_ns: i64) {
        capture.visit_buffered(|capture, number| BatchFiller { batcher: self, before_ns, capture, number });
    }
}

struct BatchFiller<'a> {
    batcher: &'a mut PacketBatcher,
    /// Packets at this time or later are not taken.
    before_ns: i64,
    capture: u32,
    number: u64,
}

impl PacketVisitor for BatchFiller<'_> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "one copy for each format")]
    fn visit<'a>(
        &mut self,
        bytes: &'a [u8],
        buffer: &Arc<Vec<u8>>,
        parse: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> + Copy,
    ) -> Visited {
        let buffer = Some(buffer).filter(|_| !self.batcher.copies_data);
        let first = self.number;
        let mut rest = bytes;
        while !self.batcher.is_due() {
            let length = rest.len();
            rest = self.add(rest, buffer, parse);
            if self.batcher.is_filtering && !self.batcher.is_full() {
                rest = self.pass_over(rest, parse);
            }
            if rest.len() == length {
                break;
            }
        }
        Visited { packets: self.number - first, bytes: bytes.len() - rest.len(), last_ns: self.batcher.last_ns() }
    }
}

impl BatchFiller<'_> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "its counters stay in registers")]
    fn add<'a>(
        &mut self,
        bytes: &'a [u8],
        buffer: Option<&Arc<Vec<u8>>>,
        parse: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])>,
    ) -> &'a [u8] {
        let (before_ns, capture, number) = (self.before_ns, self.capture, self.number);
        let batcher = &mut *self.batcher;
        batcher.count_passed_over();
        let (mut rest, mut last_ns, mut snaplen_cut) = (bytes, None, 0);
        let (mut rows, mut data_bytes) = (batcher.rows, batcher.bytes);
        let prefilter = batcher.selection.prefilter().filter(|_| batcher.is_filtering);
        while !batcher.capacity.is_reached(rows, data_bytes)
            && let Some((packet, behind)) = parse(rest)
            && packet.time_ns < before_ns
            && !prefilter.is_some_and(|prefilter| prefilter.rejects(packet.link_type, packet.data))
        {
            (rest, last_ns) = (behind, Some(packet.time_ns));
            rows += batcher.capacity.rows_per_packet;
            data_bytes += packet.data.len();
            snaplen_cut += u64::from(packet.is_cut());
            self.number += 1;
            let CapturedPacket { time_ns, link_type, original_length, data } = packet;
            let packet = Packet { time_ns, link_type, original_length, data, capture, number: self.number };
            match buffer {
                Some(buffer) => batcher.batch.push_shared(packet, buffer),
                None => batcher.batch.push(packet),
            }
        }
        batcher.counts.packets += self.number - number;
        (batcher.rows, batcher.bytes, batcher.last_row_ns) = (rows, data_bytes, last_ns.or(batcher.last_row_ns));
        batcher.counts.snaplen_cut += snaplen_cut;
        rest
    }

    /// Passes over packets up to the first to be added, but at most as many as the batch has room for.
    fn pass_over<'a>(
        &mut self,
        bytes: &'a [u8],
        parse: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> + Copy,
    ) -> &'a [u8] {
        let batcher = &mut *self.batcher;
        let mut rest = bytes;
        while let Some(prefilter) = batcher.selection.prefilter() {
            // This many bytes cannot fill the batch, whatever packets they hold; only the last packet may be longer.
            let rows = batcher.capacity.rows.saturating_sub(batcher.rows);
            let bytes = batcher.capacity.bytes.saturating_sub(batcher.bytes);
            let room = if batcher.stands_for_passed_over() { bytes.min(rows * MIN_OVERHEAD) } else { rest.len() };
            let stop = rest.len().saturating_sub(room);
            let skipped = skip_foreign(prefilter, rest, stop, self.before_ns, parse);
            rest = skipped.rest;
            self.number += skipped.packets as u64;
            batcher.counts.packets += skipped.packets as u64;
            batcher.counts.snaplen_cut += skipped.snaplen_cut as u64;
            batcher.pass_over(SkippedPackets {
                packets: skipped.packets as u64,
                bytes: skipped.data_bytes as u64,
                last_ns: (skipped.packets > 0).then_some(skipped.last_ns),
            });
            if stop == 0 || rest.len() > stop || batcher.is_full() {
                break;
            }
        }
        rest
    }
}

struct Skipped<'a> {
    rest: &'a [u8],
    packets: usize,
    data_bytes: usize,
    snaplen_cut: usize,
    last_ns: i64,
}

/// Skips packets before `before_ns` that `prefilter` excludes, until at most `stop` bytes are left. For most packets of
/// an archive, nothing else is done.
///
/// A function of its own, so that its counters stay in registers.
#[inline(never)]
fn skip_foreign<'a>(
    prefilter: &AddressPrefilter,
    bytes: &'a [u8],
    stop: usize,
    before_ns: i64,
    parse: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])>,
) -> Skipped<'a> {
    let mut skipped = Skipped { rest: bytes, packets: 0, data_bytes: 0, snaplen_cut: 0, last_ns: 0 };
    while skipped.rest.len() > stop
        && let Some((packet, behind)) = parse(skipped.rest)
        && packet.time_ns < before_ns
        && prefilter.rejects(packet.link_type, packet.data)
    {
        skipped.rest = behind;
        skipped.packets += 1;
        skipped.data_bytes += packet.data.len();
        skipped.snaplen_cut += usize::from(packet.is_cut());
        skipped.last_ns = packet.time_ns;
    }
    skipped
}

#[cfg(test)]
mod tests;
