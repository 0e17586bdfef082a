//! From what an IP packet carries to a row of `segments`: TCP segments and UDP datagrams.
//!
//! TCP's header is read by hand: etherparse refuses one whose options the snaplen has cut, while its first 20 bytes
//! already say where the segment belongs and how long it is.

use std::net::SocketAddr;

use etherparse::{UdpHeader, UdpHeaderSlice};
use sizeleak_frame::Transport;

use crate::network::{Content, IpPacket};

const TCP: u8 = 6;
const UDP: u8 = 17;
const LEAST_TCP_HEADER: u32 = 20;

/// A TCP segment or a UDP datagram with its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransportSegment<'a> {
    pub(crate) transport: Transport,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    /// TCP's; 0 in a datagram.
    pub(crate) sequence: u32,
    /// TCP's, of which one at least is always set; 0 in a datagram.
    pub(crate) flags: u8,
    /// Bytes of payload on the wire.
    pub(crate) length: u32,
    /// What was captured of them.
    pub(crate) payload: &'a [u8],
}

/// Why a packet holds no segment to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSegment {
    /// Another protocol.
    OtherProtocol,
    /// Its header is cut, or no header at all.
    Damaged,
}

impl<'a> TransportSegment<'a> {
    /// The segment of a packet that nearly all are: Ethernet, IPv4 or IPv6 without anything between, TCP. `None` for others,
    /// which may be segments all the same.
    #[inline]
    pub(crate) fn plain(link_type: u16, data: &'a [u8]) -> Option<Self> {
        const ETHERNET: u16 = 1;
        let (_, ip) = data.split_first_chunk::<14>().filter(|_| link_type == ETHERNET)?;
        let [.., high, low] = data.first_chunk::<14>()?;
        let packet = IpPacket::plain(ip).filter(|packet| packet.content.protocol == TCP)?;
        let is_as_typed =
            matches!((u16::from_be_bytes([*high, *low]), packet.source.is_ipv4()), (0x0800, true) | (0x86dd, false));
        if is_as_typed { Self::of_tcp(&packet) } else { None }
    }

    /// Reads what `packet` carries, its extension headers passed already.
    pub(crate) fn read(packet: &IpPacket<'a>) -> Result<Self, NoSegment> {
        match packet.content.protocol {
            TCP => Self::of_tcp(packet).ok_or(NoSegment::Damaged),
            UDP => Self::of_udp(packet).ok_or(NoSegment::Damaged),
            // Extension headers of IPv6 that are cut, or stand where they must not.
            0 | 43 | 44 | 51 | 60 | 135 | 139 | 140 => Err(NoSegment::Damaged),
            _ => Err(NoSegment::OtherProtocol),
        }
    }

    /// RFC 9293, section 3.1.
    fn of_tcp(packet: &IpPacket<'a>) -> Option<Self> {
        let Content { length, data, .. } = packet.content;
        let bytes: [u8; LEAST_TCP_HEADER as usize] = *data.first_chunk()?;
        let [from, from_low, to, to_low, s0, s1, s2, s3, _, _, _, _, offset, flags, ..] = bytes;
        let header = u32::from(offset >> 4) * 4;
        // Every segment of a connection has a flag; in frames, rows without any are datagrams.
        if header < LEAST_TCP_HEADER || header > length || flags == 0 {
            return None;
        }
        Some(Self {
            transport: Transport::Tcp,
            source: (packet.source, u16::from_be_bytes([from, from_low])).into(),
            destination: (packet.destination, u16::from_be_bytes([to, to_low])).into(),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            flags,
            length: length - header,
            payload: data.get(header as usize..).unwrap_or_default(),
        })
    }

    fn of_udp(packet: &IpPacket<'a>) -> Option<Self> {
        let Content { length, data, .. } = packet.content;
        let header = UdpHeaderSlice::from_slice(data).ok()?;
        let behind = length.checked_sub(UdpHeader::LEN as u32)?;
        // Offloading leaves lengths that do not fit; then IP's counts.
        let length =
            u32::from(header.length()).checked_sub(UdpHeader::LEN as u32).map_or(behind, |own| own.min(behind));
        let payload = data.get(UdpHeader::LEN..).unwrap_or_default();
        Some(Self {
            transport: Transport::Udp,
            source: (packet.source, header.source_port()).into(),
            destination: (packet.destination, header.destination_port()).into(),
            sequence: 0,
            flags: 0,
            length,
            payload: payload.get(..length as usize).unwrap_or(payload),
        })
    }
}

/// The payload of an answer of a name server, if `content` is one.
pub(crate) fn dns_answer<'a>(content: &Content<'a>) -> Option<&'a [u8]> {
    let is_answer = content.protocol == UDP && content.data.get(..2) == Some(&53_u16.to_be_bytes());
    if is_answer { content.data.get(UdpHeader::LEN..) } else { None }
}

