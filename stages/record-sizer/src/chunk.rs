//! A chunk of one direction's byte stream: the captured bytes, and how many more the snaplen cut off; and the segments
//! that wait for the bytes before them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use sizeleak_frame::Segment;

/// Consecutive bytes of a stream. The hidden ones, which the capture does not hold, follow the captured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the segment")]
pub(crate) struct Chunk<'a> {
    /// The sequence number of its first byte; 0 where it does not matter.
    pub(crate) sequence: u32,
    pub(crate) time_ns: i64,
    #[serde(skip)]
    pub(crate) payload: &'a [u8],
    /// Bytes on the wire after them that the snaplen cut off.
    pub(crate) hidden: u32,
    pub(crate) starts_segment: bool,
    pub(crate) ends_segment: bool,
    /// Whether its segment ends what its sender had to send (PSH, FIN).
    pub(crate) is_pushed: bool,
    /// Whether its whole segment may be the padding of an acknowledgement in Ethernet's shortest frame, which some hosts
    /// count in the lengths of IP. The end of a segment with other bytes is none.
    pub(crate) may_be_padding: bool,
}

/// Whether a segment may be padding: Ethernet's shortest frame has 60 bytes, of which the headers of Ethernet, IP and TCP
/// are 54. What ends a write is pushed.
#[inline]
fn may_be_padding(segment: &Segment<'_>) -> bool {
    const MOST: usize = 60 - 54;
    segment.payload.len() <= MOST
        && segment.length as usize <= segment.payload.len()
        && segment.flags & (Segment::PSH | Segment::FIN) == 0
        && segment.payload.iter().all(|byte| *byte == 0)
}

impl<'a> Chunk<'a> {
    #[inline]
    pub(crate) fn of(segment: &Segment<'a>) -> Self {
        let is_syn = segment.flags & Segment::SYN != 0;
        Self {
            sequence: segment.sequence.wrapping_add(is_syn.into()),
            hidden: segment.length.saturating_sub(segment.payload.len() as u32),
            starts_segment: true,
            ends_segment: true,
            is_pushed: segment.flags & (Segment::PSH | Segment::FIN) != 0,
            may_be_padding: may_be_padding(segment),
            ..Self::fragment(segment.time_ns, segment.payload)
        }
    }

    /// Captured bytes from the inside of a segment.
    #[inline]
    pub(crate) fn fragment(time_ns: i64, payload: &'a [u8]) -> Self {
        let (sequence, hidden) = (0, 0);
        let (starts_segment, ends_segment, is_pushed, may_be_padding) = (false, false, false, false);
        Self { sequence, time_ns, payload, hidden, starts_segment, ends_segment, is_pushed, may_be_padding }
    }

    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.hidden)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.payload.is_empty() && self.hidden == 0
    }

    /// Removes up to `limit` bytes from the front; returns the captured ones, and how many were removed in all.
    #[inline]
    pub(crate) fn advance(&mut self, limit: u64) -> (&'a [u8], u64) {
        let visible = (self.payload.len() as u64).min(limit);
        let (taken, rest) = self.payload.split_at(visible as usize);
        self.payload = rest;
        let hidden = u64::from(self.hidden).min(limit - visible);
        self.hidden -= hidden as u32;
        self.sequence = self.sequence.wrapping_add((visible + hidden) as u32);
        self.starts_segment &= visible + hidden == 0;
        (taken, visible + hidden)
    }

    pub(crate) fn first(mut self, limit: u64) -> Self {
        let whole = self.length();
        let visible = (self.payload.len() as u64).min(limit);
        self.payload = self.payload.get(..visible as usize).unwrap_or_default();
        self.hidden = u64::from(self.hidden).min(limit - visible) as u32;
        self.ends_segment &= limit >= whole;
        self
    }
}

pub(crate) const SEGMENT_OVERHEAD_BYTES: usize = 96;

const DIRECTION_OVERHEAD_BYTES: usize = 256;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HeldSegment {
    without_payload: Chunk<'static>,
    #[serde(with = "serde_bytes")]
    payload: Box<[u8]>,
}

impl HeldSegment {
    pub(crate) fn chunk(&self) -> Chunk<'_> {
        Chunk { payload: &self.payload, ..self.without_payload }
    }
}

/// Held segments by the position they start at; they do not overlap. Segments are nearly always added at the end and
/// taken from the front. Most directions hold none or one, so an empty queue keeps no memory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HeldSegments {
    segments: VecDeque<(u64, HeldSegment)>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Run {
    length: usize,
    end: u64,
}

