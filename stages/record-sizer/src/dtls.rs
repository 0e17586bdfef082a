//! Parses the DTLS records of UDP datagrams (RFC 6347 section 4.1, without RFC 9146), and recognises QUIC.
//!
//! A datagram is taken for DTLS only if records fill it to its last byte: of random bytes, one datagram in 10¹⁰.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use sizeleak_frame::ContentType;

use crate::handshake::{Hello, datagram_hello};
use crate::record::{Header, MAX_BODY};

/// Bytes of a DTLS record header.
const HEADER: usize = 13;

/// Bytes by which QUIC is recognised.
pub(crate) const QUIC_HEADER: usize = 6;

/// The minor version that stands for DTLS in a [`Header`]: record headers do not reliably distinguish 1.0 from 1.2.
const MINOR: u8 = 3;

/// A record in a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DtlsRecord {
    pub(crate) header: Header,
    /// Zero while nothing is encrypted.
    pub(crate) epoch: u16,
    /// The sequence number within its epoch.
    pub(crate) number: u64,
    /// The hello in it, if it is whole.
    pub(crate) hello: Option<Hello>,
}

/// The records of a datagram of `length` bytes, of which `payload` was captured; `None` unless all of it is DTLS.
/// Records whose header was not captured are left out.
pub(crate) fn dtls_records(payload: &[u8], length: u32) -> Option<Vec<DtlsRecord>> {
    let mut records = Vec::new();
    let (mut rest, mut left) = (payload, length as usize);
    while left > 0 {
        let Some((header, after)) = rest.split_at_checked(HEADER) else {
            // Cut by the snaplen after whole records.
            let is_cut = payload.len() < length as usize && left > HEADER;
            return (is_cut && !records.is_empty()).then_some(records);
        };
        let (record, body_length) = record(header)?;
        left = left.checked_sub(HEADER + body_length)?;
        let (body, after) = after.split_at(after.len().min(body_length));
        rest = after;
        let is_clear = record.epoch == 0 && record.header.content_type == ContentType::Handshake;
        let hello = if is_clear { datagram_hello(body) } else { None };
        records.push(DtlsRecord { hello, ..record });
    }
    (!records.is_empty()).then_some(records)
}

/// The bytes that are read of a datagram with these records: headers, and hellos.
pub(crate) fn read_ranges(records: &[DtlsRecord]) -> Vec<Range<usize>> {
    let mut start = 0;
    let ranges = records.iter().map(|record| {
        let body = start + HEADER;
        let read = start..if record.hello.is_some() { body + usize::from(record.header.length) } else { body };
        start = body + usize::from(record.header.length);
        read
    });
    ranges.collect()
}

fn record(bytes: &[u8]) -> Option<(DtlsRecord, usize)> {
    let [content_type, major, minor, epoch_high, epoch_low, number @ .., high, low] = bytes else { return None };
    let content_type = ContentType::try_from(*content_type).ok()?;
    // DTLS 1.0, 1.2, and the version before them, which some devices still use.
    if !matches!((major, minor), (0xfe, 0xff | 0xfd) | (1, 0)) {
        return None;
    }
    let length = u16::from_be_bytes([*high, *low]);
    if length > MAX_BODY || (length == 0 && content_type != ContentType::ApplicationData) {
        return None;
    }
    let record = DtlsRecord {
        header: Header { content_type, minor: MINOR, length },
        epoch: u16::from_be_bytes([*epoch_high, *epoch_low]),
        number: number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        hello: None,
    };
    Some((record, length.into()))
}

/// Whether a datagram starts a QUIC connection or belongs to its handshake (RFC 9000 section 17.2, RFC 9369).
pub(crate) fn is_quic(payload: &[u8]) -> bool {
    let [first, version @ .., id_length] = payload.get(..QUIC_HEADER).unwrap_or_default() else { return false };
    let Ok(version) = <[u8; 4]>::try_from(version) else { return false };
    let version = u32::from_be_bytes(version);
    let known = version == 1 || version == 0x6b33_43cf || (0xff00_0001..=0xff00_0022).contains(&version);
    first & 0xc0 == 0xc0 && known && *id_length <= 20
}

/// The records of one direction seen so far: a datagram captured twice counts once (RFC 6347 section 4.1.2.6).
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct ReplayWindow {
    epoch: u16,
    highest: u64,
    /// Bit n stands for the record n before the highest.
    seen: u64,
}

impl ReplayWindow {
    /// Adds a record; false if it was seen before. One too old for the window counts as new.
    pub(crate) fn insert(&mut self, epoch: u16, number: u64) -> bool {
        if epoch != self.epoch || self.seen == 0 {
            if epoch < self.epoch {
                return true;
            }
            *self = Self { epoch, highest: number, seen: 1 };
            return true;
        }
        if number > self.highest {
            let ahead = number - self.highest;
            self.seen = if ahead < 64 { self.seen << ahead | 1 } else { 1 };
            self.highest = number;
            return true;
        }
        let behind = self.highest - number;
        if behind >= 64 {
            return true;
        }
        let bit = 1 << behind;
        let is_new = self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(content_type: u8, epoch: u8, number: u8, body: &[u8]) -> Vec<u8> {
        let header = [content_type, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, number, 0, body.len() as u8];
        [&header, body].concat()
    }

    #[test]
    fn dtls_records_must_fill_the_datagram() {
        let datagram = [bytes(20, 0, 3, &[1]), bytes(22, 1, 0, &[9; 40])].concat();
        let found = dtls_records(&datagram, datagram.len() as u32).unwrap();
        let seen: Vec<_> = found.iter().map(|record| (record.header.length, record.epoch, record.number)).collect();
        assert_eq!(seen, [(1, 0, 3), (40, 1, 0)]);
        assert_eq!(dtls_records(&datagram, datagram.len() as u32 + 1), None, "a byte too many");
        assert_eq!(dtls_records(&datagram[..30], datagram.len() as u32).map(|records| records.len()), Some(2));
        assert_eq!(dtls_records(&datagram[..20], datagram.len() as u32).map(|records| records.len()), Some(1));
        assert_eq!(dtls_records(&[0x17; 60], 60), None);
        assert_eq!(dtls_records(&[], 0), None);
    }

    #[test]
    fn quic_is_recognised_by_its_version() {
        let initial = [&[0xc3, 0, 0, 0, 1, 8][..], &[5; 1194]].concat();
        assert!(is_quic(&initial));
        assert!(!is_quic(&[0xc3, 0, 0, 0, 7, 8]));
        assert!(!is_quic(&[0x43, 0, 0, 0, 1, 8]));
        assert!(!is_quic(&[0xc3, 0, 0, 0, 1]));
    }

    #[test]
    fn repeated_records_are_not_new() {
        let mut window = ReplayWindow::default();
        let numbers = [(0, 5), (0, 5), (0, 7), (0, 6), (0, 6), (1, 0), (1, 0), (1, 100), (1, 99), (1, 99), (1, 1)];
        let new: Vec<bool> = numbers.iter().map(|(epoch, number)| window.insert(*epoch, *number)).collect();
        assert_eq!(new, [true, false, true, true, false, true, false, true, true, false, true]);
    }
}
