//! IP, and captured bytes, whose end the snaplen may have cut off: the header, what the packet carries, and its
//! position in a fragmented packet; and the numbers of link types, protocols and ports that several parsers need.

use std::net::IpAddr;

use etherparse::{Ipv6ExtensionsSlice, Ipv6FragmentHeaderSlice, LaxIpSlice, LaxIpv4Slice, LaxIpv6Slice};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPacket<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// What follows all extension headers; in a fragment, what follows the IP header or IPv6's fragment header.
    pub payload: IpPayload<'a>,
    pub fragment: Option<Fragment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPayload<'a> {
    /// The IP protocol number; that of an extension header if that header cannot be read.
    pub protocol: u8,
    pub bytes: CapturedBytes<'a>,
}

/// The position of a fragment in its packet (RFC 791, section 3.1; RFC 8200, section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    pub identification: u32,
    /// In bytes.
    pub offset: u32,
    pub is_last: bool,
}

impl<'a> IpPacket<'a> {
    /// Reads the packet at the start of `bytes`; `None` if its header is cut or invalid. It ends where `bytes` end on the
    /// wire at the latest, and there where offloading left its header without a length.
    pub fn read(bytes: CapturedBytes<'a>) -> Option<Self> {
        match LaxIpSlice::from_slice(bytes.data()).ok()?.0 {
            LaxIpSlice::Ipv4(packet) => Some(Self::from_ipv4(&packet, bytes)),
            LaxIpSlice::Ipv6(packet) => Some(Self::from_ipv6(&packet, bytes)),
        }
    }

    fn from_ipv4(packet: &LaxIpv4Slice<'a>, bytes: CapturedBytes<'a>) -> Self {
        let header = packet.header();
        let claimed = u32::from(header.total_len());
        let total = if claimed < header.slice().len() as u32 { bytes.length() } else { claimed.min(bytes.length()) };
        let fragment = header.is_fragmenting_payload().then(|| Fragment {
            identification: header.identification().into(),
            offset: header.fragments_offset().byte_offset().into(),
            is_last: !header.more_fragments(),
        });
        // A fragment's payload begins directly after the header: an authentication header belongs to the whole packet.
        let (protocol, payload) = match fragment {
            Some(_) => (header.protocol(), bytes.after(header.slice().len()).data()),
            None => (packet.payload().ip_number, packet.payload().payload),
        };
        Self {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            payload: IpPayload::new(protocol.0, payload, bytes.data(), total),
            fragment,
        }
    }

    fn from_ipv6(packet: &LaxIpv6Slice<'a>, bytes: CapturedBytes<'a>) -> Self {
        let (header, data) = (packet.header(), bytes.data());
        let header_length = header.slice().len();
        let claimed = u32::from(header.payload_length());
        let total = if claimed == 0 { u32::MAX } else { claimed + header_length as u32 }.min(bytes.length());
        let rest = bytes.after(header_length).data();
        let (protocol, payload, fragment) = match fragment_header(header.next_header().0, rest) {
            None => (packet.payload().ip_number, packet.payload().payload, None),
            Some(header) => {
                let fragment = Fragment {
                    identification: header.identification(),
                    offset: header.fragment_offset().byte_offset().into(),
                    is_last: !header.more_fragments(),
                };
                let payload = bytes.after(offset_in(data, header.slice()) + header.slice().len());
                (header.next_header(), payload.data(), Some(fragment))
            }
        };
        let payload = IpPayload::new(protocol.0, payload, data, total);
        Self {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            payload: if fragment.is_some() { payload } else { payload.after_extensions() },
            fragment,
        }
    }
}

impl<'a> IpPayload<'a> {
    /// `payload` is a part of `packet`, which was `total` bytes long on the wire.
    fn new(protocol: u8, payload: &'a [u8], packet: &[u8], total: u32) -> Self {
        let length = total.saturating_sub(offset_in(packet, payload) as u32);
        Self { protocol, bytes: CapturedBytes::new(payload, length) }
    }

    /// Skips IPv6's extension headers, with which a reassembled packet may begin.
    #[must_use]
    pub fn after_extensions(mut self) -> Self {
        loop {
            let data = self.bytes.data();
            let (_, protocol, payload, _) = Ipv6ExtensionsSlice::from_slice_lax(self.protocol.into(), data);
            self = Self { protocol: protocol.0, bytes: self.bytes.after(offset_in(data, payload)) };
            let length = extension_length(payload).filter(|length| *length <= payload.len());
            // Those that etherparse does not skip: Mobility, HIP, Shim6.
            match payload.first().zip(length).filter(|_| matches!(self.protocol, 135 | 139 | 140)) {
                Some((next, length)) => self = Self { protocol: *next, bytes: self.bytes.after(length) },
                None => return self,
            }
        }
    }
}

/// The length of most extension headers (RFC 8200, section 4; RFC 6275; RFC 7401; RFC 5533).
fn extension_length(header: &[u8]) -> Option<usize> {
    header.get(1).map(|units| 8 * (usize::from(*units) + 1))
}

