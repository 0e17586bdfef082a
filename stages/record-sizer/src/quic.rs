//! QUIC: its packets, which hide where the messages of their streams begin and end (RFC 9000).
//!
//! A datagram holds packets of a handshake, which say their lengths, and at its end one that does not. The size of what a
//! packet carries is known but for its number, of one to four bytes, and its connection id, of which a handshake says the
//! length; without one, packets show it.

mod header;
mod initial;
pub(crate) mod known_connections;
mod proof;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, Protocol};

use crate::chunk::Chunk;
use crate::connection_id::{IdLength, SHORT_READ};
use crate::datagram_session::DatagramSession;
use crate::handshake::Hello;
use crate::message::{FlowEnds, FlowEvent, Found, Message, MessageFramer};
use crate::per_direction::PerDirection;
use crate::record::{Header, MAX_BODY};
use crate::session::Negotiation;
use header::{LongKind, LongPacket};
use initial::InitialReader;
use known_connections::Sign;
use proof::{LEAST_PACKET, QuicProof};

/// The port of HTTP/3.
const PORT: u16 = 443;

/// Bytes of the tag of every cipher suite (RFC 9001, section 5.3).
const TAG: u64 = 16;

/// The least and the most bytes of a packet number.
const NUMBER: [u64; 2] = [1, 4];

/// A connection, perhaps.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QuicFlow {
    recognition: Recognition,
    /// The ids in packets of each direction.
    ids: PerDirection<IdLength>,
    session: DatagramSession,
    initial: Box<InitialReader>,
}

/// How certain it is that the flow carries QUIC.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Recognition {
    Proving(QuicProof),
    Certain,
    Refuted,
}

impl Recognition {
    fn is_valid(&self) -> bool {
        !matches!(self, Self::Proving(proof) if !proof.is_valid())
    }
}

impl QuicFlow {
    fn new(recognition: Recognition) -> Self {
        Self { recognition, ids: PerDirection::default(), session: DatagramSession::default(), initial: Box::default() }
    }

    /// A flow that begins with this datagram, if it may be QUIC. Packets without a handshake are recognised by their port,
    /// by the lengths of ids that were declared, from and to the gateway, or else in time.
    pub(crate) fn begin(chunk: &Chunk<'_>, ends: Option<&FlowEnds>, declared: &[u8]) -> Option<Self> {
        if begins_handshake(chunk) {
            return Some(Self::new(Recognition::Certain));
        }
        let may_be = QuicProof::may_be(chunk.payload, chunk.length());
        let is_likely = ends.is_some_and(|ends| ends.has_port(PORT));
        let recognition = match declared {
            [] => Recognition::Proving(QuicProof::new(is_likely)),
            _ => Recognition::Certain,
        };
        let mut flow = may_be.then(|| Self::new(recognition))?;
        flow.declare(declared);
        Some(flow)
    }

    /// Takes lengths of ids as declared, from and to the gateway.
    fn declare(&mut self, lengths: &[u8]) {
        for (direction, length) in [Direction::FromGateway, Direction::ToGateway].into_iter().zip(lengths) {
            *self.ids.of_mut(direction) = IdLength::Known(*length);
        }
    }

    /// Whether its packets are sized.
    pub(crate) fn is_certain(&self) -> bool {
        matches!(self.recognition, Recognition::Certain)
    }

    /// The same connection between other ports or addresses, as this shows it.
    pub(crate) fn moved(&self, sign: &Sign, declared: &[u8]) -> Self {
        let mut moved = Self::new(Recognition::Certain);
        match sign {
            Sign::Id(_) => {
                moved.session = DatagramSession { is_reported: false, ..self.session.clone() };
                let known =
                    |id: &IdLength| if matches!(id, IdLength::Known(_)) { id.clone() } else { IdLength::Unknown };
                let PerDirection { to_gateway, from_gateway } = &self.ids;
                moved.ids = PerDirection { to_gateway: known(to_gateway), from_gateway: known(from_gateway) };
            }
            // It may be another connection after all, of another name, and each end chooses the length of its ids.
            Sign::Service(_) => moved.declare(declared),
        }
        moved
    }

    /// Takes the packets of a datagram, from the first one on.
    fn packets(&mut self, direction: Direction, chunk: &Chunk<'_>, found: &mut Found) -> bool {
        let (mut at, whole) = (0, chunk.length() as usize);
        while let Some(bytes) = chunk.payload.get(at..).filter(|bytes| !bytes.is_empty()) {
            let left = whole - at;
            if let Some(packet) = LongPacket::read(bytes, left) {
                self.long_packet(&packet, bytes, direction, (at, chunk.time_ns), found);
                at += packet.header + packet.body;
                continue;
            }
            // Ends that have agreed on it may clear the fixed bit (RFC 9287). Behind packets, datagrams may be filled up.
            let is_cleared =
                at == 0 && bytes.first().is_some_and(|first| first & 0x80 == 0) && left as u64 >= LEAST_PACKET;
            let may_be = QuicProof::may_be(bytes, left as u64)
                || is_cleared && self.session.negotiation.server_version().is_some();
            if !may_be {
                return at > 0;
            }
            self.short_packet(bytes, left as u64, direction, (at, chunk.time_ns), found);
            break;
        }
        true
    }

