//! What the merging of taps found out about each of them.

use crate::tap_streams::{TapClock, TapCounts};
use serde::{Deserialize, Serialize};

/// What was found out about a tap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapDescription {
    /// Its name.
    pub name: String,
    /// How many captures it has.
    pub captures: u64,
    /// How its clock differs from that of the first tap.
    #[serde(flatten)]
    pub clock: TapClock,
    /// What became of its segments.
    #[serde(flatten)]
    pub counts: TapCounts,
}
