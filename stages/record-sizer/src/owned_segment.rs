//! A segment with a copy of its payload.

use sizeleak_frame::{Direction, Segment};

/// What a [`Segment`] holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedSegment {
    time_ns: i64,
    flow: u64,
    direction: Direction,
    sequence: u32,
    flags: u8,
    length: u32,
    payload: Box<[u8]>,
    acknowledgement: Option<u32>,
}

impl OwnedSegment {
    /// A copy of a segment.
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        let Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement } = *segment;
        Self { time_ns, flow, direction, sequence, flags, length, payload: payload.into(), acknowledgement }
    }

    /// The segment.
    pub(crate) fn segment(&self) -> Segment<'_> {
        let Self { time_ns, flow, direction, sequence, flags, length, acknowledgement, .. } = *self;
        Segment { time_ns, flow, direction, sequence, flags, length, payload: &self.payload, acknowledgement }
    }
}
