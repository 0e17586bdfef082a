//! Metrics of a run for Prometheus: `OpenMetrics` text over HTTP on loopback, while the run goes on. One request a
//! connection, few connections at once, and a deadline for each: a client that is silent or does not read its answer
//! delays neither others nor the run nor its end.

mod exposition;
mod request;

#[doc(hidden)]
pub use request::{RequestVerdict, parse_request};

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use exposition::{CONTENT_TYPE, text};
use request::{MAX_REQUEST_BYTES, PATH};

use crate::telemetry::Telemetry;

/// How many connections are open at once; beyond that the oldest one is closed.
const MAX_CONNECTIONS: usize = 8;

/// How long a client may take for its request, and how long for reading the answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long to wait after a connection that could not be accepted, as when all descriptors are in use.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves the metrics of a run until it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Starts serving at an address of loopback; port 0 picks a free one.
    pub fn start(address: SocketAddr, telemetry: Telemetry) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let connections = Connections { telemetry, address, open: Arc::default() };
        let over = Arc::clone(&is_over);
        let accept = move || connections.accept_from(&listener, &over);
        let acceptor = Some(thread::Builder::new().name("metrics".to_owned()).spawn(accept)?);
        Ok(Self { address, is_over, acceptor })
    }

    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // It waits for connections: this is the last one. Without it the thread ends with the program.
        if TcpStream::connect_timeout(&self.address, DEADLINE).is_ok() {
            let _ended = self.acceptor.take().map(JoinHandle::join);
        }
    }
}

struct Connections {
    telemetry: Telemetry,
    address: SocketAddr,
    open: Arc<Mutex<Vec<(u64, TcpStream)>>>,
}

impl Connections {
    fn accept_from(&self, listener: &TcpListener, is_over: &AtomicBool) {
        for number in 0.. {
            let accepted = listener.accept();
            if is_over.load(Ordering::SeqCst) {
                break;
            }
            match accepted.and_then(|(stream, _)| self.serve(number, stream)) {
                Ok(()) => {}
                Err(_) => thread::sleep(PAUSE),
            }
        }
        self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(|(_, stream)| close(&stream));
    }

    /// Answers a connection on a thread of its own. If there are too many, the oldest one ends.
    fn serve(&self, number: u64, stream: TcpStream) -> io::Result<()> {
        let copy = stream.try_clone()?;
        {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            if open.len() >= MAX_CONNECTIONS {
                // Its thread sees an end of file, and goes.
                close(&open.remove(0).1);
            }
            open.push((number, copy));
        }
        let (telemetry, address, open) = (self.telemetry.clone(), self.address, Arc::clone(&self.open));
        let answered = move || {
            // A client that is gone needs no answer.
            let _answered = answer(&stream, address, &telemetry);
            close(&stream);
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|(other, _)| *other != number);
        };
        thread::Builder::new().name("metrics-client".to_owned()).spawn(answered).map(drop)
    }
}

fn close(stream: &TcpStream) {
    // The client may have closed it first.
    let _closed = stream.shutdown(Shutdown::Both);
}

fn answer(stream: &TcpStream, address: SocketAddr, telemetry: &Telemetry) -> io::Result<()> {
    let Some(verdict) = receive(stream, address)? else { return Ok(()) };
    let (status, content_type, body) = match verdict {
        RequestVerdict::Metrics | RequestVerdict::MetricsHead => ("200 OK", CONTENT_TYPE, text(telemetry)),
        refused => {
            let (status, body) = refusal(refused, address);
            (status, "text/plain; charset=utf-8", body)
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if verdict == RequestVerdict::MetricsHead { "" } else { &body };
    send(stream, &[head.as_bytes(), body.as_bytes()].concat())
}

fn refusal(verdict: RequestVerdict, address: SocketAddr) -> (&'static str, String) {
    let here = format!("The metrics are at http://{address}{PATH}.\n");
    match verdict {
        RequestVerdict::ForeignHost => (
            "403 Forbidden",
            format!("The request names another host than this machine: use localhost or {}.\n", address.ip()),
        ),
        RequestVerdict::NotFound => ("404 Not Found", here),
        RequestVerdict::MethodNotAllowed => ("405 Method Not Allowed", here),
        RequestVerdict::TooLarge => ("431 Request Header Fields Too Large", here),
        _ => ("400 Bad Request", here),
    }
}

/// The verdict on the first request of a connection; `None` if it ends before that.
fn receive(mut stream: &TcpStream, address: SocketAddr) -> io::Result<Option<RequestVerdict>> {
    let end = Instant::now() + DEADLINE;
    let mut request = Vec::with_capacity(1 << 10);
    let mut part = [0; 1 << 10];
    loop {
        stream.set_read_timeout(Some(remaining(end)?))?;
        let room = MAX_REQUEST_BYTES.saturating_sub(request.len()).min(part.len());
        let count = stream.read(part.get_mut(..room).unwrap_or_default())?;
        if count == 0 {
            return Ok(None);
        }
        request.extend_from_slice(part.get(..count).unwrap_or_default());
        let verdict = parse_request(&request, address);
        if verdict.is_some() {
            return Ok(verdict);
        }
    }
}

fn send(mut stream: &TcpStream, mut answer: &[u8]) -> io::Result<()> {
    let end = Instant::now() + DEADLINE;
    while !answer.is_empty() {
        stream.set_write_timeout(Some(remaining(end)?))?;
        let count = stream.write(answer)?;
        answer = answer.get(count..).unwrap_or_default();
    }
    Ok(())
}

fn remaining(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests;
