//! Finding record boundaries in the middle of a stream, without inventing records out of ciphertext.
//!
//! # When a header is believed
//!
//! A place is a *candidate* if a likely header stands there: type 20 to 24, version 3.1 to 3.3 (the flow's own, once it
//! is known), 1 ≤ length ≤ 18432, change-cipher-spec of length 1 and alerts of at most 512. In random bytes that is
//! so at (3 · 18432 + 512) / 65536 · 3 / 2²⁴ = 1.5·10⁻⁷ of all places. A candidate becomes the boundary when
//!
//! 1. another likely header of the same version stands where its record ends: 1.5·10⁻⁷ · 5·10⁻⁸ ≈ 8·10⁻¹⁵ a place; or
//! 2. its record ends where the segment it began in ends: one length fits, so about 3 · 3 / 2²⁴ / 65536 ≈ 8·10⁻¹² a place; or
//! 3. it stands at the beginning of a segment and its record ends at the end of a later one: 13 ends of full segments lie
//!    in reach, about 10⁻¹⁰ a segment; or
//! 4. it is the beginning of a `ClientHello` or `ServerHello` (see [`is_hello`]): 2⁻⁵⁸ a place.
//!
//! Together 8·10⁻¹² a byte searched: one invented record in 120 GB of ciphertext. The search ends at the first boundary
//! found, usually after less than two records (36 KiB, so 3·10⁻⁷ a loss). One weaker rule holds where the capture
//! itself hides the proof (snaplen, or a gap right after): in a direction in which records of that version were sized
//! before, a candidate at the beginning of a segment counts as a record, though not as a boundary found: 5·10⁻⁸ a
//! segment searched.

use sizeleak_frame::ContentType;

use crate::hello::{HELLO, is_hello};
use crate::piece::Piece;
use crate::record::{Bridge, HEADER, Header, Sized, Step, Walker};

/// Candidates followed at once; more than one is rare, and one that comes to nothing ends within 18 KiB.
const MOST_CANDIDATES: usize = 8;

/// After so many bytes without a boundary only beginnings of segments are looked at.
pub(crate) const THOROUGH: u64 = 256 << 10;

/// The longest alert: two bytes, a MAC, padding and an initialization vector, generously.
const MOST_ALERT: u16 = 512;

/// A search for the next boundary.
#[derive(Debug)]
pub(crate) struct Search {
    candidates: Vec<Candidate>,
    tail: [u8; HEADER - 1],
    tail_length: u8,
    tail_ns: i64,
    /// The version of records sized before in this direction.
    minor: Option<u8>,
    /// Captured bytes passed since the search began.
    passed: u64,
}

#[derive(Debug)]
struct Candidate {
    walker: Walker,
    minor: u8,
    headers: u8,
    record: Option<Sized>,
    /// At the beginning of a segment.
    aligned: bool,
    /// Still in the segment it began in.
    fresh: bool,
    /// Bytes passed before it.
    passed: u64,
}

/// What a search came to.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// A boundary: `walker` goes on with `rest`, after `record`. `skipped` captured bytes before it were of no use.
    Boundary { walker: Walker, record: Option<Sized>, skipped: u64, rest: Piece<'a> },
    /// Nothing yet; `alone` are records whose proof the capture hides.
    Nothing { alone: Vec<Sized> },
}

enum Fate<'a> {
    Pending,
    Dead,
    Alone(Sized),
    Boundary(Piece<'a>),
}

impl Search {
    /// A search in a direction where records of version 3.`minor` were sized before, if any were.
    pub(crate) fn new(minor: Option<u8>) -> Self {
        Self { candidates: Vec::new(), tail: [0; HEADER - 1], tail_length: 0, tail_ns: 0, minor, passed: 0 }
    }

