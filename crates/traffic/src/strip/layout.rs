//! Where the headers of a packet end and its payload begins.

use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;
use sizeleak_frame::Transport;
use sizeleak_packet::{CapturedBytes, GRE, IpPacket, TransportSegment, UDP, dns_message, ip_bytes, open_tunnel};

/// The flag by which GRE has a checksum (RFC 2784).
const GRE_CHECKSUM: u8 = 0x80;

const ETHERNET: u16 = 1;

const ETHERNET_HEADER: usize = 14;

/// The longest link layer that is kept in order to tell why a frame carries no IP.
const MAX_LINK_HEADER: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes of headers: of all layers, tunnels included, up to the payload of TCP or UDP.
    pub(crate) headers: usize,
    /// Bytes of payload behind them, as far as they were captured. What follows is padding.
    pub(crate) payload: usize,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) is_dns: bool,
    /// The checksum over the payload, if it can be corrected.
    pub(crate) checksum: Option<TransportChecksum>,
    /// Where checksums over content stand that cannot be corrected: of a tunnel over all that is inside, and of a datagram
    /// of which this is only the first fragment.
    pub(crate) other_checksums: Vec<usize>,
}

impl Layout {
    pub(crate) fn of(link_type: u16, data: &[u8], original_length: u32) -> Self {
        let frame = CapturedBytes::frame(data, original_length);
        let mut layout = Self::default();
        match ip_bytes(link_type, frame) {
            Ok(bytes) => layout.ip(data, bytes),
            Err(_) => layout.headers = link_header(link_type, frame),
        }
        layout.headers = layout.headers.min(data.len());
        layout
    }

    fn ip(&mut self, data: &[u8], bytes: CapturedBytes<'_>) {
        // The first byte tells that it is IP.
        self.headers = offset_in(data, bytes.data()) + 1;
        let Some(outer) = IpPacket::read(bytes) else { return };
        self.addresses.extend([outer.source, outer.destination]);
        self.headers = offset_in(data, outer.payload.bytes.data());
        let inside = if outer.fragment.is_some() { None } else { open_tunnel(&outer).ok().flatten() };
        let Some(inside) = inside else { return self.transport(data, &outer) };
        let start = offset_in(data, outer.payload.bytes.data());
        let has_gre_checksum = data.get(start).is_some_and(|flags| flags & GRE_CHECKSUM != 0);
        match outer.payload.protocol {
            UDP => self.other_checksums.push(start + 6),
            GRE if has_gre_checksum => self.other_checksums.push(start + 4),
            _ => {}
        }
        self.headers = offset_in(data, inside.bytes.data()) + 1;
        let Some(inner) = IpPacket::read(inside.bytes) else { return };
        self.addresses.extend([inner.source, inner.destination]);
        self.headers = offset_in(data, inner.payload.bytes.data());
        self.transport(data, &inner);
    }

    fn transport(&mut self, data: &[u8], packet: &IpPacket<'_>) {
        let carried = packet.payload.bytes;
        let is_first = packet.fragment.is_none_or(|fragment| fragment.offset == 0);
        let Some(segment) = TransportSegment::read(packet).ok().filter(|_| is_first) else { return };
        let start = offset_in(data, carried.data());
        self.headers = offset_in(data, segment.payload.data());
        if packet.fragment.is_some() {
            match segment.transport {
                Transport::Tcp => self.other_checksums.push(start + 16),
                Transport::Udp => self.other_checksums.push(start + 6),
                Transport::Esp => {}
            }
            return;
        }
        self.payload = segment.payload.data().len();
        self.is_dns = dns_message(packet).is_some();
        self.checksum = Some(TransportChecksum::at(start, self.headers, packet, &segment));
    }
}

