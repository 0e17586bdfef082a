//! Checksums of TCP and UDP: the old one would tell about the content, and be wrong.

use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;
use sizeleak_frame::Transport;
use sizeleak_packet::{IpPacket, TransportSegment};

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
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use crate::layout::Layout;

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
