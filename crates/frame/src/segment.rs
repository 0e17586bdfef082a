//! `segments`: a batch of a gateway's TCP segments and UDP datagrams; and a segment that owns its payload.

use serde::{Deserialize, Serialize};

use crate::Direction;
use crate::batch::{Batch, Row};
use crate::row_bytes::RowLocation;

/// One TCP segment, or a UDP datagram with no flags and sequence 0; a row of [`Segments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// When it was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    pub flow: u64,
    pub direction: Direction,
    /// The sequence number of its first byte (RFC 9293, section 3.4).
    pub sequence: u32,
    /// The TCP flags as on the wire: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    /// Bytes of payload on the wire.
    pub length: u32,
    /// The captured payload; shorter than `length` if the snaplen cut it.
    pub payload: &'a [u8],
    /// The acknowledgement number: the sequence number of the next byte that its sender expects from the other side
    /// (RFC 9293, section 3.1). `None` in datagrams, without the ACK flag, and in streams of older programs.
    pub acknowledgement: Option<u32>,
}

impl Segment<'_> {
    pub const FIN: u8 = 1;
    pub const SYN: u8 = 2;
    pub const RST: u8 = 4;
    pub const PSH: u8 = 8;
    pub const ACK: u8 = 16;
}

#[derive(Debug, Clone, Copy)]
pub struct SegmentRow {
    time_ns: i64,
    flow: u64,
    payload: RowLocation,
    sequence: u32,
    length: u32,
    acknowledgement: u32,
    direction: Direction,
    flags: u8,
    has_acknowledgement: bool,
}

pub type Segments = Batch<SegmentRow>;

impl Row for SegmentRow {
    type Item<'a> = Segment<'a>;

    #[inline]
    fn new(segment: &Segment<'_>, payload: RowLocation) -> Self {
        let Segment { time_ns, flow, direction, sequence, flags, length, acknowledgement, .. } = *segment;
        let has_acknowledgement = acknowledgement.is_some();
        let acknowledgement = acknowledgement.unwrap_or_default();
        Self { time_ns, flow, payload, sequence, length, acknowledgement, direction, flags, has_acknowledgement }
    }

    #[inline]
    fn location(&self) -> RowLocation {
        self.payload
    }

    #[inline]
    fn item<'a>(&self, payload: &'a [u8]) -> Segment<'a> {
        let Self { time_ns, flow, sequence, length, direction, flags, .. } = *self;
        let acknowledgement = self.has_acknowledgement.then_some(self.acknowledgement);
        Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement }
    }

    #[inline]
    fn bytes<'i>(segment: &'i Segment<'_>) -> &'i [u8] {
        segment.payload
    }
}

/// What a [`Segment`] holds, with a copy of its payload, for stages that keep segments. Its serialized form is part of
/// saved states, not of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedSegment {
    time_ns: i64,
    flow: u64,
    direction: Direction,
    sequence: u32,
    flags: u8,
    length: u32,
    #[serde(with = "serde_bytes")]
    payload: Box<[u8]>,
    acknowledgement: Option<u32>,
}

impl OwnedSegment {
    pub fn of(segment: &Segment<'_>) -> Self {
        let Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement } = *segment;
        Self { time_ns, flow, direction, sequence, flags, length, payload: payload.into(), acknowledgement }
    }

    pub fn segment(&self) -> Segment<'_> {
        let Self { time_ns, flow, direction, sequence, flags, length, acknowledgement, .. } = *self;
        Segment { time_ns, flow, direction, sequence, flags, length, payload: &self.payload, acknowledgement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_segment() {
        let (direction, payload) = (Direction::ToGateway, &[0, 1, 2, 3][..]);
        let segment = Segment {
            time_ns: 1,
            flow: 2,
            direction,
            sequence: u32::MAX,
            flags: Segment::SYN,
            length: 6,
            payload,
            acknowledgement: None,
        };
        assert_eq!(OwnedSegment::of(&segment).segment(), segment);
    }
}
