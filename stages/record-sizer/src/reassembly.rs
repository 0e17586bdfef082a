//! One direction of a TCP connection put in order: pieces of the stream, and gaps where bytes are missing.
//!
//! In-order segments pass straight through. What comes early waits, first data wins where segments overlap (RFC 9293
//! leaves the choice open), and a hole is given up when its time is over or memory is needed. A connection seen from
//! the middle has no known beginning: its first segments wait a moment for those that should have come before them.

use sizeleak_frame::Segment;

use crate::parts::{Part, Parts};
use crate::piece::Piece;

/// A segment further than this from where the stream stands belongs to no window: no sender has so much in flight.
const WINDOW: i64 = 16 << 20;

/// After so many segments in a row outside the window, the stream is taken to have moved there.
const MOST_STRAYS: u8 = 3;

/// So many segments tell where a connection seen from the middle begins, if its time is not over before.
const FIRST_SEGMENTS: usize = 4;

/// What a segment that waits costs besides its payload, in bytes.
const PART_COST: usize = 96;

/// What a direction costs in which any does.
const WAITING_COST: usize = 256;

/// Where positions begin: far enough from zero for segments before the first one.
const ORIGIN: u64 = 1 << 32;

/// Takes what reassembly puts in order.
pub(crate) trait Ordered {
    /// The next bytes of the stream.
    fn piece(&mut self, piece: Piece<'_>);
    /// The next `length` bytes of the stream are missing.
    fn gap(&mut self, length: u64, time_ns: i64);
    /// Bytes that came again and differ from the first ones.
    fn conflict(&mut self, time_ns: i64);
    /// A segment that brought nothing new.
    fn repeated(&mut self);
    /// A segment that came before its turn.
    fn early(&mut self);
}

/// The state of one direction.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// The position that comes next, once it is known; its low 32 bits are the sequence number.
    next: Option<u64>,
    /// The sequence number of its first byte.
    begins: Option<u32>,
    /// Whether a SYN told so.
    opened: bool,
    strays: u8,
    waiting: Option<Box<Waiting>>,
}

/// Where a direction stands of which no segment waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The sequence number that comes next.
    pub(crate) next: u32,
    /// That of the first byte, as far as it is known.
    pub(crate) begins: u32,
    pub(crate) beginning: Beginning,
}

/// What is known of the beginning of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Nothing of the direction was seen.
    Unseen,
    /// It was missed.
    Missed,
    /// It is the first byte that was seen.
    Assumed,
    /// A SYN told.
    Opened,
}

#[derive(Debug)]
struct Waiting {
    parts: Parts,
    /// The position of the first segment that waited, for translating sequence numbers while `next` is unknown.
    near: u64,
    bytes: usize,
}

/// What a SYN means to a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It was seen before, or belongs to what was seen before it.
    Known,
    /// It opens a stream where none was.
    First,
    /// It opens another connection on the same ports.
    Another,
}

impl Reassembly {
    /// What a SYN with this sequence number means here.
    pub(crate) fn opening(&self, sequence: u32) -> Opening {
        let begins = sequence.wrapping_add(1);
        match self.begins {
            Some(known) if known == begins => Opening::Known,
            None if self.waiting.as_ref().is_none_or(|waiting| close(waiting.near, begins)) => Opening::First,
            _ => Opening::Another,
        }
    }

    /// Where it stands, if no segment waits.
    pub(crate) fn position(&self) -> Option<Position> {
        let settled = self.waiting.is_none() && self.strays == 0;
        let beginning = match (self.begins, self.next) {
            (None, None) => Beginning::Unseen,
            (None, Some(_)) => Beginning::Missed,
            (Some(_), _) if self.opened => Beginning::Opened,
            (Some(_), _) => Beginning::Assumed,
        };
        let next = self.next.map_or(0, |next| next as u32);
        settled.then_some(Position { next, begins: self.begins.unwrap_or_default(), beginning })
    }

    /// A direction that stands there.
    pub(crate) fn standing_at(position: Position) -> Self {
        let Position { next, begins, beginning } = position;
        let begins = matches!(beginning, Beginning::Assumed | Beginning::Opened).then_some(begins);
        let next = (beginning != Beginning::Unseen).then_some(ORIGIN + u64::from(next));
        Self { next, begins, opened: beginning == Beginning::Opened, ..Self::default() }
    }

    /// Begins the stream after a SYN.
    pub(crate) fn open(&mut self, sequence: u32, out: &mut impl Ordered) {
        let begins = sequence.wrapping_add(1);
        (self.begins, self.opened) = (Some(begins), true);
        self.next = Some(self.waiting.as_ref().map_or(ORIGIN + u64::from(begins), |waiting| at(waiting.near, begins)));
        self.drop_before();
        self.drain(out);
    }

    /// Whether any byte of it was seen.
    pub(crate) fn has_data(&self) -> bool {
        self.waiting.is_some() || self.next.map(|next| next as u32) != self.begins
    }

    /// Whether its beginning was seen.
    pub(crate) fn saw_beginning(&self) -> bool {
        self.opened
    }

