//! The headers of QUIC's packets that a handshake consists of (RFC 8999, RFC 9000 section 17.2, RFC 9369).

use crate::connection_id;

/// Version 2.
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

/// The versions of QUIC whose packets are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Draft,
    V1,
    V2,
}

/// A packet with a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongPacket<'a> {
    pub(crate) version: Version,
    /// `None` for `Retry` and for the negotiation of versions, which fill their datagrams.
    pub(crate) kind: Option<LongKind>,
    pub(crate) destination: &'a [u8],
    pub(crate) source: &'a [u8],
    /// Bytes before the packet number.
    pub(crate) header: usize,
    /// Bytes from the packet number on.
    pub(crate) body: usize,
}

impl<'a> LongPacket<'a> {
    /// Reads the packet at the start of `bytes`, of a datagram that has `left` bytes from there on.
    pub(crate) fn read(bytes: &'a [u8], left: usize) -> Option<Self> {
        let (&[first, v0, v1, v2, v3], rest) = bytes.split_first_chunk()?;
        if first & 0x80 == 0 {
            return None;
        }
        let number = u32::from_be_bytes([v0, v1, v2, v3]);
        let version = version(number)?;
        let (destination, rest) = connection_id(rest)?;
        let (source, rest) = connection_id(rest)?;
        let kind = if number == 0 { None } else { kind(version, first) };
        let after_ids = bytes.len() - rest.len();
        let filling =
            Self { version, kind, destination, source, header: after_ids, body: left.checked_sub(after_ids)? };
        // All packets but those that negotiate versions have the fixed bit.
        if kind.is_none() {
            return (number == 0 || first & 0x40 != 0).then_some(filling);
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
        (first & 0x40 != 0).then_some(Self { header, body, ..filling })
    }
}

fn version(number: u32) -> Option<Version> {
    match number {
        // The server offers other versions: what it says is of any.
        0 | 1 => Some(Version::V1),
        V2 => Some(Version::V2),
        0xff00_0017..=0xff00_0022 => Some(Version::Draft),
        _ => None,
    }
}

/// Version 2 has rotated the numbers (RFC 9369, section 3.2).
fn kind(version: Version, first: u8) -> Option<LongKind> {
    let number = first >> 4 & 3;
    match if version == Version::V2 { (number + 3) % 4 } else { number } {
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
        assert_eq!(LongPacket::read(&[0xc3, 0, 0, 0, 7, 0, 0, 0, 9], 9), None, "another version");
    }
}
