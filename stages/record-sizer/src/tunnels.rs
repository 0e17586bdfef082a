//! Tunnels whose packets are messages. WireGuard pads each to 16 bytes (its whitepaper, section 5.4); a keep-alive is a
//! packet without a byte. ESP of IPsec comes over IP or in UDP (RFC 4303, RFC 3948); what protects it was agreed where
//! nobody sees it, so that its plaintext is known between bounds.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, PerDirection, Protocol, Transport};

use crate::chunk::Chunk;
use crate::dtls::DtlsFlow;
use crate::message::{FlowEnds, Found, Message};
use crate::numbered::Conversation;

/// The port that its documentation gives as an example, and most people take.
const WIREGUARD_PORT: u16 = 51820;

/// Bytes before the encrypted packet: the type, the receiver's index and the counter.
const WIREGUARD_HEADER: usize = 16;

/// Bytes of them behind the type.
const HANDSHAKE_START: usize = WIREGUARD_HEADER - 4;

const TAG: u32 = 16;

/// What packets are padded to.
const BLOCK: u64 = 16;

/// No packet of WireGuard has a counter that reaches this: keys are used for three minutes (its whitepaper, section 6.1),
/// and no link carries so many packets in that time. Other bytes at that place are less in one of 16 million cases.
const COUNTERS_END: u64 = 1 << 40;

/// The port of ESP in UDP, which it shares with IKE. Whatever else passes through a NAT may use it as well.
const ESP_PORT: u16 = 4500;

/// Bytes of STUN's header (RFC 8489, section 5), and the magic cookie in it.
const STUN_HEADER: u64 = 20;
const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// Bytes of the index and the sequence number.
const ESP_HEADER: usize = 8;

/// The least and the most bytes around a packet: an initialization vector of 8 (AES-GCM, RFC 4106) to 16 (AES-CBC), the
/// two bytes of the trailer behind up to 15 of padding, and an integrity value of 8 (RFC 4106) to 32 (HMAC-SHA2-512,
/// RFC 4868). A sender may pad more (RFC 4303, section 2.4), which counts as plaintext, as in TLS 1.3.
const ADDED: [u64; 2] = [8 + 2 + 8, 16 + 15 + 2 + 32];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TunnelMessage {
    /// Begins with a random index and key, so that these tell it from others, though it has no number.
    Handshake { start: [u8; HANDSHAKE_START] },
    /// A packet; `receiver` is who it is for, by the keys in use.
    Packet { receiver: u32, counter: u64 },
}

impl TunnelMessage {
    /// Messages have a type and three zeros. Those of a handshake have one length each.
    fn read(chunk: &Chunk<'_>) -> Option<Self> {
        let &[kind, 0, 0, 0, ref start @ ..] = chunk.payload.first_chunk::<WIREGUARD_HEADER>()? else { return None };
        let [r0, r1, r2, r3, c0, c1, c2, c3, c4, c5, c6, c7] = *start;
        match (kind, chunk.length()) {
            (1, 148) | (2, 92) | (3, 64) => Some(Self::Handshake { start: *start }),
            (4, 32..) if chunk.length().is_multiple_of(16) => Some(Self::Packet {
                receiver: u32::from_le_bytes([r0, r1, r2, r3]),
                counter: u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
            }),
            _ => None,
        }
    }

    /// Whether the counter is one of WireGuard, too.
    fn is_likely(self) -> bool {
        !matches!(self, Self::Packet { counter: COUNTERS_END.., .. })
    }
}

/// Whether a datagram to the port of ESP is of another protocol, by more than chance: STUN, DTLS or WireGuard. An index
/// begins like theirs in one of 4 billion cases, and then other places have to agree, too.
fn is_anothers(chunk: &Chunk<'_>) -> bool {
    let is_stun = |start: &[u8; 8]| {
        let &[kind, _, high, low, cookie @ ..] = start;
        let length = u64::from(u16::from_be_bytes([high, low]));
        kind < 0x40 && cookie == STUN_COOKIE && length.is_multiple_of(4) && length + STUN_HEADER == chunk.length()
    };
    chunk.payload.first_chunk().is_some_and(is_stun)
        || TunnelMessage::read(chunk).is_some_and(TunnelMessage::is_likely)
        || DtlsFlow::begin(chunk).is_some_and(|begun| begun.is_certain())
}

pub(crate) fn is_wireguard(ends: &FlowEnds) -> bool {
    ends.has_port(WIREGUARD_PORT)
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TunnelFlow {
    is_reported: bool,
    /// How the last two messages of a handshake of WireGuard began: each end may begin one, and answer the other's.
    handshakes: PerDirection<[[u8; HANDSHAKE_START]; 2]>,
    /// Of ESP where others may use the ports, too.
    indexes: Option<PerDirection<RecentIndexes>>,
    pub(crate) seen: Conversation,
}

/// So many connections of ESP between the same ends are told from other protocols while their packets alternate.
const RECENT: usize = 8;

/// So many datagrams in a row may have an index that was not seen: those of a connection that begins in the capture or
/// takes new keys, and of another one beside it.
const MOST_NEW: u8 = 2;

/// The last indexes of one direction. Those of ESP come again with each packet; other bytes at their place, as the
/// sequence numbers of RTP and of DTLS 1.3, change.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct RecentIndexes {
    last: [u32; RECENT],
    /// Datagrams in a row whose index was not among them.
    new: u8,
}

