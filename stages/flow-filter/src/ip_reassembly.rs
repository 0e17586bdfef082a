//! Reassembles IP packets from their fragments, in bounded memory.
//!
//! By hand: etherparse's pool is unbounded, and takes a fragment that the snaplen has cut for complete. As in TCP, the
//! first bytes for a position win. A packet is complete once each of its bytes was on the wire; its data ends where the
//! snaplen first cut it.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use foldhash::quality::RandomState;
use sizeleak_packet::{Fragment, IpPacket};

/// The most incomplete packets at a time.
const MOST_PACKETS: usize = 1024;

/// The most memory they may take together, in bytes.
const MOST_BYTES: usize = 4 << 20;

/// How long a packet's fragments are awaited, in nanoseconds of capture time: 30 s, as on most hosts.
const TIMEOUT_NS: u64 = 30_000_000_000;

/// Memory of a piece besides its data, in bytes.
const PIECE_BYTES: usize = 64;

/// The longest packet there can be (RFC 791): 16 bits of length.
const LONGEST_PACKET: u32 = 65_535;

/// What the fragments of a packet have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PacketKey {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    protocol: u8,
}

/// The payload of a reassembled packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReassembledPayload {
    /// Bytes on the wire.
    pub(crate) length: u32,
    /// What was captured of its beginning.
    pub(crate) data: Vec<u8>,
}

/// A packet that was given up, because not all of its fragments came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IncompletePacket {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Bytes that came.
    pub(crate) bytes: u64,
}

/// A fragment that carries nothing, or reaches beyond the end of the longest packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidFragment;

/// Packets of which fragments are still missing.
#[derive(Debug, Default)]
pub(crate) struct IpReassembly {
    /// By the order in which they began.
    partial: BTreeMap<u64, PartialPacket>,
    numbers: HashMap<PacketKey, u64, RandomState>,
    /// The number of the packet that began last.
    last_number: u64,
    /// When the last fragment was captured. One odd time shows no timeout: two in a row do.
    last_ns: Option<i64>,
    bytes: usize,
}

#[derive(Debug)]
struct PartialPacket {
    key: PacketKey,
    since_ns: i64,
    /// Where the last fragment ends, once it came.
    end: Option<u32>,
    /// What came, by its offset; pieces do not overlap.
    pieces: BTreeMap<u32, Piece>,
    /// Bytes of the packet that came.
    received: u32,
    /// Bytes of memory, roughly.
    bytes: usize,
}

#[derive(Debug)]
struct Piece {
    length: u32,
    data: Vec<u8>,
}

