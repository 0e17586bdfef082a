//! Ranges of durations.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// A range of durations, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationRange {
    /// The shortest.
    pub min: SignedDuration,
    /// The longest.
    pub max: SignedDuration,
}

impl DurationRange {
    pub const fn from_millis(min: i64, max: i64) -> Self {
        Self { min: SignedDuration::from_millis(min), max: SignedDuration::from_millis(max) }
    }
}