    /// Captured bytes passed so far.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Searches on.
    pub(crate) fn piece<'a>(&mut self, piece: Piece<'a>) -> Found<'a> {
        let mut alone = Vec::new();
        let mut at = 0;
        while let Some(candidate) = self.candidates.get_mut(at) {
            candidate.fresh = false;
            match candidate.follow(piece, self.minor) {
                Fate::Pending => at += 1,
                Fate::Boundary(rest) => return self.boundary(at, rest),
                Fate::Alone(record) => {
                    alone.push(record);
                    self.candidates.remove(at);
                }
                Fate::Dead => drop(self.candidates.remove(at)),
            }
        }
        if let Some(found) = self.look(piece, &mut alone) {
            return found;
        }
        self.keep_tail(&piece);
        self.passed += piece.payload.len() as u64;
        Found::Nothing { alone }
    }

    /// Takes note of missing bytes; returns records whose proof is among them.
    pub(crate) fn gap(&mut self, length: u64) -> Vec<Sized> {
        self.tail_length = 0;
        let mut alone = Vec::new();
        let known = self.minor;
        self.candidates.retain_mut(|candidate| match candidate.walker.gap(length) {
            Bridge::Inside => true,
            Bridge::Past(record) => {
                alone.extend(Some(record).filter(|_| candidate.counts_alone(known)));
                false
            }
            Bridge::Lost => {
                alone.extend(candidate.record.filter(|_| candidate.counts_alone(known)));
                false
            }
        });
        alone
    }

    /// Looks for new candidates.
    fn look<'a>(&mut self, piece: Piece<'a>, alone: &mut Vec<Sized>) -> Option<Found<'a>> {
        let thorough = self.passed < THOROUGH;
        if let Some(found) = thorough.then(|| self.look_across(piece)).flatten() {
            return Some(found);
        }
        for (offset, bytes) in piece.payload.windows(HEADER).enumerate() {
            if offset > 0 && !thorough {
                break;
            }
            let Some(header) = likely(bytes, self.minor) else { continue };
            let mut rest = piece;
            rest.advance(offset as u64);
            if rest.payload.get(..HELLO).is_some_and(is_hello) {
                let skipped = self.passed + offset as u64;
                return Some(Found::Boundary { walker: Walker::new(), record: None, skipped, rest });
            }
            let mut candidate = Candidate {
                walker: Walker::new(),
                minor: header.minor,
                headers: 0,
                record: None,
                aligned: rest.starts_segment,
                fresh: true,
                passed: self.passed + offset as u64,
            };
            match candidate.follow(rest, self.minor) {
                Fate::Pending => self.keep(candidate),
                Fate::Boundary(rest) => return Some(candidate.boundary(rest)),
                Fate::Alone(record) => alone.push(record),
                Fate::Dead => {}
            }
        }
        None
    }

    /// Looks at places whose header began in the piece before.
    fn look_across<'a>(&mut self, piece: Piece<'a>) -> Option<Found<'a>> {
        let tail_length = usize::from(self.tail_length);
        let mut joined = [0; 2 * (HEADER - 1)];
        let bytes = self.tail.iter().take(tail_length).chain(piece.payload);
        let length = joined.iter_mut().zip(bytes).map(|(place, byte)| *place = *byte).count();
        let joined = joined.get(..length).unwrap_or_default();
        for (offset, bytes) in joined.windows(HEADER).enumerate().take(tail_length) {
            let Some(header) = likely(bytes, self.minor) else { continue };
            let begun = self.tail.get(offset..tail_length).unwrap_or_default();
            let mut candidate = Candidate {
                walker: Walker::resume(begun, self.tail_ns),
                minor: header.minor,
                headers: 0,
                record: None,
                aligned: false,
                fresh: false,
                passed: self.passed.saturating_sub(begun.len() as u64),
            };
            match candidate.follow(piece, self.minor) {
                Fate::Pending => self.keep(candidate),
                Fate::Boundary(rest) => return Some(candidate.boundary(rest)),
                Fate::Dead | Fate::Alone(_) => {}
            }
        }
        None
    }

    fn keep(&mut self, candidate: Candidate) {
        if self.candidates.len() < MOST_CANDIDATES {
            self.candidates.push(candidate);
        }
    }

    fn boundary<'a>(&mut self, at: usize, rest: Piece<'a>) -> Found<'a> {
        self.candidates.swap_remove(at).boundary(rest)
    }

    fn keep_tail(&mut self, piece: &Piece<'_>) {
        if piece.hidden > 0 {
            self.tail_length = 0;
            return;
        }
        for byte in piece.payload.iter().skip(piece.payload.len().saturating_sub(self.tail.len())) {
            if usize::from(self.tail_length) == self.tail.len() {
                self.tail.rotate_left(1);
                self.tail_length -= 1;
            }
            if let Some(place) = self.tail.get_mut(usize::from(self.tail_length)) {
                *place = *byte;
                self.tail_length += 1;
            }
        }
        self.tail_ns = piece.time_ns;
    }
}

impl Candidate {
    fn follow<'a>(&mut self, mut piece: Piece<'a>, known: Option<u8>) -> Fate<'a> {
        loop {
            match self.walker.step(&mut piece) {
                Step::More => return Fate::Pending,
                Step::Header(header) if self.headers == 0 || header.is_likely(Some(self.minor)) => {
                    self.headers += 1;
                    if self.headers > 1 {
                        return Fate::Boundary(piece);
                    }
                }
                Step::Record(record) => {
                    self.record = Some(record);
                    if piece.is_empty() && piece.ends_segment && (self.aligned || self.fresh) {
                        return Fate::Boundary(piece);
                    }
                }
                Step::Body { .. } => {}
                Step::Hidden => {
                    return self.record.filter(|_| self.counts_alone(known)).map_or(Fate::Dead, Fate::Alone);
                }
                Step::Header(_) | Step::Implausible(_) => return Fate::Dead,
            }
        }
    }

    fn counts_alone(&self, known: Option<u8>) -> bool {
        self.aligned && known == Some(self.minor)
    }

    fn boundary(self, rest: Piece<'_>) -> Found<'_> {
        Found::Boundary { walker: self.walker, record: self.record, skipped: self.passed, rest }
    }
}

