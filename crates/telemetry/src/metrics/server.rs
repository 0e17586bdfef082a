//! The thread that serves metrics: a few connections at a time, none of which it waits for.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write, pipe};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::MetricsError;
use super::exposition::{CONTENT_TYPE, text};
use super::request::{LONGEST, PATH, answer};
use crate::Telemetry;

/// So many connections are served at a time; others wait until the system lets them in.
const MOST_CONNECTIONS: usize = 8;

/// A connection that takes longer is closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait where the system lets no connection in.
const REST: Duration = Duration::from_millis(200);

/// Serves the metrics of a run until it is dropped, which waits for no client.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    /// Its end tells the thread.
    alive: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to serve at an address; port 0 stands for any that is free.
    ///
    /// # Errors
    /// [`MetricsError::Listen`].
    pub fn start(address: SocketAddr, telemetry: Telemetry) -> Result<Self, MetricsError> {
        let start = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let (ended, alive) = pipe()?;
            let serving = Serving { listener, ended, telemetry, open: Vec::new(), rests_until: Instant::now() };
            let thread = thread::Builder::new().name("metrics".to_owned()).spawn(move || serving.run())?;
            Ok(Self { address, alive: Some(alive), thread: Some(thread) })
        };
        start().map_err(|source| MetricsError::Listen { address, source })
    }

    /// Where the metrics are.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.alive.take());
        // Had it panicked, there would be nothing left to stop.
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// The thread's part.
struct Serving {
    listener: TcpListener,
    ended: PipeReader,
    telemetry: Telemetry,
    open: Vec<Connection>,
    /// No connection is let in before.
    rests_until: Instant,
}

impl Serving {
    fn run(mut self) {
        while let Some(ready) = self.wait() {
            let (telemetry, now) = (&self.telemetry, Instant::now());
            let mut ready = ready.into_iter();
            self.open.retain_mut(|connection| {
                let is_ready = ready.next().unwrap_or_default();
                connection.deadline > now && (!is_ready || connection.go_on(telemetry) == Fate::Open)
            });
            self.let_in(now);
        }
    }

    /// Waits until something can be done; says which connections are ready. `None` when the run has ended.
    fn wait(&self) -> Option<Vec<bool>> {
        let now = Instant::now();
        let is_full = self.open.len() >= MOST_CONNECTIONS;
        let rests = self.rests_until.saturating_duration_since(now);
        let deadlines = self.open.iter().map(|connection| connection.deadline.saturating_duration_since(now));
        let soonest = deadlines.chain(Some(rests).filter(|rests| !rests.is_zero())).min();
        let mut polled = vec![PollFd::new(&self.ended, PollFlags::IN)];
        polled.extend(self.open.iter().map(Connection::polled));
        if !is_full && rests.is_zero() {
            polled.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        // A little later than the deadline, so that it has passed.
        let timeout = soonest.and_then(|soonest| Timespec::try_from(soonest + Duration::from_millis(1)).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
        if ready.next().unwrap_or(true) {
            return None;
        }
        Some(ready.take(self.open.len()).collect())
    }

    fn let_in(&mut self, now: Instant) {
        while self.open.len() < MOST_CONNECTIONS && self.rests_until <= now {
            match self.listener.accept().and_then(|(stream, _)| Connection::new(stream, now)) {
                Ok(connection) => self.open.push(connection),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // One that is gone already, or too many open files.
                Err(_) => self.rests_until = now + REST,
            }
        }
    }
}

/// Whether a connection is kept.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Over,
}

/// A client.
struct Connection {
    stream: TcpStream,
    deadline: Instant,
    request: Vec<u8>,
    state: State,
}

enum State {
    /// The request has not arrived in whole.
    Asking,
    /// The answer from this offset on is to be sent.
    Answering { answer: Vec<u8>, sent: usize },
    /// All is sent. What the client still sends is not looked at, but to close on it would take the answer away.
    Parting,
}

impl Connection {
    fn new(stream: TcpStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, deadline: now + PATIENCE, request: Vec::new(), state: State::Asking })
    }

    fn polled(&self) -> PollFd<'_> {
        let flags = if matches!(self.state, State::Answering { .. }) { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&self.stream, flags)
    }

    /// Does what can be done without waiting.
    fn go_on(&mut self, telemetry: &Telemetry) -> Fate {
        match self.step(telemetry) {
            Ok(fate) => fate,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Fate::Open,
            Err(_) => Fate::Over,
        }
    }

    /// Reads or writes once.
    fn step(&mut self, telemetry: &Telemetry) -> io::Result<Fate> {
        let mut buffer = [0; 1024];
        match &mut self.state {
            State::Asking => {
                let count = self.stream.read(&mut buffer)?;
                if count == 0 {
                    return Ok(Fate::Over);
                }
                self.request.extend(buffer.iter().take(count.min(LONGEST - self.request.len())));
                if let Some(answer) = answer(&self.request, CONTENT_TYPE, || text(telemetry)) {
                    self.state = State::Answering { answer, sent: 0 };
                }
            }
            State::Answering { answer, sent } => {
                *sent += self.stream.write(answer.get(*sent..).unwrap_or_default())?;
                if *sent >= answer.len() {
                    self.stream.shutdown(Shutdown::Write)?;
                    self.state = State::Parting;
                }
            }
            State::Parting if self.stream.read(&mut buffer)? == 0 => return Ok(Fate::Over),
            State::Parting => {}
        }
        Ok(Fate::Open)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn server() -> Server {
        let telemetry = Telemetry::new();
        telemetry.meter("capture");
        Server::start(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), telemetry).unwrap()
    }

    fn ask(server: &Server, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\n\r\n";

    #[test]
    fn clients_are_served_one_after_another() {
        let server = server();
        for _ in 0..3 * MOST_CONNECTIONS {
            let answer = ask(&server, REQUEST);
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
        }
        let more = [REQUEST, &vec![b'x'; 1 << 16]].concat();
        assert!(ask(&server, &more).ends_with("# EOF\n"), "what is sent beyond the request does no harm");
    }

    #[test]
    fn clients_that_say_nothing_hold_up_neither_others_nor_the_end() {
        let server = server();
        let mut silent = Vec::new();
        for _ in 1..MOST_CONNECTIONS {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(b"GET /met").unwrap();
            silent.push(stream);
        }
        assert!(ask(&server, REQUEST).ends_with("# EOF\n"));
        let more: Vec<_> = (0..3 * MOST_CONNECTIONS).map(|_| TcpStream::connect(server.address).unwrap()).collect();
        drop(server);
        // The end of the thread has closed them.
        for mut stream in silent {
            assert!(stream.read_to_end(&mut Vec::new()).is_ok_and(|count| count == 0));
        }
        drop(more);
    }

    #[test]
    fn a_port_that_is_taken_is_told() {
        let server = server();
        let error = Server::start(server.address, Telemetry::new()).unwrap_err();
        assert!(error.to_string().contains(&server.address.to_string()), "{error}");
    }
}
