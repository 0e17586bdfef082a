//! Transport: TCP segments, UDP datagrams and packets of ESP in IP packets; which datagrams are DNS messages, and between
//! whom. What those say is not parsed here. And protocols whose packets are named, but neither opened nor sized: tunnels
//! that are not read, messages in the clear, and what is neither TCP nor UDP. Those in datagrams are recognised by their
//! ports and the shape of their first bytes; where in doubt, they are not.
//!
//! TCP's header is read by hand: etherparse rejects one whose options the snaplen has cut, although its first 20 bytes
//! already hold all that is needed.

use std::fmt::{Display, Formatter};
use std::net::{IpAddr, SocketAddr};

use etherparse::{UdpHeader, UdpHeaderSlice};
use sizeleak_frame::Transport;

use crate::ip::{
    ACK, CapturedBytes, DNS_PORT, ESP, ETHERIP, GRE, GTP_U_PORT, IPV4, IPV6, IpPacket, L2TP, L2TP_PORT, MPLS,
    MPLS_PORT, TCP, TEREDO_PORT, UDP, VXLAN_GPE_PORT, is_ipv6_extension,
};

const MIN_TCP_HEADER: usize = 20;

/// A TCP segment, a UDP datagram, or a packet of ESP, which is treated as a datagram without ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportSegment<'a> {
    pub transport: Transport,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// The sequence number of a segment's first byte; 0 in a datagram.
    pub sequence: u32,
    /// The flags of a segment, at least one of which is set; 0 in a datagram.
    pub flags: u8,
    pub acknowledgement: Option<u32>,
    pub payload: CapturedBytes<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSegment {
    OtherProtocol,
    Damaged,
}

impl<'a> TransportSegment<'a> {
    /// Reads the payload of a packet that is not a fragment.
    pub fn read(packet: &IpPacket<'a>) -> Result<Self, NoSegment> {
        match packet.payload.protocol {
            TCP => Self::tcp(packet).ok_or(NoSegment::Damaged),
            UDP => Self::udp(packet).ok_or(NoSegment::Damaged),
            ESP => Ok(Self::esp(packet)),
            // Extension headers that are cut or misplaced.
            protocol if is_ipv6_extension(protocol) => Err(NoSegment::Damaged),
            _ => Err(NoSegment::OtherProtocol),
        }
    }

    /// RFC 9293, section 3.1.
    fn tcp(packet: &IpPacket<'a>) -> Option<Self> {
        let bytes = packet.payload.bytes;
        let fixed: [u8; MIN_TCP_HEADER] = *bytes.data().first_chunk()?;
        let [from, from_low, to, to_low, s0, s1, s2, s3, a0, a1, a2, a3, offset, flags, ..] = fixed;
        let header = usize::from(offset >> 4) * 4;
        // Every segment of a connection has a flag; in frames, rows without any are datagrams.
        if header < MIN_TCP_HEADER || header > bytes.length() as usize || flags == 0 {
            return None;
        }
        Some(Self {
            transport: Transport::Tcp,
            source: (packet.source, u16::from_be_bytes([from, from_low])).into(),
            destination: (packet.destination, u16::from_be_bytes([to, to_low])).into(),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            flags,
            acknowledgement: (flags & ACK != 0).then(|| u32::from_be_bytes([a0, a1, a2, a3])),
            payload: bytes.after(header),
        })
    }

    /// All that IP carries of it: ESP has no ports.
    fn esp(packet: &IpPacket<'a>) -> Self {
        let (source, destination) = ((packet.source, 0).into(), (packet.destination, 0).into());
        let (sequence, flags, acknowledgement, payload) = (0, 0, None, packet.payload.bytes);
        Self { transport: Transport::Esp, source, destination, sequence, flags, acknowledgement, payload }
    }