/// The fragment header of an IPv6 packet, if it is a fragment. Extension headers after it belong to the fragmented
/// packet. Parsed by hand: for a packet that is cut inside its extension headers, etherparse's iterator reads beyond
/// the end, because it assumes that they are complete.
fn fragment_header(mut protocol: u8, mut rest: &[u8]) -> Option<Ipv6FragmentHeaderSlice<'_>> {
    loop {
        // The lengths of RFC 8200, section 4, and RFC 4302, section 2.2.
        let length = match protocol {
            0 | 43 | 60 | 135 | 139 | 140 => extension_length(rest)?,
            51 => 4 * (usize::from(*rest.get(1)?) + 2),
            44 => {
                let header = Ipv6FragmentHeaderSlice::from_slice(rest).ok()?;
                if header.is_fragmenting_payload() {
                    return Some(header);
                }
                header.slice().len()
            }
            _ => return None,
        };
        protocol = *rest.first()?;
        rest = rest.get(length..)?;
    }
}

fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// Bytes of a packet whose end the snaplen may have cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapturedBytes<'a> {
    data: &'a [u8],
    length: u32,
}

impl<'a> CapturedBytes<'a> {
    /// `length` bytes on the wire, of which `data` was captured. If `data` is longer, its end is padding and is
    /// dropped.
    pub fn new(data: &'a [u8], length: u32) -> Self {
        Self { data: data.get(..length as usize).unwrap_or(data), length }
    }

    /// A whole frame. A length on the wire that is less than what was captured is wrong, and is ignored.
    pub fn frame(data: &'a [u8], original_length: u32) -> Self {
        Self { data, length: original_length.max(data.len() as u32) }
    }

    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Bytes on the wire.
    pub fn length(&self) -> u32 {
        self.length
    }

    #[must_use]
    pub fn after(self, offset: usize) -> Self {
        Self { data: self.data.get(offset..).unwrap_or_default(), length: self.length.saturating_sub(offset as u32) }
    }

    #[must_use]
    pub fn first(self, limit: usize) -> Self {
        Self::new(self.data, self.length.min(u32::try_from(limit).unwrap_or(u32::MAX)))
    }
}

pub(crate) const ETHERNET: u16 = 1;

// IP protocol numbers, by IANA's registry.
pub(crate) const IPV4: u8 = 4;
pub(crate) const TCP: u8 = 6;
pub const UDP: u8 = 17;
/// ESP, as an IP protocol (RFC 4303).
pub(crate) const ESP: u8 = 50;
pub(crate) const IPV6: u8 = 41;
pub const GRE: u8 = 47;
/// RFC 3378.
pub(crate) const ETHERIP: u8 = 97;
/// RFC 3931.
pub(crate) const L2TP: u8 = 115;
/// RFC 4023.
pub(crate) const MPLS: u8 = 137;

/// The ACK flag of TCP (RFC 9293, section 3.1).
pub(crate) const ACK: u8 = 16;

pub(crate) const DNS_PORT: u16 = 53;
/// RFC 7348.
pub(crate) const VXLAN_PORT: u16 = 4789;
/// The port of VXLAN before it had one of its own, which Linux still uses by default.
pub(crate) const OLD_VXLAN_PORT: u16 = 8472;
/// RFC 8926.
pub(crate) const GENEVE_PORT: u16 = 6081;
/// RFC 7510.
pub(crate) const MPLS_PORT: u16 = 6635;
/// RFC 8086.
pub(crate) const GRE_PORT: u16 = 4754;
/// draft-ietf-intarea-gue.
pub(crate) const GUE_PORT: u16 = 6080;
/// Where routers send TZSP by default.
pub(crate) const TZSP_PORT: u16 = 37008;
/// 3GPP TS 29.281.
pub(crate) const GTP_U_PORT: u16 = 2152;
/// draft-ietf-nvo3-vxlan-gpe.
pub(crate) const VXLAN_GPE_PORT: u16 = 4790;
/// RFC 2661.
pub(crate) const L2TP_PORT: u16 = 1701;
/// RFC 4380.
pub(crate) const TEREDO_PORT: u16 = 3544;

#[inline]
pub(crate) fn is_tunnel_port(port: u16) -> bool {
    let is_opened = matches!(port, VXLAN_PORT | OLD_VXLAN_PORT | GENEVE_PORT | TZSP_PORT)
        || matches!(port, MPLS_PORT | GRE_PORT | GUE_PORT);
    // The others are named, since they are not opened.
    is_opened || matches!(port, GTP_U_PORT | VXLAN_GPE_PORT | L2TP_PORT | TEREDO_PORT)
}

/// Whether this is one of IPv6's extension headers (RFC 8200, section 4; RFC 4302; RFC 6275; RFC 7401; RFC 5533).
pub(crate) fn is_ipv6_extension(protocol: u8) -> bool {
    matches!(protocol, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140)
}

/// Whether an IP packet of this protocol may be a tunnel or a fragment of one: IP in IP, GRE, UDP (VXLAN and the like), or an IPv6
/// extension header, which may precede any of them.
pub fn may_be_tunnel(protocol: u8) -> bool {
    matches!(protocol, IPV4 | IPV6 | UDP | GRE | ETHERIP | L2TP | MPLS) || is_ipv6_extension(protocol)
}

#[cfg(test)]
mod tests;
