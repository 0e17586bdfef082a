//! Tunnels: from what an IP packet carries to the IP header inside. IP in IP (RFC 2003, RFC 4213), GRE (RFC 2784,
//! RFC 2890) with IP or Ethernet inside, and VXLAN (RFC 7348).

use sizeleak_packet::VXLAN_PORT;

use crate::link::{NoIp, behind, big_endian, ethernet};
use crate::network::Content;

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const UDP: u8 = 17;
const GRE: u8 = 47;

const UDP_HEADER: usize = 8;
const VXLAN_HEADER: usize = 8;
/// Ethernet inside GRE, by its EtherType.
const BRIDGED: u16 = 0x6558;

/// The offset in `content` of the IP header of the packet inside; `None` where it is no tunnel.
pub(crate) fn inside(content: &Content<'_>) -> Result<Option<usize>, NoIp> {
    match content.protocol {
        IPV4 => behind(0x0800, content.data, 0).map(Some),
        IPV6 => behind(0x86dd, content.data, 0).map(Some),
        GRE => behind_gre(content.data).map(Some),
        UDP => behind_vxlan(content.data),
        _ => Ok(None),
    }
}

fn behind_gre(data: &[u8]) -> Result<usize, NoIp> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 7;
    let (flags, ether_type) = (big_endian(data, 0)?, big_endian(data, 2)?);
    if flags & (ROUTING | VERSION) != 0 {
        return Err(NoIp::Gre);
    }
    let options = [CHECKSUM, KEY, SEQUENCE].iter().filter(|option| flags & **option != 0).count();
    let at = 4 + 4 * options;
    if ether_type == BRIDGED { ethernet(data, at) } else { behind(ether_type, data, at) }
}

/// What does not begin like VXLAN is some other datagram that happens to use its port.
fn behind_vxlan(data: &[u8]) -> Result<Option<usize>, NoIp> {
    const VALID_NETWORK: u8 = 8;
    let to_port = big_endian(data, 2).is_ok_and(|port| port == VXLAN_PORT);
    match data.get(UDP_HEADER..UDP_HEADER + VXLAN_HEADER) {
        Some([VALID_NETWORK, 0, 0, 0, _, _, _, 0]) if to_port => ethernet(data, UDP_HEADER + VXLAN_HEADER).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(protocol: u8, parts: &[&[u8]]) -> Result<Option<usize>, NoIp> {
        let data = [&parts.concat()[..], &[0x45, 0, 0, 20]].concat();
        inside(&Content { protocol, length: data.len() as u32, data: &data })
    }

    #[test]
    fn every_tunnel() {
        assert_eq!(at(IPV4, &[]), Ok(Some(0)));
        assert_eq!(at(IPV6, &[]), Ok(Some(0)));
        assert_eq!(at(GRE, &[&[0, 0, 8, 0]]), Ok(Some(4)));
        assert_eq!(at(GRE, &[&[0xb0, 0, 8, 0], &[0; 12]]), Ok(Some(16)), "checksum, key and sequence");
        assert_eq!(at(GRE, &[&[0x20, 0, 0x65, 0x58], &[0; 4 + 12], &[8, 0]]), Ok(Some(22)), "bridged, with a key");
        let vxlan = [&[0, 9, 0x12, 0xb5, 0, 0, 0, 0][..], &[8, 0, 0, 0, 0, 0, 7, 0], &[0; 12], &[8, 0]];
        assert_eq!(at(UDP, &vxlan), Ok(Some(30)));
    }

    #[test]
    fn what_is_no_tunnel_or_not_read() {
        assert_eq!(at(6, &[]), Ok(None));
        assert_eq!(at(UDP, &[&[0, 9, 0x12, 0xb5, 0, 0, 0, 0], &[22, 254, 253, 0, 0, 0, 0, 0]]), Ok(None));
        assert_eq!(at(UDP, &[&[0, 9, 1, 187, 0, 0, 0, 0], &[8, 0, 0, 0, 0, 0, 7, 0]]), Ok(None));
        assert_eq!(at(GRE, &[&[0, 1, 0x88, 0x0b]]), Err(NoIp::Gre), "PPTP");
        assert_eq!(at(GRE, &[&[0x10, 0, 0x88, 0xbe]]), Err(NoIp::EtherType(0x88be)), "ERSPAN");
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at_safely(protocol: u8, data in prop::collection::vec(any::<u8>(), 0..80)) {
            let content = Content { protocol, length: data.len() as u32, data: &data };
            if let Ok(Some(at)) = inside(&content) {
                prop_assert!(at < data.len());
            }
        }
    }
}
