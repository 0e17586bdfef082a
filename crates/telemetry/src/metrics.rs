//! Metrics of a run for Prometheus: `OpenMetrics` text over HTTP on loopback, while the run goes on.

mod address;
mod exposition;
mod flags;
mod server;

pub use address::MetricsError;
pub use flags::MetricsFlags;
pub use server::MetricsServer;
