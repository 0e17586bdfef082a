//! The first packets of a QUIC connection. Their keys follow from an id in the clear (RFC 9001, section 5.2), so that
//! anybody can read the two hellos in them: they are not secret, and only here is anything decrypted.

use std::collections::BTreeMap;

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Keys};
use rustls::{Side, SupportedCipherSuite};
use serde::{Deserialize, Serialize};
use sizeleak_frame::Direction;

use super::header::{LongPacket, Version, varint};
use crate::handshake::{HandshakeReader, Hello};
use crate::per_direction::PerDirection;

/// The most bytes of memory for what a side has sent before its turn.
const MAX_WAITING: usize = 1 << 13;

/// Bytes of memory that a piece is taken to need besides its content.
const PIECE_COST: usize = 64;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct InitialReader {
    /// The side that opened the connection, and the id that its keys follow from.
    client: Option<(Direction, Vec<u8>)>,
    streams: PerDirection<CryptoStream>,
}

/// The bytes of the handshake that one side has sent, which may come in any order.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CryptoStream {
    next: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
    /// Bytes of memory that these need.
    waiting_bytes: usize,
    reader: HandshakeReader,
}

impl InitialReader {
    /// A connection that begins with this packet, the first one of a client or the first after a `Retry`, and the frames
    /// of the packet.
    pub(crate) fn begin(packet: &LongPacket<'_>, bytes: &[u8], direction: Direction) -> Option<(Self, Vec<u8>)> {
        let frames = decrypted(packet, bytes, packet.destination, true)?;
        Some((Self { client: Some((direction, packet.destination.to_vec())), ..Self::default() }, frames))
    }

    /// Whether its packets can be told from those of others.
    pub(crate) fn has_keys(&self) -> bool {
        self.client.is_some()
    }

    /// The frames of a packet; `None` if it is of another connection, or not whole.
    pub(crate) fn frames(&self, packet: &LongPacket<'_>, bytes: &[u8], direction: Direction) -> Option<Vec<u8>> {
        let (client, id) = self.client.as_ref()?;
        decrypted(packet, bytes, id, *client == direction)
    }

    /// Reads frames; calls `hello` with the hellos that they complete.
    pub(crate) fn read(&mut self, frames: &[u8], direction: Direction, hello: &mut dyn FnMut(Hello)) {
        let stream = self.streams.of_mut(direction);
        crypto_frames(frames, &mut |offset, data| stream.add(offset, data, hello));
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.streams.both().map(|stream| stream.waiting_bytes + stream.reader.held_bytes()).iter().sum()
    }

    pub(crate) fn release(&mut self) {
        for stream in [&mut self.streams.to_gateway, &mut self.streams.from_gateway] {
            if stream.waiting_bytes + stream.reader.held_bytes() > 0 {
                stream.waiting = BTreeMap::new();
                stream.waiting_bytes = 0;
                // What comes later follows nothing.
                _ = stream.reader.bytes_lost();
            }
        }
    }
}

impl CryptoStream {
    fn add(&mut self, offset: u64, data: &[u8], hello: &mut dyn FnMut(Hello)) {
        let known = self.waiting.get(&offset).map_or(0, |known| PIECE_COST + known.len());
        let needed = PIECE_COST + data.len();
        if data.is_empty() || needed <= known {
            return;
        }
        let waiting_bytes = self.waiting_bytes - known + needed;
        if offset <= self.next || waiting_bytes <= MAX_WAITING {
            self.waiting.insert(offset, data.to_vec());
            self.waiting_bytes = waiting_bytes;
        }
        while let Some((&offset, _)) = self.waiting.first_key_value()
            && offset <= self.next
            && let Some(data) = self.waiting.remove(&offset)
        {
            self.waiting_bytes -= PIECE_COST + data.len();
            let new = data.get((self.next - offset) as usize..).unwrap_or_default();
            self.next += new.len() as u64;
            self.reader.bytes(new, &mut *hello, |_, _| {});
        }
    }
}

/// The frames of a packet, decrypted with the keys that follow from `id`.
fn decrypted(packet: &LongPacket<'_>, bytes: &[u8], id: &[u8], from_client: bool) -> Option<Vec<u8>> {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else { return None };
    let version = match packet.version {
        Version::Draft => rustls::quic::Version::V1Draft,
        Version::V1 => rustls::quic::Version::V1,
        Version::V2 => rustls::quic::Version::V2,
        Version::Other(_) => return None,
    };
    let side = if from_client { Side::Server } else { Side::Client };
    let DirectionalKeys { header, packet: body_key } = Keys::initial(version, suite, suite.quic?, id, side).remote;
    let (head, body) = bytes.get(..packet.header + packet.body)?.split_at_checked(packet.header)?;
    let (mut head, mut body) = (head.to_vec(), body.to_vec());
    // The number has up to four bytes; what follows them shows how many (RFC 9001, section 5.4.2).
    let sample: Vec<u8> = body.get(4..4 + header.sample_len())?.to_vec();
    header.decrypt_in_place(&sample, head.first_mut()?, body.get_mut(..4)?).ok()?;
    let number_bytes = usize::from(head.first()? & 0x03) + 1;
    let mut payload = body.split_off(number_bytes);
    head.extend_from_slice(&body);
    // Of a handshake the numbers are small: the bytes that are not sent are zero.
    let number = body.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    body_key.decrypt_in_place(number, &head, &mut payload).ok().map(<[u8]>::to_vec)
}

/// Calls `crypto` with what the frames of a packet hold of the handshake. Other frames of such packets are skipped (RFC
/// 9000, section 17.2.2).
fn crypto_frames(mut frames: &[u8], crypto: &mut dyn FnMut(u64, &[u8])) -> Option<()> {
    while let Some((kind, rest)) = frames.split_first() {
        frames = match kind {
            // PADDING and PING.
            0 | 1 => rest,
            // ACK, perhaps with counts of congestion.
            2 | 3 => {
                let (_largest, rest) = varint(rest)?;
                let (_delay, rest) = varint(rest)?;
                let (ranges, rest) = varint(rest)?;
                let numbers = ranges.checked_mul(2)?.checked_add(if *kind == 3 { 4 } else { 1 })?;
                (0..numbers).try_fold(rest, |rest, _| varint(rest).map(|(_, rest)| rest))?
            }
            6 => {
                let (offset, rest) = varint(rest)?;
                let (length, rest) = varint(rest)?;
                let (data, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                crypto(offset, data);
                rest
            }
            _ => return None,
        };
    }
    Some(())
}
