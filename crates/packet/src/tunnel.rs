//! Tunnels: from an IP packet to the IP packet inside. IP in IP (RFC 2003, RFC 4213), GRE (RFC 2784, RFC 2890) with IP,
//! Ethernet or ERSPAN (draft-foschiano-erspan) inside, VXLAN (RFC 7348), GENEVE (RFC 8926) and TZSP. IP and GRE count as
//! such also behind labels of MPLS (RFC 4023) and in datagrams: with these (RFC 7510), as such (FOU, RFC 8086), or behind
//! the header of GUE (draft-ietf-intarea-gue).
//!
//! Reserved bits are ignored, as these standards say, and so is what the bits of a later extension mean.

use std::fmt::{Display, Formatter};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ip::{
    CapturedBytes, GENEVE_PORT, GRE, GRE_PORT, GUE_PORT, IPV4, IPV6, IpPacket, IpPayload, MPLS, MPLS_PORT,
    OLD_VXLAN_PORT, TCP, TZSP_PORT, UDP, VXLAN_PORT,
};
use crate::link::{IpPlace, NoIpHeader, after_ether_type, after_ethernet, after_wifi, big_endian, ip_at};

const UDP_HEADER: usize = 8;
const LABELS: u16 = 0x8847;
/// Ethernet inside GRE or GENEVE, by its EtherType.
const BRIDGED: u16 = 0x6558;
/// ERSPAN of types I and II, and of type III.
const ERSPAN: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;

/// The tunnel that a packet came through: what distinguishes it from other tunnels, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Encapsulation {
    pub kind: TunnelKind,
    /// The network of VXLAN and GENEVE, the session of ERSPAN, the key of GRE, where it has one.
    pub id: Option<u32>,
    /// The addresses of its ends, the lesser one first.
    pub ends: [IpAddr; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TunnelKind {
    Ip,
    Gre,
    Vxlan,
    Geneve,
    /// TZSP, by which access points and routers mirror traffic.
    Tzsp,
    /// ERSPAN, by which switches mirror traffic.
    Erspan,
}

impl TunnelKind {
    pub const ALL: [Self; 6] = [Self::Ip, Self::Gre, Self::Vxlan, Self::Geneve, Self::Tzsp, Self::Erspan];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Gre => "gre",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::Tzsp => "tzsp",
            Self::Erspan => "erspan",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedTunnel<'a> {
    pub encapsulation: Encapsulation,
    pub bytes: CapturedBytes<'a>,
}

/// As `vxlan 7 198.51.100.1-198.51.100.2`: without the number where the tunnel has none.
impl Display for Encapsulation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ", self.kind.name())?;
        if let Some(id) = self.id {
            write!(formatter, "{id} ")?;
        }
        let [lesser, greater] = self.ends;
        write!(formatter, "{lesser}-{greater}")
    }
}

