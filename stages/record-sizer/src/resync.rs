//! Finds record boundaries in the middle of a stream, without taking ciphertext for records; and the start of a TLS
//! connection in a stream that began with something else, by byte patterns that are specific enough.
//!
//! # When a header is believed
//!
//! A position is a *candidate* if a likely header stands there: type 20 to 24, version 3.1 to 3.3 (any of
//! them: the last one seen may have been forged), 1 ≤ length ≤ 18432, change-cipher-spec of length 1 and alerts of at most 512 bytes. In
//! random bytes that holds for (3 · 18432 + 512) / 65536 · 3 / 2²⁴ = 1.5·10⁻⁷ of all positions. A candidate becomes
//! the boundary when
//!
//! 1. another likely header of the same version follows its record: 1.5·10⁻⁷ · 5·10⁻⁸ ≈ 8·10⁻¹⁵ a position; or
//! 2. its record ends where the segment it starts in ends: one length fits, so about 3 · 3 / 2²⁴ / 65536 ≈ 8·10⁻¹² a
//!    position; or
//! 3. it stands at the start of a segment and its record ends at the end of a later one: 13 ends of full segments are
//!    within reach, about 10⁻¹⁰ a segment; or
//! 4. it is the start of a `ClientHello` or `ServerHello` (see [`is_hello`]): 2⁻⁵⁸ a position.
//!
//! Together 8·10⁻¹² a byte searched: one invented record in 120 GB of ciphertext. The search ends at the first
//! boundary found, usually after less than two records (36 KiB, so 3·10⁻⁷ a loss). One weaker rule applies where the
//! capture itself hides the proof (snaplen, or a gap right after): in a direction in which records of that version
//! were sized before, a candidate at the start of a segment counts as a record, though not as a boundary: 5·10⁻⁸ a
//! segment searched.

use serde::{Deserialize, Serialize};
use sizeleak_frame::ContentType;

use crate::chunk::Chunk;
use crate::record::{GapEffect, HEADER, Header, MAX_BODY, RecordWalker, SizedRecord, Step};

pub(crate) const HELLO: usize = 11;

pub(crate) const MAX_HELLO: u32 = 1 << 15;

/// Bytes of another protocol in which every position is looked at; after them, only the starts of segments are.
const THOROUGH_HELLO: u64 = 64 << 10;

/// Whether a handshake record with a `ClientHello` or a `ServerHello` starts with these bytes (RFC 8446 section 4).
/// Fewer than one in 2⁵⁸ positions of random bytes match.
pub(crate) fn is_hello(bytes: &[u8]) -> bool {
    // TLCP (GB/T 38636) has version 1.1.
    let ([22, 3, 0..=4, high, low, 1 | 2, message @ .., 3, 0..=4] | [22, 1, 1, high, low, 1 | 2, message @ .., 1, 1]) =
        bytes
    else {
        return false;
    };
    let [long, middle, short] = message else { return false };
    let record = u32::from_be_bytes([0, 0, *high, *low]);
    let message = u32::from_be_bytes([0, *long, *middle, *short]);
    // At least a version, 32 random bytes and four lengths. A message may continue in further records, and a server's
    // hello may be followed by other messages in the same record.
    let fits = record >= 42 && record <= MAX_BODY.into() && (38..=MAX_HELLO).contains(&message);
    fits && (bytes.get(HEADER) == Some(&2) || record <= message + 4)
}

/// The whole length of an SSL 2 `ClientHello` that starts with these bytes (RFC 5246 appendix E.2).
pub(crate) fn ssl2_hello_length(bytes: [u8; HEADER]) -> Option<u64> {
    let [high, low, 1, 3, 0..=4] = bytes else { return None };
    let length = u16::from_be_bytes([high & 0x7f, low]);
    // Version, three lengths, a cipher suite of 3 bytes and a challenge of 16.
    (high & 0x80 != 0 && length >= 9 + 3 + 16).then_some(u64::from(length) + 2)
}

