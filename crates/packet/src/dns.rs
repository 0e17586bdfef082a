//! DNS messages in UDP datagrams: which are they, and between whom. What they say is not parsed here.

use std::net::{IpAddr, SocketAddr};

use etherparse::UdpHeader;

use crate::ip::IpPacket;
use crate::protocol::{DNS_PORT, UDP};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsMessage<'a> {
    pub kind: DnsKind,
    pub client: SocketAddr,
    /// Who answers, at DNS's port.
    pub resolver: IpAddr,
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsKind {
    /// A datagram to DNS's port.
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
    use super::*;
    use crate::captured_bytes::CapturedBytes;
    use crate::ip::IpPayload;

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
