//! Puts the segments of one direction of a TCP connection in order: chunks of the stream, and gaps where bytes are
//! missing.
//!
//! Segments in order pass straight through; early ones are held. Where segments overlap, the first data wins (RFC 9293
//! leaves the choice open). A gap is given up when its time is over or memory is needed. The first byte of a connection
//! seen from the middle is unknown: its first segments wait briefly for earlier ones.

use sizeleak_frame::Segment;

use crate::chunk::Chunk;
use crate::held_segments::HeldSegments;

/// A segment further than this from the next byte is outside any window: no sender has this much in flight.
const WINDOW: i64 = 16 << 20;

/// After this many segments in a row outside the window, the stream is taken to continue there.
const MAX_STRAYS: u8 = 3;

/// After this many segments, a connection seen from the middle starts at the first of them.
const FIRST_SEGMENTS: usize = 4;

/// Where positions start: far enough above zero for segments that precede the first one.
const ORIGIN: u64 = 1 << 32;

/// Receives what reassembly puts in order.
pub(crate) trait OrderedStream {
    /// The next bytes of the stream.
    fn chunk(&mut self, chunk: Chunk<'_>);
    /// The next `length` bytes of the stream are missing; zero where their number is unknown.
    fn gap(&mut self, length: u64, time_ns: i64);
    /// A retransmission differs from the bytes it repeats.
    fn conflict(&mut self, time_ns: i64);
    /// A segment brought nothing new.
    fn retransmitted(&mut self);
    /// A segment came before its turn.
    fn out_of_order(&mut self);
}

/// The progress of a direction; kept as long as the connection is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StreamPosition {
    /// The sequence number of the next byte, once the first is known.
    pub(crate) next: u32,
    /// The sequence number of the first byte, once it is known.
    first: u32,
    start: StreamStart,
}

/// How the first byte of a direction is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum StreamStart {
    #[default]
    Unknown,
    /// It is the first byte that was seen.
    Assumed,
    /// From a SYN.
    Syn,
}

/// The state of a direction while segments are out of order.
#[derive(Debug, Default)]
pub(crate) struct PendingSegments {
    held: HeldSegments,
    /// While segments are held: the position of the next byte, or of the first held one while the first byte is
    /// unknown. Sequence numbers stand for the positions nearest to it.
    near: u64,
    /// Segments outside the window in a row.
    strays: u8,
}

/// What a SYN means to a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SynMeaning {
    /// A repetition, or the late SYN of what was seen before it.
    Known,
    /// The start of the stream.
    Opens,
    /// Another connection on the same ports.
    NewConnection,
}

impl StreamPosition {
    /// Whether its first byte is known.
    pub(crate) fn is_known(self) -> bool {
        self.start != StreamStart::Unknown
    }

    /// Whether its SYN was seen.
    pub(crate) fn saw_syn(self) -> bool {
        self.start == StreamStart::Syn
    }
}

impl PendingSegments {
    /// Whether the segments so far need nothing here.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.strays == 0
    }

    /// Bytes of memory that held segments are taken to need.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// When the first of the held segments was captured.
    pub(crate) fn since_ns(&self) -> Option<i64> {
        self.held.first().map(|(_, time_ns)| time_ns)
    }
}

/// The reassembly of one direction, with the state it changes.
#[derive(Debug)]
pub(crate) struct Reassembly<'a> {
    pub(crate) position: &'a mut StreamPosition,
    pub(crate) pending: &'a mut PendingSegments,
}