/// Scans a stream that did not start with TLS for a hello.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HelloScan {
    /// The last bytes so far, in which a hello may start.
    #[serde(with = "serde_bytes")]
    tail: Vec<u8>,
    tail_ns: i64,
    pub(crate) scanned: u64,
}

#[derive(Debug)]
pub(crate) enum ScanOutcome<'a> {
    /// A hello starts with the bytes `before`, captured at `before_ns`, and continues in `rest`.
    Hello { before: Vec<u8>, before_ns: i64, rest: Chunk<'a> },
    /// No hello. `is_exhausted` is set once: when enough was scanned to conclude that this is not TLS.
    Nothing { is_exhausted: bool },
}

impl HelloScan {
    pub(crate) fn new(first: [u8; HEADER], time_ns: i64) -> Self {
        Self { tail: first.to_vec(), tail_ns: time_ns, scanned: HEADER as u64 }
    }

    pub(crate) fn chunk<'a>(&mut self, mut chunk: Chunk<'a>) -> ScanOutcome<'a> {
        let length = chunk.length();
        let found = |before, before_ns, rest| ScanOutcome::Hello { before, before_ns, rest };
        if self.scanned >= THOROUGH_HELLO {
            let is_start = chunk.starts_segment && chunk.payload.get(..HELLO).is_some_and(is_hello);
            if is_start {
                return found(Vec::new(), 0, chunk);
            }
            self.scanned = self.scanned.saturating_add(length);
            return ScanOutcome::Nothing { is_exhausted: false };
        }
        let known = self.tail.len();
        let bytes = [&self.tail, chunk.payload].concat();
        if let Some(offset) = bytes.windows(HELLO).position(is_hello) {
            let before = bytes.get(offset..known).unwrap_or_default().to_vec();
            chunk.advance(offset.saturating_sub(known) as u64);
            return found(before, self.tail_ns, chunk);
        }
        // A buffer of its own, which does not keep the room for a whole segment.
        let kept = if chunk.hidden > 0 { 0 } else { bytes.len().min(HELLO - 1) };
        self.tail = bytes.get(bytes.len() - kept..).unwrap_or_default().to_vec();
        self.tail_ns = chunk.time_ns;
        self.scanned += length;
        ScanOutcome::Nothing { is_exhausted: self.scanned >= THOROUGH_HELLO }
    }

    pub(crate) fn gap(&mut self) {
        self.tail.clear();
    }
}

/// The number of candidates followed at once; more than one is rare, and a wrong one ends within 18 KiB.
const MAX_CANDIDATES: usize = 8;

/// After this many bytes without a boundary, only the starts of segments are looked at.
const THOROUGH: u64 = 256 << 10;

