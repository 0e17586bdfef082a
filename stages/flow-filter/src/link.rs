//! Link layers: from a packet's first byte to its IP header. They are read by hand, since captures have more of them than
//! etherparse knows; the numbers are those of the LINKTYPE_ registry and of IEEE 802.

/// Why a packet has no IP header that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NoIp {
    /// A link type that is not read.
    LinkType(u16),
    /// Something else than IP, by its EtherType: ARP and the like.
    EtherType(u16),
    /// Some other protocol in a frame that has no EtherType.
    Other,
    /// The snaplen cut it, or it is too short to be what it says.
    Short,
}

const MOST_TAGS: usize = 8;

/// The offset of the IP header in a packet.
pub(crate) fn ip_offset(link_type: u16, data: &[u8]) -> Result<usize, NoIp> {
    match link_type {
        // Null: the address family in the byte order of the machine that captured; loop: in network order.
        0 | 108 => null_family(data),
        1 => behind_ether_type(data, 12),
        12 | 14 | 101 | 228 | 229 => behind_version(data, 0),
        113 => behind_ether_type(data, 14),
        276 => {
            let protocol = big_endian(data, 0)?;
            if is_ip(protocol) { behind_version(data, 20) } else { Err(NoIp::EtherType(protocol)) }
        }
        other => Err(NoIp::LinkType(other)),
    }
}

/// Goes over VLAN tags and PPPoE from the EtherType at `at`.
fn behind_ether_type(data: &[u8], mut at: usize) -> Result<usize, NoIp> {
    for _ in 0..=MOST_TAGS {
        match big_endian(data, at)? {
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => at += 4,
            0x8864 => return behind_pppoe(data, at + 2),
            protocol if is_ip(protocol) => return behind_version(data, at + 2),
            // Lengths, not types: frames of IEEE 802.3.
            ..0x0600 => return Err(NoIp::Other),
            other => return Err(NoIp::EtherType(other)),
        }
    }
    Err(NoIp::Other)
}

/// A PPPoE session header (RFC 2516), then the protocol of PPP, in one byte or two.
fn behind_pppoe(data: &[u8], at: usize) -> Result<usize, NoIp> {
    match (data.get(at + 6), data.get(at + 7)) {
        (Some(0x21 | 0x57), _) => behind_version(data, at + 7),
        (Some(0), Some(0x21 | 0x57)) => behind_version(data, at + 8),
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

fn is_ip(protocol: u16) -> bool {
    matches!(protocol, 0x0800 | 0x86dd)
}

fn big_endian(data: &[u8], at: usize) -> Result<u16, NoIp> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk()).ok_or(NoIp::Short)?;
    Ok(u16::from_be_bytes(*bytes))
}

impl std::fmt::Display for NoIp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LinkType(number) => write!(formatter, "link type {number} is not read"),
            Self::EtherType(number) => write!(formatter, "EtherType 0x{number:04x} is no IP"),
            Self::Other => formatter.write_str("a frame that carries no IP"),
            Self::Short => formatter.write_str("a frame that ends before its IP header"),
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
    }

    #[test]
    fn what_is_no_ip_says_so() {
        assert_eq!(offset(1, &[&[0; 12][..], &[8, 6]].concat(), 4), Err(NoIp::EtherType(0x0806)));
        assert_eq!(offset(1, &[&[0; 12][..], &[0, 60]].concat(), 4), Err(NoIp::Other));
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