/// Protocols over UDP that keep a network running and never carry TLS, by the port of either end. To leave them out
/// keeps streams small: a gateway announces and asks all day.
const INFRASTRUCTURE: [(u16, &str); 16] = [
    (53, "DNS"),
    (67, "DHCP"),
    (68, "DHCP"),
    (69, "TFTP"),
    (123, "NTP"),
    (137, "NetBIOS"),
    (138, "NetBIOS"),
    (161, "SNMP"),
    (162, "SNMP"),
    (546, "DHCPv6"),
    (547, "DHCPv6"),
    (1900, "SSDP"),
    (3702, "WS-Discovery"),
    (5353, "mDNS"),
    (5355, "LLMNR"),
    (5351, "NAT-PMP"),
];

/// Whether a datagram cannot be DTLS or QUIC: it is for many at once, or of a protocol that neither runs under.
pub(crate) fn is_infrastructure(segment: &TransportSegment<'_>) -> bool {
    let known = |port| INFRASTRUCTURE.iter().any(|(own, _)| *own == port);
    segment.transport == Transport::Udp
        && (known(segment.source.port())
            || known(segment.destination.port())
            || segment.destination.ip().is_multicast()
            || segment.destination.ip() == std::net::Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use etherparse::{TcpHeader, TcpOptionElement};
    use proptest::prelude::*;

    use super::*;

    fn carried(protocol: u8, length: u32, data: &[u8]) -> IpPacket<'_> {
        IpPacket {
            source: [10, 0, 0, 2].into(),
            destination: [203, 0, 113, 1].into(),
            content: Content { protocol, length, data },
            fragment: None,
        }
    }

    proptest! {
        #[test]
        fn tcp_headers_are_read_as_etherparse_writes_them(
            ports: (u16, u16), sequence: u32, flags in 1..=u8::MAX, timestamps: bool, cut in 20usize..60, payload in 0u32..2000,
        ) {
            let mut header = TcpHeader::new(ports.0, ports.1, sequence, 9);
            if timestamps {
                header.set_options(&[TcpOptionElement::Timestamp(1, 2)]).unwrap();
            }
            let flag = |bit: u8| flags & bit != 0;
            (header.fin, header.syn, header.rst, header.psh) = (flag(1), flag(2), flag(4), flag(8));
            (header.ack, header.urg, header.ece, header.cwr) = (flag(16), flag(32), flag(64), flag(128));
            let bytes = [header.to_bytes().as_slice(), &vec![7; payload as usize]].concat();
            let cut = &bytes[..cut.min(bytes.len())];
            let segment = TransportSegment::read(&carried(TCP, bytes.len() as u32, cut)).unwrap();
            prop_assert_eq!((segment.source.port(), segment.destination.port()), ports);
            prop_assert_eq!((segment.sequence, segment.flags, segment.length), (sequence, flags, payload));
            prop_assert_eq!(segment.payload.len(), cut.len().saturating_sub(header.header_len()));
        }
    }

    #[test]
    fn a_segment_without_flags_is_none_of_a_connection() {
        let bytes = TcpHeader::new(1, 2, 3, 4).to_bytes();
        assert_eq!(TransportSegment::read(&carried(TCP, 20, &bytes)), Err(NoSegment::Damaged));
    }

    #[test]
    fn datagrams_are_as_long_as_their_header_says_where_that_can_be() {
        let datagram = |length: u16| [&[0, 9, 1, 187][..], &length.to_be_bytes(), &[0, 0], &[7; 22]].concat();
        for (claimed, length) in [(30, 22), (18, 10), (0, 22), (4, 22), (900, 22)] {
            let bytes = datagram(claimed);
            let segment = TransportSegment::read(&carried(UDP, 30, &bytes)).unwrap();
            assert_eq!((segment.length, segment.payload.len()), (length, length as usize), "{claimed}");
            assert_eq!((segment.flags, segment.sequence, segment.transport), (0, 0, Transport::Udp));
        }
        assert_eq!(TransportSegment::read(&carried(UDP, 30, &[0; 7])), Err(NoSegment::Damaged));
    }

    #[test]
    fn what_keeps_the_network_running_is_told_from_the_rest() {
        let to = |port: u16, destination: &str| {
            let bytes = [&50_000_u16.to_be_bytes()[..], &port.to_be_bytes(), &[0, 8, 0, 0]].concat();
            let mut packet = carried(UDP, 8, &bytes);
            packet.destination = destination.parse().unwrap();
            is_infrastructure(&TransportSegment::read(&packet).unwrap())
        };
        assert!(to(53, "203.0.113.1") && to(5353, "203.0.113.1"));
        assert!(to(9999, "239.1.2.3") && to(9999, "255.255.255.255") && to(9999, "ff02::fb"));
        assert!(!to(5684, "203.0.113.1") && !to(443, "203.0.113.1"));
    }
}