    /// Bytes of memory held by segments that wait.
    pub(crate) fn held(&self) -> usize {
        self.waiting.as_ref().map_or(0, |waiting| waiting.bytes)
    }

    /// When the first of the segments that wait was captured.
    pub(crate) fn waits_since(&self) -> Option<i64> {
        self.waiting.as_ref()?.parts.first().map(|(_, part)| part.time_ns)
    }

    /// Whether the beginning of the stream is still open.
    pub(crate) fn is_unanchored(&self) -> bool {
        self.next.is_none()
    }

    /// Takes a segment with payload.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "nearly all come in order, and for those there is little to do")]
    pub(crate) fn take(&mut self, segment: &Segment<'_>, out: &mut impl Ordered) {
        let is_syn = segment.flags & Segment::SYN != 0;
        let sequence = segment.sequence.wrapping_add(is_syn.into());
        let piece = Piece::of(segment);
        match self.next {
            Some(next) if sequence == next as u32 && self.waiting.is_none() => {
                self.next = Some(next + piece.length());
                self.strays = 0;
                out.piece(piece);
            }
            _ => self.put_in_order(sequence, piece, out),
        }
    }

    /// Takes a piece that does not come in order, or of a stream where nothing was in order yet.
    #[inline(never)]
    fn put_in_order(&mut self, sequence: u32, piece: Piece<'_>, out: &mut impl Ordered) {
        let length = piece.length();
        let Some(next) = self.next else { return self.wait_for_beginning(sequence, piece, out) };
        let distance = i64::from(sequence.wrapping_sub(next as u32).cast_signed());
        if distance.abs() > WINDOW {
            return self.stray(sequence, piece, out);
        }
        self.strays = 0;
        let start = next.saturating_add_signed(distance);
        if start + length <= next {
            return out.repeated();
        }
        if start > next {
            out.early();
        }
        self.insert(start, piece, out);
        self.drain(out);
    }

    fn wait_for_beginning(&mut self, sequence: u32, piece: Piece<'_>, out: &mut impl Ordered) {
        let near = self.waiting.as_ref().map_or(ORIGIN + u64::from(sequence), |waiting| waiting.near);
        let start = at(near, sequence);
        if start.abs_diff(near) > WINDOW as u64 {
            return self.stray(sequence, piece, out);
        }
        self.insert(start, piece, out);
        if self.waiting.as_ref().is_some_and(|waiting| waiting.parts.len() >= FIRST_SEGMENTS) {
            self.give_up(out);
        }
    }

    fn stray(&mut self, sequence: u32, piece: Piece<'_>, out: &mut impl Ordered) {
        self.strays += 1;
        out.repeated();
        if self.strays < MOST_STRAYS {
            return;
        }
        while self.give_up(out) {}
        self.strays = 0;
        out.gap(0, piece.time_ns);
        self.next = Some(ORIGIN + u64::from(sequence) + piece.length());
        out.piece(piece);
    }

    /// Gives up the first hole, or the wait for an earlier beginning: what is behind it follows. False where nothing waits.
    pub(crate) fn give_up(&mut self, out: &mut impl Ordered) -> bool {
        let Some((start, time_ns)) =
            self.waiting.as_ref().and_then(|waiting| waiting.parts.first().map(|(start, part)| (start, part.time_ns)))
        else {
            return false;
        };
        match self.next {
            Some(next) => out.gap(start.saturating_sub(next), time_ns),
            None => self.begins = Some(start as u32),
        }
        self.next = Some(start);
        self.drain(out);
        true
    }

    /// Holds what of a piece is not held yet.
    fn insert(&mut self, start: u64, mut piece: Piece<'_>, out: &mut impl Ordered) {
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::new(Waiting { parts: Parts::default(), near: start, bytes: WAITING_COST }));
        let mut at = start;
        if let Some(next) = self.next.filter(|next| *next > at) {
            at += piece.advance(next - at).1;
        }
        while !piece.is_empty() {
            let before = waiting.parts.at_or_before(at);
            if let Some((start, part)) = before.filter(|(start, part)| start + part.piece().length() > at) {
                let mut held = part.piece();
                held.advance(at - start);
                let (known, covered) = held.advance(piece.length());
                let (again, _) = piece.advance(covered);
                if known.iter().zip(again).any(|(first, second)| first != second) {
                    out.conflict(piece.time_ns);
                }
                at += covered;
                continue;
            }
            let room = waiting.parts.start_from(at).map_or(u64::MAX, |start| start - at);
            let new = piece.first(room);
            waiting.bytes += new.payload.len() + PART_COST;
            waiting.parts.insert(
                at,
                Part {
                    time_ns: new.time_ns,
                    payload: new.payload.into(),
                    hidden: new.hidden,
                    starts_segment: new.starts_segment,
                    ends_segment: new.ends_segment,
                },
            );
            at += piece.advance(room).1;
        }
    }

    /// Hands on what is no longer behind a hole.
    fn drain(&mut self, out: &mut impl Ordered) {
        let (Some(waiting), Some(mut next)) = (self.waiting.as_mut(), self.next) else { return };
        while let Some(part) = waiting.parts.take_at(next) {
            waiting.bytes -= part.payload.len() + PART_COST;
            next += part.piece().length();
            out.piece(part.piece());
        }
        self.next = Some(next);
        if waiting.parts.is_empty() {
            self.waiting = None;
        }
    }

    /// Forgets what waits from before the beginning.
    fn drop_before(&mut self) {
        let (Some(waiting), Some(next)) = (self.waiting.as_mut(), self.next) else { return };
        while let Some(part) = waiting.parts.take_before(next) {
            waiting.bytes -= part.payload.len() + PART_COST;
        }
        if waiting.parts.is_empty() {
            self.waiting = None;
        }
    }
}

