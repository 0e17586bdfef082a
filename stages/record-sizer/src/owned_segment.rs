//! A segment with a copy of its payload.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, Segment};

/// What a [`Segment`] holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnedSegment {
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
    /// A copy of a segment.
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        let Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement } = *segment;
        Self { time_ns, flow, direction, sequence, flags, length, payload: payload.into(), acknowledgement }
    }

    /// Whether there is such a segment: no more of its payload was captured than it had.
    pub(crate) fn is_valid(&self) -> bool {
        self.payload.len() as u64 <= u64::from(self.length)
    }

    /// The segment.
    pub(crate) fn segment(&self) -> Segment<'_> {
        let Self { time_ns, flow, direction, sequence, flags, length, acknowledgement, .. } = *self;
        Segment { time_ns, flow, direction, sequence, flags, length, payload: &self.payload, acknowledgement }
    }
}
