//! Link layers: from a packet's first byte to its IP header. They are read by hand, since captures have more of them than
//! etherparse knows; the numbers are those of the LINKTYPE_ registry and of IEEE 802.

use std::fmt::{Display, Formatter};

/// Why a packet has no IP header, or none that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NoIp {
    /// A link type that is not read.
    LinkType(u16),
    /// Something else than IP, by its EtherType: ARP and the like.
    EtherType(u16),
    /// A frame of IEEE 802.3 without an [`NoIp::EtherType`]: spanning tree and the like.
    Llc,
    /// Some other protocol, where its layer has no EtherType: PPP's own negotiations, Ethernet over MPLS.
    Other,
    /// The snaplen cut it, or it is too short to be what it says.
    Short,
    /// A GRE header of another version than 0, or with a source route.
    Gre,
    /// A tunnel inside a tunnel.
    Nested,
}

const MOST_TAGS: usize = 8;

/// The offset of the IP header in a packet.
pub(crate) fn ip_offset(link_type: u16, data: &[u8]) -> Result<usize, NoIp> {
    match link_type {
        // Null: the address family in the byte order of the machine that captured; loop: in network order.
        0 | 108 => null_family(data),
        1 => ethernet(data, 0),
        9 | 50 => behind_ppp(data, 0),
        51 => behind_pppoe(data, 0),
        12 | 14 | 101 | 228 | 229 => behind_version(data, 0),
        // Linux cooked, version 1 and 2.
        113 => behind(big_endian(data, 14)?, data, 16),
        276 => behind(big_endian(data, 0)?, data, 20),
        other => Err(NoIp::LinkType(other)),
    }
}

/// The offset of the IP header in an Ethernet frame that begins at `at`.
pub(crate) fn ethernet(data: &[u8], at: usize) -> Result<usize, NoIp> {
    let ether_type = big_endian(data, at + 12)?;
    if ether_type >= 0x0600 {
        return behind(ether_type, data, at + 14);
    }
    // A length, not a type: IEEE 802.3. With SNAP (RFC 1042) an EtherType follows after all.
    match data.get(at + 14..at + 20) {
        Some([0xaa, 0xaa, 3, 0, 0, 0]) => behind(big_endian(data, at + 20)?, data, at + 22),
        Some(_) => Err(NoIp::Llc),
        None => Err(NoIp::Short),
    }
}

/// Goes over VLAN tags, MPLS and PPPoE to the IP header; `ether_type` tells what is at `at`.
pub(crate) fn behind(mut ether_type: u16, data: &[u8], mut at: usize) -> Result<usize, NoIp> {
    for _ in 0..=MOST_TAGS {
        match ether_type {
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                ether_type = big_endian(data, at + 2)?;
                at += 4;
            }
            0x8847 | 0x8848 => return behind_labels(data, at),
            0x8864 => return behind_pppoe(data, at),
            0x0800 | 0x86dd => return behind_version(data, at),
            other => return Err(NoIp::EtherType(other)),
        }
    }
    Err(NoIp::Other)
}

/// A stack of MPLS labels (RFC 3032). What follows the last one is not told; IP is known by its version.
fn behind_labels(data: &[u8], mut at: usize) -> Result<usize, NoIp> {
    for _ in 0..=MOST_TAGS {
        let third = data.get(at + 2).ok_or(NoIp::Short)?;
        at += 4;
        if third & 1 == 1 {
            return behind_version(data, at);
        }
    }
    Err(NoIp::Other)
}

/// A PPPoE session header (RFC 2516), then PPP.
fn behind_pppoe(data: &[u8], at: usize) -> Result<usize, NoIp> {
    behind_ppp(data, at + 6)
}

/// PPP: the address and control bytes of serial lines (RFC 1662) if there, and the protocol in one byte or two.
fn behind_ppp(data: &[u8], mut at: usize) -> Result<usize, NoIp> {
    if data.get(at..at + 2) == Some(&[0xff, 3]) {
        at += 2;
    }
    match (data.get(at), data.get(at + 1)) {
        (Some(0x21 | 0x57), _) => behind_version(data, at + 1),
        (Some(0), Some(0x21 | 0x57)) => behind_version(data, at + 2),
        (Some(_), Some(_)) => Err(NoIp::Other),
        _ => Err(NoIp::Short),
    }
}

fn null_family(data: &[u8]) -> Result<usize, NoIp> {
    let family: [u8; 4] = data.get(..4).and_then(|bytes| bytes.try_into().ok()).ok_or(NoIp::Short)?;
    match u32::from_be_bytes(family).min(u32::from_le_bytes(family)) {
        // AF_INET everywhere; AF_INET6 differs between systems.
        2 | 10 | 24 | 28 | 30 => behind_version(data, 4),
        _ => Err(NoIp::Other),
    }
}

fn behind_version(data: &[u8], at: usize) -> Result<usize, NoIp> {
    match data.get(at) {
        Some(version) if matches!(version >> 4, 4 | 6) => Ok(at),
        Some(_) => Err(NoIp::Other),
        None => Err(NoIp::Short),
    }
}

pub(crate) fn big_endian(data: &[u8], at: usize) -> Result<u16, NoIp> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk()).ok_or(NoIp::Short)?;
    Ok(u16::from_be_bytes(*bytes))
}

impl NoIp {
    /// Whether it is of every network, and nothing a user need know of: ARP, bridges and their neighbours, logging in
    /// at a port, PPPoE before its session, tests of the cable.
    pub(crate) fn is_usual(self) -> bool {
        let usual = [0x0806, 0x8035, 0x0842, 0x8863, 0x888e, 0x88cc, 0x9000];
        matches!(self, Self::Llc) || matches!(self, Self::EtherType(number) if usual.contains(&number))
    }
}

impl Display for NoIp {
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

    fn offset(link_type: u16, header: &[u8], version: u8) -> Result<usize, NoIp> {
        ip_offset(link_type, &[header, &[version << 4 | 5, 0, 0, 0]].concat())
    }

    #[test]
    fn every_link_layer() {
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
    fn what_is_no_ip_says_so() {
        assert_eq!(offset(1, &[&[0; 12][..], &[8, 6]].concat(), 4), Err(NoIp::EtherType(0x0806)));
        assert_eq!(offset(1, &[&[0; 12][..], &[0, 60, 0x42, 0x42, 3]].concat(), 4), Err(NoIp::Llc));
        assert_eq!(offset(1, &[&[0; 12][..], &[0x88, 0x47, 0, 0, 1, 64]].concat(), 0), Err(NoIp::Other));
        assert_eq!(offset(105, &[], 4), Err(NoIp::LinkType(105)));
        assert_eq!(ip_offset(1, &[0; 13]), Err(NoIp::Short));
        assert_eq!(offset(101, &[], 9), Err(NoIp::Other));
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at_safely(link_type in 0u16..300, data in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(at) = ip_offset(link_type, &data) {
                prop_assert!(at < data.len());
            }
        }
    }
}
