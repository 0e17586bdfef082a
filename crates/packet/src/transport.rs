//! Transport: TCP segments, UDP datagrams and packets of ESP in IP packets; and which datagrams are DNS messages, and
//! between whom. What those say is not parsed here.
//!
//! TCP's header is read by hand: etherparse rejects one whose options the snaplen has cut, although its first 20 bytes
//! already hold all that is needed.

use std::net::{IpAddr, SocketAddr};

use etherparse::{UdpHeader, UdpHeaderSlice};
use sizeleak_frame::Transport;

use crate::ip::{ACK, CapturedBytes, DNS_PORT, ESP, IpPacket, TCP, UDP, is_ipv6_extension};

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
}
