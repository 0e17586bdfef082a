//! From an IP header to what the packet carries: its ends, its protocol, its length on the wire, and which part it is of
//! a packet that was fragmented.

use std::net::IpAddr;

use etherparse::{Ipv6ExtensionsSlice, Ipv6FragmentHeaderSlice, LaxIpSlice, LaxIpv4Slice, LaxIpv6Slice};

/// An IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpPacket<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) content: Content<'a>,
    /// Which part `content` is, if it is not the whole.
    pub(crate) fragment: Option<Fragment>,
}

/// What an IP packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content<'a> {
    /// By the numbers of IANA's registry; that of an extension header where this one cannot be read.
    pub(crate) protocol: u8,
    /// Bytes on the wire.
    pub(crate) length: u32,
    /// What was captured of them.
    pub(crate) data: &'a [u8],
}

/// The place of a fragment in its packet (RFC 791, section 3.1; RFC 8200, section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) identification: u32,
    /// In bytes.
    pub(crate) offset: u32,
    /// Whether no other follows.
    pub(crate) is_last: bool,
}

impl<'a> IpPacket<'a> {
    /// Reads the packet that `bytes` begin with. `on_wire` is how long what follows was there, padding included: it
    /// counts where offloading left the header without a length. `None` where there is no whole header.
    pub(crate) fn read(bytes: &'a [u8], on_wire: u64) -> Option<Self> {
        Self::plain(bytes).or_else(|| Self::any(bytes, on_wire))
    }

    /// The packet, if it is one that nearly all are: TCP or UDP in one piece behind an IPv4 header without options or an
    /// IPv6 header, with a length. By hand, since that takes a fifth of the time.
    #[inline]
    pub(crate) fn plain(bytes: &'a [u8]) -> Option<Self> {
        let (protocol, length, data, ends): (_, _, _, [IpAddr; 2]) = match bytes {
            [0x45, _, l0, l1, _, _, 0 | 0x40, 0, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3, data @ ..] => {
                let length = u16::from_be_bytes([*l0, *l1]).checked_sub(20)?;
                (protocol, length, data, [[*s0, *s1, *s2, *s3].into(), [*d0, *d1, *d2, *d3].into()])
            }
            [0x60..=0x6f, _, _, _, l0, l1, protocol, _, behind @ ..] => {
                let length = Some(u16::from_be_bytes([*l0, *l1])).filter(|length| *length > 0)?;
                let (source, behind) = behind.split_first_chunk::<16>()?;
                let (destination, data) = behind.split_first_chunk::<16>()?;
                (protocol, length, data, [(*source).into(), (*destination).into()])
            }
            _ => return None,
        };
        if !matches!(*protocol, 6 | 17) {
            return None;
        }
        let [source, destination] = ends;
        let data = data.get(..length.into()).unwrap_or(data);
        let content = Content { protocol: *protocol, length: length.into(), data };
        Some(Self { source, destination, content, fragment: None })
    }

    fn any(bytes: &'a [u8], on_wire: u64) -> Option<Self> {
        match LaxIpSlice::from_slice(bytes).ok()?.0 {
            LaxIpSlice::Ipv4(packet) => Some(Self::of_ipv4(&packet, bytes, on_wire)),
            LaxIpSlice::Ipv6(packet) => Some(Self::of_ipv6(&packet, bytes, on_wire)),
        }
    }

    fn of_ipv4(packet: &LaxIpv4Slice<'a>, bytes: &'a [u8], on_wire: u64) -> Self {
        let header = packet.header();
        let claimed = u64::from(header.total_len());
        let total = if claimed < header.slice().len() as u64 { on_wire } else { claimed };
        let fragment = header.is_fragmenting_payload().then(|| Fragment {
            identification: header.identification().into(),
            offset: header.fragments_offset().byte_offset().into(),
            is_last: !header.more_fragments(),
        });
        // Behind the header alone, not behind an authentication header, where the parts of a fragmented packet begin.
        let payload = match fragment {
            Some(_) => bytes.get(header.slice().len()..).unwrap_or_default(),
            None => packet.payload().payload,
        };
        let protocol = if fragment.is_some() { header.protocol() } else { packet.payload().ip_number };
        Self {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            content: Content::new(protocol.0, payload, bytes, total),
            fragment,
        }
    }

    fn of_ipv6(packet: &LaxIpv6Slice<'a>, bytes: &'a [u8], on_wire: u64) -> Self {
        let header = packet.header();
        let claimed = u64::from(header.payload_length());
        let total = if claimed == 0 { on_wire } else { claimed + header.slice().len() as u64 };
        let part = bytes.get(header.slice().len()..).and_then(|rest| fragment_header(header.next_header().0, rest));
        let (protocol, payload, fragment) = match part {
            None => (packet.payload().ip_number, packet.payload().payload, None),
            Some(header) => {
                let behind = offset_in(bytes, header.slice()) + header.slice().len();
                let fragment = Fragment {
                    identification: header.identification(),
                    offset: header.fragment_offset().byte_offset().into(),
                    is_last: !header.more_fragments(),
                };
                (header.next_header(), bytes.get(behind..).unwrap_or_default(), Some(fragment))
            }
        };
        Self {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            content: Content::new(protocol.0, payload, bytes, total),
            fragment,
        }
    }
}

