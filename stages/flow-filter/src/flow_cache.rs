//! The way of the packets that come most often: a TCP segment in IPv4 right behind Ethernet, of a flow that had one already.
//!
//! Its ends are compared as they stand in the packet. What is found so is what the longer way has found before, as long as
//! the flows are those of that time: names that are learned add services, and take none away.

use sizeleak_frame::{Direction, Segment};

const ETHERNET: u16 = 1;
/// The type of what is behind Ethernet's header, and IPv4's version and length, as they lie in memory.
const IPV4: u32 = u32::from_ne_bytes([0x08, 0x00, 0x45, 0]);
const KIND: u32 = u32::from_ne_bytes([0xff, 0xff, 0xff, 0]);
/// What tells IPv4's flags and offset, but for the flag that forbids fragments, and the protocol.
const WHOLE: u32 = u32::from_ne_bytes([!0x40, 0xff, 0, 0xff]);
/// TCP in one piece.
const TCP: u32 = u32::from_ne_bytes([0, 0, 0, 6]);
/// The headers of Ethernet, IPv4 and TCP, without options.
const HEADERS: usize = 14 + 20 + 20;
/// Room for the flows of most gateways, in both directions; 32 KiB.
const FEWEST_PLACES: usize = 1 << 10;
/// Room for ten thousand flows: more than gateways have at a time, and still found in the second cache; 1 MiB.
const MOST_PLACES: usize = 1 << 15;

/// A TCP segment of the plainest kind, and its ends as they stand in the packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainSegment<'a> {
    ends: Ends,
    sequence: u32,
    flags: u8,
    length: u32,
    payload: &'a [u8],
}

/// Source and destination address, source and destination port, in the order they lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    addresses: u64,
    ports: u32,
}

/// Where segments with the same ends belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowRef {
    pub(crate) flow: u64,
    pub(crate) direction: Direction,
}

/// Where segments belong, by their ends.
#[derive(Debug, Default)]
pub(crate) struct FlowCache {
    /// An even number of them. Of many ends that have the same two places, the last ones have them.
    places: Vec<Option<Place>>,
    /// How many have lost their place to others since there are so many places.
    lost: usize,
}

/// Half a cache line, and never parts of two.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Place {
    addresses: u64,
    flow: u64,
    ports: u32,
    /// Which generation of flows this is true of.
    generation: u32,
    direction: Direction,
}

impl<'a> PlainSegment<'a> {
    /// The segment of a packet, if it is of this kind. It is the one that [`TransportSegment::plain`] reads.
    #[inline]
    pub(crate) fn read(link_type: u16, data: &'a [u8]) -> Option<Self> {
        let headers: &[u8; HEADERS] = data.first_chunk().filter(|_| link_type == ETHERNET)?;
        // One word at a time: byte by byte it would take twice as long.
        let word =
            |at: usize| headers.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_ne_bytes(*word));
        if word(12) & KIND != IPV4 || word(20) & WHOLE != TCP {
            return None;
        }
        let total = u16::from_be_bytes([headers[16], headers[17]]);
        let (header, flags) = (u16::from(headers[46] >> 4) * 4, headers[47]);
        if header < 20 || total < 20 + header || flags == 0 {
            return None;
        }
        let whole = data.get(..14 + usize::from(total)).unwrap_or(data);
        Some(Self {
            ends: Ends::read(headers),
            sequence: u32::from_be(word(38)),
            flags,
            length: (total - 20 - header).into(),
            payload: whole.get(34 + usize::from(header)..).unwrap_or_default(),
        })
    }

    /// The row of it.
    #[inline]
    pub(crate) fn row(&self, time_ns: i64, FlowRef { flow, direction }: FlowRef) -> Segment<'a> {
        let Self { sequence, flags, length, payload, .. } = *self;
        Segment { time_ns, flow, direction, sequence, flags, length, payload }
    }
}

impl FlowCache {
    /// Where a segment belongs, if that is remembered and was true of this generation of flows.
    #[inline]
    pub(crate) fn find(&self, segment: &PlainSegment<'_>, generation: u32) -> Option<FlowRef> {
        let at = segment.ends.place(self.places.len());
        let found = |at: usize| {
            let Place { addresses, flow, ports, generation: then, direction } = (*self.places.get(at)?)?;
            let is_this = Ends { addresses, ports } == segment.ends && then == generation;
            is_this.then_some(FlowRef { flow, direction })
        };
        found(at).or_else(|| found(at ^ 1))
    }

