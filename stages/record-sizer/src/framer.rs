//! From one direction's stream to its records: in step with the headers, searching for them, or waiting for TLS to
//! begin after something else.

use sizeleak_frame::ContentType;

use crate::hello::{HELLO, is_hello, old_client_hello};
use crate::piece::Piece;
use crate::record::{Bridge, HEADER, Sized, Step, Walker};
use crate::resync::{Found, Search, THOROUGH};

/// In so many bytes of another protocol a hello is looked for at every place; after them, only at the beginning of segments.
const CLEAR: u64 = 64 << 10;

/// Takes what a framer finds.
pub(crate) trait Framed {
    /// Bytes of handshake messages, in order.
    fn handshake(&mut self, bytes: &[u8], time_ns: i64);
    /// Some bytes of handshake messages are missing.
    fn handshake_lost(&mut self);
    /// A `ClientHello` in SSL 2's format.
    fn old_hello(&mut self, time_ns: i64);
    /// A record.
    fn record(&mut self, record: Sized);
    /// Boundaries were found again; so many captured bytes before were skipped.
    fn found(&mut self, skipped: u64, time_ns: i64);
    /// What should be a header is none.
    fn malformed(&mut self, time_ns: i64);
    /// So much was looked at in vain that this is no TLS as far as can be told.
    fn not_tls(&mut self, time_ns: i64);
}

/// The state of one direction.
#[derive(Debug)]
pub(crate) struct Framer {
    walker: Walker,
    mode: Mode,
    /// The version of the last header.
    minor: Option<u8>,
}

#[derive(Debug)]
enum Mode {
    /// At the very beginning of the stream.
    Beginning,
    /// In an SSL 2 `ClientHello` of which so many bytes are left.
    OldHello(u64),
    /// In step.
    InStep,
    /// In something that is not TLS, which a hello may end.
    Clear(Box<Clear>),
    /// Out of step.
    Search(Box<Search>),
}

#[derive(Debug, Default)]
struct Clear {
    tail: Vec<u8>,
    tail_ns: i64,
    passed: u64,
}

impl Framer {
    /// A framer for a stream seen from its beginning.
    pub(crate) fn at_beginning() -> Self {
        Self { walker: Walker::new(), mode: Mode::Beginning, minor: None }
    }

    /// A framer for a stream seen from somewhere in the middle.
    pub(crate) fn in_the_middle() -> Self {
        Self { mode: Mode::Search(Box::new(Search::new(None))), ..Self::at_beginning() }
    }

    /// A framer that has sized records of version 3.`minor` and is in step with them.
    pub(crate) fn in_step(minor: u8, walker: Walker) -> Self {
        Self { walker, mode: Mode::InStep, minor: Some(minor) }
    }

    /// Where it is and the version of its records, if it is in step with them.
    pub(crate) fn walker(&self) -> Option<(u8, &Walker)> {
        self.minor.filter(|_| matches!(self.mode, Mode::InStep)).map(|minor| (minor, &self.walker))
    }

    /// Whether a record was found in this direction.
    pub(crate) fn is_tls(&self) -> bool {
        self.minor.is_some()
    }

    /// Whether it ends inside a record.
    pub(crate) fn is_inside(&self) -> bool {
        match self.mode {
            Mode::InStep => self.walker.is_inside(),
            Mode::OldHello(left) => left > 0,
            _ => false,
        }
    }

    /// Takes the next piece of the stream.
    #[inline]
    pub(crate) fn piece(&mut self, mut piece: Piece<'_>, out: &mut impl Framed) {
        if matches!(self.mode, Mode::InStep) {
            let skimmed = self.walker.skim(piece.payload, piece.time_ns, |record| out.record(record));
            self.minor = skimmed.minor.or(self.minor);
            piece = piece.behind(skimmed.rest, piece.hidden);
            if piece.is_empty() {
                return;
            }
        }
        self.look_closely(piece, out);
    }

    #[inline(never)]
    fn look_closely(&mut self, mut piece: Piece<'_>, out: &mut impl Framed) {
        loop {
            let rest = match &mut self.mode {
                Mode::Beginning | Mode::InStep => self.walk(piece, out),
                Mode::OldHello(left) => {
                    *left -= piece.advance(*left).1;
                    if *left > 0 {
                        return;
                    }
                    self.walker = Walker::new();
                    self.mode = Mode::InStep;
                    Some(piece)
                }
                Mode::Clear(_) => self.clear(piece, out),
                Mode::Search(_) => self.search(piece, out),
            };
            match rest {
                Some(rest) => piece = rest,
                None => return,
            }
        }
    }

    /// Takes note of missing bytes; a gap of zero bytes is one of unknown size.
    pub(crate) fn gap(&mut self, length: u64, out: &mut impl Framed) {
        let length = if length == 0 { u64::MAX } else { length };
        match &mut self.mode {
            Mode::InStep => {
                out.handshake_lost();
                match self.walker.gap(length) {
                    Bridge::Inside => return,
                    Bridge::Past(record) => out.record(record),
                    Bridge::Lost => {}
                }
                self.mode = Mode::Search(Box::new(Search::new(self.minor)));
            }
            Mode::Search(search) => {
                for record in search.gap(length) {
                    out.record(record);
                }
            }
            Mode::Clear(clear) => clear.tail.clear(),
            Mode::Beginning | Mode::OldHello(_) => self.mode = Mode::Search(Box::new(Search::new(None))),
        }
    }

