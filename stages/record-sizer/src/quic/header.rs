//! The headers of QUIC's packets that a handshake consists of (RFC 8999, RFC 9000 section 17.2, RFC 9369), and the
//! first packets of a connection. The keys of those follow from an id in the clear (RFC 9001, section 5.2), so that
//! anybody can read the two hellos in them: they are not secret, and only here is anything decrypted.

use std::collections::BTreeMap;

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Keys};
use rustls::{Side, SupportedCipherSuite};
use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, PerDirection};

use crate::connection_id;
use crate::handshake::{HandshakeReader, Hello};

const V2: u32 = 0x6b33_43cf;

/// The least bytes of a packet number and what follows it, of which 16 are sampled behind four (RFC 9001, section 5.4.2).
const LEAST_BODY: usize = 4 + 16;

/// The kinds of packets with a long header that have a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongKind {
    Initial,
    /// Data before the server has answered.
    ZeroRtt,
    Handshake,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Draft,
    V1,
    V2,
    /// One whose packets are not read, by its number.
    Other(u32),
}

impl Version {
    /// What it is called, if it is one that is known but not read.
    pub(crate) fn unread_name(self) -> Option<String> {
        let Self::Other(number) = self else { return None };
        match number.to_be_bytes() {
            bytes @ [b'Q' | b'T', b'0', b'0'..=b'9', b'0'..=b'9'] => Some(bytes.map(char::from).iter().collect()),
            [0xfa, 0xce, 0xb0, _] => Some("mvfst".to_owned()),
            [0xff, 0, 0, draft] => Some(format!("draft {draft}")),
            // Reserved, so that servers answer with their versions (RFC 9000, section 15).
            bytes if bytes.iter().all(|byte| byte & 0x0f == 0x0a) => Some("reserved".to_owned()),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongPacket<'a> {
    pub(crate) version: Version,
    /// `None` for `Retry`, for the negotiation of versions and for versions that are not read, which fill their datagrams.
    pub(crate) kind: Option<LongKind>,
    pub(crate) destination: &'a [u8],
    pub(crate) source: &'a [u8],
    /// Bytes before the packet number.
    pub(crate) header: usize,
    /// Bytes from the packet number on.
    pub(crate) body: usize,
}

impl<'a> LongPacket<'a> {
    /// Reads the packet at the start of `bytes`, of a datagram that has `left` bytes from there on. Its version says more
    /// than the fixed bit, which ends may clear (RFC 9287).
    pub(crate) fn read(bytes: &'a [u8], left: usize) -> Option<Self> {
        let (&[first, v0, v1, v2, v3], rest) = bytes.split_first_chunk()?;
        if first & 0x80 == 0 {
            return None;
        }
        let number = u32::from_be_bytes([v0, v1, v2, v3]);
        let version = version(number);
        let (destination, rest) = connection_id(rest)?;
        let (source, rest) = connection_id(rest)?;
        let kind = if number == 0 { None } else { kind(version, first) };
        let after_ids = bytes.len() - rest.len();
        let filling =
            Self { version, kind, destination, source, header: after_ids, body: left.checked_sub(after_ids)? };
        if kind.is_none() {
            return Some(filling);
        }
        let rest = if kind == Some(LongKind::Initial) {
            let (token, rest) = varint(rest)?;
            rest.get(usize::try_from(token).ok()?..)?
        } else {
            rest
        };
        let (length, rest) = varint(rest)?;
        let header = bytes.len() - rest.len();
        let body =
            usize::try_from(length).ok().filter(|body| *body >= LEAST_BODY && header.saturating_add(*body) <= left)?;
        Some(Self { header, body, ..filling })
    }
}

fn version(number: u32) -> Version {
    match number {
        // The server offers other versions: what it says is of any.
        0 | 1 => Version::V1,
        V2 => Version::V2,
        0xff00_0017..=0xff00_0022 => Version::Draft,
        _ => Version::Other(number),
    }
}

/// Version 2 has rotated the numbers (RFC 9369, section 3.2).
fn kind(version: Version, first: u8) -> Option<LongKind> {
    let number = first >> 4 & 3;
    match if version == Version::V2 { (number + 3) % 4 } else { number } {
        _ if matches!(version, Version::Other(_)) => None,
        0 => Some(LongKind::Initial),
        1 => Some(LongKind::ZeroRtt),
        2 => Some(LongKind::Handshake),
        _ => None,
    }
}

fn connection_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked((*length).into()).filter(|(id, _)| id.len() <= connection_id::LONGEST)
}

/// A number of 1, 2, 4 or 8 bytes (RFC 9000, section 16).
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (more, rest) = rest.split_at_checked((1 << (first >> 6)) - 1)?;
    Some((more.iter().fold(u64::from(first & 0x3f), |number, byte| number << 8 | u64::from(*byte)), rest))
}

