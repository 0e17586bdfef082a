//! Which bytes of payload the sizer reads: record headers, headers of handshake messages, and hellos. It never looks at
//! the meaning of any other.

use std::iter;
use std::ops::Range;

use sizeleak_frame::Direction;

use crate::dtls;

/// Bytes of a TCP stream that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBytes {
    /// The flow.
    pub flow: u64,
    /// Which way they travel.
    pub direction: Direction,
    /// The sequence number of the first of them.
    pub sequence: u32,
    /// The bytes.
    pub bytes: Box<[u8]>,
}

/// The bytes of a datagram of `length` bytes, of which `payload` was captured, that are read: the headers of DTLS records
/// and the hellos in them, or what shows that it is QUIC.
pub fn datagram_read_bytes(payload: &[u8], length: u32) -> Vec<Range<usize>> {
    match dtls::dtls_records(payload, length) {
        Some(records) => dtls::read_ranges(&records),
        None if dtls::is_quic(payload) => iter::once(0..dtls::QUIC_HEADER).collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_datagram_the_record_headers_are_read() {
        let record = |kind, length: u8| {
            let header = [kind, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 7, 0, length];
            [&header[..], &vec![0x5a; length.into()]].concat()
        };
        let datagram = [record(23, 40), record(23, 9)].concat();
        assert_eq!(datagram_read_bytes(&datagram, datagram.len() as u32), [0..13, 53..66]);
        let first = |payload: &[u8], length| datagram_read_bytes(payload, length).first().cloned();
        assert_eq!(first(&datagram[..60], datagram.len() as u32), Some(0..13), "cut by the snaplen");
        assert_eq!(first(&[0xc3, 0, 0, 0, 1, 8, 5, 5], 1200), Some(0..6), "QUIC");
        assert_eq!(first(&[0x17; 60], 60), None);
    }
}