/// The longest alert, in bytes: two, a MAC, padding and an initialization vector, with room to spare.
const MAX_ALERT: u16 = 512;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BoundarySearch {
    candidates: Vec<Candidate>,
    /// The last captured bytes, in which a header may start.
    #[serde(with = "serde_bytes")]
    tail: Vec<u8>,
    tail_ns: i64,
    /// The version 3.x of records sized before in this direction.
    version: Option<u8>,
    pub(crate) searched: u64,
    /// Headers that it has come to believe since somebody took them, with their sequence numbers.
    #[serde(skip)]
    pub(crate) believed: Vec<(u32, Header)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Candidate {
    walker: RecordWalker,
    /// Where its header stands, where that matters: a search that was saved does not know it.
    #[serde(skip)]
    place: Option<(u32, Header)>,
    minor: u8,
    /// Whether its header was parsed, so that the next one proves it.
    saw_header: bool,
    record: Option<SizedRecord>,
    is_aligned: bool,
    is_fresh: bool,
    skipped: u64,
}

#[derive(Debug)]
pub(crate) enum SearchOutcome<'a> {
    /// A boundary, after `skipped` captured bytes: `walker` continues with `rest`, after `record`.
    Boundary { walker: RecordWalker, record: Option<SizedRecord>, skipped: u64, rest: Chunk<'a> },
    /// No boundary. The capture hides the proof of the `unproven` records. `is_exhausted` is set once: when enough was
    /// searched to conclude that a direction without records is not TLS.
    Nothing { unproven: Vec<SizedRecord>, is_exhausted: bool },
}

enum CandidateOutcome<'a> {
    Pending,
    Refuted,
    Unproven(SizedRecord),
    Boundary(Chunk<'a>),
}

impl BoundarySearch {
    pub(crate) fn new(version: Option<u8>) -> Self {
        Self { version, ..Self::default() }
    }

    pub(crate) fn chunk<'a>(&mut self, chunk: Chunk<'a>) -> SearchOutcome<'a> {
        let mut unproven = Vec::new();
        for candidate in std::mem::take(&mut self.candidates) {
            if let Some(found) = self.follow(Candidate { is_fresh: false, ..candidate }, chunk, &mut unproven) {
                return found;
            }
        }
        let was_thorough = self.searched < THOROUGH;
        if was_thorough && let Some(found) = self.look_across(chunk, &mut unproven) {
            return found;
        }
        let positions = if was_thorough { usize::MAX } else { 1 };
        if let Some(found) = self.look_within(chunk, positions, &mut unproven) {
            return found;
        }
        self.keep_tail(&chunk);
        self.searched += chunk.payload.len() as u64;
        let is_exhausted = self.version.is_none() && was_thorough && self.searched >= THOROUGH;
        SearchOutcome::Nothing { unproven, is_exhausted }
    }

    /// Passes over missing bytes; returns the records whose proof is among them.
    pub(crate) fn gap(&mut self, length: u64, time_ns: i64) -> Vec<SizedRecord> {
        self.tail.clear();
        let mut unproven = Vec::new();
        let version = self.version;
        self.candidates.retain_mut(|candidate| {
            let record = match candidate.walker.gap(length, time_ns) {
                GapEffect::WithinBody => return true,
                GapEffect::PastRecord(record) => Some(record),
                GapEffect::HeaderLost => candidate.record,
            };
            let record = record.filter(|_| candidate.counts_unproven(version));
            self.believed.extend(candidate.place.filter(|_| record.is_some()));
            unproven.extend(record);
            false
        });
        unproven
    }

    fn look_within<'a>(
        &mut self,
        chunk: Chunk<'a>,
        positions: usize,
        unproven: &mut Vec<SizedRecord>,
    ) -> Option<SearchOutcome<'a>> {
        for (offset, bytes) in chunk.payload.windows(HEADER).enumerate().take(positions) {
            let Some(header) = likely_header(bytes) else { continue };
            let mut rest = chunk;
            rest.advance(offset as u64);
            let skipped = self.searched + offset as u64;
            if rest.payload.get(..HELLO).is_some_and(is_hello) {
                let walker = RecordWalker::new(self.version);
                return Some(SearchOutcome::Boundary { walker, record: None, skipped, rest });
            }
            let candidate = Candidate {
                is_aligned: rest.starts_segment,
                is_fresh: true,
                ..Candidate::new(RecordWalker::default(), rest.sequence, header, skipped)
            };
            let found = self.follow(candidate, rest, unproven);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn look_across<'a>(&mut self, chunk: Chunk<'a>, unproven: &mut Vec<SizedRecord>) -> Option<SearchOutcome<'a>> {
        let tail = std::mem::take(&mut self.tail);
        let joined: Vec<u8> = tail.iter().chain(chunk.payload.iter().take(HEADER - 1)).copied().collect();
        let mut found = None;
        for (offset, bytes) in joined.windows(HEADER).enumerate().take(tail.len()) {
            let Some(header) = likely_header(bytes) else { continue };
            let first_bytes = tail.get(offset..).unwrap_or_default();
            let walker = RecordWalker::within_header(first_bytes, self.tail_ns);
            let skipped = self.searched.saturating_sub(first_bytes.len() as u64);
            let sequence = chunk.sequence.wrapping_sub(first_bytes.len() as u32);
            found = self.follow(Candidate::new(walker, sequence, header, skipped), chunk, unproven);
            if found.is_some() {
                break;
            }
        }
        self.tail = tail;
        found
    }

    /// Follows a candidate along a chunk. Returns the boundary that it proves; keeps a candidate that is neither proven nor
    /// refuted.
    fn follow<'a>(
        &mut self,
        mut candidate: Candidate,
        chunk: Chunk<'a>,
        unproven: &mut Vec<SizedRecord>,
    ) -> Option<SearchOutcome<'a>> {
        match candidate.follow(chunk, self.version) {
            CandidateOutcome::Boundary(rest) => {
                self.believed.extend(candidate.place);
                let Candidate { walker, record, skipped, .. } = candidate;
                return Some(SearchOutcome::Boundary { walker, record, skipped, rest });
            }
            CandidateOutcome::Unproven(record) => {
                self.believed.extend(candidate.place);
                unproven.push(record);
            }
            CandidateOutcome::Pending if self.candidates.len() < MAX_CANDIDATES => self.candidates.push(candidate),
            CandidateOutcome::Pending | CandidateOutcome::Refuted => {}
        }
        None
    }

    fn keep_tail(&mut self, chunk: &Chunk<'_>) {
        if chunk.hidden > 0 {
            return self.tail.clear();
        }
        let keep = HEADER - 1;
        self.tail.extend(chunk.payload.iter().skip(chunk.payload.len().saturating_sub(keep)));
        self.tail.drain(..self.tail.len().saturating_sub(keep));
        self.tail_ns = chunk.time_ns;
    }
}

