//! A TCP connection with a TLS session inside that carries a script: messages in, packets out.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use crate::SimulateError;
use crate::application::{MessageRole, TimedMessage};
use crate::network::{SimulatedPacket, TcpConnection, TcpRoute};
use crate::scenario::TlsSettings;
use crate::tls::{ServerIdentity, Side, TlsSession};

const MILLISECOND: i64 = 1_000_000;

/// What a conversation runs over.
#[derive(Debug)]
pub(crate) struct ConnectionSetup<'a> {
    pub(crate) route: TcpRoute<'a>,
    pub(crate) identity: &'a ServerIdentity,
    pub(crate) tls: TlsSettings,
    /// The protocol inside, as ALPN names it.
    pub(crate) protocol: &'a str,
    pub(crate) open_ns: i64,
    pub(crate) tls_random: ChaCha20Rng,
    pub(crate) tcp_random: ChaCha20Rng,
}

/// What became of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentMessage {
    pub(crate) role: MessageRole,
    /// Time of its first segment and of its last.
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    pub(crate) plaintext_size: usize,
    /// Sum of its records' lengths, as their headers say them.
    pub(crate) wire_size: usize,
    pub(crate) records: usize,
}

/// A conversation that has taken place.
#[derive(Debug)]
pub(crate) struct CarriedTraffic {
    pub(crate) packets: Vec<SimulatedPacket>,
    pub(crate) sent: Vec<SentMessage>,
}

/// A conversation whose handshakes are done.
#[derive(Debug)]
pub(crate) struct OpenConnection<'a> {
    session: TlsSession,
    connection: TcpConnection<'a>,
    route: TcpRoute<'a>,
    /// From when on there can be messages.
    pub(crate) ready_ns: i64,
}

impl<'a> OpenConnection<'a> {
    /// Connects and shakes hands.
    pub(crate) fn new(line: ConnectionSetup<'a>) -> Result<Self, SimulateError> {
        let ConnectionSetup { route, identity, tls, protocol, open_ns, tls_random, mut tcp_random } = line;
        let mut think: Vec<i64> = (0..8).map(|_| tcp_random.random_range(MILLISECOND / 2..3 * MILLISECOND)).collect();
        let (mut connection, mut time_ns) = TcpConnection::open(route, open_ns, tcp_random)?;
        let mut session = TlsSession::new(identity, tls, protocol, open_ns, tls_random)?;
        for (side, flight) in session.handshake()? {
            let (_, last_ns) = connection.write(time_ns, side, &flight)?;
            time_ns = last_ns + route.turnaround(side.peer()) + think.pop().unwrap_or(MILLISECOND);
        }
        Ok(Self { session, connection, route, ready_ns: time_ns })
    }

    /// Carries messages, which are in order of time, and closes after `close_ns`.
    pub(crate) fn carry(mut self, messages: &[TimedMessage], close_ns: i64) -> Result<CarriedTraffic, SimulateError> {
        let mut sent = Vec::with_capacity(messages.len());
        let mut over_ns = close_ns;
        for message in messages {
            let records = self.session.seal(message.side, &message.bytes)?;
            let (first_ns, last_ns) = self.connection.write(message.time_ns, message.side, &records)?;
            let lengths = record_lengths(&records);
            sent.push(SentMessage {
                role: message.role,
                first_ns,
                last_ns,
                plaintext_size: message.bytes.len(),
                wire_size: lengths.iter().sum(),
                records: lengths.len(),
            });
            over_ns = over_ns.max(last_ns);
        }
        for side in [Side::Client, Side::Server] {
            let notify = self.session.close(side)?;
            over_ns += self.route.turnaround(side) + MILLISECOND;
            self.connection.write(over_ns, side, &notify)?;
            self.connection.finish(over_ns, side)?;
        }
        Ok(CarriedTraffic { packets: self.connection.into_packets()?, sent })
    }
}

/// The lengths in the headers of whole records (RFC 8446 section 5.1).
fn record_lengths(mut records: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = records {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(length);
        records = rest.get(length..).unwrap_or_default();
    }
    lengths
}