impl Header {
    /// Whether it may begin a record where none is known to begin.
    fn is_likely(self, minor: Option<u8>) -> bool {
        let version = match minor {
            Some(minor) => self.minor == minor || self.content_type == ContentType::Handshake,
            None => true,
        };
        let length = match self.content_type {
            ContentType::ChangeCipherSpec => self.length == 1,
            ContentType::Alert => self.length <= MOST_ALERT,
            _ => self.length > 0,
        };
        version && (1..=3).contains(&self.minor) && length
    }
}

fn likely(bytes: &[u8], minor: Option<u8>) -> Option<Header> {
    // Almost every place fails here.
    if bytes.get(1) != Some(&3) {
        return None;
    }
    Header::parse(bytes.try_into().ok()?).filter(|header| header.is_likely(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(payload: &[u8]) -> Piece<'_> {
        Piece { time_ns: 1, payload, hidden: 0, starts_segment: true, ends_segment: true }
    }

    fn record(length: u8) -> Vec<u8> {
        [&[23, 3, 3, 0, length][..], &vec![0x5a; length.into()]].concat()
    }

    /// The bytes skipped before the boundary that a search finds in pieces, if it does.
    fn search(minor: Option<u8>, pieces: &[&[u8]]) -> Option<u64> {
        let mut search = Search::new(minor);
        pieces.iter().find_map(|bytes| match search.piece(piece(bytes)) {
            Found::Boundary { skipped, .. } => Some(skipped),
            Found::Nothing { .. } => None,
        })
    }

    #[test]
    fn a_chain_of_two_wherever_it_is_cut() {
        let bytes = [&[0x5a; 30][..], &record(40), &record(41), &[23, 3]].concat();
        for cut in 1..80 {
            let (one, two) = bytes.split_at(cut);
            assert_eq!(search(None, &[one, two]), Some(30), "{cut}");
        }
        assert_eq!(search(None, &[&bytes[..70]]), None, "one header is not enough");
    }

    #[test]
    fn a_record_that_ends_with_its_segment() {
        let tail = [&[0x5a; 30][..], &record(40)].concat();
        assert_eq!(search(None, &[&tail]), Some(30));
        let whole = record(40);
        let (begins, ends) = whole.split_at(20);
        assert_eq!(search(None, &[begins, ends]), Some(0), "it begins a segment and ends a later one");
        let (begins, ends) = tail.split_at(50);
        assert_eq!(search(None, &[begins, ends]), None, "it does neither in one segment");
    }

    #[test]
    fn versions_and_lengths_that_are_not_likely() {
        let header = |content_type, minor, length| {
            let [high, low] = u16::to_be_bytes(length);
            likely(&[content_type, 3, minor, high, low], Some(3)).is_some()
        };
        assert!(header(23, 3, 18_432) && header(22, 1, 300) && header(20, 3, 1) && header(21, 3, 26));
        assert!(
            !header(23, 2, 300) && !header(20, 3, 2) && !header(21, 3, 600) && !header(23, 4, 9) && !header(23, 3, 0)
        );
    }

    #[test]
    fn what_the_capture_hides_counts_where_records_were_sized_before() {
        for (known, expected) in [(None, 0), (Some(2), 0), (Some(3), 1)] {
            let mut search = Search::new(known);
            let hidden = Piece { hidden: 500, ..piece(&[23, 3, 3, 1, 0, 7]) };
            let Found::Nothing { alone } = search.piece(hidden) else { panic!() };
            assert_eq!(alone.len(), expected);
            search.piece(piece(&[23, 3, 3, 1, 0, 7]));
            assert_eq!(search.gap(10_000).len(), expected);
        }
    }

    #[test]
    fn after_long_in_vain_only_beginnings_of_segments_count() {
        let noise = vec![0x5a; THOROUGH as usize];
        let both = [record(40), record(41), record(42)].concat();
        let inside = [&[0x5a][..], &both].concat();
        assert_eq!(search(None, &[&noise, &inside]), None);
        assert_eq!(search(None, &[&noise, &inside, &both]), Some(THOROUGH + 1 + both.len() as u64));
    }
}
