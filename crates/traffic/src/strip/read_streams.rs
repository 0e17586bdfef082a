//! The bytes of the gateway's TCP streams that were read, by their sequence numbers, for a while.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use foldhash::quality::RandomState;
use sizeleak_frame::Direction;
use sizeleak_record_sizer::ReadBytes;

/// Longer pieces are split, so that those that reach into a segment are found soon before it.
const MAX_PIECE: usize = 64;

const PIECE_OVERHEAD_BYTES: usize = 96;

/// The most memory that all pieces together need; the oldest make room.
const MAX_BYTES: usize = 64 << 20;

pub(crate) type StreamKey = (u64, Direction);

#[derive(Debug, Default)]
pub(crate) struct ReadStreams {
    pieces: HashMap<StreamKey, BTreeMap<Place, Box<[u8]>>, RandomState>,
    order: VecDeque<(StreamKey, Place)>,
    bytes: usize,
}

/// Where a piece begins. At one number stand several where another connection on the same ports has the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    sequence: u32,
    nth: u8,
}

impl Place {
    fn first(sequence: u32) -> Self {
        Self { sequence, nth: 0 }
    }

    fn last(sequence: u32) -> Self {
        Self { sequence, nth: u8::MAX }
    }
}

impl ReadStreams {
    pub(crate) fn add(&mut self, flow: u64, read: &ReadBytes) {
        let stream = (flow, read.direction);
        let mut sequence = read.sequence;
        for piece in read.bytes.chunks(MAX_PIECE) {
            let pieces = self.pieces.entry(stream).or_default();
            let there = || pieces.range(Place::first(sequence)..=Place::last(sequence));
            let nth = there().next_back().map_or(Some(0), |(last, _)| last.nth.checked_add(1));
            let next = nth.map(|nth| Place { sequence, nth });
            let shorter = there().find(|(_, known)| piece.starts_with(known)).map(|(place, _)| *place);
            let is_known = there().any(|(_, known)| known.starts_with(piece));
            if let Some(place) = shorter.or(next).filter(|_| !is_known) {
                self.bytes += PIECE_OVERHEAD_BYTES + piece.len();
                match pieces.insert(place, piece.into()) {
                    Some(shorter) => self.bytes -= PIECE_OVERHEAD_BYTES + shorter.len(),
                    None => self.order.push_back((stream, place)),
                }
            }
            sequence = sequence.wrapping_add(piece.len() as u32);
        }
        while self.bytes > MAX_BYTES {
            let Some((stream, place)) = self.order.pop_front() else { break };
            self.remove(stream, place);
        }
    }

    fn remove(&mut self, stream: StreamKey, place: Place) {
        let Some(pieces) = self.pieces.get_mut(&stream) else { return };
        if let Some(piece) = pieces.remove(&place) {
            self.bytes -= PIECE_OVERHEAD_BYTES + piece.len();
        }
        if pieces.is_empty() {
            self.pieces.remove(&stream);
        }
    }