impl Run {
    /// Adds a segment; returns how many follow each other up to it. Pieces of one segment count once.
    fn add(&mut self, start: u64, held: &HeldSegment) -> usize {
        let is_next = self.length > 0 && start == self.end;
        self.length = if is_next { self.length + usize::from(held.without_payload.starts_segment) } else { 1 };
        self.end = start + held.chunk().length();
        self.length
    }
}

impl HeldSegments {
    /// The position and capture time of the first one.
    pub(crate) fn first(&self) -> Option<(u64, i64)> {
        self.segments.front().map(|(start, held)| (*start, held.without_payload.time_ns))
    }

    pub(crate) fn take_at(&mut self, position: u64) -> Option<HeldSegment> {
        self.take_first_if(|start| start == position)
    }

    pub(crate) fn drop_before(&mut self, position: u64) {
        while self.take_first_if(|start| start < position).is_some() {}
    }

    fn take_first_if(&mut self, condition: impl Fn(u64) -> bool) -> Option<HeldSegment> {
        let (_, held) = self.segments.pop_front_if(|(start, _)| condition(*start))?;
        self.bytes -= held.payload.len() + SEGMENT_OVERHEAD_BYTES;
        if self.segments.is_empty() {
            self.segments = VecDeque::new();
        }
        Some(held)
    }

    /// The rest, from this position on, of the segment that holds the byte there.
    pub(crate) fn rest_from(&self, position: u64) -> Option<Chunk<'_>> {
        let index = self.segments.partition_point(|(start, _)| *start <= position).checked_sub(1)?;
        let (start, held) = self.segments.get(index)?;
        let mut rest = held.chunk();
        rest.advance(position - start);
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// Whether all may be padding. There is seldom more than one such segment, and never many.
    pub(crate) fn is_all_padding(&self) -> bool {
        const MOST: usize = 64;
        self.segments.len() <= MOST && self.segments.iter().all(|(_, held)| held.without_payload.may_be_padding)
    }

    pub(crate) fn remove_at(&mut self, position: u64) {
        let index = self.segments.partition_point(|(start, _)| *start <= position);
        if let Some((_, held)) = index.checked_sub(1).and_then(|index| self.segments.remove(index)) {
            self.bytes -= held.payload.len() + SEGMENT_OVERHEAD_BYTES;
        }
    }

    /// Removes the segments that a chunk from `start` on overlaps and whose captured bytes differ from it; returns how
    /// many of them were no padding.
    pub(crate) fn remove_differing(&mut self, start: u64, chunk: Chunk<'_>) -> usize {
        let end = start + chunk.length();
        let first = self.segments.partition_point(|(position, held)| position + held.chunk().length() <= start);
        let (mut at, mut removed) = (first, 0);
        while let Some((position, held)) = self.segments.get(at).filter(|(position, _)| *position < end) {
            let (mut first, mut second) = (chunk, held.chunk());
            first.advance(position.saturating_sub(start));
            second.advance(start.saturating_sub(*position));
            let overlap = first.length().min(second.length());
            let (first, second) = (first.first(overlap), second.first(overlap));
            if first.payload.iter().zip(second.payload).all(|(first, second)| first == second) {
                at += 1;
            } else {
                removed += usize::from(!second.may_be_padding);
                self.bytes -= held.payload.len() + SEGMENT_OVERHEAD_BYTES;
                self.segments.remove(at);
            }
        }
        removed
    }

    /// Drops all segments; returns their bytes on the wire.
    pub(crate) fn drop_all(&mut self) -> u64 {
        self.bytes = 0;
        std::mem::take(&mut self.segments).iter().map(|(_, held)| held.chunk().length()).sum()
    }

    /// Whether at least this number of whole segments follow each other without a gap, as far as the first ones show: it
    /// is asked for each gap anew.
    pub(crate) fn has_run(&self, least: usize) -> bool {
        const LOOKED_AT: usize = 1024;
        let mut run = Run::default();
        self.segments.iter().take(LOOKED_AT).any(|(start, held)| run.add(*start, held) >= least)
    }

    /// The number of whole segments that follow each other without a gap around this position, as far as a few
    /// neighbours show.
    pub(crate) fn run_at(&self, position: u64) -> usize {
        const NEIGHBOURS: usize = 8;
        let index = self.segments.partition_point(|(start, _)| *start < position);
        let mut run = Run::default();
        let neighbours = self.segments.iter().skip(index.saturating_sub(NEIGHBOURS)).take(2 * NEIGHBOURS);
        neighbours.map(|(start, held)| run.add(*start, held)).max().unwrap_or_default()
    }

    pub(crate) fn next_start(&self, position: u64) -> Option<u64> {
        self.segments.get(self.segments.partition_point(|(start, _)| *start < position)).map(|(start, _)| *start)
    }

