//! Metrics of a run for Prometheus: `OpenMetrics` text over HTTP on loopback, while the run goes on.

mod address;
mod exposition;
mod flags;
mod request;
mod server;

pub use address::MetricsError;
pub use flags::MetricsFlags;
#[doc(hidden)]
pub use request::{ReceivedRequest, RequestVerdict, parse_request};
pub use server::MetricsServer;