    /// Walks from header to header; returns what is left of the piece once that ends.
    fn walk<'a>(&mut self, mut piece: Piece<'a>, out: &mut impl Framed) -> Option<Piece<'a>> {
        loop {
            match self.walker.step(&mut piece) {
                Step::More => return None,
                Step::Header(header) => {
                    self.mode = Mode::InStep;
                    self.minor = Some(header.minor);
                }
                Step::Body { header, bytes, whole } if header.content_type == ContentType::Handshake => {
                    out.handshake(bytes, piece.time_ns);
                    if !whole {
                        out.handshake_lost();
                    }
                }
                Step::Body { .. } => {}
                Step::Record(record) => out.record(record),
                Step::Hidden => {
                    self.out_of_step(&[], piece.time_ns);
                    return Some(piece);
                }
                Step::Implausible(bytes) => {
                    self.no_header(bytes, &piece, out);
                    return Some(piece);
                }
            }
        }
    }

    fn no_header(&mut self, bytes: [u8; HEADER], piece: &Piece<'_>, out: &mut impl Framed) {
        if !matches!(self.mode, Mode::Beginning) {
            out.malformed(piece.time_ns);
            out.handshake_lost();
            self.out_of_step(&bytes, piece.time_ns);
        } else if let Some(length) = old_client_hello(bytes) {
            out.old_hello(piece.time_ns);
            self.mode = Mode::OldHello(length - HEADER as u64);
        } else {
            let clear = Clear { tail: bytes.to_vec(), tail_ns: piece.time_ns, passed: HEADER as u64 };
            self.mode = Mode::Clear(Box::new(clear));
        }
    }

    fn out_of_step(&mut self, seen: &[u8], time_ns: i64) {
        let mut search = Search::new(self.minor);
        // The place itself is no header; those after it may be.
        let payload = seen.get(1..).unwrap_or_default();
        search.piece(Piece { time_ns, payload, hidden: 0, starts_segment: false, ends_segment: false });
        self.mode = Mode::Search(Box::new(search));
    }

    /// Looks for a hello after something that is not TLS.
    fn clear<'a>(&mut self, mut piece: Piece<'a>, out: &mut impl Framed) -> Option<Piece<'a>> {
        let Mode::Clear(clear) = &mut self.mode else { return Some(piece) };
        let before = clear.passed;
        if before >= CLEAR {
            let begins = piece.starts_segment && piece.payload.get(..HELLO).is_some_and(is_hello);
            clear.passed += piece.payload.len() as u64;
            return begins.then(|| self.begin_tls(piece));
        }
        let known = clear.tail.len();
        clear.tail.extend(piece.payload.iter().take(HELLO - 1));
        if let Some(offset) = clear.tail.windows(HELLO).take(known).position(is_hello) {
            let begun = clear.tail.get(offset..known).unwrap_or_default().to_vec();
            let time_ns = clear.tail_ns;
            self.begin_tls(piece);
            let begun = Piece { time_ns, payload: &begun, hidden: 0, starts_segment: false, ends_segment: false };
            self.walk(begun, out);
            return Some(piece);
        }
        if let Some(offset) = piece.payload.windows(HELLO).position(is_hello) {
            piece.advance(offset as u64);
            return Some(self.begin_tls(piece));
        }
        if piece.payload.len() >= HELLO - 1 {
            clear.tail.clear();
            clear.tail.extend(piece.payload.iter().skip(piece.payload.len() - (HELLO - 1)));
        } else {
            clear.tail.drain(..clear.tail.len().saturating_sub(HELLO - 1));
        }
        if piece.hidden > 0 {
            clear.tail.clear();
        }
        clear.tail_ns = piece.time_ns;
        clear.passed += piece.payload.len() as u64;
        if clear.passed >= CLEAR {
            out.not_tls(piece.time_ns);
        }
        None
    }

    fn begin_tls<'a>(&mut self, piece: Piece<'a>) -> Piece<'a> {
        self.walker = Walker::new();
        self.mode = Mode::InStep;
        piece
    }

    fn search<'a>(&mut self, piece: Piece<'a>, out: &mut impl Framed) -> Option<Piece<'a>> {
        let Mode::Search(search) = &mut self.mode else { return Some(piece) };
        let before = search.passed();
        match search.piece(piece) {
            Found::Boundary { walker, record, skipped, rest } => {
                self.walker = walker;
                self.mode = Mode::InStep;
                out.found(skipped, piece.time_ns);
                if let Some(record) = record {
                    self.minor = Some(record.header.minor);
                    out.record(record);
                }
                Some(rest)
            }
            Found::Nothing { alone } => {
                if self.minor.is_none() && before < THOROUGH && search.passed() >= THOROUGH {
                    out.not_tls(piece.time_ns);
                }
                for record in alone {
                    out.record(record);
                }
                None
            }
        }
    }
}
