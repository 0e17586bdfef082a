//! Protocols whose packets are named, but neither opened nor sized: tunnels that are not read, and encryption without
//! records. They are recognised by their ports and the shape of their first bytes; where in doubt, they are not.

use std::fmt::{Display, Formatter};

use crate::ip::IpPacket;
use crate::protocol::{ETHERIP, GTP_U_PORT, L2TP, L2TP_PORT, TEREDO_PORT, UDP, VXLAN_GPE_PORT};

/// A protocol whose packets are named only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnsizedProtocol {
    /// Tunnels of mobile networks (3GPP TS 29.281).
    GtpU,
    /// VXLAN with other payloads than Ethernet (draft-ietf-nvo3-vxlan-gpe).
    VxlanGpe,
    /// RFC 2661, RFC 3931.
    L2tp,
    /// RFC 3378.
    EtherIp,
    /// RFC 4380.
    Teredo,
    /// The `WireGuard` whitepaper, section 5.4.
    WireGuard,
    /// ESP, ESP in UDP and IKE (RFC 4303, RFC 3948, RFC 7296).
    Ipsec,
    /// QUIC's packets with short headers (RFC 9000, section 17.3).
    Quic,
    /// Matter over UDP (Matter core specification, section 4.4).
    Matter,
    /// RFC 7252.
    Coap,
    /// Records with DTLS 1.3's unified header (RFC 9147, section 4).
    Dtls13,
}

impl UnsizedProtocol {
    /// The protocol of a packet that is not a fragment, if it is one of these.
    pub fn of(packet: &IpPacket<'_>) -> Option<Self> {
        const ESP: u8 = 50;
        let data = packet.payload.bytes.data();
        match packet.payload.protocol {
            UDP => {
                let (&[s0, s1, d0, d1, _, _, _, _], payload) = data.split_first_chunk()?;
                let length = packet.payload.bytes.length().saturating_sub(8);
                let ports = [u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])];
                Self::of_datagram(ports, payload, length)
            }
            ESP => Some(Self::Ipsec),
            ETHERIP if data.first().is_some_and(|first| first >> 4 == 3) => Some(Self::EtherIp),
            L2TP => Some(Self::L2tp),
            _ => None,
        }
    }

    fn of_datagram(ports: [u16; 2], payload: &[u8], length: u32) -> Option<Self> {
        let at = |port: u16| ports.contains(&port);
        let first = *payload.first()?;
        let protocol = match payload {
            // Version 1, and the message that carries a packet.
            [0x30..=0x3f, 0xff, ..] if at(GTP_U_PORT) => Self::GtpU,
            _ if at(VXLAN_GPE_PORT) && first & 0x08 != 0 => Self::VxlanGpe,
            [_, version, ..] if at(L2TP_PORT) && matches!(version & 0x0f, 2 | 3) => Self::L2tp,
            // IPv6, or an indication before it.
            [0x60..=0x6f, ..] | [0, 0 | 1, ..] if at(TEREDO_PORT) => Self::Teredo,
            [1..=4, 0, 0, 0, rest @ ..] if is_wireguard(first, rest, length, at(51820)) => Self::WireGuard,
            [_, ..] if at(4500) => Self::Ipsec,
            [.., _] if at(500) && matches!(payload.get(17), Some(0x10 | 0x20)) => Self::Ipsec,
            // The shortest packet that is not a stateless reset.
            [0x40..=0x7f, ..] if at(443) && length >= 21 => Self::Quic,
            // Version 0 in both parts of the header, which has at least 8 bytes.
            [0..=0x0f, ..] if at(5540) && length >= 8 => Self::Matter,
            // Version 1, a token of at most 8 bytes, a class of requests or answers.
            [_, code, ..] if at(5683) && first >> 6 == 1 && first & 0x0f <= 8 && matches!(code >> 5, 0 | 2 | 4 | 5) => {
                Self::Coap
            }
            [0x20..=0x3f, ..] if is_unified_record(payload, length) => Self::Dtls13,
            _ => return None,
        };
        Some(protocol)
    }

    /// Whether a packet has QUIC's long header, or a handshake of DTLS: `record-sizer` says what becomes of its connection.
    pub fn begins_connection(packet: &IpPacket<'_>) -> bool {
        let payload = packet.payload.bytes.data().get(8..).unwrap_or_default();
        packet.payload.protocol == UDP && matches!(payload, [0xc0..=0xff, ..] | [22, 0xfe, 0xfd | 0xff, ..])
    }

    /// Whether it is a tunnel that may carry what could be sized, of others than its ends.
    pub fn is_tunnel(self) -> bool {
        matches!(self, Self::GtpU | Self::VxlanGpe | Self::L2tp | Self::EtherIp | Self::Teredo)
    }
}

