//! What makes a segment the same in the captures of two taps.

use blake3::Hasher;
use sizeleak_frame::Segment;

/// So many bytes of a datagram tell it from others: more than the header of a record of DTLS, and no more than a snaplen
/// of 96 leaves behind the headers of IPv6 and UDP.
const DATAGRAM_BYTES: usize = 32;

/// A digest of everything about a segment that does not depend on where it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentKey(u64);

impl SegmentKey {
    /// The key of a segment: of TCP by its header, of UDP by the beginning of its payload. Retransmissions have the key
    /// of the first transmission unless their acknowledgement differs.
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(&segment.flow.to_le_bytes());
        hasher.update(&[segment.direction.number(), segment.flags]);
        hasher.update(&segment.length.to_le_bytes());
        if is_datagram(segment) {
            hasher.update(segment.payload.get(..DATAGRAM_BYTES).unwrap_or(segment.payload));
        } else {
            hasher.update(&segment.sequence.to_le_bytes());
            hasher.update(&segment.acknowledgement.unwrap_or_default().to_le_bytes());
        }
        let digest = hasher.finalize();
        Self(digest.as_bytes().iter().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte)))
    }
}

/// Whether a row of segments is a UDP datagram: those have no flags, segments of TCP have one at least.
pub(crate) fn is_datagram(segment: &Segment<'_>) -> bool {
    segment.flags == 0
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Direction;

    use super::*;

    const SEGMENT: Segment<'_> = Segment {
        time_ns: 5,
        flow: 1,
        direction: Direction::ToGateway,
        sequence: 7,
        flags: Segment::ACK,
        length: 40,
        payload: &[3; 40],
        acknowledgement: Some(9),
    };

    #[test]
    fn key_is_the_same_at_another_time_and_with_another_snaplen() {
        let cut = Segment { time_ns: 99, payload: &[3; 2], ..SEGMENT };
        assert_eq!(SegmentKey::of(&cut), SegmentKey::of(&SEGMENT));
        let datagram = Segment { flags: 0, acknowledgement: None, ..SEGMENT };
        let cut = Segment { time_ns: 99, payload: &[3; DATAGRAM_BYTES], ..datagram };
        assert_eq!(SegmentKey::of(&cut), SegmentKey::of(&datagram));
    }

    #[test]
    fn key_differs_where_the_header_or_the_datagram_does() {
        let others = [
            Segment { flow: 2, ..SEGMENT },
            Segment { direction: Direction::FromGateway, ..SEGMENT },
            Segment { sequence: 8, ..SEGMENT },
            Segment { acknowledgement: Some(10), ..SEGMENT },
            Segment { flags: Segment::ACK | Segment::PSH, ..SEGMENT },
            Segment { length: 41, ..SEGMENT },
            Segment { flags: 0, payload: &[4; 40], ..SEGMENT },
            Segment { flags: 0, payload: &[3; 40], ..SEGMENT },
        ];
        let keys: std::collections::BTreeSet<_> = others.iter().chain([&SEGMENT]).map(SegmentKey::of).collect();
        assert_eq!(keys.len(), others.len() + 1);
    }
}
