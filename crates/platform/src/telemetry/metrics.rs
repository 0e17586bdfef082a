//! Metrics of a run for Prometheus: `OpenMetrics` text over HTTP on loopback, while the run goes on.

mod exposition;
mod request;
mod server;

#[doc(hidden)]
pub use request::{RequestVerdict, parse_request};
pub use server::MetricsServer;
