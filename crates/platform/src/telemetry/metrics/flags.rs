//! The flag that turns metrics on.

use clap::Args;

use super::address::{MetricsError, loopback};
use super::server::MetricsServer;
use crate::telemetry::Telemetry;
use crate::telemetry::headings::MEASURING;

/// The flag that turns metrics on.
#[derive(Debug, Clone, Default, Args)]
pub struct MetricsFlags {
    /// Serve metrics for Prometheus over HTTP at ADDR, under /metrics, until the run ends. ADDR is IP:PORT or
    /// localhost:PORT on this machine (loopback); port 0 picks a free port. The URL is printed on stderr
    #[arg(long, value_name = "ADDR", hide_short_help = true, help_heading = MEASURING)]
    metrics: Option<String>,
}

impl MetricsFlags {
    /// Starts the server, if the flag is given.
    pub fn serve(&self, telemetry: &Telemetry) -> Result<Option<MetricsServer>, MetricsError> {
        let address = self.metrics.as_deref().map(loopback).transpose()?;
        address.map(|address| MetricsServer::start(address, telemetry.clone())).transpose()
    }
}