const MAX_WAITING_BYTES: usize = 1 << 13;

const PIECE_OVERHEAD_BYTES: usize = 64;

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

    pub(crate) fn has_keys(&self) -> bool {
        self.client.is_some()
    }

    /// The frames of a packet; `None` if it is of another connection, or not whole.
    pub(crate) fn frames(&self, packet: &LongPacket<'_>, bytes: &[u8], direction: Direction) -> Option<Vec<u8>> {
        let (client, id) = self.client.as_ref()?;
        decrypted(packet, bytes, id, *client == direction)
    }

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
        let known = self.waiting.get(&offset).map_or(0, |known| PIECE_OVERHEAD_BYTES + known.len());
        let needed = PIECE_OVERHEAD_BYTES + data.len();
        if data.is_empty() || needed <= known {
            return;
        }
        let waiting_bytes = self.waiting_bytes - known + needed;
        if offset <= self.next || waiting_bytes <= MAX_WAITING_BYTES {
            self.waiting.insert(offset, data.to_vec());
            self.waiting_bytes = waiting_bytes;
        }
        while let Some((&offset, _)) = self.waiting.first_key_value()
            && offset <= self.next
            && let Some(data) = self.waiting.remove(&offset)
        {
            self.waiting_bytes -= PIECE_OVERHEAD_BYTES + data.len();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard() {
        // RFC 9000, appendix A.1.
        for (bytes, number) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(varint(bytes), Some((number, &[][..])));
        }
        assert_eq!(varint(&[0x7b]), None);
    }

    #[test]
    fn packets_of_the_handshake_have_ids_and_a_length() {
        let initial = [&[0xc3, 0, 0, 0, 1, 2, 7, 8, 1, 9, 1, 0xff, 0x40, 20][..], &[5; 40]].concat();
        let packet = LongPacket::read(&initial, 54).unwrap();
        assert_eq!((packet.kind, packet.version), (Some(LongKind::Initial), Version::V1));
        assert_eq!((packet.destination, packet.source), (&[7, 8][..], &[9][..]));
        assert_eq!((packet.header, packet.body), (14, 20));
        assert_eq!(LongPacket::read(&initial[..20], 54).map(|packet| packet.body), Some(20), "cut by the snaplen");
        assert_eq!(LongPacket::read(&initial, 33), None, "longer than its datagram");
        let of_v2 = [&[0xd3, 0x6b, 0x33, 0x43, 0xcf][..], &initial[5..]].concat();
        assert_eq!(LongPacket::read(&of_v2, 54).and_then(|packet| packet.kind), Some(LongKind::Initial));
        let cleared = [&[0x83][..], &initial[1..]].concat();
        assert_eq!(LongPacket::read(&cleared, 54), LongPacket::read(&initial, 54), "the fixed bit is cleared");
        let of_other = LongPacket::read(&[0xc3, 0, 0, 0, 7, 1, 5, 0, 9], 9).unwrap();
        assert_eq!((of_other.version, of_other.kind, of_other.destination), (Version::Other(7), None, &[5][..]));
    }

    #[test]
    fn versions_that_are_not_read_have_names() {
        let name = |number| version(number).unread_name();
        for (number, expected) in
            [(0x5430_3531, "T051"), (0xface_b002, "mvfst"), (0x1a2a_3a4a, "reserved"), (0xff00_0010, "draft 16")]
        {
            assert_eq!(name(number).as_deref(), Some(expected));
        }
        assert_eq!([1, V2, 0xff00_001d, 0x5430_3541].map(name), [None, None, None, None]);
    }
}
