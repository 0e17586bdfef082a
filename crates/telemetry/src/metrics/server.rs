//! The HTTP server behind `--metrics`.
//!
//! Requests are read on threads of `tiny_http` and answered on a separate thread, so a client that is silent or does
//! not read its answer delays neither the run nor its end.

use std::io::Cursor;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

use super::address::MetricsError;
use super::exposition::{CONTENT_TYPE, text};
use crate::Telemetry;

/// Where the metrics are.
const PATH: &str = "/metrics";

/// Serves the metrics of a run until it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    server: Arc<Server>,
}

impl MetricsServer {
    /// Starts serving at an address; port 0 picks a free one.
    ///
    /// # Errors
    /// [`MetricsError::Listen`].
    pub fn start(address: SocketAddr, telemetry: Telemetry) -> Result<Self, MetricsError> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            let address = listener.local_addr()?;
            let server = Server::from_listener(listener, None).map_err(std::io::Error::other)?;
            let server = Arc::new(server);
            let serving = Arc::clone(&server);
            thread::Builder::new().name("metrics".to_owned()).spawn(move || {
                for request in serving.incoming_requests() {
                    let answer = answer(&request, &telemetry);
                    // A client that is gone needs no answer.
                    let _sent = request.respond(answer);
                }
            })?;
            Ok(Self { address, server })
        };
        listen().map_err(|source| MetricsError::Listen { address, source })
    }

    /// The URL of the metrics.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        // The thread is not joined: it may be waiting for a client that does not read.
        self.server.unblock();
    }
}

fn answer(request: &Request, telemetry: &Telemetry) -> Response<Cursor<Vec<u8>>> {
    let path = request.url().split('?').next().unwrap_or_default();
    let (status, content_type, body) = match request.method() {
        Method::Get | Method::Head if path == PATH => (200, CONTENT_TYPE, text(telemetry)),
        method => {
            let status = if matches!(method, Method::Get | Method::Head) { 404 } else { 405 };
            (status, "text/plain; charset=utf-8", format!("The metrics are at {PATH}.\n"))
        }
    };
    let response = Response::from_data(body).with_status_code(StatusCode(status)).with_chunked_threshold(usize::MAX);
    match Header::from_bytes("Content-Type", content_type) {
        Ok(header) => response.with_header(header),
        Err(()) => response,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    fn server() -> MetricsServer {
        let telemetry = Telemetry::new();
        telemetry.meter("capture");
        MetricsServer::start((Ipv4Addr::LOCALHOST, 0).into(), telemetry).unwrap()
    }

    fn ask(server: &MetricsServer, request: &str) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn only_get_and_head_of_the_metrics_succeed() {
        let server = server();
        for request in ["GET /metrics", "GET /metrics?x=1"] {
            let answer = ask(&server, request);
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
        }
        let head = ask(&server, "HEAD /metrics");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [("GET /", "404"), ("POST /metrics", "405")] {
            let answer = ask(&server, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
    }

    #[test]
    fn silent_clients_delay_neither_others_nor_the_end() {
        let server = server();
        let silent = (0..20).map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(b"GET /met").unwrap();
            stream
        });
        let silent: Vec<TcpStream> = silent.collect();
        assert!(ask(&server, "GET /metrics").ends_with("# EOF\n"));
        drop(server);
        drop(silent);
    }

    #[test]
    fn occupied_port_is_an_error_that_names_it() {
        let server = server();
        let error = MetricsServer::start(server.address, Telemetry::new()).err().unwrap();
        assert!(error.to_string().contains(&server.address.to_string()), "{error}");
    }
}
