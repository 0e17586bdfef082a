//! The addresses of the plainest packets, read from raw bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const ETHERNET: u16 = 1;
pub(crate) const ETHERNET_HEADER: usize = 14;
const IPV4_HEADER: usize = 20;
pub(crate) const IPV6_HEADER: usize = 40;
pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;
const DNS_PORT: u16 = 53;

/// The port of VXLAN (RFC 7348).
pub const VXLAN_PORT: u16 = 4789;

/// Whether an IP packet of this protocol may be a tunnel, or a part of one: IP in IP, GRE, VXLAN over UDP, or one of IPv6's
/// extension headers, which may stand before them.
pub fn may_be_tunnel(protocol: u8) -> bool {
    matches!(protocol, 4 | 41 | UDP | 47 | 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140)
}

/// The two ends of a packet, as they stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Four(Ipv4Addr, Ipv4Addr),
    Six(Ipv6Addr, Ipv6Addr),
}

/// The source and the destination of a packet of the plainest kind, Ethernet with IPv4 or IPv6 right behind it, where they
/// alone tell whether it matters. `None` for all others, which need a closer look: a tunnel, or a part of one, may have
/// a gateway's packet inside, and an answer of a name server to anyone tells where a service is.
pub fn plain_addresses(link_type: u16, data: &[u8]) -> Option<(IpAddr, IpAddr)> {
    Some(match plain_ends(link_type, data)? {
        Ends::Four(source, destination) => (source.into(), destination.into()),
        Ends::Six(source, destination) => (source.into(), destination.into()),
    })
}

/// As [`plain_addresses`], of the most frequent kind alone: TCP in IPv4.
#[inline(always)]
#[expect(clippy::inline_always, reason = "all there is to do about most packets")]
pub(crate) fn plain_tcp_ends(link_type: u16, data: &[u8]) -> Option<[Ipv4Addr; 2]> {
    let header: &[u8; ETHERNET_HEADER + IPV4_HEADER] = data.first_chunk().filter(|_| link_type == ETHERNET)?;
    let is_ipv4 = u16::from_be_bytes([header[12], header[13]]) == 0x0800 && header[14] & 0xf0 == 0x40;
    let is_tcp = is_ipv4 && header[23] == TCP;
    is_tcp.then(|| ipv4_ends(header))
}

/// The source and the destination in IPv4's header behind Ethernet's.
#[inline]
fn ipv4_ends(header: &[u8; ETHERNET_HEADER + IPV4_HEADER]) -> [Ipv4Addr; 2] {
    [
        Ipv4Addr::new(header[26], header[27], header[28], header[29]),
        Ipv4Addr::new(header[30], header[31], header[32], header[33]),
    ]
}

/// As [`plain_addresses`].
pub(crate) fn plain_ends(link_type: u16, data: &[u8]) -> Option<Ends> {
    if link_type != ETHERNET {
        return None;
    }
    let header: &[u8; ETHERNET_HEADER + IPV4_HEADER] = data.first_chunk()?;
    match [header[12], header[13], header[14] & 0xf0] {
        [0x08, 0x00, 0x40] => {
            let protocol = header[23];
            // Nearly all are TCP: they are spared the closer look.
            if protocol != TCP && !is_decided(protocol, ipv4_ports(data)) {
                return None;
            }
            let [source, destination] = ipv4_ends(header);
            Some(Ends::Four(source, destination))
        }
        [0x86, 0xdd, 0x60] => {
            let (protocol, behind) = (header[20], ETHERNET_HEADER + IPV6_HEADER);
            if protocol != TCP && !is_decided(protocol, data.get(behind..behind + 4)) {
                return None;
            }
            let address = |at: usize| data.get(at..)?.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes));
            Some(Ends::Six(address(22)?, address(38)?))
        }
        _ => None,
    }
}

/// The ports of a packet in IPv4 without options, where they would move, and in one piece, where they cannot be missing.
fn ipv4_ports(data: &[u8]) -> Option<&[u8]> {
    match data.get(14..22)? {
        [0x45, _, _, _, _, _, 0 | 0x40, 0] => data.get(34..38),
        _ => None,
    }
}

/// Whether a packet of this protocol, and over UDP with these ports, is nobody's but its ends'.
fn is_decided(protocol: u8, ports: Option<&[u8]>) -> bool {
    if protocol != UDP {
        return !may_be_tunnel(protocol);
    }
    let Some([source, source_low, destination, destination_low]) = ports else { return false };
    u16::from_be_bytes([*source, *source_low]) != DNS_PORT
        && u16::from_be_bytes([*destination, *destination_low]) != VXLAN_PORT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(protocol: u8, source_port: u16, destination_port: u16) -> Vec<u8> {
        let ends = [10, 0, 0, 1, 10, 0, 0, 2];
        let ports = [source_port.to_be_bytes(), destination_port.to_be_bytes()];
        let ip = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0];
        [&[0; 12][..], &[8, 0], &ip, &ends, ports.as_flattened(), &[0; 4]].concat()
    }

    #[test]
    fn what_addresses_decide_and_what_they_do_not() {
        let ends = Some(([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
        assert_eq!(plain_addresses(ETHERNET, &ipv4(TCP, 1, 2)), ends);
        assert_eq!(plain_addresses(ETHERNET, &ipv4(UDP, 5353, 443)), ends);
        assert_eq!(plain_addresses(ETHERNET, &ipv4(1, 0, 0)), ends, "ICMP");
        assert_eq!(plain_addresses(ETHERNET, &ipv4(UDP, 53, 4000)), None, "an answer of a name server");
        assert_eq!(plain_addresses(ETHERNET, &ipv4(UDP, 4000, VXLAN_PORT)), None);
        assert_eq!(plain_addresses(ETHERNET, &ipv4(47, 0, 0)), None, "GRE");
        assert_eq!(plain_addresses(101, &ipv4(TCP, 1, 2)), None, "another link");
        assert_eq!(plain_addresses(ETHERNET, &ipv4(TCP, 1, 2)[..33]), None, "cut");
        let mut fragment = ipv4(UDP, 5353, 443);
        fragment[20] = 0x20;
        assert_eq!(plain_addresses(ETHERNET, &fragment), None, "the first part of a datagram");
        let mut tagged = ipv4(TCP, 1, 2);
        tagged.splice(12..12, [0x81, 0, 0, 7]);
        assert_eq!(plain_addresses(ETHERNET, &tagged), None, "in a VLAN");
    }
}
