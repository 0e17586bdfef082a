//! Link layers: from the first byte of a frame to its IP header. They are read by hand, since captures use more of them
//! than etherparse knows. Numbers are those of the `LINKTYPE_` registry and of IEEE 802.

use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::captured_bytes::CapturedBytes;
use crate::protocol::ETHERNET;

/// Why a frame or a tunnel has no readable IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NoIpHeader {
    /// An unsupported link type.
    LinkType(u16),
    /// Something other than IP, by its EtherType: ARP and the like.
    EtherType(u16),
    /// An IEEE 802.3 frame without an EtherType: spanning tree and the like.
    Llc,
    /// Some other protocol, in a layer without an EtherType: PPP negotiation, Ethernet over MPLS.
    Other,
    /// It ends before the IP header, cut by the snaplen or not.
    Short,
    /// A GRE header of a version other than 0, or with a source route.
    Gre,
    /// A tunnel inside a tunnel.
    Nested,
}

/// The most VLAN tags or MPLS labels that are skipped.
const MAX_TAGS: usize = 8;

/// The IP packet in a frame.
///
/// # Errors
/// [`NoIpHeader`] if it has no readable IP header.
pub fn ip_bytes(link_type: u16, frame: CapturedBytes<'_>) -> Result<CapturedBytes<'_>, NoIpHeader> {
    ip_offset(link_type, frame.data()).map(|offset| frame.after(offset))
}

fn ip_offset(link_type: u16, data: &[u8]) -> Result<usize, NoIpHeader> {
    match link_type {
        // NULL: the address family in the byte order of the capturing machine; LOOP: in network order.
        0 | 108 => after_address_family(data),
        ETHERNET => after_ethernet(data, 0),
        9 | 50 => after_ppp(data, 0),
        51 => after_pppoe(data, 0),
        12 | 14 | 101 | 228 | 229 => ip_at(data, 0),
        // Linux cooked capture, version 1 and 2.
        113 => after_ether_type(big_endian(data, 14)?, data, 16),
        276 => after_ether_type(big_endian(data, 0)?, data, 20),
        other => Err(NoIpHeader::LinkType(other)),
    }
}

/// The offset of the IP header in an Ethernet frame that begins at `at`.
pub(crate) fn after_ethernet(data: &[u8], at: usize) -> Result<usize, NoIpHeader> {
    let ether_type = big_endian(data, at + 12)?;
    if ether_type >= 0x0600 {
        return after_ether_type(ether_type, data, at + 14);
    }
    // A length instead of a type: IEEE 802.3. With SNAP (RFC 1042) an EtherType follows.
    match data.get(at + 14..at + 20) {
        Some([0xaa, 0xaa, 3, 0, 0, 0]) => after_ether_type(big_endian(data, at + 20)?, data, at + 22),
        Some(_) => Err(NoIpHeader::Llc),
        None => Err(NoIpHeader::Short),
    }
}

/// Skips VLAN tags, MPLS and PPPoE up to the IP header; `ether_type` is the type of what begins at `at`.
pub(crate) fn after_ether_type(mut ether_type: u16, data: &[u8], mut at: usize) -> Result<usize, NoIpHeader> {
    for _ in 0..=MAX_TAGS {
        match ether_type {
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                ether_type = big_endian(data, at + 2)?;
                at += 4;
            }
            0x8847 | 0x8848 => return after_mpls(data, at),
            0x8864 => return after_pppoe(data, at),
            0x0800 | 0x86dd => return ip_at(data, at),
            other => return Err(NoIpHeader::EtherType(other)),
        }
    }
    Err(NoIpHeader::Other)
}

/// A stack of MPLS labels (RFC 3032). It does not say what follows the last one; IP is recognised by its version.
fn after_mpls(data: &[u8], mut at: usize) -> Result<usize, NoIpHeader> {
    for _ in 0..=MAX_TAGS {
        let third = data.get(at + 2).ok_or(NoIpHeader::Short)?;
        at += 4;
        if third & 1 == 1 {
            return ip_at(data, at);
        }
    }
    Err(NoIpHeader::Other)
}

/// A PPPoE session header (RFC 2516), then PPP.
fn after_pppoe(data: &[u8], at: usize) -> Result<usize, NoIpHeader> {
    after_ppp(data, at + 6)
}

/// PPP: the address and control bytes of serial lines (RFC 1662), if any, and the protocol in one byte or two.
fn after_ppp(data: &[u8], mut at: usize) -> Result<usize, NoIpHeader> {
    if data.get(at..at + 2) == Some(&[0xff, 3]) {
        at += 2;
    }
    match (data.get(at), data.get(at + 1)) {
        (Some(0x21 | 0x57), _) => ip_at(data, at + 1),
        (Some(0), Some(0x21 | 0x57)) => ip_at(data, at + 2),
        (Some(_), Some(_)) => Err(NoIpHeader::Other),
        _ => Err(NoIpHeader::Short),
    }
}

