//! Reassembles IP packets from their fragments, in bounded memory.
//!
//! By hand: etherparse's pool is unbounded, and takes a fragment that the snaplen has cut for complete. As in TCP, the
//! first bytes for a position win. A packet is complete once each of its bytes was on the wire; its data ends where the
//! snaplen first cut it.
//!
//! Where there are more packets than there is room for, the pair of hosts with the most of them loses its oldest: a
//! flood of fragments between two hosts does not reach the packets of others.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;

use foldhash::quality::RandomState;
use serde::{Deserialize, Serialize};
use sizeleak_packet::{Encapsulation, Fragment, IpPacket};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FragmentLimits {
    packets: usize,
    bytes: usize,
}

impl FragmentLimits {
    pub(crate) const GATEWAYS: Self = Self { packets: 768, bytes: 3 << 20 };
    /// For packets of others, which may be tunnels.
    pub(crate) const OTHERS: Self = Self { packets: 256, bytes: 1 << 20 };
}

/// How long a packet's fragments are awaited, in nanoseconds of capture time: 30 s, as on most hosts.
const TIMEOUT_NS: u64 = 30_000_000_000;

/// A fragment of a packet that was whole so shortly before, in nanoseconds, is captured twice, as a mirror of two ports does:
/// no host uses an identification again as fast.
const REPETITION_NS: u64 = 1_000_000_000;

const MAX_COMPLETE: usize = 64;

const PIECE_OVERHEAD_BYTES: usize = 64;

