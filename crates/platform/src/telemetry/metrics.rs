//! Metrics of a run for Prometheus: `OpenMetrics` text over HTTP on loopback, while the run goes on. One request a
//! connection, few connections at once, and a deadline for each: a client that is silent or does not read its answer
//! delays neither others nor the run nor its end. What is read is pure, and bounded by the bytes given.

use std::fmt::{Display, Write as _};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Error, Status};

use crate::telemetry::{FrameCounts, Latency, Meter, StageFigures, Telemetry};

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
    let foreign = || format!("The request names another host than this machine: use localhost or {}.\n", address.ip());
    let here = || format!("The metrics are at http://{address}{PATH}.\n");
    let (status, body) = match verdict {
        RequestVerdict::Metrics | RequestVerdict::MetricsHead => ("200 OK", text(telemetry)),
        RequestVerdict::ForeignHost => ("403 Forbidden", foreign()),
        RequestVerdict::NotFound => ("404 Not Found", here()),
        RequestVerdict::MethodNotAllowed => ("405 Method Not Allowed", here()),
        RequestVerdict::TooLarge => ("431 Request Header Fields Too Large", here()),
        RequestVerdict::Malformed => ("400 Bad Request", here()),
    };
    let content_type = if status == "200 OK" { CONTENT_TYPE } else { "text/plain; charset=utf-8" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if verdict == RequestVerdict::MetricsHead { "" } else { &body };
    send(stream, &[head.as_bytes(), body.as_bytes()].concat())
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

const PATH: &str = "/metrics";

const MAX_REQUEST_BYTES: usize = 8 << 10;

const MAX_HEADERS: usize = 64;

#[doc(hidden)]
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
#[doc(hidden)]
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

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn text(telemetry: &Telemetry) -> String {
    let mut text = Exposition::default();
    text.family("build", None, "info", "The program that runs");
    text.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let help = "Bytes of the input that were read, before anything is decompressed";
    text.family("input_read_bytes", Some("bytes"), "counter", help);
    text.sample("input_read_bytes_total", &[], telemetry.progress().read());
    if let Some(total) = telemetry.progress().total() {
        let help = "Bytes of the input in all; missing where that is not known";
        text.family("input_size_bytes", Some("bytes"), "gauge", help);
        text.sample("input_size_bytes", &[], total);
    }
    let meters = telemetry.meters();
    if !meters.is_empty() {
        let mut counter = |name: &str, unit, help, count: fn(&FrameCounts) -> u64| {
            text.family(name, unit, "counter", help);
            for meter in &meters {
                text.sample(&format!("{name}_total"), &[("stage", meter.stage())], count(&meter.figures().counts));
            }
        };
        let help = "Frames that a stage took, rows of batches each; of a capture, packets";
        counter("frames_in", None, help, |counts| counts.frames_in);
        counter("frames_out", None, "Frames that a stage made, rows of batches each", |counts| counts.frames_out);
        let help = "Bytes of traffic in the frames that a stage took";
        counter("traffic_in_bytes", Some("bytes"), help, |counts| counts.bytes_in);
        text.histogram("service_seconds", "Time a stage worked on a frame", &meters, |figures| &figures.service);
        text.histogram("queue_seconds", "Time a frame waited for a stage", &meters, |figures| &figures.queue);
    }
    text.family("notices", None, "counter", "Notices of what was skipped, lost or assumed");
    for ((stage, what), count) in telemetry.notices() {
        text.sample("notices_total", &[("stage", &stage), ("what", &what)], count);
    }
    let help = "Frames that came out of the last stage, rows of batches each";
    text.family("output_frames", None, "counter", help);
    for (kind, count) in telemetry.output() {
        text.sample("output_frames_total", &[("kind", &kind)], count);
    }
    text.0.push_str("# EOF\n");
    text.0
}

/// The bounds of histograms, in nanoseconds: three for every power of ten from 100 ns to 10 s.
const BOUNDS_NS: [u64; 25] = {
    let (mut bounds, mut at) = ([0; 25], 0);
    while at < bounds.len() {
        bounds[at] = [100, 250, 500][at % 3] * 10_u64.pow(at as u32 / 3);
        at += 1;
    }
    bounds
};

/// A text of metric families (`OpenMetrics` 1.0, section "Text format"), whose names all begin alike.
#[derive(Debug, Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, unit: Option<&str>, metric_type: &str, help: &str) {
        self.line(format_args!("# HELP sizeleak_{name} {help}"));
        self.line(format_args!("# TYPE sizeleak_{name} {metric_type}"));
        if let Some(unit) = unit {
            self.line(format_args!("# UNIT sizeleak_{name} {unit}"));
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        if labels.is_empty() {
            self.line(format_args!("sizeleak_{name} {value}"));
        } else {
            self.line(format_args!("sizeleak_{name}{{{}}} {value}", labels.join(",")));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, meters: &[Meter], times: fn(&StageFigures) -> &Latency) {
        self.family(name, Some("seconds"), "histogram", help);
        for meter in meters {
            let (figures, stage) = (meter.figures(), ("stage", meter.stage()));
            let times = times(&figures);
            let all = times.histogram().len();
            self.sample(&format!("{name}_sum"), &[stage], number(times.sum().as_secs_f64()));
            self.sample(&format!("{name}_count"), &[stage], all);
            for bound in BOUNDS_NS {
                let up_to_bound = times.histogram().count_between(0, bound);
                self.sample(&format!("{name}_bucket"), &[("le", &number(bound as f64 / 1e9)), stage], up_to_bound);
            }
            self.sample(&format!("{name}_bucket"), &[("le", "+Inf"), stage], all);
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        _ = writeln!(self.0, "{line}");
    }
}

/// A canonical number: a whole one has a fraction, too.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.1}") } else { value.to_string() }
}

#[cfg(test)]
mod tests;
