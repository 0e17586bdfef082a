//! How far a direction of a connection has come; kept as long as the connection is.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Segment;

use crate::record::HEADER;

/// A segment further than this from the next byte is outside any window: no sender has this much in flight.
pub(crate) const WINDOW: i64 = 16 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamPosition {
    pub(crate) next: u32,
    pub(crate) first: u32,
    /// A digest of the random number in the hello that the stream begins with; 0 where that was not seen.
    pub(crate) first_hello: u32,
    /// The sequence number of the last segment accepted, and its first bytes, by which a repetition is recognised.
    pub(crate) last: u32,
    pub(crate) last_bytes: u32,
    /// The last acknowledgement number that came with data of this direction, once there was one.
    pub(crate) acknowledgement: u32,
    /// The sequence number at which the last gap starts, once there was one, and its bytes.
    pub(crate) gap_start: u32,
    pub(crate) gap_bytes: u32,
    pub(crate) start: StreamStart,
    pub(crate) has_acknowledgement: bool,
    pub(crate) has_gap: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StreamStart {
    #[default]
    Unknown,
    /// It is the first byte that was seen.
    Assumed,
    Syn,
}

impl StreamPosition {
    pub(crate) fn is_known(self) -> bool {
        self.start != StreamStart::Unknown
    }

    pub(crate) fn saw_syn(self) -> bool {
        self.start == StreamStart::Syn
    }

    /// Takes bytes that are accepted at this sequence number: those of a hello at the start are remembered.
    #[inline]
    pub(crate) fn note_start(&mut self, sequence: u32, payload: &[u8]) {
        if sequence == self.first {
            self.first_hello = hello_digest(payload).unwrap_or(0);
        }
    }

    /// Whether a segment at the start of the stream is a hello of another handshake than the one that the stream begins
    /// with.
    pub(crate) fn begins_anew(self, sequence: u32, payload: &[u8]) -> bool {
        self.is_known()
            && sequence == self.first
            && self.first_hello != 0
            && hello_digest(payload).is_some_and(|digest| digest != self.first_hello)
    }

    #[inline]
    pub(crate) fn remember(&mut self, segment: &Segment<'_>) {
        (self.last, self.last_bytes) = (segment.sequence, first_bytes(segment.payload));
        self.remember_acknowledgement(segment);
    }

    #[inline]
    pub(crate) fn remember_acknowledgement(&mut self, segment: &Segment<'_>) {
        let Some(number) = segment.acknowledgement else { return };
        // Acknowledgements never go back within a connection.
        let advance = i64::from(number.wrapping_sub(self.acknowledgement).cast_signed());
        if !self.has_acknowledgement || !(-WINDOW..0).contains(&advance) {
            (self.acknowledgement, self.has_acknowledgement) = (number, true);
        }
    }

    pub(crate) fn acknowledgement(self) -> Option<u32> {
        self.has_acknowledgement.then_some(self.acknowledgement)
    }

    /// Notes that a gap starts at the next byte, of this number of bytes, or 0 where it is unknown.
    pub(crate) fn start_gap(&mut self, bytes: u64) {
        (self.gap_start, self.gap_bytes, self.has_gap) = (self.next, bytes as u32, self.is_known());
    }

    pub(crate) fn is_gap_start(self, sequence: u32) -> bool {
        self.has_gap && self.gap_start == sequence
    }
}

pub(crate) fn is_near(one: u32, other: u32) -> bool {
    i64::from(one.wrapping_sub(other).cast_signed()).abs() <= WINDOW
}

/// The first five bytes of a payload in short: those of a record header, where one starts there. 0 where they were not
/// captured.
#[inline]
pub(crate) fn first_bytes(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |header| header_digest(*header))
}

/// A digest of the random number of the `ClientHello` or `ServerHello` that a payload begins with, never 0. Two
/// handshakes differ in it (RFC 8446 section 4.1.2).
fn hello_digest(payload: &[u8]) -> Option<u32> {
    let (&[22, 3 | 1, _, _, _, 1 | 2, ..], hello) = payload.split_first_chunk::<11>()? else { return None };
    let words = hello.first_chunk::<32>()?.as_chunks::<4>().0;
    Some(words.iter().fold(1, |digest: u32, word| (digest.rotate_left(5) ^ u32::from_be_bytes(*word)).max(1)))
}

#[inline]
pub(crate) fn header_digest([kind, major, minor, high, low]: [u8; HEADER]) -> u32 {
    u32::from_be_bytes([kind, major ^ minor, high, low])
}
