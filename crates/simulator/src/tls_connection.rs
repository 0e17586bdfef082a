//! A TCP connection with a TLS session inside: messages in, packets out.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use crate::SimulateError;
use crate::application::{Message, MessageRole};
use crate::network::{SimulatedPacket, TcpConnection, TcpRoute};
use crate::scenario::TlsSettings;
use crate::time::MILLISECOND;
use crate::tls::{ServerIdentity, Side, TlsSession, record_lengths, wire_lengths};

#[derive(Debug, Clone, Copy)]
pub(crate) struct SentMessage {
    pub(crate) role: MessageRole,
    /// Time of its first segment and of its last.
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    pub(crate) plaintext_size: usize,
    /// Sum of its records' lengths, as in their headers.
    pub(crate) wire_size: usize,
    pub(crate) records: usize,
}

impl SentMessage {
    /// A message as it would be sent at its time, all at once.
    pub(crate) fn without_packets(message: &Message, tls: TlsSettings) -> Self {
        let lengths = wire_lengths(tls, message.bytes.len(), &message.record_padding);
        Self::new(message, (message.time_ns, message.time_ns), &lengths)
    }

    fn new(message: &Message, (first_ns, last_ns): (i64, i64), lengths: &[usize]) -> Self {
        Self {
            role: message.role,
            first_ns,
            last_ns,
            plaintext_size: message.bytes.len() + message.record_padding.iter().sum::<usize>(),
            wire_size: lengths.iter().sum(),
            records: lengths.len(),
        }
    }
}

/// A connection after both handshakes.
#[derive(Debug)]
pub(crate) struct TlsConnection<'a> {
    session: TlsSession,
    tcp: TcpConnection<'a>,
    route: TcpRoute<'a>,
    /// The earliest time of a message.
    pub(crate) ready_ns: i64,
    /// What both ends sent until then.
    pub(crate) handshake: Vec<(Side, Vec<u8>)>,
}

impl<'a> TlsConnection<'a> {
    /// Opens a connection in which TLS negotiates `protocol`, with randomness for TLS and for TCP.
    pub(crate) fn open(
        route: TcpRoute<'a>,
        identity: &ServerIdentity,
        tls: TlsSettings,
        protocol: &str,
        open_ns: i64,
        [tls_random, mut tcp_random]: [ChaCha20Rng; 2],
    ) -> Result<Self, SimulateError> {
        let mut delays: Vec<i64> = (0..8).map(|_| tcp_random.random_range(MILLISECOND / 2..3 * MILLISECOND)).collect();
        let (mut tcp, mut time_ns) = TcpConnection::open(route, open_ns, tcp_random)?;
        let mut session = TlsSession::new(identity, tls, protocol, open_ns, tls_random)?;
        let handshake = session.handshake()?;
        for (side, flight) in &handshake {
            let (_, last_ns) = tcp.write(time_ns, *side, flight)?;
            time_ns = last_ns + route.turnaround(side.peer()) + delays.pop().unwrap_or(MILLISECOND);
        }
        Ok(Self { session, tcp, route, ready_ns: time_ns, handshake })
    }

    /// Sends a message, which is not earlier than any before. Returns its records, too.
    pub(crate) fn send(&mut self, message: &Message) -> Result<(SentMessage, Vec<u8>), SimulateError> {
        let records = self.session.seal(message.side, &message.bytes, &message.record_padding)?;
        let times = self.tcp.write(message.time_ns, message.side, &records)?;
        Ok((SentMessage::new(message, times, &record_lengths(&records)), records))
    }

    /// The packets until a time that were not yet taken, in order of time.
    pub(crate) fn take_packets(&mut self, until_ns: i64) -> Result<Vec<SimulatedPacket>, SimulateError> {
        self.tcp.take_packets(until_ns)
    }

    /// Sends messages, which are in order of time, and closes the connection after `close_ns`. Returns all packets.
    pub(crate) fn carry(
        mut self,
        messages: &[Message],
        close_ns: i64,
    ) -> Result<(Vec<SimulatedPacket>, Vec<SentMessage>), SimulateError> {
        let mut sent = Vec::with_capacity(messages.len());
        let mut end_ns = close_ns;
        for message in messages {
            let (message, _) = self.send(message)?;
            end_ns = end_ns.max(message.last_ns);
            sent.push(message);
        }
        for side in [Side::Client, Side::Server] {
            let alert = self.session.close(side)?;
            end_ns += self.route.turnaround(side) + MILLISECOND;
            self.tcp.write(end_ns, side, &alert)?;
            self.tcp.finish(end_ns, side)?;
        }
        Ok((self.tcp.take_packets(i64::MAX)?, sent))
    }
}
