//! Tunnels: from an IP packet to the IP packet inside. IP in IP (RFC 2003, RFC 4213), GRE (RFC 2784, RFC 2890) with IP
//! or Ethernet inside, and VXLAN (RFC 7348).

use std::fmt::{Display, Formatter};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::captured_bytes::CapturedBytes;
use crate::ip::{IpPacket, IpPayload};
use crate::link::{NoIpHeader, after_ether_type, after_ethernet, big_endian};
use crate::protocol::{GRE, IPV4, IPV6, UDP, VXLAN_PORT};

const UDP_HEADER: usize = 8;
const VXLAN_HEADER: usize = 8;
/// Ethernet inside GRE, by its EtherType.
const BRIDGED: u16 = 0x6558;

/// The tunnel that a packet came through: what distinguishes it from other tunnels, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Encapsulation {
    /// Its protocol.
    pub kind: TunnelKind,
    /// VXLAN's network identifier, or the key of GRE if it has one.
    pub id: Option<u32>,
    /// The addresses of its ends, the lesser one first.
    pub ends: [IpAddr; 2],
}

/// The protocol of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TunnelKind {
    /// IP in IP, of either version.
    Ip,
    /// GRE.
    Gre,
    /// VXLAN.
    Vxlan,
}

/// A tunnel, and the IP packet inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedTunnel<'a> {
    /// The tunnel.
    pub encapsulation: Encapsulation,
    /// The IP packet.
    pub bytes: CapturedBytes<'a>,
}

impl Display for TunnelKind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Ip => "ip",
            Self::Gre => "gre",
            Self::Vxlan => "vxlan",
        })
    }
}

/// As `vxlan 7 198.51.100.1-198.51.100.2`: without the number where the tunnel has none.
impl Display for Encapsulation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ", self.kind)?;
        if let Some(id) = self.id {
            write!(formatter, "{id} ")?;
        }
        let [lesser, greater] = self.ends;
        write!(formatter, "{lesser}-{greater}")
    }
}

/// Opens a tunnel; `None` if the packet is not one.
///
/// # Errors
/// [`NoIpHeader`] if the tunnel carries no IP or is not supported.
pub fn open_tunnel<'a>(packet: &IpPacket<'a>) -> Result<Option<OpenedTunnel<'a>>, NoIpHeader> {
    let Some(inside) = inside(&packet.payload)? else { return Ok(None) };
    let (source, destination) = (packet.source, packet.destination);
    let ends = [source.min(destination), source.max(destination)];
    let encapsulation = Encapsulation { kind: inside.kind, id: inside.id, ends };
    Ok(Some(OpenedTunnel { encapsulation, bytes: packet.payload.bytes.after(inside.offset) }))
}

/// What the headers of a tunnel say, and the offset of the IP header behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inside {
    kind: TunnelKind,
    id: Option<u32>,
    offset: usize,
}

fn inside(payload: &IpPayload<'_>) -> Result<Option<Inside>, NoIpHeader> {
    let data = payload.bytes.data();
    let ip = |offset| Some(Inside { kind: TunnelKind::Ip, id: None, offset });
    match payload.protocol {
        IPV4 => after_ether_type(0x0800, data, 0).map(ip),
        IPV6 => after_ether_type(0x86dd, data, 0).map(ip),
        GRE => after_gre(data).map(Some),
        UDP => after_vxlan(data),
        _ => Ok(None),
    }
}

fn after_gre(data: &[u8]) -> Result<Inside, NoIpHeader> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 7;
    let (flags, ether_type) = (big_endian(data, 0)?, big_endian(data, 2)?);
    if flags & (ROUTING | VERSION) != 0 {
        return Err(NoIpHeader::Gre);
    }
    let count = |options: &[u16]| options.iter().filter(|option| flags & **option != 0).count();
    let at = 4 + 4 * count(&[CHECKSUM, KEY, SEQUENCE]);
    let offset = if ether_type == BRIDGED { after_ethernet(data, at) } else { after_ether_type(ether_type, data, at) }?;
    let key_at = 4 + 4 * count(&[CHECKSUM]);
    let key = data.get(key_at..).and_then(<[u8]>::first_chunk).filter(|_| flags & KEY != 0);
    Ok(Inside { kind: TunnelKind::Gre, id: key.map(|key| u32::from_be_bytes(*key)), offset })
}

/// A datagram to VXLAN's port that does not begin like VXLAN belongs to some other protocol.
fn after_vxlan(data: &[u8]) -> Result<Option<Inside>, NoIpHeader> {
    const VALID_NETWORK: u8 = 8;
    let to_port = big_endian(data, 2).is_ok_and(|port| port == VXLAN_PORT);
    match data.get(UDP_HEADER..UDP_HEADER + VXLAN_HEADER) {
        Some(&[VALID_NETWORK, 0, 0, 0, high, middle, low, 0]) if to_port => {
            let offset = after_ethernet(data, UDP_HEADER + VXLAN_HEADER)?;
            let id = Some(u32::from_be_bytes([0, high, middle, low]));
            Ok(Some(Inside { kind: TunnelKind::Vxlan, id, offset }))
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
        inside(&payload).map(|inside| inside.map(|inside| inside.offset))
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
    fn a_tunnel_is_named_alike_in_both_directions() {
        let name = |protocol, data: &[u8], ends: [[u8; 4]; 2]| {
            let data = [data, &[0x45, 0, 0, 20]].concat();
            let payload = IpPayload { protocol, bytes: CapturedBytes::frame(&data, 0) };
            let [source, destination] = ends.map(IpAddr::from);
            let packet = IpPacket { source, destination, payload, fragment: None };
            open_tunnel(&packet).unwrap().unwrap().encapsulation.to_string()
        };
        let ends = [[198, 51, 100, 2], [198, 51, 100, 1]];
        let vxlan = [&[0, 9, 0x12, 0xb5, 0, 0, 0, 0][..], &[8, 0, 0, 0, 1, 0, 7, 0], &[0; 12], &[8, 0]].concat();
        for ends in [ends, [ends[1], ends[0]]] {
            assert_eq!(name(IPV4, &[], ends), "ip 198.51.100.1-198.51.100.2");
            assert_eq!(name(GRE, &[0, 0, 8, 0], ends), "gre 198.51.100.1-198.51.100.2");
            let with_key = [0xb0, 0, 8, 0, 9, 9, 9, 9, 0, 0, 1, 2, 8, 8, 8, 8];
            assert_eq!(name(GRE, &with_key, ends), "gre 258 198.51.100.1-198.51.100.2");
            assert_eq!(name(UDP, &vxlan, ends), "vxlan 65543 198.51.100.1-198.51.100.2");
        }
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
            if let Ok(Some(inside)) = inside(&payload) {
                prop_assert!(inside.offset < data.len());
            }
        }
    }
}
