//! Takes packets straight from a read buffer: those in a batch share it, and those passed over are only counted.
//!
//! Without this file and the call of [`PacketBatcher::fill`], packets are pushed one by one, with the same result.

use std::sync::Arc;

use sizeleak_frame::{Packet, SkippedPackets};
use sizeleak_packet::AddressPrefilter;

use super::{BatchCapacity, PacketBatcher};
use crate::merge::OpenCapture;
use crate::window::{CapturedPacket, PacketVisitor, Visited};

impl PacketBatcher {
    /// Takes the packets before `before_ns` that are in the buffer of `capture`, until the batch is due.
    pub(super) fn fill(&mut self, capture: &mut OpenCapture, before_ns: i64) {
        capture.visit_buffered(|capture, number| BatchFiller { batcher: self, before_ns, capture, number });
    }
}

struct BatchFiller<'a> {
    batcher: &'a mut PacketBatcher,
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
        let (first, before_ns, capture) = (self.number, self.before_ns, self.capture);
        let mut rest = bytes;
        while !self.batcher.is_due()
            && let Some((packet, behind)) = parse(rest).filter(|(packet, _)| packet.time_ns < before_ns)
        {
            (rest, self.number) = (behind, self.number + 1);
            let (CapturedPacket { time_ns, link_type, original_length, data }, number) = (packet, self.number);
            let packet = Packet { time_ns, link_type, original_length, data, capture, number };
            if !self.batcher.push(packet, buffer) {
                rest = self.pass_over(rest, parse);
            }
        }
        Visited { packets: self.number - first, bytes: bytes.len() - rest.len(), last_ns: self.batcher.last_ns() }
    }
}

impl BatchFiller<'_> {
    /// Passes over packets up to the first to be added, but at most as many as the batch has room for.
    fn pass_over<'a>(
        &mut self,
        bytes: &'a [u8],
        parse: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> + Copy,
    ) -> &'a [u8] {
        let batcher = &mut *self.batcher;
        let Some(prefilter) = batcher.selection.prefilter() else { return bytes };
        let most = if batcher.stands_for_passed_over() {
            let BatchCapacity { rows, bytes, .. } = batcher.capacity;
            [rows.saturating_sub(batcher.rows), bytes.saturating_sub(batcher.bytes)].map(|room| room as u64)
        } else {
            [u64::MAX; 2]
        };
        let (rest, skipped, snaplen_cut) = skip_foreign(prefilter, bytes, most, self.before_ns, parse);
        self.number += skipped.packets;
        batcher.counts.packets += skipped.packets;
        batcher.counts.snaplen_cut += snaplen_cut;
        batcher.pass_over(skipped);
        rest
    }
}

/// Skips packets before `before_ns` that `prefilter` excludes, until they are as many or have as many bytes as `most`. For
/// most packets of an archive, nothing else is done. Returns the bytes behind them, and how many the snaplen has cut.
///
/// A function of its own, so that its counters stay in registers.
#[inline(never)]
fn skip_foreign<'a>(
    prefilter: &AddressPrefilter,
    mut bytes: &'a [u8],
    [most_packets, most_bytes]: [u64; 2],
    before_ns: i64,
    parse: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])>,
) -> (&'a [u8], SkippedPackets, u64) {
    let (mut skipped, mut snaplen_cut) = (SkippedPackets::default(), 0);
    while skipped.packets < most_packets
        && skipped.bytes < most_bytes
        && let Some((packet, behind)) = parse(bytes)
        && packet.time_ns < before_ns
        && prefilter.rejects(packet.link_type, packet.data)
    {
        bytes = behind;
        skipped.packets += 1;
        skipped.bytes += packet.data.len() as u64;
        skipped.last_ns = Some(packet.time_ns);
        snaplen_cut += u64::from(packet.is_cut());
    }
    (bytes, skipped, snaplen_cut)
}

#[cfg(test)]
mod tests;