pub fn open_tunnel<'a>(packet: &IpPacket<'a>) -> Result<Option<OpenedTunnel<'a>>, NoIpHeader> {
    let Some(inside) = inside(&packet.payload)? else { return Ok(None) };
    let (source, destination) = (packet.source, packet.destination);
    let ends = [source.min(destination), source.max(destination)];
    let encapsulation = Encapsulation { kind: inside.kind, id: inside.id, ends };
    Ok(Some(OpenedTunnel { encapsulation, bytes: inside.place.in_frame(packet.payload.bytes) }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inside {
    kind: TunnelKind,
    id: Option<u32>,
    place: IpPlace,
}

fn inside(payload: &IpPayload<'_>) -> Result<Option<Inside>, NoIpHeader> {
    let (bytes, data) = (payload.bytes, payload.bytes.data());
    let ip = |place| Some(Inside { kind: TunnelKind::Ip, id: None, place });
    match payload.protocol {
        IPV4 => after_ether_type(0x0800, data, 0).map(ip),
        IPV6 => after_ether_type(0x86dd, data, 0).map(ip),
        MPLS => after_ether_type(LABELS, data, 0).map(ip),
        GRE => after_gre(data, 0).map(Some),
        UDP => {
            let inside = match big_endian(data, 2) {
                Ok(VXLAN_PORT | OLD_VXLAN_PORT) => after_vxlan(data),
                Ok(GENEVE_PORT) => after_geneve(data),
                Ok(TZSP_PORT) => after_tzsp(data),
                Ok(GRE_PORT) => Ok(after_gre(data, UDP_HEADER).ok()),
                Ok(MPLS_PORT) => {
                    let place = after_ether_type(LABELS, data, UDP_HEADER).ok();
                    Ok(place.filter(|place| is_whole_ip(place.in_frame(bytes))).and_then(ip))
                }
                Ok(GUE_PORT) => Ok(after_gue(bytes).or_else(|| after_udp(bytes)).and_then(ip)),
                _ => Ok(after_udp(bytes).and_then(ip)),
            }?;
            let length = big_endian(data, 4).unwrap_or_default();
            Ok(inside.map(|inside| Inside { place: inside.place.within(0, length), ..inside }))
        }
        _ => Ok(None),
    }
}

fn after_gre(data: &[u8], start: usize) -> Result<Inside, NoIpHeader> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 7;
    let (flags, ether_type) = (big_endian(data, start)?, big_endian(data, start + 2)?);
    if flags & (ROUTING | VERSION) != 0 {
        return Err(NoIpHeader::Gre);
    }
    let count = |options: &[u16]| options.iter().filter(|option| flags & **option != 0).count();
    let at = start + 4 + 4 * count(&[CHECKSUM, KEY, SEQUENCE]);
    if matches!(ether_type, ERSPAN | ERSPAN_III) {
        // Only type I has no header, and no sequence number.
        return after_erspan(data, at, flags & SEQUENCE != 0);
    }
    let place = after_payload_type(ether_type, data, at)?;
    let key_at = start + 4 + 4 * count(&[CHECKSUM]);
    let key = data.get(key_at..).and_then(<[u8]>::first_chunk).filter(|_| flags & KEY != 0);
    Ok(Inside { kind: TunnelKind::Gre, id: key.map(|key| u32::from_be_bytes(*key)), place })
}

fn after_payload_type(ether_type: u16, data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    if ether_type == BRIDGED { after_ethernet(data, at) } else { after_ether_type(ether_type, data, at) }
}

fn after_erspan(data: &[u8], at: usize, has_header: bool) -> Result<Inside, NoIpHeader> {
    const SESSION: u16 = 0x3ff;
    const HAS_SUBHEADER: u8 = 1;
    let inside = |id, place| Inside { kind: TunnelKind::Erspan, id, place };
    if !has_header {
        return Ok(inside(None, after_ethernet(data, at)?));
    }
    let header: &[u8; 8] = data.get(at..).and_then(<[u8]>::first_chunk).ok_or(NoIpHeader::Short)?;
    let id = Some(u32::from(u16::from_be_bytes([header[2], header[3]]) & SESSION));
    match header[0] >> 4 {
        1 => Ok(inside(id, after_ethernet(data, at + 8)?)),
        2 => {
            let (kind, options) = (data.get(at + 10), data.get(at + 11));
            let (kind, options) = kind.zip(options).ok_or(NoIpHeader::Short)?;
            let behind = at + 12 + if options & HAS_SUBHEADER != 0 { 8 } else { 0 };
            // The type of the frame: 2 is IP, anything else is read as Ethernet, which it nearly always is.
            let place = if kind >> 2 & 0x1f == 2 { ip_at(data, behind) } else { after_ethernet(data, behind) }?;
            Ok(inside(id, place))
        }
        _ => Err(NoIpHeader::Erspan),
    }
}

fn after_gue(bytes: CapturedBytes<'_>) -> Option<IpPlace> {
    let Some([options @ 0..=0x1f, IPV4 | IPV6, _, _]) = udp_payload(bytes.data()) else { return None };
    let place = ip_at(bytes.data(), UDP_HEADER + 4 + 4 * usize::from(*options)).ok();
    place.filter(|place| is_whole_ip(place.in_frame(bytes)))
}

/// IP in a datagram to any port (FOU). Of datagrams with arbitrary bytes, less than one in 100 million is taken for that.
fn after_udp(bytes: CapturedBytes<'_>) -> Option<IpPlace> {
    let inside = bytes.after(UDP_HEADER);
    let is_certain = match inside.data() {
        [0x45, ..] => inside.data().first_chunk::<20>().is_some_and(|header| {
            let sum: u32 = header.as_chunks().0.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
            (sum >> 16) + (sum & 0xffff) == 0xffff
        }),
        [_, _, _, _, _, _, TCP | UDP, _, 0x20..=0x3f | 0xfc..=0xfe, ..] => true,
        _ => false,
    };
    let is_whole = big_endian(bytes.data(), 4).is_ok_and(|length| u32::from(length) == bytes.length());
    ip_at(bytes.data(), UDP_HEADER).ok().filter(|_| is_certain && is_whole && is_whole_ip(inside))
}

fn is_whole_ip(bytes: CapturedBytes<'_>) -> bool {
    let claimed = match *bytes.data() {
        [0x45..=0x4f, _, high, low, ..] => u32::from(u16::from_be_bytes([high, low])),
        [0x60..=0x6f, _, _, _, high, low, ..] => 40 + u32::from(u16::from_be_bytes([high, low])),
        _ => return false,
    };
    claimed == bytes.length()
}

fn udp_payload<const N: usize>(data: &[u8]) -> Option<&[u8; N]> {
    data.get(UDP_HEADER..)?.first_chunk()
}

/// A datagram to VXLAN's port without the flag of a valid network belongs to some other protocol.
fn after_vxlan(data: &[u8]) -> Result<Option<Inside>, NoIpHeader> {
    const VALID_NETWORK: u8 = 8;
    let Some(&[flags, _, _, _, high, middle, low, _]) = udp_payload(data) else { return Ok(None) };
    if flags & VALID_NETWORK == 0 {
        return Ok(None);
    }
    let id = Some(u32::from_be_bytes([0, high, middle, low]));
    Ok(Some(Inside { kind: TunnelKind::Vxlan, id, place: after_ethernet(data, UDP_HEADER + 8)? }))
}

/// A datagram to GENEVE's port of another version, or with a message between the ends of the tunnel, is not opened.
fn after_geneve(data: &[u8]) -> Result<Option<Inside>, NoIpHeader> {
    const IS_CONTROL: u8 = 0x80;
    let Some(&[first, flags, kind, kind_low, high, middle, low, _]) = udp_payload(data) else { return Ok(None) };
    if first >> 6 != 0 || flags & IS_CONTROL != 0 {
        return Ok(None);
    }
    let options = usize::from(first & 0x3f) * 4;
    let place = after_payload_type(u16::from_be_bytes([kind, kind_low]), data, UDP_HEADER + 8 + options)?;
    Ok(Some(Inside { kind: TunnelKind::Geneve, id: Some(u32::from_be_bytes([0, high, middle, low])), place }))
}

/// A datagram to TZSP's port of another version, or without a packet, is not opened.
fn after_tzsp(data: &[u8]) -> Result<Option<Inside>, NoIpHeader> {
    const PADDING: u8 = 0;
    const END: u8 = 1;
    let Some(&[1, 0 | 1, kind, kind_low]) = udp_payload(data) else { return Ok(None) };
    let mut at = UDP_HEADER + 4;
    loop {
        match *data.get(at).ok_or(NoIpHeader::Short)? {
            PADDING => at += 1,
            END => break,
            _ => at += 2 + usize::from(*data.get(at + 1).ok_or(NoIpHeader::Short)?),
        }
    }
    let place = match u16::from_be_bytes([kind, kind_low]) {
        1 => after_ethernet(data, at + 1),
        18 => after_wifi(data, at + 1),
        _ => Err(NoIpHeader::Other),
    }?;
    Ok(Some(Inside { kind: TunnelKind::Tzsp, id: None, place }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offset(protocol: u8, parts: &[&[u8]]) -> Result<Option<usize>, NoIpHeader> {
        let data = [&parts.concat()[..], &[0x45, 0, 0, 20]].concat();
        let payload = IpPayload { protocol, bytes: CapturedBytes::frame(&data, 0) };
        inside(&payload).map(|inside| inside.map(|inside| inside.place.offset))
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
        let to = |port: u16| [&[0, 9][..], &port.to_be_bytes(), &[0; 4]].concat();
        assert_eq!(offset(UDP, &[&to(8472), &[0x88, 1, 0, 9, 0, 0, 7, 1], &[0; 12], &[8, 0]]), Ok(Some(30)));
        assert_eq!(offset(UDP, &[&to(6081), &[2, 0x40, 8, 0, 0, 0, 7, 0], &[0; 8]]), Ok(Some(24)), "options");
        let geneve = [&[0, 0, 0x65, 0x58, 0, 0, 7, 0][..], &[0; 12], &[8, 0]];
        assert_eq!(offset(UDP, &[&[&to(6081)[..]], &geneve[..]].concat()), Ok(Some(30)));
        let tzsp = [&[1, 0, 0, 1][..], &[0, 10, 2, 9, 9, 1], &[0; 12], &[8, 0]];
        assert_eq!(offset(UDP, &[&[&to(37008)[..]], &tzsp[..]].concat()), Ok(Some(32)));
        let erspan = |gre: &[u8], header: &[u8]| offset(GRE, &[gre, header, &[0; 12], &[8, 0]]);
        assert_eq!(erspan(&[0, 0, 0x88, 0xbe], &[]), Ok(Some(18)), "type I");
        assert_eq!(erspan(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &[0x10, 5, 0, 7, 0, 0, 0, 0]), Ok(Some(30)));
        assert_eq!(offset(MPLS, &[&[0, 6, 0x40, 64, 0, 6, 0x51, 64]]), Ok(Some(8)), "two labels");
        assert_eq!(offset(UDP, &[&to(4754), &[0x20, 0, 8, 0], &[0; 4]]), Ok(Some(16)), "GRE in UDP");
        let third = [&[0x20, 5, 0, 7][..], &[0; 8]].concat();
        assert_eq!(erspan(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &third), Ok(Some(34)));
        let with_subheader = [&[0x20, 5, 0, 7][..], &[0; 7], &[1], &[0; 8]].concat();
        assert_eq!(erspan(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &with_subheader), Ok(Some(42)));
    }

    /// A packet of TCP in IPv4 and one in IPv6, with content of this length.
    fn ip_packets(length: u8) -> [Vec<u8>; 2] {
        // The checksum is right where the content is of seven bytes.
        let v4 = [0x45, 0, 0, 20 + length, 0, 1, 0, 0, 64, 6, 0x33, 0xbe, 10, 0, 1, 20, 203, 0, 113, 10];
        let v6 = [&[0x60, 0, 0, 0, 0, length, 6, 64, 0x20, 1, 0xd, 0xb8][..], &[0; 12], &[0xfd; 16]].concat();
        [v4.to_vec(), v6].map(|header| [header, vec![9; length.into()]].concat())
    }

    fn in_udp(port: u16, header: &[u8], inside: &[u8]) -> Vec<u8> {
        let length = (UDP_HEADER + header.len() + inside.len()) as u16;
        [&[0x9c, 0x40][..], &port.to_be_bytes(), &length.to_be_bytes(), &[0, 0], header, inside].concat()
    }

    fn offset_in(data: &[u8]) -> Option<usize> {
        let payload = IpPayload { protocol: UDP, bytes: CapturedBytes::frame(data, 0) };
        inside(&payload).unwrap().map(|inside| inside.place.offset)
    }

    #[test]
    fn ip_in_datagrams_is_found_by_its_length() {
        for packet in ip_packets(7) {
            let datagrams = [
                (in_udp(5555, &[], &packet), 8),
                (in_udp(6080, &[], &packet), 8),
                (in_udp(6080, &[0, 4, 0, 0], &packet), 12),
                (in_udp(6080, &[2, 41, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], &packet), 20),
                (in_udp(6635, &[0, 6, 0x40, 64, 0, 6, 0x51, 64], &packet), 16),
            ];
            for (datagram, at) in datagrams {
                assert_eq!(offset_in(&datagram), Some(at));
                assert_eq!(offset_in(&[&datagram[..], &[0]].concat()), None, "something follows");
                let cut = CapturedBytes::new(&datagram[..at + 20], datagram.len() as u32);
                let payload = IpPayload { protocol: UDP, bytes: cut };
                assert_eq!(inside(&payload).unwrap().map(|inside| inside.place.offset), Some(at), "cut by the snaplen");
            }
            assert_eq!(offset_in(&in_udp(5555, &[0, 4, 0, 0], &packet)), None, "GUE has a port");
        }
        let [other_checksum, _] = ip_packets(8);
        assert_eq!(offset_in(&in_udp(5555, &[], &other_checksum)), None);
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
        let dtls = [&[22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30][..], &[1; 30]].concat();
        for port in [6635, 6080, 4754, 5555] {
            assert_eq!(offset_in(&in_udp(port, &[], &dtls)), None, "{port}");
        }
        assert_eq!(offset(MPLS, &[&[0, 6, 0x41, 64, 0, 0, 0, 0]]), Err(NoIpHeader::Other), "Ethernet in MPLS");
        assert_eq!(offset(GRE, &[&[0, 1, 0x88, 0x0b]]), Err(NoIpHeader::Gre), "PPTP");
        assert_eq!(offset(GRE, &[&[0x10, 0, 0x88, 0xbe], &[0; 4], &[0x30; 8]]), Err(NoIpHeader::Erspan));
        assert_eq!(offset(UDP, &[&[0, 9, 0x17, 0xc1, 0, 0, 0, 0], &[0x40, 0, 8, 0, 0, 0, 7, 0]]), Ok(None));
        assert_eq!(offset(UDP, &[&[0, 9, 0x90, 0x90, 0, 0, 0, 0], &[1, 4, 0, 1, 1]]), Ok(None), "keeps alive");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_lead_beyond_the_payload(
            protocol: u8, data in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let payload = IpPayload { protocol, bytes: CapturedBytes::frame(&data, 0) };
            if let Ok(Some(inside)) = inside(&payload) {
                prop_assert!(inside.place.offset < data.len());
            }
        }
    }
}
