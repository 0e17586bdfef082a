//! What became of the segments of a tap.

use serde::{Deserialize, Serialize};

/// How many segments of a tap went on, and how many were there already. Bytes are of payload on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapCounts {
    /// Segments of flows of which it is the primary tap: all go on.
    pub primary_segments: u64,
    /// The bytes in them.
    pub primary_bytes: u64,
    /// Segments of other flows that filled a gap.
    pub filled_segments: u64,
    /// The bytes that they filled.
    pub filled_bytes: u64,
    /// Segments of other flows that were dropped, because another tap saw them, too.
    pub duplicate_segments: u64,
    /// The bytes that were dropped, those of segments that filled a gap in part included.
    pub duplicate_bytes: u64,
}

impl TapCounts {
    /// All segments.
    pub(crate) fn segments(&self) -> u64 {
        self.primary_segments + self.filled_segments + self.duplicate_segments
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.primary_bytes + self.filled_bytes + self.duplicate_bytes
    }

    /// Those of all taps together.
    pub(crate) fn sum(taps: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> u64| taps.iter().map(of).sum();
        Self {
            primary_segments: sum(|tap| tap.primary_segments),
            primary_bytes: sum(|tap| tap.primary_bytes),
            filled_segments: sum(|tap| tap.filled_segments),
            filled_bytes: sum(|tap| tap.filled_bytes),
            duplicate_segments: sum(|tap| tap.duplicate_segments),
            duplicate_bytes: sum(|tap| tap.duplicate_bytes),
        }
    }

    /// The counters of the merged stream's summary.
    pub(crate) fn counters(&self) -> [(&'static str, u64); 4] {
        [
            ("duplicate_segments", self.duplicate_segments),
            ("duplicate_bytes", self.duplicate_bytes),
            ("filled_segments", self.filled_segments),
            ("filled_bytes", self.filled_bytes),
        ]
    }
}
