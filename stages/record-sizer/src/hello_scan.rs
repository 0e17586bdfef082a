//! How a TLS connection starts: byte patterns specific enough to find it in a stream that began with something else.

use serde::{Deserialize, Serialize};

use crate::chunk::Chunk;
use crate::record::{HEADER, MAX_BODY};

pub(crate) const HELLO: usize = 11;

pub(crate) const MAX_HELLO: u32 = 1 << 15;

/// Bytes of another protocol in which every position is looked at; after them, only the starts of segments are.
const THOROUGH: u64 = 64 << 10;

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
        if self.scanned >= THOROUGH {
            let is_start = chunk.starts_segment && chunk.payload.get(..HELLO).is_some_and(is_hello);
            if is_start {
                return found(Vec::new(), 0, chunk);
            }
            self.scanned = self.scanned.saturating_add(length);
            return ScanOutcome::Nothing { is_exhausted: false };
        }
        let known = self.tail.len();
        self.tail.extend(chunk.payload.iter().take(HELLO - 1));
        if let Some(offset) = self.tail.windows(HELLO).take(known).position(is_hello) {
            let before = self.tail.get(offset..known).unwrap_or_default().to_vec();
            return found(before, self.tail_ns, chunk);
        }
        if let Some(offset) = chunk.payload.windows(HELLO).position(is_hello) {
            chunk.advance(offset as u64);
            return found(Vec::new(), 0, chunk);
        }
        if chunk.payload.len() >= HELLO - 1 {
            self.tail.clear();
            self.tail.extend(chunk.payload.iter().skip(chunk.payload.len() - (HELLO - 1)));
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(HELLO - 1));
        }
        if chunk.hidden > 0 {
            self.tail.clear();
        }
        self.tail_ns = chunk.time_ns;
        self.scanned += length;
        ScanOutcome::Nothing { is_exhausted: self.scanned >= THOROUGH }
    }

    pub(crate) fn gap(&mut self) {
        self.tail.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_are_distinguished_from_other_handshake_records() {
        let client = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        assert!(is_hello(&client));
        assert!(is_hello(&[22, 3, 3, 0x10, 0, 2, 0, 0, 70, 3, 3]), "a certificate follows in the record");
        assert!(!is_hello(&[22, 3, 3, 0x10, 0, 1, 0, 0, 70, 3, 3]), "nothing follows a client's hello");
        assert!(!is_hello(&[22, 3, 1, 2, 0, 11, 0, 1, 0xfc, 3, 3]), "a certificate");
        assert!(!is_hello(&client[..10]));
    }

    #[test]
    fn ssl2_hellos_need_a_plausible_length_and_version() {
        assert_eq!(ssl2_hello_length([0x80, 46, 1, 3, 1]), Some(48));
        assert_eq!(ssl2_hello_length([0x80, 10, 1, 3, 1]), None);
        assert_eq!(ssl2_hello_length([0x00, 46, 1, 3, 1]), None);
        assert_eq!(ssl2_hello_length([0x80, 46, 4, 3, 1]), None);
    }
}
