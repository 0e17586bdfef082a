//! Fast reading of the most frequent packets at fixed offsets: IPv4 or IPv6 directly after an Ethernet header. The
//! general parsers read the same from these packets; a property test checks that.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::address_set::AddressPair;
use crate::ip::{ACK, CapturedBytes, DNS_PORT, ETHERNET, TCP, UDP, is_tunnel_port, may_be_tunnel};

const ETHERNET_HEADER: usize = 14;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const AFTER_IPV4: usize = ETHERNET_HEADER + IPV4_HEADER;
const AFTER_IPV6: usize = ETHERNET_HEADER + IPV6_HEADER;

/// Source and destination of a packet, if they alone decide which hosts it concerns. `None` for all other packets: a
/// tunnel or a fragment of one may carry a packet between other hosts, and a DNS response to any host may resolve a
/// service's name.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the only work for most packets")]
pub fn addresses(link_type: u16, frame: &[u8]) -> Option<AddressPair> {
    if link_type != ETHERNET {
        return None;
    }
    let header: &[u8; AFTER_IPV4] = frame.first_chunk()?;
    match [header[12], header[13], header[14] & 0xf0] {
        [0x08, 0x00, 0x40] => {
            if header[23] != TCP && !concerns_its_ends_only(header[23], ipv4_ports(frame)) {
                return None;
            }
            let address = |at: usize| header.get(at..)?.first_chunk::<4>().copied().map(Ipv4Addr::from);
            Some(AddressPair::V4([address(26)?, address(30)?]))
        }
        [0x86, 0xdd, 0x60] => {
            let header: &[u8; AFTER_IPV6] = frame.first_chunk()?;
            if header[20] != TCP && !concerns_its_ends_only(header[20], frame.get(AFTER_IPV6..)) {
                return None;
            }
            let address = |at: usize| header.get(at..)?.first_chunk::<16>().copied().map(Ipv6Addr::from);
            Some(AddressPair::V6([address(22)?, address(38)?]))
        }
        _ => None,
    }
}

/// The ports and what follows them in an IPv4 packet without options that is not a fragment.
fn ipv4_ports(frame: &[u8]) -> Option<&[u8]> {
    match frame.get(ETHERNET_HEADER..)? {
        [0x45, _, _, _, _, _, 0 | 0x40, 0, ..] => frame.get(AFTER_IPV4..),
        _ => None,
    }
}

fn concerns_its_ends_only(protocol: u8, ports: Option<&[u8]>) -> bool {
    if protocol != UDP {
        return !may_be_tunnel(protocol);
    }
    let Some(datagram @ [s0, s1, d0, d1, ..]) = ports else { return false };
    let is_dns = u16::from_be_bytes([*s0, *s1]) == DNS_PORT;
    !is_dns && !is_tunnel_port(u16::from_be_bytes([*d0, *d1])) && !may_hold_ip(datagram)
}

/// Whether a datagram is as long as an IP packet at its beginning would be.
fn may_hold_ip(datagram: &[u8]) -> bool {
    let length = |before: u16, high: u8, low: u8| before.wrapping_add(u16::from_be_bytes([high, low]));
    match *datagram {
        [_, _, _, _, h, l, _, _, 0x45, _, high, low, ..] => length(8, high, low) == length(0, h, l),
        [_, _, _, _, h, l, _, _, 0x60..=0x6f, _, _, _, high, low, ..] => length(48, high, low) == length(0, h, l),
        _ => false,
    }
}

/// A TCP segment in an IPv4 packet without options that is not a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment<'a> {
    pub endpoints: Endpoints,
    pub sequence: u32,
    /// The TCP flags; at least one is set.
    pub flags: u8,
    pub acknowledgement: Option<u32>,
    pub payload: CapturedBytes<'a>,
}

/// Source and destination address, then source and destination port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoints {
    addresses: u64,
    ports: u32,
}

impl<'a> TcpSegment<'a> {
    #[inline]
    pub fn read(link_type: u16, frame: &'a [u8], original_length: u32) -> Option<Self> {
        let headers: &[u8; AFTER_IPV4 + TCP_HEADER] = frame.first_chunk().filter(|_| link_type == ETHERNET)?;
        // Reading bytes one by one takes twice as long.
        let word =
            |at: usize| headers.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_be_bytes(*word));
        let is_ipv4_without_options = word(12) >> 8 == 0x08_0045;
        // The fragment flags and offset, except "don't fragment", are 0.
        let is_tcp_in_one_piece = word(20) & 0xbfff_00ff == TCP.into();
        if !is_ipv4_without_options || !is_tcp_in_one_piece {
            return None;
        }
        let total = usize::from(u16::from_be_bytes([headers[16], headers[17]]));
        let is_within = ETHERNET_HEADER + total <= frame.len().max(original_length as usize);
        let (header, flags) = (usize::from(headers[46] >> 4) * 4, headers[47]);
        let length =
            total.checked_sub(IPV4_HEADER + header).filter(|_| is_within && header >= TCP_HEADER && flags != 0)?;
        Some(Self {
            endpoints: Endpoints { addresses: u64::from(word(26)) << 32 | u64::from(word(30)), ports: word(34) },
            sequence: word(38),
            flags,
            acknowledgement: (flags & ACK != 0).then(|| word(42)),
            payload: CapturedBytes::new(frame.get(AFTER_IPV4 + header..).unwrap_or_default(), length as u32),
        })
    }
}

#[cfg(test)]
mod tests;