impl Candidate {
    fn new(walker: RecordWalker, sequence: u32, header: Header, skipped: u64) -> Self {
        let (saw_header, is_aligned, is_fresh) = (false, false, false);
        let place = Some((sequence, header));
        Self { walker, place, minor: header.minor, saw_header, record: None, is_aligned, is_fresh, skipped }
    }

    fn follow<'a>(&mut self, mut chunk: Chunk<'a>, version: Option<u8>) -> CandidateOutcome<'a> {
        loop {
            match self.walker.step(&mut chunk) {
                Step::More => return CandidateOutcome::Pending,
                Step::Header(_) if !self.saw_header => self.saw_header = true,
                Step::Header(header) if is_likely(header, Some(self.minor)) => {
                    return CandidateOutcome::Boundary(chunk);
                }
                Step::Record(record) => {
                    self.record = Some(record);
                    if chunk.is_empty() && chunk.ends_segment && (self.is_aligned || self.is_fresh) {
                        return CandidateOutcome::Boundary(chunk);
                    }
                }
                Step::Body { .. } => {}
                Step::Hidden => {
                    let record = self.record.filter(|_| self.counts_unproven(version));
                    return record.map_or(CandidateOutcome::Refuted, CandidateOutcome::Unproven);
                }
                Step::Header(_) | Step::Implausible(_) => return CandidateOutcome::Refuted,
            }
        }
    }

    fn counts_unproven(&self, version: Option<u8>) -> bool {
        self.is_aligned && version == Some(self.minor)
    }
}

fn likely_header(bytes: &[u8]) -> Option<Header> {
    // Nearly all positions fail here. Boundaries of TLCP are not searched for.
    if bytes.get(1) != Some(&3) {
        return None;
    }
    Header::parse(bytes.try_into().ok()?).filter(|header| is_likely(*header, None))
}

/// Whether a record may start with this header where none is known to start.
fn is_likely(header: Header, version: Option<u8>) -> bool {
    let same_version = match version {
        Some(version) => header.minor == version || header.content_type == ContentType::Handshake,
        None => true,
    };
    let length = match header.content_type {
        ContentType::ChangeCipherSpec => header.length == 1,
        ContentType::Alert => header.length <= MAX_ALERT,
        _ => header.length > 0,
    };
    same_version && (1..=3).contains(&header.minor) && length
}

#[cfg(test)]
mod tests;
