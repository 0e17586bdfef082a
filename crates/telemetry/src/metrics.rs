//! Metrics of a run for Prometheus: text over HTTP on this machine alone, while it runs.

mod exposition;
mod request;
mod server;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use thiserror::Error;

use crate::Telemetry;

pub use server::Server;

/// The flag that has metrics served.
#[derive(Debug, Clone, Default, Args)]
pub struct MetricsFlags {
    /// Serve metrics for Prometheus over HTTP at ADDR, under /metrics, for as long as it runs. ADDR is IP:PORT or
    /// localhost:PORT on this machine (loopback); for port 0 a free one is taken. Where they are is told on stderr
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
}

impl MetricsFlags {
    /// Begins to serve, if that was asked for.
    ///
    /// # Errors
    /// [`MetricsError`].
    pub fn serve(&self, telemetry: &Telemetry) -> Result<Option<Server>, MetricsError> {
        let address = self.metrics.as_deref().map(address).transpose()?;
        address.map(|address| Server::start(address, telemetry.clone())).transpose()
    }
}

/// Why metrics cannot be served.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The address cannot be read.
    #[error("`--metrics {0}`: an address is IP:PORT or localhost:PORT, such as 127.0.0.1:9464")]
    Syntax(String),
    /// Others than this machine might reach it.
    #[error(
        "`--metrics {0}`: metrics are served on loopback only, since anybody who reaches them may read them: use \
         127.0.0.1:{port}", port = .0.port()
    )]
    NotLoopback(SocketAddr),
    /// The system does not let it listen there.
    #[error("metrics cannot be served at {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

fn address(text: &str) -> Result<SocketAddr, MetricsError> {
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
    fn only_this_machine_is_served() {
        for (text, meant) in [
            ("127.0.0.1:9464", "127.0.0.1:9464"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("127.8.8.8:1", "127.8.8.8:1"),
        ] {
            assert_eq!(address(text).unwrap(), meant.parse().unwrap());
        }
        for other in ["0.0.0.0:9464", "[::]:9464", "192.168.1.20:9464", "[::ffff:10.0.0.1]:9464"] {
            let error = address(other).unwrap_err();
            assert!(error.to_string().contains("loopback only"), "{error}");
        }
        for wrong in ["9464", "localhost", "localhost:http", "127.0.0.1", "example.org:80", ""] {
            let error = address(wrong).unwrap_err();
            assert!(error.to_string().contains("IP:PORT"), "{error}");
        }
    }
}
