//! ESP of IPsec, over IP or in UDP (RFC 4303, RFC 3948): each message is a packet of the tunnel. What protects it was
//! agreed where nobody sees it, so that its plaintext is known between bounds.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, Protocol, Transport};

use crate::chunk::Chunk;
use crate::message::{FlowEnds, Found, Message, MessageFramer, ReplayWindow};
use crate::per_direction::PerDirection;

/// The port of ESP in UDP, which it shares with IKE.
const PORT: u16 = 4500;

/// Bytes of the index and the sequence number.
const HEADER: usize = 8;

/// The least and the most bytes around a packet: an initialization vector of 8 (AES-GCM, RFC 4106) to 16 (AES-CBC), the
/// two bytes of the trailer behind up to 15 of padding, and an integrity value of 8 (RFC 4106) to 32 (HMAC-SHA2-512,
/// RFC 4868). A sender may pad more (RFC 4303, section 2.4), which counts as plaintext, as in TLS 1.3.
const ADDED: [u64; 2] = [8 + 2 + 8, 16 + 15 + 2 + 32];

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct EspFlow {
    is_reported: bool,
    seen: PerDirection<ReplayWindow>,
}

impl EspFlow {
    pub(crate) fn has_port(ends: &FlowEnds) -> bool {
        ends.transport == Transport::Esp || ends.has_port(PORT)
    }

    pub(crate) fn begin(chunk: &Chunk<'_>, ends: Option<&FlowEnds>) -> Option<Self> {
        ends.filter(|ends| Self::has_port(ends)).and(header(chunk)).map(|_| Self::default())
    }
}

/// The index and the sequence number. In UDP, four zeros come before IKE, and one byte keeps the ports open.
fn header(chunk: &Chunk<'_>) -> Option<(u32, u32)> {
    let &[i0, i1, i2, i3, s0, s1, s2, s3] = chunk.payload.first_chunk::<HEADER>()?;
    let index = u32::from_be_bytes([i0, i1, i2, i3]);
    let is_long_enough = chunk.length() >= HEADER as u64 + ADDED[0];
    (index != 0 && is_long_enough).then_some((index, u32::from_be_bytes([s0, s1, s2, s3])))
}

impl MessageFramer for EspFlow {
    fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let Some((index, number)) = header(&chunk) else { return false };
        found.read.push(0..HEADER);
        found.session_once(&mut self.is_reported, chunk.time_ns, Protocol::Esp.name());
        if !self.seen.of_mut(direction).insert(index, number.into()) {
            found.repeated += 1;
            return true;
        }
        let length = (chunk.length() as u32).saturating_sub(HEADER as u32);
        let plaintext = [ADDED[1], ADDED[0]].map(|added| u64::from(length).saturating_sub(added));
        found.message(Message::data(Protocol::Esp, direction, [chunk.time_ns; 2], length).with_plaintext(plaintext));
        true
    }
}