impl IpReassembly {
    /// Adds a fragment and returns the payload that it completes, if any. Packets that are given up meanwhile are
    /// appended to `incomplete`.
    ///
    /// # Errors
    /// [`InvalidFragment`], which is not added.
    pub(crate) fn add(
        &mut self,
        time_ns: i64,
        packet: &IpPacket<'_>,
        fragment: Fragment,
        incomplete: &mut Vec<IncompletePacket>,
    ) -> Result<Option<ReassembledPayload>, InvalidFragment> {
        let times = [time_ns, self.last_ns.replace(time_ns).unwrap_or(time_ns)];
        let is_over = |since_ns: i64| times.iter().all(|time_ns| time_ns.abs_diff(since_ns) > TIMEOUT_NS);
        while let Some((_, oldest)) = self.partial.first_key_value()
            && is_over(oldest.since_ns)
        {
            self.give_up_oldest(incomplete);
        }
        let payload = packet.payload.bytes;
        let (start, end) = (fragment.offset, fragment.offset.saturating_add(payload.length()));
        if end > LONGEST_PACKET || start == end {
            return Err(InvalidFragment);
        }
        let key = PacketKey {
            source: packet.source,
            destination: packet.destination,
            identification: fragment.identification,
            protocol: packet.payload.protocol,
        };
        // An identification is used again after a while: what is left of the packet before is not part of this one.
        let earlier = self.numbers.get(&key).copied();
        if let Some((number, partial)) = earlier.and_then(|number| Some((number, self.partial.get(&number)?)))
            && partial.since_ns.abs_diff(time_ns) > TIMEOUT_NS
        {
            self.give_up(number, incomplete);
        }
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.last_number += 1;
            self.last_number
        });
        let partial = self.partial.entry(number).or_insert_with(|| PartialPacket::new(key, time_ns));
        let before = partial.bytes;
        if fragment.is_last {
            partial.end.get_or_insert(end);
        }
        partial.add(start, end, payload.data());
        self.bytes += partial.bytes - before;
        if partial.is_complete() {
            return Ok(self.remove(number).map(PartialPacket::into_payload));
        }
        while self.bytes > MOST_BYTES || self.partial.len() > MOST_PACKETS {
            self.give_up_oldest(incomplete);
        }
        Ok(None)
    }

    /// Gives up all packets that are not complete.
    pub(crate) fn finish(&mut self) -> Vec<IncompletePacket> {
        let mut incomplete = Vec::new();
        while !self.partial.is_empty() {
            self.give_up_oldest(&mut incomplete);
        }
        incomplete
    }

    fn give_up_oldest(&mut self, incomplete: &mut Vec<IncompletePacket>) {
        if let Some(number) = self.partial.keys().next().copied() {
            self.give_up(number, incomplete);
        }
    }

    fn give_up(&mut self, number: u64, incomplete: &mut Vec<IncompletePacket>) {
        if let Some(partial) = self.remove(number) {
            let PacketKey { source, destination, .. } = partial.key;
            incomplete.push(IncompletePacket { source, destination, bytes: partial.received.into() });
        }
    }

    fn remove(&mut self, number: u64) -> Option<PartialPacket> {
        let partial = self.partial.remove(&number)?;
        self.numbers.remove(&partial.key);
        self.bytes -= partial.bytes;
        Some(partial)
    }
}

impl PartialPacket {
    fn new(key: PacketKey, since_ns: i64) -> Self {
        Self { key, since_ns, end: None, pieces: BTreeMap::new(), received: 0, bytes: 0 }
    }

    /// Fills the gaps between `start` and `end`.
    fn add(&mut self, start: u32, end: u32, data: &[u8]) {
        let before = self.pieces.range(..start).next_back().map(|(at, piece)| at + piece.length);
        let mut from = before.unwrap_or(start).max(start);
        let mut gaps = Vec::new();
        for (at, piece) in self.pieces.range(start..end) {
            if from < *at {
                gaps.push((from, *at));
            }
            from = from.max(at + piece.length);
        }
        if from < end {
            gaps.push((from, end));
        }
        for (from, to) in gaps {
            let captured = data.get((from - start) as usize..).unwrap_or_default();
            let captured = captured.get(..(to - from) as usize).unwrap_or(captured);
            self.received += to - from;
            self.bytes += captured.len() + PIECE_BYTES;
            self.pieces.insert(from, Piece { length: to - from, data: captured.to_vec() });
        }
    }

    fn is_complete(&self) -> bool {
        let Some(end) = self.end.filter(|end| self.received >= *end) else { return false };
        let contiguous = self.pieces.iter().try_fold(0, |at, (start, piece)| {
            if at >= end || *start == at { Ok(at.max(start + piece.length)) } else { Err(at) }
        });
        contiguous.is_ok_and(|reached| reached >= end)
    }

    fn into_payload(self) -> ReassembledPayload {
        let length = self.end.unwrap_or_default();
        let mut data = Vec::with_capacity(length as usize);
        for (start, piece) in &self.pieces {
            // What comes after bytes that the snaplen cut cannot be used: it would take their place.
            if data.len() < *start as usize {
                break;
            }
            data.extend_from_slice(&piece.data);
        }
        data.truncate(length as usize);
        ReassembledPayload { length, data }
    }
}

#[cfg(test)]
mod tests;