impl<'a> Content<'a> {
    /// `payload` is a part of `packet`, which was `total` bytes long on the wire.
    fn new(protocol: u8, payload: &'a [u8], packet: &'a [u8], total: u64) -> Self {
        let length = total.saturating_sub(offset_in(packet, payload) as u64);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        // Short frames are padded behind the packet.
        Self { protocol, length, data: payload.get(..length as usize).unwrap_or(payload) }
    }

    /// Goes over IPv6's extension headers, which a packet put together of fragments may begin with.
    pub(crate) fn behind_extensions(self) -> Self {
        let (_, protocol, payload, _) = Ipv6ExtensionsSlice::from_slice_lax(self.protocol.into(), self.data);
        let before = offset_in(self.data, payload) as u32;
        Self { protocol: protocol.0, length: self.length.saturating_sub(before), data: payload }
    }
}

/// The header that says that an IPv6 packet is a part of one, if there is one. Extension headers behind it belong to the
/// fragmented packet.
///
/// By hand, since etherparse's iterator reads behind the end of a packet that is cut inside its extension headers: it
/// takes for granted that they are whole, and [`LaxIpSlice`] does not.
fn fragment_header(mut protocol: u8, mut rest: &[u8]) -> Option<Ipv6FragmentHeaderSlice<'_>> {
    loop {
        // The lengths of RFC 8200, section 4, and RFC 4302, section 2.2.
        let length = match protocol {
            0 | 43 | 60 => 8 * (usize::from(*rest.get(1)?) + 1),
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

/// Where a part of `whole` begins in it.
fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([1, 2, 3, 4], [5, 6, 7, 8], 64).udp(1, 2).write(&mut bytes, payload).unwrap();
        bytes
    }

    #[test]
    fn lengths_are_those_of_the_wire() {
        let whole = packet(&[7; 30]);
        let read = |bytes: &[u8], on_wire| {
            let content = IpPacket::read(bytes, on_wire).unwrap().content;
            (content.length, content.data.len())
        };
        assert_eq!(read(&whole, 58), (38, 38));
        assert_eq!(read(&whole[..28], 58), (38, 8), "cut by the snaplen");
        assert_eq!(read(&[&whole[..], &[0; 9]].concat(), 67), (38, 38), "padded");
        let mut offloaded = whole.clone();
        offloaded[2..4].copy_from_slice(&[0, 0]);
        assert_eq!(read(&offloaded, 90), (70, 38));
        assert_eq!(IpPacket::read(&whole[..19], 58), None);
    }

    #[test]
    fn fragments_of_ipv4_say_where_they_belong() {
        let mut part = packet(&[7; 30]);
        part[4..8].copy_from_slice(&[0x12, 0x34, 0x20 | 1, 2]);
        let read = IpPacket::read(&part, 58).unwrap();
        assert_eq!(read.fragment, Some(Fragment { identification: 0x1234, offset: 0x102 * 8, is_last: false }));
        assert_eq!((read.content.protocol, read.content.length), (17, 38));
    }

    #[test]
    fn what_follows_a_fragment_header_is_left_for_later() {
        // Next header 60, destination options, belongs to the whole packet: in a later part it is any data.
        let mut part = vec![0x60, 0, 0, 0, 0, 24, 44, 64];
        part.extend([0; 32]);
        part.extend([60, 0, 0, 8, 0, 0, 0, 9]);
        part.extend([0xff; 16]);
        let read = IpPacket::read(&part, 64).unwrap();
        assert_eq!(read.fragment, Some(Fragment { identification: 9, offset: 8, is_last: true }));
        assert_eq!(read.content, Content { protocol: 60, length: 16, data: &[0xff; 16] });
    }

    #[test]
    fn extension_headers_may_be_cut() {
        // A routing header that says it is followed by destination options, which the packet does not hold.
        let mut cut = vec![0x60, 0, 0, 0, 0, 8, 43, 64];
        cut.extend([0; 32]);
        cut.extend([60, 0, 4, 0, 0, 0, 0, 0]);
        let read = IpPacket::read(&cut, 48).unwrap();
        assert_eq!((read.fragment, read.content.data), (None, &[][..]));
        cut[40] = 44;
        assert_eq!(IpPacket::read(&cut, 48).unwrap().fragment, None);
    }

    proptest! {
        /// What is read by hand is what etherparse reads.
        #[test]
        fn plain_packets_are_read_as_all_are(
            mut bytes in prop::collection::vec(any::<u8>(), 0..90), six: bool, udp: bool, length in 0u16..100, on_wire: u8,
        ) {
            let header: &[(usize, u8)] = if six { &[(0, 0x60), (4, 0), (5, length as u8), (6, 6)] }
                else { &[(0, 0x45), (2, 0), (3, length as u8), (6, 0x40), (7, 0), (9, 6)] };
            for (at, value) in header {
                if let Some(byte) = bytes.get_mut(*at) {
                    *byte = if udp && *value == 6 { 17 } else { *value };
                }
            }
            if let Some(plain) = IpPacket::plain(&bytes) {
                prop_assert_eq!(Some(plain), IpPacket::any(&bytes, on_wire.into()));
            }
        }
    }
}