/// Where a part of a packet begins; behind the packet if all of it was cut off.
fn offset_in(data: &[u8], part: &[u8]) -> usize {
    let offset = (part.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
    if offset <= data.len() { offset } else { data.len() }
}

/// The bytes at the start of a frame by which it is known that, and why, it carries no IP.
fn link_header(link_type: u16, frame: CapturedBytes<'_>) -> usize {
    let data = frame.data();
    let reason = ip_bytes(link_type, frame).err();
    let is_same = |headers: &usize| {
        let mut zeroed = vec![0; data.len()];
        zeroed.iter_mut().zip(data).take(*headers).for_each(|(zero, byte)| *zero = *byte);
        ip_bytes(link_type, CapturedBytes::new(&zeroed, frame.length())).err() == reason
    };
    let needed = (0..=MAX_LINK_HEADER).find(is_same).unwrap_or_default();
    if link_type == ETHERNET { needed.max(ETHERNET_HEADER) } else { needed }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransportChecksum {
    ends: [IpAddr; 2],
    transport: Transport,
    start: usize,
    length: u32,
}

impl TransportChecksum {
    pub(crate) fn at(start: usize, payload: usize, packet: &IpPacket<'_>, segment: &TransportSegment<'_>) -> Self {
        let ends = [packet.source, packet.destination];
        let length = payload.saturating_sub(start) as u32 + segment.payload.length();
        Self { ends, transport: segment.transport, start, length }
    }

    /// Writes the right checksum into a packet, whose bytes that were not captured are taken to be zero. A datagram
    /// without one gets none.
    pub(crate) fn correct(&self, packet: &mut [u8], payload_end: usize) {
        let (place, protocol) = match self.transport {
            Transport::Tcp => (self.start + 16, 6),
            Transport::Udp => (self.start + 6, 17),
            Transport::Esp => return,
        };
        let Some(field) = packet.get_mut(place..place + 2) else { return };
        let had_none = field == [0, 0] && self.transport == Transport::Udp;
        field.fill(0);
        if had_none {
            return;
        }
        let mut sum = Sum16BitWords::new();
        for end in self.ends {
            sum = match end {
                IpAddr::V4(address) => sum.add_4bytes(address.octets()),
                IpAddr::V6(address) => sum.add_16bytes(address.octets()),
            };
        }
        sum = sum.add_4bytes(self.length.to_be_bytes()).add_2bytes([0, protocol]);
        let checksum = sum.add_slice(packet.get(self.start..payload_end).unwrap_or_default()).ones_complement();
        // In a datagram 0 says that there is none.
        let checksum = if checksum == 0 && self.transport == Transport::Udp { u16::MAX } else { checksum };
        if let Some(field) = packet.get_mut(place..place + 2) {
            field.copy_from_slice(&checksum.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strip::layout::Layout;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn ethernet(ether_type: u16, rest: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &ether_type.to_be_bytes(), rest].concat()
    }

    fn ipv4(protocol: u8, rest: &[u8]) -> Vec<u8> {
        let length = (20 + rest.len()) as u8;
        [&[0x45, 0, 0, length, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2][..], rest].concat()
    }

    fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
        let length = (8 + payload.len()) as u16;
        [&from.to_be_bytes()[..], &to.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat()
    }

    #[test]
    fn payload_ends_before_the_padding_of_the_frame() {
        let padded = [ethernet(0x0800, &ipv4(17, &udp(9, 5000, b"abc"))), vec![7; 15]].concat();
        let layout = Layout::of(ETHERNET, &padded, padded.len() as u32);
        assert_eq!((layout.headers, layout.payload, layout.is_dns), (14 + 20 + 8, 3, false));
        assert_eq!(layout.addresses, ["10.0.0.1".parse::<IpAddr>().unwrap(), "10.0.0.2".parse().unwrap()]);
    }

    #[test]
    fn headers_reach_to_the_innermost_payload_of_a_tunnel() {
        let inside = ethernet(0x0800, &ipv4(17, &udp(53, 5000, b"abc")));
        let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &inside].concat();
        let frame = ethernet(0x0800, &ipv4(17, &udp(40_000, 4789, &vxlan)));
        let layout = Layout::of(ETHERNET, &frame, frame.len() as u32);
        assert_eq!((layout.headers, layout.payload, layout.is_dns), (frame.len() - 3, 3, true));
        assert_eq!((layout.addresses.len(), layout.other_checksums), (4, vec![14 + 20 + 6]));
    }

    #[test]
    fn frames_without_ip_keep_their_link_layer_alone() {
        let arp = ethernet(0x0806, &[9; 28]);
        assert_eq!(Layout::of(ETHERNET, &arp, 42).headers, 14);
        let tagged = ethernet(0x8100, &[&[0, 7, 0x08, 0x06][..], &[9; 28]].concat());
        assert_eq!(Layout::of(ETHERNET, &tagged, 46).headers, 18);
        assert_eq!(Layout::of(147, &[9; 40], 40).headers, 0, "an unknown link type");
        assert_eq!(Layout::of(ETHERNET, &[9; 5], 5).headers, 5);
    }

    #[test]
    fn cut_headers_have_no_payload_behind_them() {
        let frame = ethernet(0x0800, &ipv4(17, &udp(9, 5000, b"abc")));
        for length in 0..frame.len() {
            let layout = Layout::of(ETHERNET, &frame[..length], frame.len() as u32);
            assert!(layout.headers + layout.payload <= length, "{length}: {layout:?}");
        }
    }

    /// Corrects the checksum of a whole packet in which it was spoiled.
    fn corrected(packet: &[u8], field: usize) -> Vec<u8> {
        let mut spoiled = packet.to_vec();
        spoiled[field] ^= 0x5a;
        let layout = Layout::of(1, &spoiled, spoiled.len() as u32);
        layout.checksum.unwrap().correct(&mut spoiled, layout.headers + layout.payload);
        spoiled
    }

    proptest! {
        #[test]
        fn checksums_are_those_that_etherparse_computes(payload: Vec<u8>, sequence: u32) {
            let (mac, one, other) = ([2; 6], [192, 168, 1, 20], [203, 0, 113, 1]);
            let mut tcp = Vec::new();
            PacketBuilder::ethernet2(mac, mac).ipv4(one, other, 64).tcp(443, 50_000, sequence, 9).ack(5)
                .write(&mut tcp, &payload).unwrap();
            prop_assert_eq!(corrected(&tcp, 14 + 20 + 16), tcp);
            let mut udp = Vec::new();
            PacketBuilder::ethernet2(mac, mac).ipv6([1; 16], [2; 16], 64).udp(443, 50_000)
                .write(&mut udp, &payload).unwrap();
            prop_assert_eq!(corrected(&udp, 14 + 40 + 6), udp);
        }
    }
}