    /// Remembers where a segment belongs.
    pub(crate) fn remember(&mut self, segment: &PlainSegment<'_>, belonging: FlowRef, generation: u32) {
        if self.lost >= self.places.len() / 8 && self.places.len() < MOST_PLACES {
            let more = (self.places.len() * 4).clamp(FEWEST_PLACES, MOST_PLACES);
            let known = std::mem::replace(&mut self.places, vec![None; more]);
            known.into_iter().flatten().for_each(|place| self.put(place));
            self.lost = 0;
        }
        let (Ends { addresses, ports }, FlowRef { flow, direction }) = (segment.ends, belonging);
        self.put(Place { addresses, flow, ports, generation, direction });
    }

    /// Takes one of its two places: the one that is free, or else the first.
    fn put(&mut self, place: Place) {
        let Place { addresses, ports, generation, .. } = place;
        let first = Ends { addresses, ports }.place(self.places.len());
        let is_taken = |at: &usize| {
            self.places.get(*at).is_some_and(|there| there.is_some_and(|there| there.generation == generation))
        };
        let free = [first, first ^ 1].into_iter().find(|at| !is_taken(at));
        self.lost += usize::from(free.is_none());
        if let Some(there) = self.places.get_mut(free.unwrap_or(first)) {
            *there = Some(place);
        }
    }
}

impl Ends {
    /// The addresses and the ports follow each other.
    #[inline]
    fn read(headers: &[u8; HEADERS]) -> Self {
        let (_, behind) = headers.split_at(26);
        let (addresses, behind) = behind.split_at(8);
        Self {
            addresses: addresses.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
            ports: behind.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)),
        }
    }

    /// The first of its two places among so many, an even number. Ends that differ little have places far apart.
    #[inline]
    fn place(self, places: usize) -> usize {
        let product = u128::from(self.addresses ^ 0x9e37_79b9_7f4a_7c15)
            * u128::from(u64::from(self.ports) ^ 0xd1b5_4a32_d192_ed03);
        let hash = ((product >> 64) as u64 ^ product as u64) >> 32;
        ((hash * places as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;
    use crate::transport::TransportSegment;

    fn packet(source: [u8; 4], destination: [u8; 4], ports: (u16, u16), sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let headers = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(source, destination, 64);
        headers.tcp(ports.0, ports.1, sequence, 9).ack(1).write(&mut bytes, payload).unwrap();
        bytes
    }

    proptest! {
        /// What it reads is what the longer way reads; where it reads nothing, that may.
        #[test]
        fn a_plain_segment_is_the_one_that_is_read_the_longer_way(
            ends: ([u8; 4], [u8; 4]), ports: (u16, u16), sequence: u32, length in 0usize..90,
            changes in prop::collection::vec((12usize..60, any::<u8>()), 0..4), cut in 30usize..200, padding in 0usize..30,
        ) {
            let mut bytes = packet(ends.0, ends.1, ports, sequence, &vec![7; length]);
            bytes.extend(vec![0; padding]);
            for (at, byte) in changes {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            bytes.truncate(cut);
            if let Some(plain) = PlainSegment::read(ETHERNET, &bytes) {
                let longer = TransportSegment::plain(ETHERNET, &bytes).unwrap();
                prop_assert_eq!((plain.sequence, plain.flags, plain.length), (longer.sequence, longer.flags, longer.length));
                prop_assert_eq!(plain.payload, longer.payload);
                let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
                prop_assert_eq!((port(34), port(36)), (longer.source.port(), longer.destination.port()));
            } else if bytes.len() >= HEADERS && bytes.get(12..15) == Some(&[8, 0, 0x45]) {
                let longer = TransportSegment::plain(ETHERNET, &bytes);
                prop_assert!(longer.is_none(), "{:?}", longer);
            }
        }
    }

    #[test]
    fn two_places_are_a_cache_line() {
        assert_eq!(size_of::<Option<Place>>(), 32);
    }

    #[test]
    fn ends_are_told_apart_and_generations_end() {
        let read = |port: u16| {
            let bytes: &'static [u8] = packet([10, 0, 0, 2], [203, 0, 113, 1], (port, 443), 5, b"x").leak();
            PlainSegment::read(ETHERNET, bytes).unwrap()
        };
        let mut shortcuts = FlowCache::default();
        assert_eq!(shortcuts.find(&read(1), 0), None);
        let belonging = |flow| FlowRef { flow, direction: Direction::ToGateway };
        // Those that lost their place to others before there were enough find one the next time.
        for port in (1..=20_000).cycle().take(60_000) {
            if shortcuts.find(&read(port), 0).is_none() {
                shortcuts.remember(&read(port), belonging(u64::from(port)), 0);
            }
        }
        let found: Vec<_> =
            (1..=20_000).filter_map(|port| Some((port, shortcuts.find(&read(port), 0)?.flow))).collect();
        assert!(found.len() > 15_000 && shortcuts.places.len() == MOST_PLACES, "{}", found.len());
        assert!(found.iter().all(|(port, flow)| u64::from(*port) == *flow));
        assert_eq!(shortcuts.find(&read(1), 1), None, "of another generation");
    }
}
