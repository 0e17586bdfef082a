//! The most frequent packets, read at fixed offsets: Ethernet with IPv4 or IPv6 right behind it. Nothing here is needed for
//! correctness; the general parsers read the same, and a property test holds this file to them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::address_set::AddressPair;
use crate::captured_bytes::CapturedBytes;
use crate::protocol::{DNS_PORT, ETHERNET, TCP, UDP, VXLAN_PORT, may_be_tunnel};

const ETHERNET_HEADER: usize = 14;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
/// Offsets of what follows the IP header.
const BEHIND_IPV4: usize = ETHERNET_HEADER + IPV4_HEADER;
const BEHIND_IPV6: usize = ETHERNET_HEADER + IPV6_HEADER;

/// Source and destination of a packet, if they alone decide whom it concerns. `None` for all other packets: a tunnel or a
/// fragment of one may carry anybody's packet, and a DNS response to anybody tells the address of a service.
#[inline(always)]
#[expect(clippy::inline_always, reason = "all there is to do for most packets")]
pub fn addresses(link_type: u16, frame: &[u8]) -> Option<AddressPair> {
    if link_type != ETHERNET {
        return None;
    }
    let header: &[u8; BEHIND_IPV4] = frame.first_chunk()?;
    match [header[12], header[13], header[14] & 0xf0] {
        [0x08, 0x00, 0x40] => {
            if header[23] != TCP && !concerns_its_ends_only(header[23], ipv4_ports(frame)) {
                return None;
            }
            let address = |at: usize| header.get(at..)?.first_chunk::<4>().copied().map(Ipv4Addr::from);
            Some(AddressPair::V4([address(26)?, address(30)?]))
        }
        [0x86, 0xdd, 0x60] => {
            let header: &[u8; BEHIND_IPV6] = frame.first_chunk()?;
            if header[20] != TCP && !concerns_its_ends_only(header[20], frame.get(BEHIND_IPV6..)) {
                return None;
            }
            let address = |at: usize| header.get(at..)?.first_chunk::<16>().copied().map(Ipv6Addr::from);
            Some(AddressPair::V6([address(22)?, address(38)?]))
        }
        _ => None,
    }
}

/// The ports in an IPv4 packet. Options would move them, and only a first fragment has them.
fn ipv4_ports(frame: &[u8]) -> Option<&[u8]> {
    match frame.get(ETHERNET_HEADER..)? {
        [0x45, _, _, _, _, _, 0 | 0x40, 0, ..] => frame.get(BEHIND_IPV4..),
        _ => None,
    }
}

/// Whether a packet of this protocol, and over UDP with these ports, concerns nobody but its source and destination.
fn concerns_its_ends_only(protocol: u8, ports: Option<&[u8]>) -> bool {
    if protocol != UDP {
        return !may_be_tunnel(protocol);
    }
    let Some([s0, s1, d0, d1, ..]) = ports else { return false };
    u16::from_be_bytes([*s0, *s1]) != DNS_PORT && u16::from_be_bytes([*d0, *d1]) != VXLAN_PORT
}

/// A TCP segment in an IPv4 packet without options that is no fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment<'a> {
    /// Where it comes from and where it goes to.
    pub endpoints: Endpoints,
    /// The sequence number of its first byte.
    pub sequence: u32,
    /// The TCP flags; at least one is set.
    pub flags: u8,
    /// Its payload.
    pub payload: CapturedBytes<'a>,
}

/// Source and destination address, source and destination port: the bytes of the packet, in any byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoints {
    addresses: u64,
    ports: u32,
}

impl<'a> TcpSegment<'a> {
    /// The segment of a packet; `None` where it is no such segment, or damaged.
    #[inline]
    pub fn read(link_type: u16, frame: &'a [u8]) -> Option<Self> {
        let headers: &[u8; BEHIND_IPV4 + TCP_HEADER] = frame.first_chunk().filter(|_| link_type == ETHERNET)?;
        // Word by word: byte by byte takes twice as long.
        let word =
            |at: usize| headers.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_be_bytes(*word));
        let is_ipv4_without_options = word(12) >> 8 == 0x08_0045;
        // All of the flags and of the offset but "don't fragment", and the protocol.
        let is_tcp_in_one_piece = word(20) & 0xbfff_00ff == TCP.into();
        if !is_ipv4_without_options || !is_tcp_in_one_piece {
            return None;
        }
        let total = usize::from(u16::from_be_bytes([headers[16], headers[17]]));
        let (header, flags) = (usize::from(headers[46] >> 4) * 4, headers[47]);
        let length = total.checked_sub(IPV4_HEADER + header).filter(|_| header >= TCP_HEADER && flags != 0)?;
        Some(Self {
            endpoints: Endpoints { addresses: u64::from(word(26)) << 32 | u64::from(word(30)), ports: word(34) },
            sequence: word(38),
            flags,
            payload: CapturedBytes::new(frame.get(BEHIND_IPV4 + header..).unwrap_or_default(), length as u32),
        })
    }
}

#[cfg(test)]
mod tests;
