//! Merges what several taps captured of the same traffic, such as a mirror port and the gateway itself.
//!
//! Each tap has a clock of its own, loses packets, and may see only some flows or a part of the time. Their streams of
//! segments (the output of `flow-filter`) are read twice. First a [`TapProfile`] of each is made, and of all profiles a
//! [`TapPlan`]: how far the clock of each tap is ahead of that of the first one, by the segments that both saw; and which
//! tap captured most of each flow, its *primary tap*. Then [`MergedTaps`] merges the streams: everything that the
//! primary tap of a flow saw goes on as it is, and the others fill only what it has not: ranges of bytes in a TCP
//! connection, whole datagrams of UDP. What goes on is counted for each tap, and so are the duplicates ([`TapCounts`]).
//!
//! The taps have to see the same addresses and ports: a flow before and behind a network address translation is two
//! flows. Memory is bounded, and the result depends only on the streams and their order.
#![warn(clippy::indexing_slicing)]

mod known_traffic;
mod merged_taps;
mod tap_clock;
mod tap_plan;
mod tap_reader;

pub use merged_taps::MergedStream;
pub use merged_taps::TapCounts;
pub use merged_taps::{MergedTaps, TapError};
pub use tap_clock::TapClock;
pub use tap_plan::{TapPlan, TapProfile};

/// The name of the merging in streams: between `flow-filter` and `record-sizer`.
const STAGE: &str = "taps";
