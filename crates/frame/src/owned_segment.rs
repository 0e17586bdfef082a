//! A segment with a copy of its payload.

use serde::{Deserialize, Serialize};

use crate::{Direction, Segment};

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