impl RecentIndexes {
    /// Adds the index of a datagram; false if too many in a row were new for it to be of ESP.
    fn add(&mut self, index: u32) -> bool {
        if self.last.contains(&index) {
            self.new = 0;
            return true;
        }
        self.last.rotate_right(1);
        self.last[0] = index;
        self.new = self.new.saturating_add(1);
        self.new <= MOST_NEW
    }
}

impl TunnelFlow {
    /// A tunnel of WireGuard, if the datagram is of one. On another port than its own, only a handshake shows it, which
    /// comes every two minutes: packets begin like other binary messages. On that of ESP nothing else begins like them.
    pub(crate) fn begin_wireguard(chunk: &Chunk<'_>, ends: Option<&FlowEnds>) -> Option<Self> {
        let message = TunnelMessage::read(chunk)?;
        let is_its_port = || ends.is_some_and(is_wireguard);
        let is_handshake = matches!(message, TunnelMessage::Handshake { .. });
        let is_no_esp = || message.is_likely() && ends.is_some_and(|ends| ends.has_port(ESP_PORT));
        (is_handshake || is_its_port() || is_no_esp()).then(Self::default)
    }

    pub(crate) fn take_wireguard(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let Some(message) = TunnelMessage::read(&chunk) else { return false };
        found.read.push(0..WIREGUARD_HEADER);
        found.session_once(&mut self.is_reported, chunk.time_ns, Protocol::WireGuard.name());
        let length = (chunk.length() as u32).saturating_sub(WIREGUARD_HEADER as u32);
        let sized = Message::data(Protocol::WireGuard, direction, [chunk.time_ns; 2], length);
        match message {
            TunnelMessage::Handshake { start } => {
                let last = self.handshakes.of_mut(direction);
                if last.contains(&start) {
                    found.repeated += 1;
                    return true;
                }
                *last = [start, last[0]];
                found.message(sized.as_handshake());
            }
            TunnelMessage::Packet { receiver, counter } => {
                if !self.seen.insert(direction, receiver, counter) {
                    found.repeated += 1;
                    return true;
                }
                let padded = u64::from(length.saturating_sub(TAG));
                let sized = sized.with_plaintext([padded.saturating_sub(BLOCK - 1), padded]);
                let keeps_alive = Message { content_type: ContentType::Heartbeat, ..sized };
                found.message(if padded == 0 { keeps_alive } else { sized });
            }
        }
        true
    }

    /// A flow of ESP, if the datagram may be of it: over IP, or by one of its ports.
    pub(crate) fn begin_esp(chunk: &Chunk<'_>, ends: Option<&FlowEnds>) -> Option<Self> {
        let ends = ends.filter(|ends| ends.transport == Transport::Esp || ends.has_port(ESP_PORT))?;
        let indexes = (ends.transport != Transport::Esp).then(PerDirection::default);
        let begun = Self { indexes, ..Self::default() };
        begun.esp_header(chunk).map(|_| begun)
    }

    pub(crate) fn take_esp(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let Some((index, number)) = self.esp_header(&chunk) else { return false };
        found.read.push(0..ESP_HEADER);
        if self.indexes.as_mut().is_some_and(|indexes| !indexes.of_mut(direction).add(index)) {
            return false;
        }
        found.session_once(&mut self.is_reported, chunk.time_ns, Protocol::Esp.name());
        if !self.seen.insert(direction, index, number.into()) {
            found.repeated += 1;
            return true;
        }
        let length = (chunk.length() as u32).saturating_sub(ESP_HEADER as u32);
        let plaintext = [ADDED[1], ADDED[0]].map(|added| u64::from(length).saturating_sub(added));
        found.message(Message::data(Protocol::Esp, direction, [chunk.time_ns; 2], length).with_plaintext(plaintext));
        true
    }

    /// The index and the sequence number. In UDP, four zeros come before IKE, and one byte keeps the ports open.
    fn esp_header(&self, chunk: &Chunk<'_>) -> Option<(u32, u32)> {
        let &[i0, i1, i2, i3, s0, s1, s2, s3] = chunk.payload.first_chunk::<ESP_HEADER>()?;
        let index = u32::from_be_bytes([i0, i1, i2, i3]);
        let is_long_enough = chunk.length() >= ESP_HEADER as u64 + ADDED[0];
        let is_its_own = index != 0 && is_long_enough && !(self.indexes.is_some() && is_anothers(chunk));
        is_its_own.then_some((index, u32::from_be_bytes([s0, s1, s2, s3])))
    }
}
