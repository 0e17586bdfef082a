//! Metrics of a run for Prometheus: `OpenMetrics` text over HTTP on loopback, while the run goes on.

mod exposition;
mod request;
mod server;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use thiserror::Error;

use crate::telemetry::Telemetry;
use crate::telemetry::headings::MEASURING;

#[doc(hidden)]
pub use request::{ReceivedRequest, RequestVerdict, parse_request};
pub use server::MetricsServer;

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

/// Why metrics cannot be served.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The address cannot be parsed.
    #[error("`--metrics {0}`: an address is IP:PORT or localhost:PORT, such as 127.0.0.1:9464")]
    Syntax(String),
    /// Other machines might reach the address.
    #[error(
        "`--metrics {0}`: metrics are served on loopback only, because anyone who can reach them can read them: use \
         127.0.0.1:{port}", port = .0.port()
    )]
    NotLoopback(SocketAddr),
    /// The system cannot listen there.
    #[error("metrics cannot be served at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
}

fn loopback(text: &str) -> Result<SocketAddr, MetricsError> {
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let address = match local {
        Some(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        None => text.parse().map_err(|_| MetricsError::Syntax(text.to_owned()))?,
    };
    if address.ip().to_canonical().is_loopback() { Ok(address) } else { Err(MetricsError::NotLoopback(address)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_accepted() {
        for (text, expected) in [
            ("127.0.0.1:9464", "127.0.0.1:9464"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("127.8.8.8:1", "127.8.8.8:1"),
        ] {
            assert_eq!(loopback(text).unwrap(), expected.parse().unwrap());
        }
        for other in ["0.0.0.0:9464", "[::]:9464", "192.168.1.20:9464", "[::ffff:10.0.0.1]:9464"] {
            assert!(matches!(loopback(other), Err(MetricsError::NotLoopback(_))), "{other}");
        }
        for wrong in ["9464", "localhost", "localhost:http", "127.0.0.1", "example.org:80", ""] {
            assert!(matches!(loopback(wrong), Err(MetricsError::Syntax(_))), "{wrong}");
        }
    }
}
