//! Protocols whose packets are named, but neither opened nor sized: tunnels that are not read, messages in the clear, and
//! what is neither TCP nor UDP. Those in datagrams are recognised by their ports and the shape of their first bytes; where
//! in doubt, they are not.

use std::fmt::{Display, Formatter};

use crate::ip::{
    ESP, ETHERIP, GRE, GTP_U_PORT, IPV4, IPV6, IpPacket, L2TP, L2TP_PORT, MPLS, MPLS_PORT, TCP, TEREDO_PORT, UDP,
    VXLAN_GPE_PORT, is_ipv6_extension,
};

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
    /// RFC 7510, with other payloads than IP.
    Mpls,
    /// RFC 7252.
    Coap,
    /// Another IP protocol, by its number.
    Ip(u8),
}

impl UnsizedProtocol {
    /// The protocol of a packet that is not a fragment, if it is one of these.
    pub fn of(packet: &IpPacket<'_>) -> Option<Self> {
        let data = packet.payload.bytes.data();
        match packet.payload.protocol {
            UDP => {
                let (&[s0, s1, d0, d1, _, _, _, _], payload) = data.split_first_chunk()?;
                let ports = [u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])];
                Self::of_datagram(ports, payload)
            }
            ETHERIP if data.first().is_some_and(|first| first >> 4 == 3) => Some(Self::EtherIp),
            L2TP => Some(Self::L2tp),
            // Sized, or opened; or what networks themselves need: ICMP, IGMP, no content, OSPF, PIM, VRRP.
            TCP | ESP | IPV4 | IPV6 | GRE | MPLS | 1 | 2 | 58 | 59 | 89 | 103 | 112 => None,
            // One that is cut is damaged.
            extension if is_ipv6_extension(extension) => None,
            other => Some(Self::Ip(other)),
        }
    }

    fn of_datagram(ports: [u16; 2], payload: &[u8]) -> Option<Self> {
        let at = |port: u16| ports.contains(&port);
        let first = *payload.first()?;
        let protocol = match payload {
            // Version 1, and the message that carries a packet.
            [0x30..=0x3f, 0xff, ..] if at(GTP_U_PORT) => Self::GtpU,
            _ if at(VXLAN_GPE_PORT) && first & 0x08 != 0 => Self::VxlanGpe,
            [_, version, ..] if at(L2TP_PORT) && matches!(version & 0x0f, 2 | 3) => Self::L2tp,
            // IPv6, or an indication before it.
            [0x60..=0x6f, ..] | [0, 0 | 1, ..] if at(TEREDO_PORT) => Self::Teredo,
            // The last label, not at its end, before the control word of another protocol (RFC 4385).
            [_, _, label, 1..=0xff, 0..=0x0f, ..] if at(MPLS_PORT) && label & 1 == 1 => Self::Mpls,
            // Version 1, a token of at most 8 bytes, a class of requests or answers.
            [_, code, ..] if at(5683) && first >> 6 == 1 && first & 0x0f <= 8 && matches!(code >> 5, 0 | 2 | 4 | 5) => {
                Self::Coap
            }
            _ => return None,
        };
        Some(protocol)
    }

    /// Whether it is a tunnel that may carry what could be sized, of others than its ends.
    pub fn is_tunnel(self) -> bool {
        matches!(self, Self::GtpU | Self::VxlanGpe | Self::L2tp | Self::EtherIp | Self::Teredo | Self::Mpls)
    }
}

impl Display for UnsizedProtocol {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::GtpU => "GTP-U",
            Self::VxlanGpe => "VXLAN-GPE",
            Self::L2tp => "L2TP",
            Self::EtherIp => "EtherIP",
            Self::Teredo => "Teredo",
            Self::Mpls => "MPLS over UDP",
            Self::Coap => "CoAP",
            Self::Ip(number) => return write!(formatter, "IP protocol {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::{CapturedBytes, IpPayload};

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
        use UnsizedProtocol::{Coap, EtherIp, GtpU, Ip, L2tp, Mpls, Teredo, VxlanGpe};
        for (port, payload, length, protocol) in [
            (2152, &[0x30, 0xff, 0, 60][..], 60, GtpU),
            (4790, &[0x0c, 0, 0, 3], 60, VxlanGpe),
            (1701, &[0, 2, 0, 1], 60, L2tp),
            (3544, &[0x60, 0, 0, 0], 60, Teredo),
            (6635, &[0, 6, 0x41, 64, 0], 60, Mpls),
            (5683, &[0x42, 1, 0, 1], 40, Coap),
        ] {
            assert_eq!(datagram(port, payload, length), Some(protocol), "{port}");
        }
        assert_eq!((named(97, &[0x30, 0]), named(115, &[1])), (Some(EtherIp), Some(L2tp)));
        assert_eq!((named(132, &[1]), named(253, &[1])), (Some(Ip(132)), Some(Ip(253))));
        assert_eq!(Ip(132).to_string(), "IP protocol 132");
    }

    #[test]
    fn similar_datagrams_are_not_named() {
        for (port, payload, length) in
            [(2152, &[0x32, 1][..], 12), (5683, &[0x9f, 1], 40), (6635, &[22, 254, 253, 0, 0], 40)]
        {
            assert_eq!(datagram(port, payload, length), None, "{port}");
        }
        assert_eq!((named(6, &[0; 40]), named(UDP, &[0; 7])), (None, None));
        for protocol in [1, 2, 4, 41, 47, 50, 58, 59, 89, 135, 140] {
            assert_eq!(named(protocol, &[0; 40]), None, "{protocol} is sized, opened, damaged or what networks need");
        }
    }
}