/// The position of a sequence number, nearest to another position.
fn at(near: u64, sequence: u32) -> u64 {
    near.saturating_add_signed(sequence.wrapping_sub(near as u32).cast_signed().into())
}

fn close(near: u64, sequence: u32) -> bool {
    at(near, sequence).abs_diff(near) <= WINDOW as u64
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Direction;

    use super::*;

    /// What came out.
    #[derive(Default)]
    struct Seen {
        bytes: Vec<u8>,
        gaps: Vec<u64>,
        conflicts: usize,
        hidden: u32,
    }

    impl Ordered for Seen {
        fn piece(&mut self, piece: Piece<'_>) {
            self.bytes.extend(piece.payload);
            self.hidden += piece.hidden;
        }

        fn gap(&mut self, length: u64, _: i64) {
            self.gaps.push(length);
        }

        fn conflict(&mut self, _: i64) {
            self.conflicts += 1;
        }

        fn repeated(&mut self) {}

        fn early(&mut self) {}
    }

    fn segment(sequence: u32, payload: &[u8]) -> Segment<'_> {
        let length = payload.len() as u32;
        Segment { time_ns: 1, flow: 1, direction: Direction::ToGateway, sequence, flags: 16, length, payload }
    }

    fn opened(sequence: u32) -> (Reassembly, Seen) {
        let (mut reassembly, mut seen) = (Reassembly::default(), Seen::default());
        assert_eq!(reassembly.opening(sequence), Opening::First);
        reassembly.open(sequence, &mut seen);
        (reassembly, seen)
    }

    #[test]
    fn first_data_wins_across_the_wrap() {
        let (mut reassembly, mut seen) = opened(u32::MAX - 3);
        reassembly.take(&segment(1, b"efg"), &mut seen);
        reassembly.take(&segment(u32::MAX, b"bcXYZhi"), &mut seen);
        assert_eq!((seen.bytes.len(), seen.conflicts), (0, 1));
        reassembly.take(&segment(u32::MAX - 2, b"__"), &mut seen);
        assert_eq!(seen.bytes, b"__bcefghi");
        assert_eq!(reassembly.held(), 0);
    }

    #[test]
    fn holes_are_given_up_one_by_one() {
        let (mut reassembly, mut seen) = opened(99);
        reassembly.take(&segment(110, b"b"), &mut seen);
        reassembly.take(&segment(120, b"c"), &mut seen);
        assert_eq!(reassembly.waits_since(), Some(1));
        assert!(reassembly.give_up(&mut seen));
        assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"b"[..], &[10][..]));
        assert!(reassembly.give_up(&mut seen));
        assert!(!reassembly.give_up(&mut seen));
        assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"bc"[..], &[10, 9][..]));
    }

    #[test]
    fn a_stream_seen_from_the_middle_waits_for_its_beginning() {
        let (mut reassembly, mut seen) = (Reassembly::default(), Seen::default());
        reassembly.take(&segment(1005, b"fgh"), &mut seen);
        reassembly.take(&segment(1000, b"abcde"), &mut seen);
        assert!(seen.bytes.is_empty() && reassembly.is_unanchored());
        reassembly.give_up(&mut seen);
        assert_eq!((seen.bytes.as_slice(), seen.gaps.len()), (&b"abcdefgh"[..], 0));
        assert_eq!(reassembly.opening(999), Opening::Known, "its SYN comes late");
        assert_eq!(reassembly.opening(5000), Opening::Another);
    }

    #[test]
    fn a_stream_that_moves_away_is_followed() {
        let (mut reassembly, mut seen) = opened(0);
        reassembly.take(&segment(1, b"a"), &mut seen);
        for number in 0..3 {
            reassembly.take(&segment(0x4000_0000 + number, b"z"), &mut seen);
        }
        reassembly.take(&segment(0x4000_0003, b"y"), &mut seen);
        assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"azy"[..], &[0][..]));
    }

    #[test]
    fn bytes_cut_by_the_snaplen_count() {
        let (mut reassembly, mut seen) = opened(0);
        reassembly.take(&Segment { length: 100, ..segment(1, b"ab") }, &mut seen);
        reassembly.take(&segment(101, b"c"), &mut seen);
        reassembly.take(&Segment { length: 50, ..segment(80, b"") }, &mut seen);
        assert_eq!((seen.bytes.as_slice(), seen.hidden), (&b"abc"[..], 98 + 28));
        assert!(seen.gaps.is_empty());
    }
}
