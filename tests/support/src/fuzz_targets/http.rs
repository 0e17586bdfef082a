//! The HTTP requests that the metrics server reads.

use std::net::{Ipv4Addr, SocketAddr};

use sizeleak_platform::telemetry::metrics::parse_request;

/// Reads bytes as a request: whatever it is, more bytes never undo a verdict that was reached before.
pub fn http_request(bytes: &[u8]) {
    let bound = SocketAddr::from((Ipv4Addr::LOCALHOST, 9464));
    let (whole, part) = (parse_request(bytes, bound), parse_request(&bytes[..bytes.len() / 2], bound));
    if part.is_some() {
        assert!(whole.is_some(), "{part:?}, then {whole:?}");
    }
}
