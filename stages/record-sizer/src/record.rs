//! The TLS record layer: headers that are plausible, and the walk from one to the next along a stream.
//!
//! Of a record only the 5-byte header is looked at; the body is skipped by its length (RFC 8446 section 5.1, RFC 5246
//! section 6.2.1).

use sizeleak_frame::ContentType;

use crate::piece::Piece;

/// The most bytes a record's body may have: 2¹⁴ + 2048 (RFC 5246 section 6.2.3; TLS 1.3 allows less).
pub(crate) const MOST_BODY: u16 = (1 << 14) + 2048;

/// Bytes of a record's header.
pub(crate) const HEADER: usize = 5;

/// A plausible record header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) content_type: ContentType,
    /// The version's second byte; the first is 3.
    pub(crate) minor: u8,
    pub(crate) length: u16,
}

impl Header {
    /// Reads a header; `None` where no TLS record begins so.
    #[inline]
    pub(crate) fn parse([content_type, major, minor, high, low]: [u8; HEADER]) -> Option<Self> {
        let content_type = ContentType::try_from(content_type).ok()?;
        let length = u16::from_be_bytes([high, low]);
        let plausible = major == 3 && minor <= 4 && length <= MOST_BODY;
        plausible.then_some(Self { content_type, minor, length })
    }
}

/// A record whose header was seen and whose end was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sized {
    pub(crate) header: Header,
    pub(crate) start_ns: i64,
    pub(crate) time_ns: i64,
}

/// Walks from header to header. It never looks for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walker {
    state: State,
    start_ns: i64,
    last_ns: i64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Header { bytes: [u8; HEADER], have: u8 },
    Body { header: Header, left: u16 },
}

/// A record whose header was seen and whose end was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) header: Header,
    /// Bytes of its body that are still to come.
    pub(crate) left: u16,
    pub(crate) start_ns: i64,
    /// When the last of its bytes was captured.
    pub(crate) last_ns: i64,
}

/// What a walk came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// The piece is used up.
    More,
    /// A header is complete; its body follows.
    Header(Header),
    /// Some of a body; `whole` unless some of it was hidden.
    Body { header: Header, bytes: &'a [u8], whole: bool },
    /// A record is complete.
    Record(Sized),
    /// What should be a header is none; these are its bytes.
    Implausible([u8; HEADER]),
    /// A header lies in bytes that were not captured.
    Hidden,
}

/// How far a walk came that looks at headers alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skimmed<'a> {
    /// What it has left.
    pub(crate) rest: &'a [u8],
    /// The version of the last header, if it came to one.
    pub(crate) minor: Option<u8>,
}

/// What a gap in the stream means to a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bridge {
    /// The gap is inside a body: the next header is where it would have been.
    Inside,
    /// The gap swallowed the next header, after the end of a record whose own header was seen.
    Past(Sized),
    /// The gap swallowed a header.
    Lost,
}

impl Walker {
    /// A walk that stands before a header.
    pub(crate) fn new() -> Self {
        Self { state: State::Header { bytes: [0; HEADER], have: 0 }, start_ns: 0, last_ns: 0 }
    }

    /// A walk that stands before a header whose first bytes were seen already.
    pub(crate) fn resume(seen: &[u8], time_ns: i64) -> Self {
        let mut bytes = [0; HEADER];
        for (place, byte) in bytes.iter_mut().zip(seen) {
            *place = *byte;
        }
        let have = seen.len().min(HEADER) as u8;
        Self { state: State::Header { bytes, have }, start_ns: time_ns, last_ns: time_ns }
    }

    /// Whether a record has begun and not ended.
    pub(crate) fn is_inside(&self) -> bool {
        !matches!(self.state, State::Header { have: 0, .. })
    }

    /// A walk inside a record, of whose body `left` bytes are still to come; before a header where that is none.
    pub(crate) fn within(record: Begun) -> Self {
        let Begun { header, left, start_ns, last_ns } = record;
        match left {
            0 => Self::new(),
            _ => Self { state: State::Body { header, left }, start_ns, last_ns },
        }
    }

    /// The record it is inside of.
    pub(crate) fn begun(&self) -> Option<Begun> {
        let State::Body { header, left } = self.state else { return None };
        Some(Begun { header, left, start_ns: self.start_ns, last_ns: self.last_ns })
    }