    /// The places in a payload that starts at a sequence number where these very bytes were read. Elsewhere in the
    /// sequence space, or in a forged packet, stand other bytes, which were not.
    pub(crate) fn places(&self, stream: StreamKey, sequence: u32, payload: &[u8]) -> Vec<Range<usize>> {
        let Some(pieces) = self.pieces.get(&stream) else { return Vec::new() };
        let first = sequence.wrapping_sub(MAX_PIECE as u32 - 1);
        let end = sequence.wrapping_add(payload.len() as u32);
        let (last, end_after_wrap) = if first <= end { (end, 0) } else { (u32::MAX, end) };
        let near =
            pieces.range(Place::first(first)..=Place::last(last)).chain(pieces.range(..Place::first(end_after_wrap)));
        let places = near.filter_map(|(at, piece)| {
            let offset = i64::from(at.sequence.wrapping_sub(sequence).cast_signed());
            let start = usize::try_from(offset.max(0)).ok()?;
            let skipped = usize::try_from((-offset).max(0)).ok()?;
            let piece = piece.get(skipped..)?;
            let place = start..payload.len().min(start + piece.len());
            let found = payload.get(place.clone())?;
            (!found.is_empty() && piece.starts_with(found)).then_some(place)
        });
        places.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: StreamKey = (7, Direction::ToGateway);

    fn read(sequence: u32, bytes: &[u8]) -> ReadStreams {
        let mut streams = ReadStreams::default();
        streams.add(7, &ReadBytes { direction: Direction::ToGateway, sequence, bytes: bytes.into() });
        streams
    }

    fn only(places: &[Range<usize>]) -> Option<Range<usize>> {
        assert!(places.len() <= 1, "{places:?}");
        places.first().cloned()
    }

    #[test]
    fn bytes_are_found_in_every_segment_that_carries_a_part_of_them() {
        let streams = read(100, b"abcde");
        assert_eq!(only(&streams.places(STREAM, 90, b"----------abcde-")), Some(10..15));
        assert_eq!(only(&streams.places(STREAM, 97, b"---ab")), Some(3..5));
        assert_eq!(only(&streams.places(STREAM, 102, b"cde--")), Some(0..3));
        assert_eq!(streams.places(STREAM, 105, b"abcde"), []);
        assert_eq!(streams.places((7, Direction::FromGateway), 100, b"abcde"), []);
    }

    #[test]
    fn other_bytes_in_their_place_were_not_read() {
        assert_eq!(read(100, b"abcde").places(STREAM, 100, b"abXde"), []);
    }

    #[test]
    fn two_connections_may_have_the_same_numbers() {
        let mut streams = read(100, b"abcde");
        for bytes in [&b"ABC"[..], b"abc", b"ABCDE", b"AB"] {
            streams.add(7, &ReadBytes { direction: Direction::ToGateway, sequence: 100, bytes: bytes.into() });
        }
        assert_eq!((streams.order.len(), streams.bytes), (2, 2 * (PIECE_OVERHEAD_BYTES + 5)), "each once");
        for payload in [b"abcde--", b"ABCDE--"] {
            assert_eq!(only(&streams.places(STREAM, 100, payload)), Some(0..5));
        }
        for number in 0..1000_u16 {
            let bytes = number.to_be_bytes();
            streams.add(7, &ReadBytes { direction: Direction::ToGateway, sequence: 100, bytes: bytes.into() });
        }
        assert_eq!((streams.order.len(), streams.pieces[&STREAM].len()), (256, 256));
        assert!(streams.bytes < 256 * (PIECE_OVERHEAD_BYTES + 5));
    }

    #[test]
    fn sequence_numbers_wrap_around() {
        for before in 0..6 {
            let streams = read(0u32.wrapping_sub(before), b"abcde");
            let start = 0u32.wrapping_sub(before + 2);
            assert_eq!(only(&streams.places(STREAM, start, b"--abcde--")), Some(2..7), "{before}");
        }
    }

    #[test]
    fn long_bytes_are_found_from_any_byte_on() {
        let bytes: Vec<u8> = (0..=255).collect();
        let streams = read(1000, &bytes);
        for start in 0..256 {
            let found: usize =
                streams.places(STREAM, 1000 + start as u32, &bytes[start..]).iter().map(Range::len).sum();
            assert_eq!(found, 256 - start);
        }
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_are_forgotten() {
        let mut streams = ReadStreams::default();
        for at in 0..1_000_000 {
            streams.add(7, &ReadBytes { direction: Direction::ToGateway, sequence: at * 8, bytes: [1; 5].into() });
        }
        assert!(streams.bytes <= MAX_BYTES && streams.order.len() <= MAX_BYTES / PIECE_OVERHEAD_BYTES);
        assert_eq!(streams.places(STREAM, 0, &[1; 5]), []);
        assert_eq!(only(&streams.places(STREAM, 999_999 * 8, &[1; 5])), Some(0..5));
    }
}
