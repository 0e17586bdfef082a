//! DTLS records out of UDP datagrams (RFC 6347 section 4.1, RFC 9146 left out), and QUIC recognised.
//!
//! A datagram is taken for DTLS only if records fill it to its last byte: random bytes do so once in 10¹⁰ datagrams.

use sizeleak_frame::ContentType;

use crate::handshake::{Hello, datagram_hello};
use crate::record::{Header, MOST_BODY};

/// Bytes of a DTLS record's header.
const HEADER: usize = 13;

/// The minor version that stands for DTLS in a [`Header`]: records do not tell 1.0 and 1.2 apart reliably.
const MINOR: u8 = 3;

/// A record of a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatagramRecord {
    pub(crate) header: Header,
    /// Zero as long as nothing is encrypted.
    pub(crate) epoch: u16,
    /// Within its epoch.
    pub(crate) number: u64,
    /// A hello in it, if there is a whole one.
    pub(crate) hello: Option<Hello>,
}

/// The records of a datagram of `length` bytes of which `payload` was captured; `None` unless it is DTLS throughout.
/// Records whose header was not captured are left out.
pub(crate) fn records(payload: &[u8], length: u32) -> Option<Vec<DatagramRecord>> {
    let mut records = Vec::new();
    let (mut rest, mut left) = (payload, length as usize);
    while left > 0 {
        let Some((header, after)) = rest.split_at_checked(HEADER) else {
            // Cut by the snaplen: what was seen so far was whole.
            let is_cut = payload.len() < length as usize && left > HEADER;
            return (is_cut && !records.is_empty()).then_some(records);
        };
        let (record, body_length) = record(header)?;
        left = left.checked_sub(HEADER + body_length)?;
        let (body, after) = after.split_at(after.len().min(body_length));
        rest = after;
        let is_clear = record.epoch == 0 && record.header.content_type == ContentType::Handshake;
        let hello = if is_clear { datagram_hello(body) } else { None };
        records.push(DatagramRecord { hello, ..record });
    }
    (!records.is_empty()).then_some(records)
}

fn record(bytes: &[u8]) -> Option<(DatagramRecord, usize)> {
    let [content_type, major, minor, epoch_high, epoch_low, number @ .., high, low] = bytes else { return None };
    let content_type = ContentType::try_from(*content_type).ok()?;
    // DTLS 1.0, 1.2, and what came before them and some still speak.
    if !matches!((major, minor), (0xfe, 0xff | 0xfd) | (1, 0)) {
        return None;
    }
    let length = u16::from_be_bytes([*high, *low]);
    if length > MOST_BODY || (length == 0 && content_type != ContentType::ApplicationData) {
        return None;
    }
    let record = DatagramRecord {
        header: Header { content_type, minor: MINOR, length },
        epoch: u16::from_be_bytes([*epoch_high, *epoch_low]),
        number: number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        hello: None,
    };
    Some((record, length.into()))
}

/// Whether a datagram begins a QUIC connection or belongs to its handshake (RFC 9000 section 17.2, RFC 9369).
pub(crate) fn is_quic(payload: &[u8]) -> bool {
    let [first, version @ .., id_length] = payload.get(..6).unwrap_or_default() else { return false };
    let Ok(version) = <[u8; 4]>::try_from(version) else { return false };
    let version = u32::from_be_bytes(version);
    let known = version == 1 || version == 0x6b33_43cf || (0xff00_0001..=0xff00_0022).contains(&version);
    first & 0xc0 == 0xc0 && known && *id_length <= 20
}

/// Which records of one direction were seen: a datagram captured twice counts once (RFC 6347 section 4.1.2.6).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    epoch: u16,
    highest: u64,
    /// Bit n stands for the record n before the highest.
    window: u64,
}

impl Seen {
    /// Whether a record is seen for the first time. One too old for the window is taken to be.
    pub(crate) fn is_new(&mut self, epoch: u16, number: u64) -> bool {
        if epoch != self.epoch || self.window == 0 {
            if epoch < self.epoch {
                return true;
            }
            *self = Self { epoch, highest: number, window: 1 };
            return true;
        }
        if number > self.highest {
            let ahead = number - self.highest;
            self.window = if ahead < 64 { self.window << ahead | 1 } else { 1 };
            self.highest = number;
            return true;
        }
        let behind = self.highest - number;
        if behind >= 64 {
            return true;
        }
        let bit = 1 << behind;
        let is_new = self.window & bit == 0;
        self.window |= bit;
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
    fn several_in_a_datagram() {
        let datagram = [bytes(20, 0, 3, &[1]), bytes(22, 1, 0, &[9; 40])].concat();
        let found = records(&datagram, datagram.len() as u32).unwrap();
        let seen: Vec<_> = found.iter().map(|record| (record.header.length, record.epoch, record.number)).collect();
        assert_eq!(seen, [(1, 0, 3), (40, 1, 0)]);
        assert_eq!(records(&datagram, datagram.len() as u32 + 1), None, "a byte too many");
        assert_eq!(records(&datagram[..30], datagram.len() as u32).map(|records| records.len()), Some(2));
        assert_eq!(records(&datagram[..20], datagram.len() as u32).map(|records| records.len()), Some(1));
        assert_eq!(records(&[0x17; 60], 60), None);
        assert_eq!(records(&[], 0), None);
    }

    #[test]
    fn quic_by_its_version() {
        let initial = [&[0xc3, 0, 0, 0, 1, 8][..], &[5; 1194]].concat();
        assert!(is_quic(&initial));
        assert!(!is_quic(&[0xc3, 0, 0, 0, 7, 8]));
        assert!(!is_quic(&[0x43, 0, 0, 0, 1, 8]));
        assert!(!is_quic(&[0xc3, 0, 0, 0, 1]));
    }

    #[test]
    fn records_seen_twice() {
        let mut seen = Seen::default();
        let numbers = [(0, 5), (0, 5), (0, 7), (0, 6), (0, 6), (1, 0), (1, 0), (1, 100), (1, 99), (1, 99), (1, 1)];
        let new: Vec<bool> = numbers.iter().map(|(epoch, number)| seen.is_new(*epoch, *number)).collect();
        assert_eq!(new, [true, false, true, true, false, true, false, true, true, false, true]);
    }
}
