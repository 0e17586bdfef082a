//! What can be seen of a run from outside: meters of its stages, progress through its input, latencies, messages on
//! stderr, metrics over HTTP.

mod latency;
pub mod log;
mod meter;
pub mod metrics;
mod progress;
mod report;
mod telemetry;

pub use latency::{Latency, LatencyError};
pub use meter::{BOUNDS_NS, FrameCounts, Meter, TimeHistogram};
pub use progress::{FileProgress, Progress, ProgressReader};
pub use report::{LatencyTable, write_latency_log};
pub use telemetry::Telemetry;