impl Reassembly<'_> {
    /// What a SYN with this sequence number means here.
    pub(crate) fn syn_meaning(&self, sequence: u32) -> SynMeaning {
        let first = sequence.wrapping_add(1);
        let is_close = || self.position_of(first).abs_diff(self.near(first)) <= WINDOW as u64;
        match self.position.is_known() {
            true if self.position.first == first => SynMeaning::Known,
            false if is_close() => SynMeaning::Opens,
            _ => SynMeaning::NewConnection,
        }
    }

    /// Starts the stream after a SYN with this sequence number.
    pub(crate) fn open(&mut self, sequence: u32, out: &mut impl OrderedStream) {
        let first = sequence.wrapping_add(1);
        let next = self.position_of(first);
        *self.position = StreamPosition { next: first, first, start: StreamStart::Syn };
        self.pending.held.drop_before(next);
        self.release_from(next, out);
    }

    /// Whether any byte of it was seen.
    pub(crate) fn has_data(&self) -> bool {
        !self.pending.held.is_empty() || (self.position.is_known() && self.position.next != self.position.first)
    }

    /// Takes a segment with payload.
    #[inline]
    pub(crate) fn segment(&mut self, segment: &Segment<'_>, out: &mut impl OrderedStream) {
        let is_syn = segment.flags & Segment::SYN != 0;
        let sequence = segment.sequence.wrapping_add(is_syn.into());
        let chunk = Chunk::of(segment);
        if !self.position.is_known() {
            self.hold_until_start(sequence, chunk, out);
        } else if sequence == self.position.next && self.pending.held.is_empty() {
            self.position.next = sequence.wrapping_add(chunk.length() as u32);
            self.pending.strays = 0;
            out.chunk(chunk);
        } else {
            self.put_in_order(sequence, chunk, out);
        }
    }

    fn put_in_order(&mut self, sequence: u32, chunk: Chunk<'_>, out: &mut impl OrderedStream) {
        let distance = i64::from(sequence.wrapping_sub(self.position.next).cast_signed());
        if distance.abs() > WINDOW {
            return self.stray(sequence, chunk, out);
        }
        self.pending.strays = 0;
        let next = self.position_of(self.position.next);
        let start = next.saturating_add_signed(distance);
        if start + chunk.length() <= next {
            return out.retransmitted();
        }
        if start > next {
            out.out_of_order();
        }
        self.hold(start, chunk, out);
        self.release_from(next, out);
    }

    fn hold_until_start(&mut self, sequence: u32, chunk: Chunk<'_>, out: &mut impl OrderedStream) {
        let start = self.position_of(sequence);
        if start.abs_diff(self.near(sequence)) > WINDOW as u64 {
            return self.stray(sequence, chunk, out);
        }
        self.hold(start, chunk, out);
        if self.pending.held.len() >= FIRST_SEGMENTS {
            self.give_up(out);
        }
    }

    /// Counts a segment outside the window; the last of several in a row moves the stream there.
    fn stray(&mut self, sequence: u32, chunk: Chunk<'_>, out: &mut impl OrderedStream) {
        self.pending.strays += 1;
        out.retransmitted();
        if self.pending.strays < MAX_STRAYS {
            return;
        }
        while self.give_up(out) {}
        self.pending.strays = 0;
        out.gap(0, chunk.time_ns);
        self.position.next = sequence.wrapping_add(chunk.length() as u32);
        out.chunk(chunk);
    }

    /// Gives up the first gap, or the wait for an earlier first byte, and passes on what follows. False if nothing is
    /// held.
    pub(crate) fn give_up(&mut self, out: &mut impl OrderedStream) -> bool {
        let Some((start, time_ns)) = self.pending.held.first() else { return false };
        if self.position.is_known() {
            out.gap(start.saturating_sub(self.position_of(self.position.next)), time_ns);
        } else {
            *self.position = StreamPosition { next: 0, first: start as u32, start: StreamStart::Assumed };
        }
        self.release_from(start, out);
        true
    }

    /// Holds those bytes of a chunk that are not held yet.
    fn hold(&mut self, start: u64, mut chunk: Chunk<'_>, out: &mut impl OrderedStream) {
        if self.pending.held.is_empty() {
            self.pending.near = start;
        }
        let mut at = start;
        if self.position.is_known() {
            at += chunk.advance(self.position_of(self.position.next).saturating_sub(at)).1;
        }
        while !chunk.is_empty() {
            if let Some(mut held) = self.pending.held.rest_from(at) {
                let (first, covered) = held.advance(chunk.length());
                let (second, _) = chunk.advance(covered);
                if first.iter().zip(second).any(|(first, second)| first != second) {
                    out.conflict(chunk.time_ns);
                }
                at += covered;
                continue;
            }
            let room = self.pending.held.next_start(at).map_or(u64::MAX, |next| next - at);
            self.pending.held.insert(at, chunk.first(room));
            at += chunk.advance(room).1;
        }
    }

    /// Passes on the held segments that continue the stream from this position, which is its next one.
    fn release_from(&mut self, mut next: u64, out: &mut impl OrderedStream) {
        while let Some(held) = self.pending.held.take_at(next) {
            next += held.chunk().length();
            out.chunk(held.chunk());
        }
        self.position.next = next as u32;
        self.pending.near = next;
    }

    /// The position that a sequence number stands for.
    fn position_of(&self, sequence: u32) -> u64 {
        let near = self.near(sequence);
        near.saturating_add_signed(sequence.wrapping_sub(near as u32).cast_signed().into())
    }

    /// A position near the stream's present one: any will do while nothing is held.
    fn near(&self, sequence: u32) -> u64 {
        if self.pending.held.is_empty() { ORIGIN + u64::from(sequence) } else { self.pending.near }
    }
}

#[cfg(test)]
mod tests;
