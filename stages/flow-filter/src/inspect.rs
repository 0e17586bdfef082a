//! A look into a single packet, for fuzzing and for tools that want to know what the stage sees in it.

use std::net::SocketAddr;

use sizeleak_frame::Transport;

use crate::link::ip_offset;
use crate::network::IpPacket;
use crate::transport::TransportSegment;
use crate::tunnel::inside;

/// The TCP segment or UDP datagram in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspected {
    /// What carries it.
    pub transport: Transport,
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes to.
    pub destination: SocketAddr,
    /// Bytes of payload on the wire.
    pub length: u32,
    /// Bytes of payload that were captured.
    pub captured: usize,
}

/// Looks for the segment of a packet, also inside one tunnel; `None` where there is none to be read, or a part of one
/// only. `original_length` is the packet's length on the wire in bytes, `data` what was captured of it.
pub fn inspect(link_type: u16, original_length: u32, data: &[u8]) -> Option<Inspected> {
    let at = ip_offset(link_type, data).ok()?;
    let on_wire = u64::from(original_length).max(data.len() as u64).saturating_sub(at as u64);
    let mut packet = IpPacket::read(data.get(at..)?, on_wire).filter(|packet| packet.fragment.is_none())?;
    if let Some(at) = inside(&packet.content).ok()? {
        let on_wire = u64::from(packet.content.length).saturating_sub(at as u64);
        packet = IpPacket::read(packet.content.data.get(at..)?, on_wire).filter(|packet| packet.fragment.is_none())?;
    }
    let segment = TransportSegment::read(&packet).ok()?;
    Some(Inspected {
        transport: segment.transport,
        source: segment.source,
        destination: segment.destination,
        length: segment.length,
        captured: segment.payload.len(),
    })
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_datagram_in_ethernet() {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(5, 6);
        builder.write(&mut packet, b"hello").unwrap();
        let found = inspect(1, packet.len() as u32, packet.get(..44).unwrap()).unwrap();
        assert_eq!((found.transport, found.length, found.captured), (Transport::Udp, 5, 2));
        assert_eq!((found.source.to_string(), found.destination.port()), ("10.0.0.1:5".to_owned(), 6));
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(link_type in 0u16..300, length: u32, data in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Some(found) = inspect(link_type, length, &data) {
                prop_assert!(found.captured <= data.len() && found.captured <= found.length as usize);
            }
        }
    }
}
