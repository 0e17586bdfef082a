//! Tunnels: from the payload of an IP packet to the IP packet inside. IP in IP (RFC 2003, RFC 4213), GRE (RFC 2784,
//! RFC 2890) with IP or Ethernet inside, and VXLAN (RFC 7348).

use crate::captured_bytes::CapturedBytes;
use crate::ip::IpPayload;
use crate::link::{NoIpHeader, after_ether_type, after_ethernet, big_endian};
use crate::protocol::{GRE, IPV4, IPV6, UDP, VXLAN_PORT};

const UDP_HEADER: usize = 8;
const VXLAN_HEADER: usize = 8;
/// Ethernet inside GRE, by its EtherType.
const BRIDGED: u16 = 0x6558;

/// The IP packet inside a tunnel; `None` if `payload` is not a tunnel.
///
/// # Errors
/// [`NoIpHeader`] if the tunnel carries no IP or is not supported.
pub fn inner_ip_bytes<'a>(payload: &IpPayload<'a>) -> Result<Option<CapturedBytes<'a>>, NoIpHeader> {
    let data = payload.bytes.data();
    let offset = match payload.protocol {
        IPV4 => after_ether_type(0x0800, data, 0).map(Some),
        IPV6 => after_ether_type(0x86dd, data, 0).map(Some),
        GRE => after_gre(data).map(Some),
        UDP => after_vxlan(data),
        _ => Ok(None),
    };
    Ok(offset?.map(|offset| payload.bytes.after(offset)))
}

fn after_gre(data: &[u8]) -> Result<usize, NoIpHeader> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 7;
    let (flags, ether_type) = (big_endian(data, 0)?, big_endian(data, 2)?);
    if flags & (ROUTING | VERSION) != 0 {
        return Err(NoIpHeader::Gre);
    }
    let options = [CHECKSUM, KEY, SEQUENCE].iter().filter(|option| flags & **option != 0).count();
    let at = 4 + 4 * options;
    if ether_type == BRIDGED { after_ethernet(data, at) } else { after_ether_type(ether_type, data, at) }
}

/// A datagram to VXLAN's port that does not begin like VXLAN belongs to some other protocol.
fn after_vxlan(data: &[u8]) -> Result<Option<usize>, NoIpHeader> {
    const VALID_NETWORK: u8 = 8;
    let to_port = big_endian(data, 2).is_ok_and(|port| port == VXLAN_PORT);
    match data.get(UDP_HEADER..UDP_HEADER + VXLAN_HEADER) {
        Some([VALID_NETWORK, 0, 0, 0, _, _, _, 0]) if to_port => {
            after_ethernet(data, UDP_HEADER + VXLAN_HEADER).map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The offset of the IP header after these parts.
    fn offset(protocol: u8, parts: &[&[u8]]) -> Result<Option<usize>, NoIpHeader> {
        let data = [&parts.concat()[..], &[0x45, 0, 0, 20]].concat();
        let payload = IpPayload { protocol, bytes: CapturedBytes::frame(&data, 0) };
        inner_ip_bytes(&payload).map(|inner| inner.map(|inner| data.len() - inner.data().len()))
    }

    #[test]
    fn every_tunnel_leads_to_the_inner_ip_header() {
        assert_eq!(offset(IPV4, &[]), Ok(Some(0)));
        assert_eq!(offset(IPV6, &[]), Ok(Some(0)));
        assert_eq!(offset(GRE, &[&[0, 0, 8, 0]]), Ok(Some(4)));
        assert_eq!(offset(GRE, &[&[0xb0, 0, 8, 0], &[0; 12]]), Ok(Some(16)), "checksum, key and sequence");
        assert_eq!(offset(GRE, &[&[0x20, 0, 0x65, 0x58], &[0; 4 + 12], &[8, 0]]), Ok(Some(22)), "bridged, with a key");
        let vxlan = [&[0, 9, 0x12, 0xb5, 0, 0, 0, 0][..], &[8, 0, 0, 0, 0, 0, 7, 0], &[0; 12], &[8, 0]];
        assert_eq!(offset(UDP, &vxlan), Ok(Some(30)));
    }

    #[test]
    fn other_payloads_are_not_tunnels_and_unsupported_tunnels_name_the_reason() {
        assert_eq!(offset(6, &[]), Ok(None));
        assert_eq!(offset(UDP, &[&[0, 9, 0x12, 0xb5, 0, 0, 0, 0], &[22, 254, 253, 0, 0, 0, 0, 0]]), Ok(None));
        assert_eq!(offset(UDP, &[&[0, 9, 1, 187, 0, 0, 0, 0], &[8, 0, 0, 0, 0, 0, 7, 0]]), Ok(None));
        assert_eq!(offset(GRE, &[&[0, 1, 0x88, 0x0b]]), Err(NoIpHeader::Gre), "PPTP");
        assert_eq!(offset(GRE, &[&[0x10, 0, 0x88, 0xbe]]), Err(NoIpHeader::EtherType(0x88be)), "ERSPAN");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_lead_beyond_the_payload(
            protocol: u8, data in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let payload = IpPayload { protocol, bytes: CapturedBytes::frame(&data, 0) };
            if let Ok(Some(inner)) = inner_ip_bytes(&payload) {
                prop_assert!(!inner.data().is_empty());
            }
        }
    }
}
