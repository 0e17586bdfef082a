//! The observable state of a running pipeline: counters and times of its stages, progress through the input, messages
//! on stderr, and metrics over HTTP.
//!
//! A [`Telemetry`] collects the figures of a run. Each stage writes to its own [`Meter`]; observers read them at any
//! time, without locks on the stage's side:
//!
//! ```
//! use std::time::Duration;
//! use sizeleak_platform::telemetry::{FrameCounts, Telemetry};
//!
//! let telemetry = Telemetry::new();
//! let meter = telemetry.meter("record-sizer");
//! meter.set_counts(FrameCounts { frames_in: 256, frames_out: 100, bytes_in: 90_000 });
//! meter.service().record_shared(Duration::from_micros(40), 256);
//! assert_eq!(telemetry.meters()[0].counts().frames_out, 100);
//! ```

pub mod headings;
mod latency;
pub mod log;
mod meter;
pub mod metrics;
mod tally;

pub use latency::{Latency, LatencyTable, write_latency_log};
pub use meter::{BOUNDS_NS, FileProgress, FrameCounts, Meter, Progress, ProgressReader, Telemetry, TimeHistogram};
pub use tally::{CaptureFaults, CountedNotice, NoticeTally, Tally};