/// A message of `WireGuard` has its type and three zeros. Those of a handshake have one length each; one with data has a
/// counter and whole blocks, and on another port than its own the counter must be small.
fn is_wireguard(kind: u8, rest: &[u8], length: u32, is_its_port: bool) -> bool {
    match kind {
        1 => length == 148,
        2 => length == 92,
        3 => length == 64,
        _ => {
            let is_small = rest.get(8..12).is_some_and(|high| high == [0; 4]);
            length >= 32 && length.is_multiple_of(16) && (is_its_port || is_small)
        }
    }
}

/// A record with DTLS 1.3's unified header: without a connection id, and with a length that ends within the datagram.
fn is_unified_record(payload: &[u8], length: u32) -> bool {
    let &[first, _, second, third, fourth, ..] = payload else { return false };
    let (header, high, low) = if first & 0x08 == 0 { (4, second, third) } else { (5, third, fourth) };
    // The tag alone has at least 8 bytes.
    let record = u32::from(u16::from_be_bytes([high, low]));
    first & 0x14 == 0x04 && record >= 8 && header + record == length
}

impl Display for UnsizedProtocol {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::GtpU => "GTP-U",
            Self::VxlanGpe => "VXLAN-GPE",
            Self::L2tp => "L2TP",
            Self::EtherIp => "EtherIP",
            Self::Teredo => "Teredo",
            Self::WireGuard => "WireGuard",
            Self::Ipsec => "IPsec",
            Self::Quic => "QUIC without its handshake",
            Self::Matter => "Matter",
            Self::Coap => "CoAP",
            Self::Dtls13 => "DTLS 1.3",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captured_bytes::CapturedBytes;
    use crate::ip::IpPayload;

    fn named(protocol: u8, data: &[u8]) -> Option<UnsizedProtocol> {
        let payload = IpPayload { protocol, bytes: CapturedBytes::frame(data, 0) };
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        UnsizedProtocol::of(&IpPacket { source, destination, payload, fragment: None })
    }

    /// In a datagram to this port, filled up to this length.
    fn datagram(port: u16, payload: &[u8], length: usize) -> Option<UnsizedProtocol> {
        let data = [&[0x9c, 0x40][..], &port.to_be_bytes(), &[0; 4], payload].concat();
        named(UDP, &[&data[..], &vec![7; length - payload.len()]].concat())
    }

    #[test]
    fn protocols_are_named_by_port_and_shape() {
        use UnsizedProtocol::{Coap, Dtls13, EtherIp, GtpU, Ipsec, L2tp, Matter, Quic, Teredo, VxlanGpe, WireGuard};
        for (port, payload, length, protocol) in [
            (2152, &[0x30, 0xff, 0, 60][..], 60, GtpU),
            (4790, &[0x0c, 0, 0, 3], 60, VxlanGpe),
            (1701, &[0, 2, 0, 1], 60, L2tp),
            (3544, &[0x60, 0, 0, 0], 60, Teredo),
            (51820, &[4, 0, 0, 0], 96, WireGuard),
            (40000, &[1, 0, 0, 0], 148, WireGuard),
            (40000, &[4, 0, 0, 0, 9, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0], 96, WireGuard),
            (4500, &[0xff], 1, Ipsec),
            (443, &[0x5a], 40, Quic),
            (5540, &[0, 0x11, 0x22], 40, Matter),
            (5683, &[0x42, 1, 0, 1], 40, Coap),
            (5684, &[0x2c, 0, 1, 0, 30], 35, Dtls13),
        ] {
            assert_eq!(datagram(port, payload, length), Some(protocol), "{port}");
        }
        assert_eq!(
            (named(50, &[1]), named(97, &[0x30, 0]), named(115, &[1])),
            (Some(Ipsec), Some(EtherIp), Some(L2tp))
        );
    }

    #[test]
    fn similar_datagrams_are_not_named() {
        for (port, payload, length) in [
            (2152, &[0x32, 1][..], 12),
            (51820, &[4, 0, 0, 0], 97),
            (40000, &[4, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9], 96),
            (443, &[0x16, 0xfe, 0xfd], 60),
            (443, &[0xc0, 0, 0, 0, 1], 1200),
            (5684, &[0x16, 0xfe, 0xfd], 60),
            (5683, &[0x9f, 1], 40),
            (40000, &[7], 40),
            (40000, &[0x2c, 0, 1, 0, 30], 36),
        ] {
            assert_eq!(datagram(port, payload, length), None, "{port}");
        }
        assert_eq!((named(6, &[0; 40]), named(UDP, &[0; 7])), (None, None));
    }
}
