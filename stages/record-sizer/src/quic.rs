//! QUIC: its packets, which hide where the messages of their streams begin and end (RFC 9000).
//!
//! A datagram holds packets of a handshake, which say their lengths, and at its end one that does not. The size of what a
//! packet carries is known but for its number, of one to four bytes, and its connection id, of which a handshake says the
//! length; without one, packets show it.
//!
//! The keys of the first packets are public: whoever sees them can forge more. Each packet is of the connection whose keys
//! or ids it has, so that none takes another's place.

mod header;

use header::{InitialReader, LongKind, LongPacket, Version};
use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, PerDirection, Protocol};

use crate::chunk::Chunk;
use crate::connection_id::{ConnectionIds, Contenders, DatagramSession, SHORT_READ, Sign};
use crate::handshake::Hello;
use crate::message::{FlowEnds, FlowEvent, Found, Message};
use crate::options::Options;
use crate::record::{Header, MAX_BODY};
use crate::session::Negotiation;

const PORT: u16 = 443;

/// Bytes of the tag of every cipher suite (RFC 9001, section 5.3).
const TAG: u64 = 16;

const NUMBER_BYTES: [u64; 2] = [1, 4];

/// The least packet: what is encrypted has 16 bytes of sample behind the number (RFC 9001, section 5.4.2).
const LEAST_PACKET: u64 = 1 + 4 + 16;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QuicFlow {
    connections: Contenders<QuicConnection>,
    /// What is taken for known of a connection without its handshake, where the port says that there may be one.
    assumed: Option<PerDirection<ConnectionIds>>,
    is_certain: bool,
    is_unread_reported: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct QuicConnection {
    ids: PerDirection<ConnectionIds>,
    session: DatagramSession,
    initial: Box<InitialReader>,
    /// The number of its version, if that is none whose packets are read.
    unread: Option<u32>,
    /// Whether a packet with a short header was taken for one of it.
    has_data: bool,
}

pub(crate) fn is_quic(ends: &FlowEnds, ports: &[u16]) -> bool {
    ends.has_port(PORT) || ports.iter().any(|port| ends.has_port(*port))
}

impl QuicFlow {
    /// A flow that begins with this datagram, if it may be QUIC: by a packet of a handshake, or by its port.
    pub(crate) fn begin(chunk: &Chunk<'_>, ends: Option<&FlowEnds>, options: &Options) -> Option<Self> {
        let is_its_port = ends.is_some_and(|ends| is_quic(ends, &options.quic_port));
        let long = LongPacket::read(chunk.payload, chunk.length() as usize);
        // Nobody's connection begins with a negotiation of versions, which shows none.
        let is_certain = long.is_some_and(|packet| packet.kind.is_some() || packet.version.unread_name().is_some());
        let may_be = match long {
            Some(packet) => is_certain || is_its_port && matches!(packet.version, Version::Other(_)),
            None => is_its_port && has_fixed_bit(chunk.payload) && chunk.length() >= LEAST_PACKET,
        };
        let assumed = is_its_port.then(|| declared_ids(&options.quic_cid));
        may_be.then(|| Self { connections: Contenders::default(), assumed, is_certain, is_unread_reported: false })
    }

    /// Whether more than the port says that it is QUIC.
    pub(crate) fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// The same connection between other ports or addresses, as this shows it.
    pub(crate) fn moved(&self, sign: &Sign, declared: &[u8]) -> Self {
        let has = |known: &&QuicConnection, id| known.ids.both().iter().any(|ids| ids.has(id));
        let known = match sign {
            Sign::Id(id) => self.connections.with_packets().map(|(.., known)| known).find(|known| has(known, id)),
            // It may be another connection after all, of another name, and each end chooses the length of its ids.
            Sign::Service(_) => None,
        };
        let fresh = || (declared_ids(declared), DatagramSession::default());
        let (ids, session) = known.map_or_else(fresh, |known| (known.ids.clone(), known.session.clone()));
        let session = DatagramSession { is_reported: false, ..session };
        let mut connections = Contenders::default();
        connections.begin(QuicConnection { ids, session, ..QuicConnection::default() });
        Self { connections, assumed: None, is_certain: true, is_unread_reported: false }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.connections.with_packets().map(|(.., known)| known.initial.held_bytes()).sum()
    }

    pub(crate) fn release(&mut self) {
        self.connections.all_mut().for_each(|known| known.initial.release());
    }

    /// The connection that a packet of a handshake is of, whether it has its keys or ids, and its frames if they can be
    /// decrypted.
    fn of_long(
        &mut self,
        packet: &LongPacket<'_>,
        bytes: &[u8],
        direction: Direction,
    ) -> (usize, bool, Option<Vec<u8>>) {
        if packet.kind == Some(LongKind::Initial) {
            let frames = |(at, _, known): (usize, u32, &QuicConnection)| {
                Some((at, known.initial.frames(packet, bytes, direction)?))
            };
            if let Some((at, frames)) = self.connections.with_packets().find_map(frames) {
                return (at, true, Some(frames));
            }
            if let Some((initial, frames)) = InitialReader::begin(packet, bytes, direction) {
                let new = QuicConnection { initial: Box::new(initial), ..QuicConnection::default() };
                return (self.connections.begin(new), true, Some(frames));
            }
        }
        let unread = if let Version::Other(number) = packet.version { Some(number) } else { None };
        let ids = [(direction, packet.destination), (direction.reversed(), packet.source)];
        let has = |connection: &QuicConnection, (direction, id): (Direction, &[u8])| {
            connection.unread == unread && connection.ids.of(direction).has(id)
        };
        // Several may have an empty one.
        let mut by_ids = ids.into_iter().filter(|(_, id)| !id.is_empty()).chain(ids);
        if let Some(at) = by_ids.find_map(|id| self.connections.newest(|known| has(known, id))) {
            return (at, true, None);
        }
        let is_read = |connection: &QuicConnection| connection.unread.is_none();
        let known = self.connections.current.or_else(|| self.connections.newest(is_read));
        let begin = || self.connections.begin(QuicConnection { unread, ..QuicConnection::default() });
        (known.filter(|_| unread.is_none()).unwrap_or_else(begin), false, None)
    }

    /// Takes a packet of a handshake. False if it is of a version that is not read.
    fn long_packet(
        &mut self,
        packet: &LongPacket<'_>,
        bytes: &[u8],
        direction: Direction,
        (at, time_ns): (usize, i64),
        found: &mut Found,
    ) -> bool {
        let (place, is_its_own, frames) = self.of_long(packet, bytes, direction);
        let is_first = self.connections.current.is_none_or(|current| current == place);
        let Some(connection) = self.connections.with_packet(place) else { return false };
        let QuicConnection { ids, session, initial, has_data, .. } = connection;
        if ids.of_mut(direction).is_first_use(packet.destination) {
            found.ids.push(packet.destination.to_vec());
        }
        // An id of a `Retry`, or where versions are negotiated, is for no packet with a short header. What cannot be
        // checked only fills in.
        let announces = packet.kind.is_some() || matches!(packet.version, Version::Other(_));
        let fills_in = !initial.has_keys() && (is_its_own || !*has_data);
        if frames.is_some() || announces && fills_in {
            ids.of_mut(direction.reversed()).announce(packet.source);
        }
        if let Version::Other(number) = packet.version {
            found.read.push(at..at + packet.header);
            if !std::mem::replace(&mut self.is_unread_reported, true) {
                let name = packet.version.unread_name().map(|name| format!(" ({name})")).unwrap_or_default();
                let detail =
                    format!("QUIC of version {number:#010x}{name}, which is not read: such packets are not sized");
                found.events.push(FlowEvent::Unsupported(detail));
            }
            return false;
        }
        let mut plaintext = packet.kind.map(|_| between(packet.body as u64, [0; 2]));
        let mut read = packet.header;
        if packet.kind == Some(LongKind::Initial) {
            read = (packet.header + packet.body).min(bytes.len());
        }
        if let Some(frames) = frames {
            plaintext = Some([frames.len() as u64; 2]);
            let mut is_complete = false;
            initial.read(&frames, direction, &mut |hello| {
                // Bytes that are sent again are no second hello.
                if matches!(hello, Hello::Client(_)) {
                    session.negotiation = Negotiation::default();
                }
                is_complete |= session.tls().hello(hello, direction, time_ns);
            });
            // Behind data of another connection it may be forged: its own data will show.
            if is_complete && is_first {
                self.report(place, time_ns, found);
            }
        }
        found.read.push(at..at + read);
        let message = Message::data(Protocol::Quic, direction, [time_ns; 2], packet.body as u32);
        let message = Message { plaintext, ..message };
        found.message(if packet.kind == Some(LongKind::ZeroRtt) { message } else { message.as_handshake() });
        true
    }

    /// The connection that a packet with a short header is of, and the bytes of its id if it has a known one. It may begin
    /// its datagram.
    fn of_short(&self, bytes: &[u8], direction: Direction, is_first: bool) -> Option<(usize, Option<u8>)> {
        let behind = bytes.get(1..)?;
        let rank = |(at, packets, known): (usize, u32, &QuicConnection)| {
            let (ids, is_current) = (known.ids.of(direction), self.connections.current == Some(at));
            // Of several the longest.
            if let Some(id) = ids.carried(behind) {
                return Some((5, id.len() as u32, at));
            }
            if known.has_data && ids.is_alike(behind) {
                return Some((4, 0, at));
            }
            // Ends that have agreed on it may clear the fixed bit (RFC 9287). Behind packets, datagrams may be filled up.
            if !(has_fixed_bit(bytes) || is_first && ids.length().is_some()) {
                return None;
            }
            // Ids may be empty. Those of forged packets are known, and of a connection of more packets there may be a new
            // one.
            let is_answered = known.ids.all(|ids| ids.used.is_some());
            let may_lack_id = ids.used.unwrap_or_default() == 0 && (known.has_data || is_answered);
            Some(match () {
                () if is_current && may_lack_id => (3, 0, at),
                () if is_current || may_lack_id => (2, packets, at),
                () if is_answered => (1, 0, at),
                () if known.unread.is_none() => (0, 0, at),
                () => return None,
            })
        };
        let (rank, length, at) = self.connections.with_packets().filter_map(rank).max()?;
        Some((at, (rank == 5).then_some(length as u8)))
    }

    /// Takes a packet with a short header, which fills its datagram. False if it cannot be one, or is not read.
    fn short_packet(
        &mut self,
        bytes: &[u8],
        left: u64,
        direction: Direction,
        (at, time_ns): (usize, i64),
        found: &mut Found,
    ) -> bool {
        let Some((first, behind)) = bytes.split_first() else { return false };
        if first & 0x80 != 0 || left < LEAST_PACKET {
            return false;
        }
        let (place, carried) = match (self.of_short(bytes, direction, at == 0), &self.assumed) {
            (Some(known), _) => known,
            (None, Some(ids)) if has_fixed_bit(bytes) => {
                let detail = "QUIC by its port, since its handshake is not in the capture".to_owned();
                found.events.push(FlowEvent::Assumed(detail));
                let ids = ids.clone();
                (self.connections.begin(QuicConnection { ids, ..QuicConnection::default() }), None)
            }
            (None, _) => return false,
        };
        if carried.is_some() || self.connections.current.is_none() {
            self.connections.current = Some(place);
        }
        let Some(connection) = self.connections.with_packet(place).filter(|known| known.unread.is_none()) else {
            return false;
        };
        connection.has_data = true;
        let ids = connection.ids.of_mut(direction);
        let [least_id, most_id] = carried.map_or_else(|| ids.unknown(behind), |length| [length; 2]).map(u64::from);
        let known_id = behind.get(..usize::from(carried.unwrap_or_default())).unwrap_or_default();
        if carried.is_some() && ids.is_first_use(known_id) {
            found.ids.push(known_id.to_vec());
        }
        let read = carried.map_or(SHORT_READ, |length| 1 + usize::from(length));
        found.read.push(at..at + read.min(bytes.len()));
        let header = Header { content_type: ContentType::ApplicationData, minor: 3, length: MAX_BODY };
        if !connection.session.is_reported || connection.session.tls().starts_unanswered(header) {
            self.report(place, time_ns, found);
        }
        let body = left.saturating_sub(1 + least_id);
        let message = Message::data(Protocol::Quic, direction, [time_ns; 2], body as u32);
        found.message(message.with_plaintext(between(body, [0, most_id - least_id])));
        true
    }

    fn report(&mut self, place: usize, time_ns: i64, found: &mut Found) {
        self.connections.report(place, |known| &mut known.session, (Protocol::Quic, time_ns), found);
    }

    pub(crate) fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let (mut at, whole) = (0, chunk.length() as usize);
        while let Some(bytes) = chunk.payload.get(at..).filter(|bytes| !bytes.is_empty()) {
            let (left, place) = (whole - at, (at, chunk.time_ns));
            // Behind packets there may be filling, which has no version.
            let is_read = |packet: &LongPacket<'_>| at == 0 || !matches!(packet.version, Version::Other(_));
            let Some(packet) = LongPacket::read(bytes, left).filter(is_read) else {
                return self.short_packet(bytes, left as u64, direction, place, found) || at > 0;
            };
            if !self.long_packet(&packet, bytes, direction, place, found) {
                return false;
            }
            at += packet.header + packet.body;
        }
        at > 0
    }
}

fn declared_ids(lengths: &[u8]) -> PerDirection<ConnectionIds> {
    let mut ids = PerDirection::default();
    for (direction, length) in [Direction::FromGateway, Direction::ToGateway].into_iter().zip(lengths) {
        *ids.of_mut(direction) = ConnectionIds::declared(*length);
    }
    ids
}

/// Whether these bytes begin with a short header as it is where its fixed bit is not cleared.
fn has_fixed_bit(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0xc0 == 0x40)
}

/// The least and the most bytes of frames in a packet of `body` bytes behind what is known of its header, of which the rest
/// has these bounds.
fn between(body: u64, [least, most]: [u64; 2]) -> [u64; 2] {
    [body.saturating_sub(most + NUMBER_BYTES[1] + TAG), body.saturating_sub(least + NUMBER_BYTES[0] + TAG)]
}
