//! Which of TLS 1.3's encrypted records still agree on keys: from outside they all look like application data.
//!
//! The rule, in the order of the connection (RFC 8446 section 2, appendix E.1 for what an observer sees):
//!
//! 1. After the `ServerHello` everything from the server is its flight (certificate and so on).
//! 2. The client's flight ends with a `Finished`, whose record has exactly the length that the suite's hash makes it
//!    have. Records of the client before it are certificates, or early data where the client offered it. Where the
//!    `Finished` shares a record with a certificate, the flight ends when the server speaks again.
//! 3. What the server sends then, first thing, are session tickets: the first record within a second that can hold one,
//!    and those of the same length right after it. As long as the client has not spoken, other lengths count too.
//!
//! Where only one direction was captured, the handshake ends with its time.

use crate::handshake::ServerHello;

/// Longer than this no handshake lasts, in nanoseconds.
const LONGEST: i64 = 10_000_000_000;

/// So soon after the client's `Finished` come the tickets, in nanoseconds.
const TICKETS_WITHIN: i64 = 1_000_000_000;

/// No server sends more tickets at once.
const MOST_TICKETS: u8 = 8;

/// Bytes of a `NewSessionTicket` (RFC 8446 section 4.6.1): its fixed parts, and up to a ticket that holds the client's
/// certificate.
const TICKET: std::ops::RangeInclusive<u16> = 18..=4096;

/// The length of an `EndOfEarlyData`.
const END_OF_EARLY_DATA: u16 = 4;

/// Which end sent a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// How far a handshake has come.
#[derive(Debug, Clone)]
pub(crate) struct Flights {
    began_ns: i64,
    finished: u16,
    added: u16,
    early_data: bool,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Server,
    Client,
    Tickets(Tickets),
    Done,
}

/// The time in which tickets may come.
#[derive(Debug, Clone, Copy)]
struct Tickets {
    since_ns: i64,
    first: Option<u16>,
    count: u8,
    client_spoke: bool,
}

impl Flights {
    /// After a `ServerHello` at this time, whose suite adds so many bytes to a record.
    pub(crate) fn new(hello: ServerHello, added: u16, early_data: bool, time_ns: i64) -> Self {
        Self { began_ns: time_ns, finished: finished(hello.cipher_suite), added, early_data, stage: Stage::Server }
    }

    /// Whether keys are still being agreed.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Server | Stage::Client)
    }

    /// Whether no record can belong to it any more.
    pub(crate) fn are_over(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Takes the length of an encrypted record; true if it belongs to the handshake.
    pub(crate) fn takes(&mut self, end: End, length: u16, time_ns: i64) -> bool {
        if self.is_open() && time_ns.saturating_sub(self.began_ns) > LONGEST {
            self.stage = Stage::Done;
        }
        let content = length.saturating_sub(self.added);
        match (self.stage, end) {
            (Stage::Server, End::Server) => true,
            (Stage::Server | Stage::Client, End::Client) if content == self.finished => {
                self.stage = Stage::Tickets(Tickets::since(time_ns));
                true
            }
            (Stage::Server, End::Client) if self.early_data => content == END_OF_EARLY_DATA,
            (Stage::Server | Stage::Client, End::Client) => {
                self.stage = Stage::Client;
                true
            }
            (Stage::Client, End::Server) => self.ticket(Tickets::since(time_ns), content, time_ns),
            (Stage::Tickets(tickets), End::Client) => {
                self.stage = Stage::Tickets(Tickets { client_spoke: true, ..tickets });
                false
            }
            (Stage::Tickets(tickets), End::Server) => self.ticket(tickets, content, time_ns),
            (Stage::Done, _) => false,
        }
    }

    fn ticket(&mut self, tickets: Tickets, content: u16, time_ns: i64) -> bool {
        let is = tickets.may_be(content, time_ns);
        self.stage = if is {
            let first = tickets.first.or(Some(content));
            Stage::Tickets(Tickets { first, count: tickets.count + 1, ..tickets })
        } else {
            Stage::Done
        };
        is
    }
}

impl Tickets {
    fn since(since_ns: i64) -> Self {
        Self { since_ns, first: None, count: 0, client_spoke: false }
    }

    fn may_be(&self, content: u16, time_ns: i64) -> bool {
        let in_time = time_ns.saturating_sub(self.since_ns) <= TICKETS_WITHIN;
        let alike = !self.client_spoke || self.first.is_none_or(|first| first == content);
        in_time && alike && self.count < MOST_TICKETS && TICKET.contains(&content)
    }
}

/// Bytes of a `Finished`: a header and the output of the suite's hash.
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
mod tests {
    use super::*;
    use End::{Client, Server};

    const HELLO: ServerHello =
        ServerHello { version: 0x0304, cipher_suite: 0x1301, compressed: false, encrypt_then_mac: false, retry: false };
    const FINISHED: u16 = 36 + 17;
    const MILLISECOND: i64 = 1_000_000;

    /// Which of the records, a millisecond apart, belong to the handshake.
    fn taken(flights: &mut Flights, records: &[(End, u16)]) -> Vec<bool> {
        (1i64..).zip(records).map(|(at, (end, length))| flights.takes(*end, *length, at * MILLISECOND)).collect()
    }

    fn flights() -> Flights {
        Flights::new(HELLO, 17, false, 0)
    }

    #[test]
    fn tickets_before_and_after_the_client_speaks() {
        let before = [
            (Server, 900),
            (Server, 53),
            (Client, FINISHED),
            (Server, 120),
            (Server, 250),
            (Client, 90),
            (Server, 300),
        ];
        assert_eq!(taken(&mut flights(), &before), [true, true, true, true, true, false, false]);
        let after = [
            (Server, 900),
            (Client, FINISHED),
            (Client, 90),
            (Server, 120),
            (Server, 120),
            (Server, 300),
            (Server, 120),
        ];
        assert_eq!(taken(&mut flights(), &after), [true, true, false, true, true, false, false]);
    }

    #[test]
    fn tickets_come_soon_or_not_at_all() {
        let mut flights = flights();
        taken(&mut flights, &[(Server, 900), (Client, FINISHED)]);
        assert!(!flights.is_open());
        assert!(!flights.takes(Server, 120, 2_000 * MILLISECOND));
    }

    #[test]
    fn a_clients_certificate() {
        let apart = [(Server, 900), (Client, 700), (Client, 150), (Client, FINISHED), (Client, 90)];
        assert_eq!(taken(&mut flights(), &apart), [true, true, true, true, false]);
        let together = [(Server, 900), (Client, 850), (Server, 120), (Server, 120), (Client, 90), (Server, 90)];
        assert_eq!(taken(&mut flights(), &together), [true, true, true, true, false, false]);
    }

    #[test]
    fn early_data_is_data() {
        let mut flights = Flights::new(HELLO, 17, true, 0);
        let records = [(Client, 200), (Server, 120), (Client, 200), (Client, 21), (Client, FINISHED), (Client, 200)];
        assert_eq!(taken(&mut flights, &records), [false, true, false, true, true, false]);
    }

    #[test]
    fn one_direction_alone_ends_with_its_time() {
        let mut flights = flights();
        assert!(flights.takes(Server, 900, MILLISECOND));
        assert!(!flights.takes(Server, 900, 11_000 * MILLISECOND));
    }

    #[test]
    fn finished_by_hash() {
        assert_eq!((finished(0x1301), finished(0x1302), finished(0x1306)), (36, 52, 68));
    }
}