    fn udp(packet: &IpPacket<'a>) -> Option<Self> {
        let bytes = packet.payload.bytes;
        let header = UdpHeaderSlice::from_slice(bytes.data()).ok()?;
        let by_ip = bytes.length().checked_sub(UdpHeader::LEN as u32)?;
        // Offloading leaves lengths that do not fit; then IP's is used.
        let length =
            u32::from(header.length()).checked_sub(UdpHeader::LEN as u32).map_or(by_ip, |by_udp| by_udp.min(by_ip));
        Some(Self {
            transport: Transport::Udp,
            source: (packet.source, header.source_port()).into(),
            destination: (packet.destination, header.destination_port()).into(),
            sequence: 0,
            flags: 0,
            acknowledgement: None,
            payload: CapturedBytes::new(bytes.after(UdpHeader::LEN).data(), length),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsMessage<'a> {
    pub kind: DnsKind,
    pub client: SocketAddr,
    pub resolver: IpAddr,
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsKind {
    Query,
    /// A datagram from DNS's port; between two of them, one that says so.
    Response,
}

/// The DNS message in a packet that is not a fragment, if its ports say that it holds one.
pub fn dns_message<'a>(packet: &IpPacket<'a>) -> Option<DnsMessage<'a>> {
    /// RFC 1035, section 4.1.1: the top bit of the third byte.
    const IS_RESPONSE: u8 = 0x80;
    if packet.payload.protocol != UDP {
        return None;
    }
    let data = packet.payload.bytes.data();
    let &[s0, s1, d0, d1] = data.first_chunk()?;
    let (from, to) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
    let bytes = data.get(UdpHeader::LEN..)?;
    let says_response = bytes.get(2).is_some_and(|flags| flags & IS_RESPONSE != 0);
    if from == DNS_PORT && (to != DNS_PORT || says_response) {
        let client = (packet.destination, to).into();
        Some(DnsMessage { kind: DnsKind::Response, client, resolver: packet.source, bytes })
    } else if to == DNS_PORT {
        let client = (packet.source, from).into();
        Some(DnsMessage { kind: DnsKind::Query, client, resolver: packet.destination, bytes })
    } else {
        None
    }
}

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
    use etherparse::{TcpHeader, TcpOptionElement};
    use proptest::prelude::*;

    use super::*;
    use crate::ip::{CapturedBytes, IpPayload};

    fn packet(protocol: u8, length: u32, data: &[u8]) -> IpPacket<'_> {
        IpPacket {
            source: [10, 0, 0, 2].into(),
            destination: [203, 0, 113, 1].into(),
            payload: IpPayload { protocol, bytes: CapturedBytes::new(data, length) },
            fragment: None,
        }
    }

    proptest! {
        #[test]
        fn tcp_headers_are_read_as_etherparse_writes_them(
            ports: (u16, u16), sequence: u32, flags in 1..=u8::MAX, timestamps: bool,
            cut in 20usize..60, payload in 0u32..2000,
        ) {
            let mut header = TcpHeader::new(ports.0, ports.1, sequence, 9);
            if timestamps {
                header.set_options(&[TcpOptionElement::Timestamp(1, 2)]).unwrap();
            }
            header.acknowledgment_number = !sequence;
            let flag = |bit: u8| flags & bit != 0;
            (header.fin, header.syn, header.rst, header.psh) = (flag(1), flag(2), flag(4), flag(8));
            (header.ack, header.urg, header.ece, header.cwr) = (flag(16), flag(32), flag(64), flag(128));
            let bytes = [header.to_bytes().as_slice(), &vec![7; payload as usize]].concat();
            let cut = &bytes[..cut.min(bytes.len())];
            let segment = TransportSegment::read(&packet(TCP, bytes.len() as u32, cut)).unwrap();
            prop_assert_eq!((segment.source.port(), segment.destination.port()), ports);
            prop_assert_eq!((segment.sequence, segment.flags, segment.payload.length()), (sequence, flags, payload));
            prop_assert_eq!(segment.acknowledgement, flag(16).then_some(!sequence));
            prop_assert_eq!(segment.payload.data().len(), cut.len().saturating_sub(header.header_len()));
        }
    }

    #[test]
    fn a_tcp_header_without_flags_is_damaged() {
        let bytes = TcpHeader::new(1, 2, 3, 4).to_bytes();
        assert_eq!(TransportSegment::read(&packet(TCP, 20, &bytes)), Err(NoSegment::Damaged));
    }

    #[test]
    fn udp_length_is_used_if_it_fits_the_ip_length() {
        let datagram = |length: u16| [&[0, 9, 1, 187][..], &length.to_be_bytes(), &[0, 0], &[7; 22]].concat();
        for (claimed, length) in [(30, 22), (18, 10), (0, 22), (4, 22), (900, 22)] {
            let bytes = datagram(claimed);
            let segment = TransportSegment::read(&packet(UDP, 30, &bytes)).unwrap();
            assert_eq!(
                (segment.payload.length(), segment.payload.data().len()),
                (length, length as usize),
                "{claimed}"
            );
            assert_eq!((segment.flags, segment.sequence, segment.transport), (0, 0, Transport::Udp));
        }
        assert_eq!(TransportSegment::read(&packet(UDP, 30, &[0; 7])), Err(NoSegment::Damaged));
    }

    fn kind(from: u16, to: u16, flags: u8) -> Option<DnsKind> {
        let data = [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0; 4], &[0, 1, flags, 0]].concat();
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let payload = IpPayload { protocol: UDP, bytes: CapturedBytes::frame(&data, 0) };
        let message = dns_message(&IpPacket { source, destination, payload, fragment: None })?;
        assert_eq!(message.bytes, [0, 1, flags, 0]);
        let (client, resolver) =
            if message.kind == DnsKind::Query { (source, destination) } else { (destination, source) };
        assert_eq!((message.client.ip(), message.resolver), (client, resolver));
        Some(message.kind)
    }

    #[test]
    fn ports_tell_queries_from_responses() {
        assert_eq!(kind(4000, 53, 0x80), Some(DnsKind::Query));
        assert_eq!(kind(53, 4000, 0), Some(DnsKind::Response));
        assert_eq!((kind(53, 53, 0), kind(53, 53, 0x80)), (Some(DnsKind::Query), Some(DnsKind::Response)));
        assert_eq!(kind(4000, 5353, 0), None);
    }

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