fn after_address_family(data: &[u8]) -> Result<usize, NoIpHeader> {
    let family: [u8; 4] = data.get(..4).and_then(|bytes| bytes.try_into().ok()).ok_or(NoIpHeader::Short)?;
    match u32::from_be_bytes(family).min(u32::from_le_bytes(family)) {
        // AF_INET everywhere; AF_INET6 differs between systems.
        2 | 10 | 24 | 28 | 30 => ip_at(data, 4),
        _ => Err(NoIpHeader::Other),
    }
}

/// An IP header that begins at `at`, recognised by its version.
fn ip_at(data: &[u8], at: usize) -> Result<usize, NoIpHeader> {
    match data.get(at) {
        Some(version) if matches!(version >> 4, 4 | 6) => Ok(at),
        Some(_) => Err(NoIpHeader::Other),
        None => Err(NoIpHeader::Short),
    }
}

pub(crate) fn big_endian(data: &[u8], at: usize) -> Result<u16, NoIpHeader> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk()).ok_or(NoIpHeader::Short)?;
    Ok(u16::from_be_bytes(*bytes))
}

impl NoIpHeader {
    /// Whether every network has such frames, so that they need not be reported: ARP, RARP, Wake-on-LAN, PPPoE
    /// discovery, 802.1X, LLDP, loopback tests, spanning tree.
    pub fn is_routine(self) -> bool {
        match self {
            Self::Llc => true,
            Self::EtherType(number) => [0x0806, 0x8035, 0x0842, 0x8863, 0x888e, 0x88cc, 0x9000].contains(&number),
            _ => false,
        }
    }
}

impl Display for NoIpHeader {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LinkType(number) => write!(formatter, "link type {number} is not read"),
            Self::EtherType(number) => write!(formatter, "EtherType 0x{number:04x} is not read"),
            Self::Llc => formatter.write_str("a frame of IEEE 802.3 without IP"),
            Self::Other => formatter.write_str("a frame that carries no IP"),
            Self::Short => formatter.write_str("a frame that ends before its IP header"),
            Self::Gre => formatter.write_str("GRE of another version than 0, or with a source route, is not read"),
            Self::Nested => formatter.write_str("a tunnel inside a tunnel is not read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offset(link_type: u16, header: &[u8], version: u8) -> Result<usize, NoIpHeader> {
        ip_offset(link_type, &[header, &[version << 4 | 5, 0, 0, 0]].concat())
    }

    #[test]
    fn every_link_layer_leads_to_the_ip_header() {
        let mac = [0; 12];
        let with = |rest: &[u8]| [&mac[..], rest].concat();
        assert_eq!(offset(1, &with(&[8, 0]), 4), Ok(14));
        assert_eq!(offset(1, &with(&[0x86, 0xdd]), 6), Ok(14));
        assert_eq!(offset(1, &with(&[0x81, 0, 0, 5, 8, 0]), 4), Ok(18));
        assert_eq!(offset(1, &with(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]), 4), Ok(22));
        assert_eq!(offset(1, &with(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x21]), 4), Ok(22));
        assert_eq!(offset(1, &with(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0x57]), 6), Ok(21));
        assert_eq!(offset(101, &[], 6), Ok(0));
        assert_eq!(offset(0, &[2, 0, 0, 0], 4), Ok(4));
        assert_eq!(offset(108, &[0, 0, 0, 30], 6), Ok(4));
        assert_eq!(offset(113, &[&[0; 14][..], &[8, 0]].concat(), 4), Ok(16));
        assert_eq!(offset(276, &[&[0x86, 0xdd][..], &[0; 18]].concat(), 6), Ok(20));
        assert_eq!(offset(276, &[&[0x81, 0][..], &[0; 18], &[0, 5, 8, 0]].concat(), 4), Ok(24));
        assert_eq!(offset(1, &with(&[0x88, 0x47, 0, 0, 0x10, 64, 0, 0, 0x21, 64]), 4), Ok(22));
        assert_eq!(offset(1, &with(&[0, 60, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]), 4), Ok(22));
        assert_eq!(offset(9, &[0xff, 3, 0, 0x21], 4), Ok(4));
        assert_eq!(offset(51, &[0x11, 0, 0, 1, 0, 9, 0, 0x57], 6), Ok(8));
    }

    #[test]
    fn frames_without_ip_name_the_reason() {
        assert_eq!(offset(1, &[&[0; 12][..], &[8, 6]].concat(), 4), Err(NoIpHeader::EtherType(0x0806)));
        assert_eq!(offset(1, &[&[0; 12][..], &[0, 60, 0x42, 0x42, 3]].concat(), 4), Err(NoIpHeader::Llc));
        assert_eq!(offset(1, &[&[0; 12][..], &[0x88, 0x47, 0, 0, 1, 64]].concat(), 0), Err(NoIpHeader::Other));
        assert_eq!(offset(105, &[], 4), Err(NoIpHeader::LinkType(105)));
        assert_eq!(ip_offset(1, &[0; 13]), Err(NoIpHeader::Short));
        assert_eq!(offset(101, &[], 9), Err(NoIpHeader::Other));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_lead_beyond_the_frame(
            link_type in 0u16..300, data in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Ok(at) = ip_offset(link_type, &data) {
                prop_assert!(at < data.len());
            }
        }
    }
}