    /// Holds a chunk; none may be held at its position.
    pub(crate) fn insert(&mut self, start: u64, chunk: Chunk<'_>) {
        self.bytes += chunk.payload.len() + SEGMENT_OVERHEAD_BYTES;
        let index = self.segments.partition_point(|(other, _)| *other < start);
        let held = HeldSegment { without_payload: Chunk { payload: &[], ..chunk }, payload: chunk.payload.into() };
        self.segments.insert(index, (start, held));
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        if self.is_empty() { 0 } else { DIRECTION_OVERHEAD_BYTES + self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Direction;

    use super::*;

    const EMPTY: Segment<'_> = Segment {
        time_ns: 0,
        flow: 1,
        direction: Direction::ToGateway,
        sequence: 0,
        flags: Segment::ACK,
        length: 0,
        payload: &[],
        acknowledgement: None,
    };

    #[test]
    fn hidden_bytes_follow_the_captured_ones() {
        let whole = Chunk { hidden: 3, starts_segment: true, ends_segment: true, ..Chunk::fragment(1, b"abcd") };
        let mut chunk = whole;
        assert_eq!(chunk.advance(3), (&b"abc"[..], 3));
        assert!(!chunk.starts_segment);
        assert_eq!(chunk.advance(3), (&b"d"[..], 3));
        assert_eq!((chunk.length(), chunk.is_empty(), chunk.sequence), (1, false, 6));
        let first = whole.first(5);
        assert_eq!((first.payload, first.hidden, first.ends_segment), (&b"abcd"[..], 1, false));
        assert_eq!(whole.first(7), whole);
    }

    #[test]
    fn up_to_six_zeros_that_end_no_write_may_be_padding() {
        let segment = |payload: &'static [u8], flags: u8, cut_off: u32| {
            let length = payload.len() as u32 + cut_off;
            Chunk::of(&Segment { flags, length, payload, ..EMPTY })
        };
        let zeros = |count: usize| segment(&[0; 7][..count], Segment::ACK, 0);
        assert!(zeros(1).may_be_padding && zeros(6).may_be_padding);
        assert!(!zeros(7).may_be_padding);
        assert!(!segment(&[0; 6], Segment::ACK | Segment::PSH, 0).may_be_padding);
        assert!(!segment(&[0; 3], Segment::ACK, 1).may_be_padding);
        assert!(!segment(&[0, 0, 0, 1], Segment::ACK, 0).may_be_padding);
    }

    #[test]
    fn zeros_behind_other_bytes_of_their_segment_are_no_padding() {
        let mut chunk = Chunk::of(&Segment { length: 9, payload: &[1, 1, 1, 1, 0, 0, 0, 0, 0], ..EMPTY });
        chunk.advance(4);
        assert!(!chunk.may_be_padding);
        let mut padding = Chunk::of(&Segment { length: 6, payload: &[0; 6], ..EMPTY });
        padding.advance(1);
        assert!(padding.may_be_padding);
    }

    #[test]
    fn only_segments_that_differ_from_a_chunk_where_they_overlap_are_removed() {
        let mut held = HeldSegments::default();
        for (start, payload) in [(0, &b"ab"[..]), (10, b"cd"), (12, b"ef"), (20, b"gh")] {
            held.insert(start, Chunk::fragment(1, payload));
        }
        assert_eq!(held.remove_differing(9, Chunk::fragment(2, b"xcde")), 0, "they are the same where they overlap");
        assert_eq!(held.remove_differing(2, Chunk::fragment(2, b"xxxxxxxx")), 0, "they touch it");
        assert_eq!(held.remove_differing(11, Chunk::fragment(2, b"xxfxxxxxxg")), 2);
        assert_eq!((held.len(), held.first(), held.next_start(1)), (2, Some((0, 1)), Some(20)));
        assert_eq!(held.bytes(), DIRECTION_OVERHEAD_BYTES + 2 * (2 + SEGMENT_OVERHEAD_BYTES));
        assert_eq!(held.remove_differing(0, Chunk::fragment(2, &[0; 100])), 2);
        assert!(held.is_empty() && held.bytes() == 0);
    }

    #[test]
    fn a_few_held_segments_may_be_padding_and_not_many() {
        let mut held = HeldSegments::default();
        let zeros = Chunk::of(&Segment { length: 2, payload: &[0; 2], ..EMPTY });
        (0..64).for_each(|at| held.insert(10 * at, zeros));
        assert!(held.is_all_padding());
        held.insert(1000, zeros);
        assert!(!held.is_all_padding());
    }
}
