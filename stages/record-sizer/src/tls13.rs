//! Which encrypted records of TLS 1.3 belong to the handshake: on the wire all of them look like application data.
//!
//! The rule, in the order of the connection (RFC 8446 section 2, appendix E.1 for what an observer sees):
//!
//! 1. After the `ServerHello`, all records from the server are its flight (certificate and so on).
//! 2. The client's flight ends with a `Finished`, whose record has exactly the length that follows from the suite's
//!    hash. Earlier records of the client are certificates, or early data where the client offered it. Where the
//!    `Finished` shares a record with a certificate, the flight ends with the next record of the server.
//! 3. The server's next records are session tickets: the first within a second that can hold one, and those of the same
//!    length that follow it in one flight. A server sends them at once; only Nagle's algorithm may hold the next one until
//!    the last is acknowledged, so that no more passes between two of them than a round trip (the time from the server's
//!    hello to the first is one at least) and what an acknowledgement may be delayed. The first record of another length,
//!    or a later one, is data, and so are all after it.
//!
//! Where only one direction was captured, the handshake ends by its time limit.

use serde::{Deserialize, Serialize};

use crate::handshake::ServerHello;

const MAX_DURATION_NS: i64 = 10_000_000_000;

/// How soon after the client's `Finished` tickets come, in nanoseconds.
const TICKETS_WITHIN: i64 = 1_000_000_000;

/// How long a receiver may delay an acknowledgement (RFC 9293, section 3.8.6.3), in nanoseconds.
const DELAYED_ACKNOWLEDGEMENT: i64 = 500_000_000;

/// The number of tickets a server sends at once.
const MAX_TICKETS: u8 = 8;

/// Bytes of a `NewSessionTicket` (RFC 8446 section 4.6.1): from its fixed parts alone to a ticket with the client's
/// certificate.
const TICKET: std::ops::RangeInclusive<u16> = 18..=4096;

const END_OF_EARLY_DATA: u16 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Client,
    Server,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tls13Handshake {
    start_ns: i64,
    /// Bytes of the client's `Finished`.
    finished: u16,
    added: u16,
    early_data: bool,
    flight: Flight,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Flight {
    Server,
    Client,
    Tickets(TicketWindow),
    Over,
}

/// What comes next may be a ticket until `until_ns`, and of the length of those before.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct TicketWindow {
    until_ns: i64,
    length: Option<u16>,
    count: u8,
}

impl Tls13Handshake {
    /// A handshake after a `ServerHello` at `time_ns`, whose suite adds `added` bytes to a record.
    pub(crate) fn new(hello: ServerHello, added: u16, early_data: bool, time_ns: i64) -> Self {
        Self { start_ns: time_ns, finished: finished(hello.cipher_suite), added, early_data, flight: Flight::Server }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.flight, Flight::Server | Flight::Client)
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.flight, Flight::Over)
    }

    /// Takes the length of an encrypted record; true if it belongs to the handshake.
    pub(crate) fn record(&mut self, end: Endpoint, length: u16, time_ns: i64) -> bool {
        if self.is_open() && time_ns.saturating_sub(self.start_ns) > MAX_DURATION_NS {
            self.flight = Flight::Over;
        }
        let content = length.saturating_sub(self.added);
        match (self.flight, end) {
            (Flight::Server, Endpoint::Server) => true,
            (Flight::Server | Flight::Client, Endpoint::Client) if content == self.finished => {
                self.flight = Flight::Tickets(TicketWindow::after_finished(time_ns));
                true
            }
            (Flight::Server, Endpoint::Client) if self.early_data => content == END_OF_EARLY_DATA,
            (Flight::Server | Flight::Client, Endpoint::Client) => {
                self.flight = Flight::Client;
                true
            }
            (Flight::Client, Endpoint::Server) => self.ticket(TicketWindow::after_finished(time_ns), content, time_ns),
            (Flight::Tickets(tickets), Endpoint::Server) => self.ticket(tickets, content, time_ns),
            (Flight::Tickets(_), Endpoint::Client) | (Flight::Over, _) => false,
        }
    }

    fn ticket(&mut self, tickets: TicketWindow, content: u16, time_ns: i64) -> bool {
        let is_ticket = tickets.accepts(content, time_ns);
        self.flight = if is_ticket {
            let round_trip_ns = time_ns.saturating_sub(self.start_ns);
            let until_ns = time_ns.saturating_add(round_trip_ns.min(TICKETS_WITHIN) + DELAYED_ACKNOWLEDGEMENT);
            Flight::Tickets(TicketWindow { until_ns, length: Some(content), count: tickets.count + 1 })
        } else {
            Flight::Over
        };
        is_ticket
    }
}

impl TicketWindow {
    fn after_finished(time_ns: i64) -> Self {
        Self { until_ns: time_ns.saturating_add(TICKETS_WITHIN), length: None, count: 0 }
    }

    fn accepts(&self, content: u16, time_ns: i64) -> bool {
        let is_alike = self.length.is_none_or(|length| length == content);
        time_ns <= self.until_ns && is_alike && self.count < MAX_TICKETS && TICKET.contains(&content)
    }
}

/// Bytes of a `Finished` message: a header and the output of the suite's hash.
fn finished(cipher_suite: u16) -> u16 {
    use tls_parser::{TlsCipherSuite, TlsPRF};
    let hash = match TlsCipherSuite::from_id(cipher_suite).map(|suite| &suite.prf) {
        Some(TlsPRF::Sha384) => 48,
        Some(TlsPRF::Sha512) => 64,
        _ => 32,
    };
    4 + hash
}

#[cfg(test)]
mod tests;