    fn long_packet(
        &mut self,
        packet: &LongPacket<'_>,
        bytes: &[u8],
        direction: Direction,
        (at, time_ns): (usize, i64),
        found: &mut Found,
    ) {
        let mut plaintext = packet.kind.map(|_| between(packet.body as u64, [0; 2]));
        let mut read = packet.header;
        let id = self.ids.of(direction.reversed());
        // An `Initial` that can be decrypted is nobody's but an end's. What cannot be checked only fills in.
        let mut is_genuine = packet.kind == Some(LongKind::Handshake) && !matches!(id, IdLength::Known(_));
        if packet.kind == Some(LongKind::Initial) {
            read = (packet.header + packet.body).min(bytes.len());
            let Self { session, initial, .. } = &mut *self;
            let mut is_complete = false;
            let exact = initial.packet(packet, bytes, direction, &mut |hello| {
                // Bytes that are sent again are no second hello: another client begins.
                if matches!(hello, Hello::Client(_)) {
                    session.negotiation = Negotiation::default();
                }
                is_complete |= session.tls().hello(hello, direction, time_ns);
            });
            is_genuine = exact.is_some();
            plaintext = exact.map(|bytes| [bytes; 2]).or(plaintext);
            if is_complete {
                self.session.report(Protocol::Quic, time_ns, found);
            }
        }
        if is_genuine {
            *self.ids.of_mut(direction.reversed()) = IdLength::Known(packet.source.len() as u8);
            found.ids.push(packet.source.to_vec());
        }
        found.read.push(at..at + read);
        let message = Message::data(Protocol::Quic, direction, [time_ns; 2], packet.body as u32);
        let message = Message { plaintext, ..message };
        found.message(if packet.kind == Some(LongKind::ZeroRtt) { message } else { message.as_handshake() });
    }

    fn short_packet(
        &mut self,
        bytes: &[u8],
        left: u64,
        direction: Direction,
        (at, time_ns): (usize, i64),
        found: &mut Found,
    ) {
        let id = self.ids.of_mut(direction);
        let read = if let IdLength::Known(length) = id { 1 + usize::from(*length) } else { SHORT_READ };
        // Where the snaplen cut the id, its end is not seen.
        if bytes.len() >= SHORT_READ {
            id.packet(bytes.get(1..).unwrap_or_default());
        }
        let [least_id, most_id] = id.bounds().map(u64::from);
        found.read.push(at..at + read.min(bytes.len()));
        let header = Header { content_type: ContentType::ApplicationData, minor: 3, length: MAX_BODY };
        if !self.session.is_reported || self.session.tls().starts_unanswered(header) {
            self.session.report(Protocol::Quic, time_ns, found);
        }
        let body = left.saturating_sub(1 + least_id);
        let message = Message::data(Protocol::Quic, direction, [time_ns; 2], body as u32);
        found.message(message.with_plaintext(between(body, [0, most_id - least_id])));
    }
}

/// Whether a datagram begins with a packet of a handshake. One that negotiates versions shows no version, and nobody's
/// connection begins with it.
fn begins_handshake(chunk: &Chunk<'_>) -> bool {
    LongPacket::read(chunk.payload, chunk.length() as usize).is_some_and(|packet| packet.kind.is_some())
}

/// The least and the most bytes of frames in a packet of `body` bytes behind what is known of its header, of which the rest
/// has these bounds.
fn between(body: u64, [least, most]: [u64; 2]) -> [u64; 2] {
    [body.saturating_sub(most + NUMBER[1] + TAG), body.saturating_sub(least + NUMBER[0] + TAG)]
}

impl MessageFramer for QuicFlow {
    fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        if begins_handshake(&chunk) {
            self.recognition = Recognition::Certain;
        }
        match &mut self.recognition {
            Recognition::Certain => self.packets(direction, &chunk, found),
            Recognition::Refuted => false,
            Recognition::Proving(proof) => {
                found.read.push(0..chunk.payload.len().min(1));
                let is_proven = if QuicProof::may_be(chunk.payload, chunk.length()) {
                    proof.add(direction, chunk.payload)
                } else {
                    Some(false)
                };
                let missed = proof.datagrams;
                match is_proven {
                    Some(true) => {
                        self.recognition = Recognition::Certain;
                        // It has no id that is known, but a service.
                        found.ids.push(Vec::new());
                        found.events.push(FlowEvent::Assumed(format!(
                            "QUIC by the first bytes of its packets, since its handshake is not in the capture: \
                             {missed} datagrams before it was recognised are not sized"
                        )));
                    }
                    Some(false) => self.recognition = Recognition::Refuted,
                    None => {}
                }
                false
            }
        }
    }

    fn is_valid(&self) -> bool {
        self.session.is_valid()
            && self.ids.all(IdLength::is_valid)
            && self.initial.is_valid()
            && self.recognition.is_valid()
    }
}