/// The longest packet there can be (RFC 791): 16 bits of length.
const LONGEST_PACKET: u32 = 65_535;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct PacketKey {
    /// Compared first: it differs in nearly all packets.
    identification: u32,
    /// `None` in IPv6, whose later fragments may name another one than the first (RFC 8200, section 4.5).
    protocol: Option<u8>,
    encapsulation: Option<Encapsulation>,
    source: IpAddr,
    destination: IpAddr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReassembledPayload {
    /// What the first fragment names.
    pub(crate) protocol: u8,
    /// Bytes on the wire.
    pub(crate) length: u32,
    /// What was captured of its beginning.
    pub(crate) data: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IncompletePacket {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) bytes: u64,
}

/// A fragment that carries nothing, or reaches beyond the end of the longest packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidFragment;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IpReassembly {
    #[serde(skip)]
    limits: FragmentLimits,
    /// In the order in which they began: few enough to look through all.
    partial: VecDeque<PartialPacket>,
    /// The last packets that were whole, and since when.
    complete: VecDeque<(PacketKey, i64)>,
    /// When the last fragment was captured. One odd time shows no timeout: two in a row do.
    last_ns: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PartialPacket {
    key: PacketKey,
    since_ns: i64,
    /// Whether nothing is missing even if no more of it comes.
    repeats: bool,
    /// What the fragment named that came first of those with the first byte; 0 before it came.
    protocol: u8,
    /// Where the last fragment ends, once it came.
    end: Option<u32>,
    pieces: BTreeMap<u32, Piece>,
    received: u32,
    bytes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Piece {
    length: u32,
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
}

impl IpReassembly {
    pub(crate) fn new(limits: FragmentLimits) -> Self {
        Self { limits, partial: VecDeque::new(), complete: VecDeque::new(), last_ns: None }
    }

    pub(crate) fn restored(&self, read: Self) -> Self {
        Self { limits: self.limits, ..read }
    }

    /// Adds a fragment and returns the payload that it completes, if any. Packets that are given up meanwhile are
    /// appended to `incomplete`.
    pub(crate) fn add(
        &mut self,
        time_ns: i64,
        packet: &IpPacket<'_>,
        encapsulation: Option<Encapsulation>,
        fragment: Fragment,
        incomplete: &mut Vec<IncompletePacket>,
    ) -> Result<Option<ReassembledPayload>, InvalidFragment> {
        let times = [time_ns, self.last_ns.replace(time_ns).unwrap_or(time_ns)];
        let is_over = |since_ns: i64| times.iter().all(|time_ns| time_ns.abs_diff(since_ns) > TIMEOUT_NS);
        while self.partial.front().is_some_and(|oldest| is_over(oldest.since_ns)) {
            self.give_up(0, incomplete);
        }
        let payload = packet.payload.bytes;
        let (start, end) = (fragment.offset, fragment.offset.saturating_add(payload.length()));
        if end > LONGEST_PACKET || start == end {
            return Err(InvalidFragment);
        }
        let key = PacketKey::of(packet, encapsulation, fragment);
        // An identification is used again after a while: what is left of the packet before is not part of this one.
        let mut known = self.partial.iter().position(|partial| partial.key == key);
        let is_left = |partial: &PartialPacket| partial.since_ns.abs_diff(time_ns) > TIMEOUT_NS;
        if let Some(at) = known.take_if(|at| self.partial.get(*at).is_some_and(is_left)) {
            self.give_up(at, incomplete);
        }
        let at = known.unwrap_or_else(|| {
            let is_same =
                |(whole, since_ns): &(PacketKey, i64)| *whole == key && since_ns.abs_diff(time_ns) <= REPETITION_NS;
            let repeats = self.complete.iter().any(is_same);
            self.partial.push_back(PartialPacket { repeats, ..PartialPacket::new(key, time_ns) });
            self.partial.len() - 1
        });
        let Some(partial) = self.partial.get_mut(at) else { return Ok(None) };
        if fragment.is_last {
            partial.end.get_or_insert(end);
        }
        if start == 0 && !partial.pieces.contains_key(&0) {
            partial.protocol = packet.payload.protocol;
        }
        partial.add(start, end, payload.data());
        if partial.is_complete() {
            if self.complete.len() == MAX_COMPLETE {
                self.complete.pop_front();
            }
            self.complete.push_back((key, time_ns));
            return Ok(self.partial.remove(at).map(PartialPacket::into_payload));
        }
        while self.partial.len() > self.limits.packets {
            self.give_up_of_greatest(incomplete, |_| 1);
        }
        while self.partial.iter().map(|partial| partial.bytes).sum::<usize>() > self.limits.bytes {
            self.give_up_of_greatest(incomplete, |partial| partial.bytes);
        }
        Ok(None)
    }

    pub(crate) fn awaits(
        &self,
        packet: &IpPacket<'_>,
        encapsulation: Option<Encapsulation>,
        fragment: Fragment,
    ) -> bool {
        let key = PacketKey::of(packet, encapsulation, fragment);
        self.partial.iter().any(|partial| partial.key == key)
    }

    pub(crate) fn finish(&mut self) -> Vec<IncompletePacket> {
        let mut incomplete = Vec::new();
        while !self.partial.is_empty() {
            self.give_up(0, &mut incomplete);
        }
        incomplete
    }

    /// Gives up the oldest packet of the source and destination whose packets have the greatest amount together.
    fn give_up_of_greatest(
        &mut self,
        incomplete: &mut Vec<IncompletePacket>,
        amount: impl Fn(&PartialPacket) -> usize,
    ) {
        let mut amounts: HashMap<[IpAddr; 2], usize, RandomState> = HashMap::default();
        for partial in &self.partial {
            *amounts.entry(partial.key.pair()).or_default() += amount(partial);
        }
        let most = amounts.values().max();
        if let Some(oldest) = self.partial.iter().position(|partial| amounts.get(&partial.key.pair()) == most) {
            self.give_up(oldest, incomplete);
        }
    }

    fn give_up(&mut self, at: usize, incomplete: &mut Vec<IncompletePacket>) {
        if let Some(partial) = self.partial.remove(at).filter(|partial| !partial.repeats) {
            let PacketKey { source, destination, .. } = partial.key;
            incomplete.push(IncompletePacket { source, destination, bytes: partial.received.into() });
        }
    }
}

impl PacketKey {
    fn of(packet: &IpPacket<'_>, encapsulation: Option<Encapsulation>, fragment: Fragment) -> Self {
        let &IpPacket { source, destination, payload, .. } = packet;
        let protocol = source.is_ipv4().then_some(payload.protocol);
        Self { identification: fragment.identification, protocol, encapsulation, source, destination }
    }

    fn pair(&self) -> [IpAddr; 2] {
        [self.source, self.destination]
    }
}

impl PartialPacket {
    fn new(key: PacketKey, since_ns: i64) -> Self {
        Self { key, since_ns, repeats: false, protocol: 0, end: None, pieces: BTreeMap::new(), received: 0, bytes: 0 }
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
            self.bytes += captured.len() + PIECE_OVERHEAD_BYTES;
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
        ReassembledPayload { protocol: self.protocol, length, data }
    }
}

#[cfg(test)]
mod tests;