    /// Goes on by one step along a piece.
    #[inline]
    pub(crate) fn step<'a>(&mut self, piece: &mut Piece<'a>) -> Step<'a> {
        match self.state {
            State::Header { bytes, have } => self.header(bytes, have, piece),
            State::Body { header, left: 0 } => Step::Record(self.end(header)),
            State::Body { header, left } => {
                if piece.is_empty() {
                    return Step::More;
                }
                let (bytes, taken) = piece.advance(left.into());
                // Segments out of order bring their times out of order.
                self.last_ns = self.last_ns.max(piece.time_ns);
                self.state = State::Body { header, left: left - taken as u16 };
                Step::Body { header, bytes, whole: bytes.len() as u64 == taken }
            }
        }
    }

    /// Goes over records, and over parts of them, as long as nobody needs their bytes, and hands on each record that ends. It
    /// comes to the same as [`step`](Self::step), for captured bytes alone; what it leaves is for that.
    #[inline]
    pub(crate) fn skim<'a>(&mut self, payload: &'a [u8], time_ns: i64, mut ended: impl FnMut(Sized)) -> Skimmed<'a> {
        let (mut rest, mut minor) = (payload, None);
        loop {
            let (header, left) = match self.state {
                State::Body { header, left } => (header, left),
                State::Header { have: 0, .. } => {
                    let Some((bytes, behind)) = rest.split_first_chunk() else { break };
                    let Some(header) = Header::parse(*bytes) else { break };
                    if header.content_type == ContentType::Handshake {
                        break;
                    }
                    rest = behind;
                    minor = Some(header.minor);
                    (self.start_ns, self.last_ns) = (time_ns, time_ns);
                    (header, header.length)
                }
                State::Header { .. } => break,
            };
            if header.content_type == ContentType::Handshake {
                break;
            }
            let Some(behind) = rest.get(left.into()..) else {
                if !rest.is_empty() {
                    self.last_ns = self.last_ns.max(time_ns);
                }
                self.state = State::Body { header, left: left - rest.len() as u16 };
                rest = &[];
                break;
            };
            if left > 0 {
                self.last_ns = self.last_ns.max(time_ns);
            }
            rest = behind;
            ended(self.end(header));
        }
        Skimmed { rest, minor }
    }

    #[inline]
    fn header<'a>(&mut self, mut bytes: [u8; HEADER], have: u8, piece: &mut Piece<'a>) -> Step<'a> {
        if piece.is_empty() {
            return Step::More;
        }
        if have == 0 {
            (self.start_ns, self.last_ns) = (piece.time_ns, piece.time_ns);
        }
        let seen = piece.advance_captured(HEADER - usize::from(have));
        for (place, byte) in bytes.iter_mut().skip(have.into()).zip(seen) {
            *place = *byte;
        }
        let have = have + seen.len() as u8;
        self.last_ns = self.last_ns.max(piece.time_ns);
        self.state = State::Header { bytes, have };
        if usize::from(have) < HEADER {
            return if piece.is_empty() { Step::More } else { Step::Hidden };
        }
        match Header::parse(bytes) {
            Some(header) => {
                self.state = State::Body { header, left: header.length };
                Step::Header(header)
            }
            None => Step::Implausible(bytes),
        }
    }

    /// Takes note of bytes that are missing.
    pub(crate) fn gap(&mut self, length: u64) -> Bridge {
        match self.state {
            State::Body { header, left } if length <= left.into() => {
                self.state = State::Body { header, left: left - length as u16 };
                Bridge::Inside
            }
            State::Body { header, .. } => Bridge::Past(self.end(header)),
            State::Header { .. } => Bridge::Lost,
        }
    }

    #[inline]
    fn end(&mut self, header: Header) -> Sized {
        let sized = Sized { header, start_ns: self.start_ns, time_ns: self.last_ns };
        *self = Self::new();
        sized
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(payload: &[u8], hidden: u32, time_ns: i64) -> Piece<'_> {
        Piece { time_ns, payload, hidden, starts_segment: true, ends_segment: true }
    }

    /// The records of a walk over pieces; the walk must not be lost.
    fn walk(walker: &mut Walker, mut piece: Piece<'_>) -> Vec<(u16, i64, i64)> {
        let mut records = Vec::new();
        loop {
            match walker.step(&mut piece) {
                Step::More => return records,
                Step::Record(record) => records.push((record.header.length, record.start_ns, record.time_ns)),
                Step::Header(_) | Step::Body { .. } => {}
                lost => panic!("{lost:?}"),
            }
        }
    }

    #[test]
    fn what_is_a_header() {
        let length = |bytes| Header::parse(bytes).map(|header| header.length);
        assert_eq!(length([23, 3, 3, 0, 40]), Some(40));
        assert_eq!(length([24, 3, 4, 0x48, 0]), Some(MOST_BODY));
        assert_eq!(length([23, 3, 3, 0, 0]), Some(0));
        for none in [[19, 3, 3, 0, 1], [25, 3, 3, 0, 1], [23, 2, 3, 0, 1], [23, 3, 5, 0, 1]] {
            assert_eq!(length(none), None);
        }
        assert_eq!(length([23, 3, 3, 0x48, 1]), None);
    }

    #[test]
    fn many_in_a_piece_and_one_in_many_pieces() {
        let bytes = [23, 3, 3, 0, 2, 9, 9, 21, 3, 3, 0, 1, 9, 23, 3, 3, 0, 0];
        let expected = [(2, 5, 5), (1, 5, 5), (0, 5, 5)];
        assert_eq!(walk(&mut Walker::new(), piece(&bytes, 0, 5)), expected);
        let mut walker = Walker::new();
        let each: Vec<_> =
            (0i64..).zip(&bytes).flat_map(|(at, byte)| walk(&mut walker, piece(&[*byte], 0, at))).collect();
        assert_eq!(each, [(2, 0, 6), (1, 7, 12), (0, 13, 17)]);
        assert!(!walker.is_inside());
    }

    proptest! {
        /// To skim and to walk on come to the same as to walk.
        #[test]
        fn skimming_is_walking(
            records in prop::collection::vec((20u8..=24, 0u16..40), 0..12), garbage in 0usize..7,
            cuts in prop::collection::vec(1usize..60, 0..20), late in prop::collection::vec(0i64..5, 20),
        ) {
            let mut bytes: Vec<u8> = records.iter().flat_map(|(kind, length)| {
                [&[*kind, 3, 3][..], &length.to_be_bytes(), &vec![*kind; (*length).into()]].concat()
            }).collect();
            bytes.extend(vec![0; garbage]);
            let (mut walked, mut skimmed) = ((Walker::new(), Vec::new()), (Walker::new(), Vec::new()));
            let mut rest = bytes.as_slice();
            for (at, cut) in cuts.into_iter().chain([usize::MAX]).enumerate() {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                rest = later;
                let time_ns = late.get(at).map_or(99, |late| i64::from(at as u32) * 2 - late);
                let left = skimmed.0.skim(now, time_ns, |record| skimmed.1.push(record)).rest;
                let ends = [(&mut walked, now), (&mut skimmed, left)].map(|((walker, found), bytes)| {
                    let mut piece = piece(bytes, 0, time_ns);
                    loop {
                        match walker.step(&mut piece) {
                            Step::Record(record) => found.push(record),
                            Step::Header(_) | Step::Body { .. } => {}
                            end => return (format!("{end:?}"), piece.payload.len()),
                        }
                    }
                });
                prop_assert_eq!(&ends[0], &ends[1]);
                if ends[0].0 != "More" {
                    break;
                }
            }
            prop_assert_eq!(walked.1, skimmed.1);
        }
    }

    #[test]
    fn hidden_bodies_are_skipped_and_hidden_headers_are_told() {
        let mut walker = Walker::new();
        assert_eq!(walk(&mut walker, piece(&[23, 3, 3, 1, 0, 7], 255, 1)), [(256, 1, 1)]);
        let mut cut = piece(&[23, 3], 10, 2);
        assert_eq!(walker.step(&mut cut), Step::Hidden);
    }

    #[test]
    fn gaps_inside_and_past_a_body() {
        let mut walker = Walker::new();
        assert_eq!(walker.gap(1), Bridge::Lost);
        walk(&mut walker, piece(&[23, 3, 3, 0, 9, 1], 0, 4));
        assert!(walker.is_inside());
        assert_eq!(walker.gap(7), Bridge::Inside);
        let mut past = walker;
        assert!(matches!(past.gap(2), Bridge::Past(Sized { start_ns: 4, time_ns: 4, .. })));
        assert_eq!(walk(&mut walker, piece(&[1], 0, 6)), [(9, 4, 6)]);
    }
}
