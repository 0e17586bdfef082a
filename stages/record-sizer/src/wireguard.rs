//! WireGuard: each message is a packet of the tunnel, padded to 16 bytes (its whitepaper, section 5.4). A keep-alive is a
//! packet without a byte.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, Protocol};

use crate::chunk::Chunk;
use crate::message::{FlowEnds, Found, Message, MessageFramer, ReplayWindow};
use crate::per_direction::PerDirection;

/// The port that its documentation gives as an example, and most people take.
const PORT: u16 = 51820;

/// Bytes before the encrypted packet: the type, the receiver's index and the counter.
const HEADER: usize = 16;

/// Bytes of the tag behind it.
const TAG: u32 = 16;

/// What packets are padded to.
const BLOCK: u64 = 16;

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
        let &[kind, 0, 0, 0, r0, r1, r2, r3, c0, c1, c2, c3, c4, c5, c6, c7] = chunk.payload.first_chunk::<HEADER>()?
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

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WireGuardFlow {
    is_reported: bool,
    seen: PerDirection<ReplayWindow>,
}

impl WireGuardFlow {
    pub(crate) fn has_port(ends: &FlowEnds) -> bool {
        ends.has_port(PORT)
    }

    /// A tunnel, if the datagram is of one. On another port than its own, only a handshake shows it, which comes every two
    /// minutes: packets begin like other binary messages.
    pub(crate) fn begin(chunk: &Chunk<'_>, ends: Option<&FlowEnds>) -> Option<Self> {
        let is_its_port = ends.is_some_and(Self::has_port);
        match TunnelMessage::read(chunk)? {
            TunnelMessage::Packet { .. } if !is_its_port => None,
            _ => Some(Self::default()),
        }
    }
}

impl MessageFramer for WireGuardFlow {
    fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let Some(message) = TunnelMessage::read(&chunk) else { return false };
        found.read.push(0..HEADER);
        found.session_once(&mut self.is_reported, chunk.time_ns, Protocol::WireGuard.name());
        let length = (chunk.length() as u32).saturating_sub(HEADER as u32);
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
}
