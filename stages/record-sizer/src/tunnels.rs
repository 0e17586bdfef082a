//! Tunnels whose packets are messages. WireGuard pads each to 16 bytes (its whitepaper, section 5.4); a keep-alive is a
//! packet without a byte. ESP of IPsec comes over IP or in UDP (RFC 4303, RFC 3948); what protects it was agreed where
//! nobody sees it, so that its plaintext is known between bounds.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, PerDirection, Protocol, Transport};

use crate::chunk::Chunk;
use crate::message::{FlowEnds, Found, Message, ReplayWindow};

/// The port that its documentation gives as an example, and most people take.
const WIREGUARD_PORT: u16 = 51820;

/// Bytes before the encrypted packet: the type, the receiver's index and the counter.
const WIREGUARD_HEADER: usize = 16;

const TAG: u32 = 16;

/// What packets are padded to.
const BLOCK: u64 = 16;

/// The port of ESP in UDP, which it shares with IKE.
const ESP_PORT: u16 = 4500;

/// Bytes of the index and the sequence number.
const ESP_HEADER: usize = 8;

/// The least and the most bytes around a packet: an initialization vector of 8 (AES-GCM, RFC 4106) to 16 (AES-CBC), the
/// two bytes of the trailer behind up to 15 of padding, and an integrity value of 8 (RFC 4106) to 32 (HMAC-SHA2-512,
/// RFC 4868). A sender may pad more (RFC 4303, section 2.4), which counts as plaintext, as in TLS 1.3.
const ADDED: [u64; 2] = [8 + 2 + 8, 16 + 15 + 2 + 32];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TunnelMessage {
    Handshake,
    /// A packet; `receiver` is who it is for, by the keys in use.
    Packet {
        receiver: u32,
        counter: u64,
    },
}

impl TunnelMessage {
    /// Messages have a type and three zeros. Those of a handshake have one length each.
    fn read(chunk: &Chunk<'_>) -> Option<Self> {
        let &[kind, 0, 0, 0, r0, r1, r2, r3, c0, c1, c2, c3, c4, c5, c6, c7] =
            chunk.payload.first_chunk::<WIREGUARD_HEADER>()?
        else {
            return None;
        };
        match (kind, chunk.length()) {
            (1, 148) | (2, 92) | (3, 64) => Some(Self::Handshake),
            (4, 32..) if chunk.length().is_multiple_of(16) => Some(Self::Packet {
                receiver: u32::from_le_bytes([r0, r1, r2, r3]),
                counter: u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
            }),
            _ => None,
        }
    }
}

/// Whether a flow is of ESP: over IP, or by one of its ports.
fn is_esp(ends: &FlowEnds) -> bool {
    ends.transport == Transport::Esp || ends.has_port(ESP_PORT)
}

/// Whether a flow is of WireGuard by one of its ports.
pub(crate) fn is_wireguard(ends: &FlowEnds) -> bool {
    ends.has_port(WIREGUARD_PORT)
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TunnelFlow {
    is_reported: bool,
    seen: PerDirection<ReplayWindow>,
}

impl TunnelFlow {
    /// A tunnel of WireGuard, if the datagram is of one. On another port than its own, only a handshake shows it, which
    /// comes every two minutes: packets begin like other binary messages.
    pub(crate) fn begin_wireguard(chunk: &Chunk<'_>, ends: Option<&FlowEnds>) -> Option<Self> {
        let is_its_port = ends.is_some_and(is_wireguard);
        match TunnelMessage::read(chunk)? {
            TunnelMessage::Packet { .. } if !is_its_port => None,
            _ => Some(Self::default()),
        }
    }

    pub(crate) fn take_wireguard(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let Some(message) = TunnelMessage::read(&chunk) else { return false };
        found.read.push(0..WIREGUARD_HEADER);
        found.session_once(&mut self.is_reported, chunk.time_ns, Protocol::WireGuard.name());
        let length = (chunk.length() as u32).saturating_sub(WIREGUARD_HEADER as u32);
        let sized = Message::data(Protocol::WireGuard, direction, [chunk.time_ns; 2], length);
        match message {
            TunnelMessage::Handshake => found.message(sized.as_handshake()),
            TunnelMessage::Packet { receiver, counter } => {
                if !self.seen.of_mut(direction).insert(receiver, counter) {
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

    pub(crate) fn begin_esp(chunk: &Chunk<'_>, ends: Option<&FlowEnds>) -> Option<Self> {
        ends.filter(|ends| is_esp(ends)).and(esp_header(chunk)).map(|_| Self::default())
    }

    pub(crate) fn take_esp(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let Some((index, number)) = esp_header(&chunk) else { return false };
        found.read.push(0..ESP_HEADER);
        found.session_once(&mut self.is_reported, chunk.time_ns, Protocol::Esp.name());
        if !self.seen.of_mut(direction).insert(index, number.into()) {
            found.repeated += 1;
            return true;
        }
        let length = (chunk.length() as u32).saturating_sub(ESP_HEADER as u32);
        let plaintext = [ADDED[1], ADDED[0]].map(|added| u64::from(length).saturating_sub(added));
        found.message(Message::data(Protocol::Esp, direction, [chunk.time_ns; 2], length).with_plaintext(plaintext));
        true
    }
}

/// The index and the sequence number. In UDP, four zeros come before IKE, and one byte keeps the ports open.
fn esp_header(chunk: &Chunk<'_>) -> Option<(u32, u32)> {
    let &[i0, i1, i2, i3, s0, s1, s2, s3] = chunk.payload.first_chunk::<ESP_HEADER>()?;
    let index = u32::from_be_bytes([i0, i1, i2, i3]);
    let is_long_enough = chunk.length() >= ESP_HEADER as u64 + ADDED[0];
    (index != 0 && is_long_enough).then_some((index, u32::from_be_bytes([s0, s1, s2, s3])))
}
