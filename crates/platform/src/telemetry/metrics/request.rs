//! From bytes to an HTTP request for the metrics, or the reason to refuse it: pure, and bounded by the bytes given.

use std::net::{IpAddr, SocketAddr};

use httparse::{EMPTY_HEADER, Error, Status};

pub(super) const PATH: &str = "/metrics";

pub(super) const MAX_REQUEST_BYTES: usize = 8 << 10;

const MAX_HEADERS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestVerdict {
    Metrics,
    /// Only the head of that answer.
    MetricsHead,
    /// Something that is not here: 404.
    NotFound,
    MethodNotAllowed,
    /// Addressed to another host, as after DNS rebinding: 403.
    ForeignHost,
    /// No valid HTTP: 400.
    Malformed,
    /// Too long, or with too many headers: 431.
    TooLarge,
}

/// What these bytes ask of the server that listens at `bound`; `None` if more are to come. Bytes after the head do not
/// matter.
pub fn parse_request(bytes: &[u8], bound: SocketAddr) -> Option<RequestVerdict> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    Some(match request.parse(bytes) {
        Ok(Status::Complete(_)) => verdict(&request, bound),
        Ok(Status::Partial) if bytes.len() < MAX_REQUEST_BYTES => return None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => RequestVerdict::TooLarge,
        Err(_) => RequestVerdict::Malformed,
    })
}

fn verdict(request: &httparse::Request<'_, '_>, bound: SocketAddr) -> RequestVerdict {
    let (Some(method), Some(target)) = (request.method, request.path) else { return RequestVerdict::Malformed };
    let mut hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let (host, another) = (hosts.next(), hosts.next());
    // The whole URL takes precedence over the header (RFC 9112, section 3.2.2).
    let (authority, path) = match target.strip_prefix("http://").map(|rest| rest.split_once('/')) {
        Some(Some((authority, _))) => {
            let path = target.get("http://".len() + authority.len()..).unwrap_or_default();
            (Some(authority.as_bytes()), path)
        }
        Some(None) => return RequestVerdict::NotFound,
        None => (host.map(|host| host.value), target),
    };
    if another.is_some() {
        return RequestVerdict::Malformed;
    }
    // Browsers always send a host; HTTP/1.0 need not.
    match authority {
        None if request.version == Some(0) => {}
        None => return RequestVerdict::Malformed,
        Some(host) if !is_own_host(host, bound) => return RequestVerdict::ForeignHost,
        Some(_) => {}
    }
    match (method, path.split('?').next()) {
        ("GET", Some(PATH)) => RequestVerdict::Metrics,
        ("HEAD", Some(PATH)) => RequestVerdict::MetricsHead,
        ("GET" | "HEAD", _) => RequestVerdict::NotFound,
        _ => RequestVerdict::MethodNotAllowed,
    }
}

/// Whether this host is this machine: `localhost`, a loopback address or the bound one, with any port. A name that
/// merely resolves here may be anybody's.
fn is_own_host(host: &[u8], bound: SocketAddr) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let host = host.trim();
    let address = host.parse::<SocketAddr>().map(|address| address.ip());
    let address = address.or_else(|_| host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>());
    if let Ok(address) = address {
        return address.to_canonical().is_loopback() || address == bound.ip();
    }
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const BOUND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

    fn parsed(request: &str) -> Option<RequestVerdict> {
        parse_request(request.as_bytes(), BOUND)
    }

    fn with_host(host: &str) -> Option<RequestVerdict> {
        parsed(&format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\nhost: {host}\r\n\r\n"))
    }

    #[test]
    fn only_names_and_addresses_of_this_machine_are_hosts() {
        for host in [
            "localhost",
            "LocalHost:9464",
            "localhost.",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.8.8.8:80",
            "[::1]",
            "[::1]:9464",
            " localhost ",
        ] {
            assert_eq!(with_host(host), Some(RequestVerdict::Metrics), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "192.168.1.20:9464",
            "0.0.0.0",
            "localhost:",
            "localhost:x",
            "",
            "x@localhost",
            "127.0.0.1.evil.example",
            "[::ffff:10.0.0.1]",
            "a:b:c",
        ] {
            assert_eq!(with_host(host), Some(RequestVerdict::ForeignHost), "{host}");
        }
    }

    #[test]
    fn every_other_request_has_its_refusal() {
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "x".repeat(MAX_REQUEST_BYTES));
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1));
        for (request, verdict) in [
            ("GET /metrics HTTP/1.0\r\n\r\n", RequestVerdict::Metrics),
            ("HEAD /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::MetricsHead),
            ("GET http://localhost/metrics HTTP/1.1\r\nHost: x\r\n\r\n", RequestVerdict::Metrics),
            ("GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::ForeignHost),
            ("GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::NotFound),
            ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::NotFound),
            ("GET /metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::NotFound),
            ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::MethodNotAllowed),
            ("GET /metrics HTTP/1.1\r\n\r\n", RequestVerdict::Malformed),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: x\r\n\r\n", RequestVerdict::Malformed),
            ("\u{16}\u{3}\u{1}\u{2}\0\u{1}", RequestVerdict::Malformed),
            (&long, RequestVerdict::TooLarge),
            (&many, RequestVerdict::TooLarge),
        ] {
            assert_eq!(parsed(request), Some(verdict), "{request:?}");
        }
    }

    #[test]
    fn every_beginning_of_a_request_is_incomplete() {
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Prometheus/3\r\n\r\n";
        for end in 0..request.len() {
            assert_eq!(parsed(&request[..end]), None, "{end}");
        }
    }
}
