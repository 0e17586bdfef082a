//! Link layers: from the first byte of a frame to its IP header. They are read by hand, since captures use more of them
//! than etherparse knows. Numbers are those of the `LINKTYPE_` registry and of IEEE 802.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ip::CapturedBytes;

/// Why a frame or a tunnel has no readable IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Error)]
pub enum NoIpHeader {
    #[error("link type {0}{name} is not read", name = name_in_parentheses(*.0))]
    LinkType(u16),
    #[error("EtherType 0x{0:04x} is not read")]
    EtherType(u16),
    /// It has no EtherType: spanning tree and the like.
    #[error("a frame of IEEE 802.3 without IP")]
    Llc,
    /// Some other protocol, in a layer without an EtherType: PPP negotiation, Ethernet over MPLS.
    #[error("a frame that carries no IP")]
    Other,
    /// Cut by the snaplen or not.
    #[error("a frame that ends before its IP header")]
    Short,
    #[error("GRE of another version than 0, or with a source route, is not read")]
    Gre,
    #[error("ERSPAN of another type than I, II and III is not read")]
    Erspan,
    #[error("a Wi-Fi frame without data")]
    WifiControl,
    #[error(
        "Wi-Fi's own encryption hides what is inside: capture on the access point or the gateway, or decrypt the \
         capture first"
    )]
    EncryptedWifi,
    #[error("a Wi-Fi frame that holds several (A-MSDU) is not read")]
    WifiAggregate,
    #[error("a tunnel inside a tunnel is not read")]
    Nested,
}

const MAX_TAGS: usize = 8;

pub fn ip_bytes(link_type: u16, frame: CapturedBytes<'_>) -> Result<CapturedBytes<'_>, NoIpHeader> {
    ip_place(link_type, frame.data()).map(|place| place.in_frame(frame))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpPlace {
    pub(crate) offset: usize,
    /// Where it ends at the latest, by the lengths of the layers around it: what follows is padding.
    end: usize,
}

impl IpPlace {
    /// The same in a layer that ends there. A length of 0 says nothing: offloading leaves it.
    pub(crate) fn within(self, start: usize, length: u16) -> Self {
        let end = if length == 0 { usize::MAX } else { start.saturating_add(length.into()) };
        Self { end: self.end.min(end), ..self }
    }

    pub(crate) fn in_frame(self, frame: CapturedBytes<'_>) -> CapturedBytes<'_> {
        frame.first(self.end).after(self.offset)
    }
}

fn ip_place(link_type: u16, data: &[u8]) -> Result<IpPlace, NoIpHeader> {
    match link_type {
        // PPI and PKTAP precede a frame of the link type that they name.
        192 => after_link_type(u32_at(data, 4, u32::from_le_bytes)?, data, little_endian(data, 2)?.into()),
        258 => {
            let length = u32_at(data, 0, u32::from_le_bytes)?;
            after_link_type(u32_at(data, 8, u32::from_le_bytes)?, data, length as usize)
        }
        other => after_link_type(other.into(), data, 0),
    }
}

fn after_link_type(link_type: u32, data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    match link_type {
        // NULL: the address family in the byte order of the capturing machine; LOOP: in network order.
        0 | 108 => after_address_family(data, at),
        1 => after_ethernet(data, at),
        9 | 50 => after_ppp(data, at),
        // PPP behind a byte that says in which direction.
        166 | 204 => after_ppp(data, at + 1),
        51 => after_pppoe(data, at),
        12 | 14 | 101 | 228 | 229 => ip_at(data, at),
        105 => after_wifi(data, at),
        // Linux cooked capture, version 1 and 2.
        113 => after_ether_type(big_endian(data, at + 14)?, data, at + 16),
        276 => after_ether_type(big_endian(data, at)?, data, at + 20),
        // OpenBSD's IPsec: address family, index and flags. Its packet filter: a header that says its length.
        109 => ip_at(data, at + 12),
        117 => ip_at(data, at + usize::from(*data.get(at).ok_or(NoIpHeader::Short)?).next_multiple_of(4)),
        127 => after_radiotap(data, at),
        239 => after_nflog(data, at),
        other => Err(NoIpHeader::LinkType(u16::try_from(other).unwrap_or(u16::MAX))),
    }
}

pub(crate) fn after_wifi(data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    after_wifi_header(data, at, 1)
}

/// The header is filled up to a multiple of `alignment`.
fn after_wifi_header(data: &[u8], at: usize, alignment: usize) -> Result<IpPlace, NoIpHeader> {
    const DATA: u8 = 0x08;
    const WITHOUT_DATA: u8 = 0x40;
    const WITH_QUALITY: u8 = 0x80;
    const BETWEEN_STATIONS: u8 = 0x03;
    const ENCRYPTED: u8 = 0x40;
    const WITH_CONTROL: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;
    let (kind, flags) = data.get(at).zip(data.get(at + 1)).ok_or(NoIpHeader::Short)?;
    if kind & 0x0c != DATA || kind & WITHOUT_DATA != 0 {
        return Err(NoIpHeader::WifiControl);
    }
    if flags & ENCRYPTED != 0 {
        return Err(NoIpHeader::EncryptedWifi);
    }
    let mut header = if flags & BETWEEN_STATIONS == BETWEEN_STATIONS { 30 } else { 24 };
    if kind & WITH_QUALITY != 0 {
        if data.get(at + header).ok_or(NoIpHeader::Short)? & AGGREGATE != 0 {
            return Err(NoIpHeader::WifiAggregate);
        }
        header += if flags & WITH_CONTROL != 0 { 6 } else { 2 };
    }
    after_llc(data, at + header.next_multiple_of(alignment))
}

/// Radiotap: its length, and one flag that matters, whose place depends on which fields there are.
fn after_radiotap(data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    const MORE: u32 = 1 << 31;
    const TIME: u32 = 1;
    const FLAGS: u32 = 2;
    const IS_FILLED_UP: u8 = 0x20;
    let length = usize::from(little_endian(data, at + 2)?);
    let fields = u32_at(data, at + 4, u32::from_le_bytes)?;
    let header = data.get(at..at + length).ok_or(NoIpHeader::Short)?;
    let words = header.get(4..).unwrap_or_default().as_chunks::<4>().0;
    let masks = 1 + words.iter().take_while(|word| u32::from_le_bytes(**word) & MORE != 0).count();
    let behind = 4 + 4 * masks;
    let flags_at = if fields & TIME == 0 { behind } else { behind.next_multiple_of(8) + 8 };
    let flags = if fields & FLAGS == 0 { 0 } else { *header.get(flags_at).ok_or(NoIpHeader::Short)? };
    after_wifi_header(data, at + length, if flags & IS_FILLED_UP == 0 { 1 } else { 4 })
}

/// Linux' log of netfilter: a header of four bytes, then attributes in the byte order of the capturing machine, one of
/// which is the packet.
fn after_nflog(data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    const PACKET: u16 = 9;
    let mut at = at + 4;
    loop {
        let [length, kind] = [little_endian(data, at)?, little_endian(data, at + 2)?];
        // An attribute is shorter than 64 KiB, and its type below 256.
        let [length, kind] = if kind > 0xff { [length, kind].map(u16::swap_bytes) } else { [length, kind] };
        match (kind, usize::from(length)) {
            (PACKET, 4..) => return ip_at(data, at + 4),
            (_, length @ 4..) => at += length.next_multiple_of(4),
            _ => return Err(NoIpHeader::Other),
        }
    }
}

pub(crate) fn after_ethernet(data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    let ether_type = big_endian(data, at + 12)?;
    if ether_type >= 0x0600 {
        return after_ether_type(ether_type, data, at + 14);
    }
    // A length instead of a type: IEEE 802.3. With SNAP (RFC 1042) an EtherType follows.
    Ok(after_llc(data, at + 14)?.within(at + 14, ether_type))
}

fn after_llc(data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    match data.get(at..at + 6) {
        Some([0xaa, 0xaa, 3, 0, 0, 0]) => after_ether_type(big_endian(data, at + 6)?, data, at + 8),
        Some(_) => Err(NoIpHeader::Llc),
        None => Err(NoIpHeader::Short),
    }
}

/// Skips VLAN tags, MPLS and PPPoE up to the IP header; `ether_type` is the type of what begins at `at`.
pub(crate) fn after_ether_type(mut ether_type: u16, data: &[u8], mut at: usize) -> Result<IpPlace, NoIpHeader> {
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
fn after_mpls(data: &[u8], mut at: usize) -> Result<IpPlace, NoIpHeader> {
    for _ in 0..=MAX_TAGS {
        let third = data.get(at + 2).ok_or(NoIpHeader::Short)?;
        at += 4;
        if third & 1 == 1 {
            return ip_at(data, at);
        }
    }
    Err(NoIpHeader::Other)
}

fn after_pppoe(data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    Ok(after_ppp(data, at + 6)?.within(at + 6, big_endian(data, at + 4)?))
}

/// PPP: the address and control bytes of serial lines (RFC 1662), if any, and the protocol in one byte or two.
fn after_ppp(data: &[u8], mut at: usize) -> Result<IpPlace, NoIpHeader> {
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

fn after_address_family(data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    let family = u32_at(data, at, u32::from_be_bytes)?;
    match family.min(family.swap_bytes()) {
        // AF_INET everywhere; AF_INET6 differs between systems.
        2 | 10 | 24 | 28 | 30 => ip_at(data, at + 4),
        _ => Err(NoIpHeader::Other),
    }
}

/// An IP header that begins at `at`, recognised by its version.
pub(crate) fn ip_at(data: &[u8], at: usize) -> Result<IpPlace, NoIpHeader> {
    match data.get(at) {
        Some(version) if matches!(version >> 4, 4 | 6) => Ok(IpPlace { offset: at, end: usize::MAX }),
        Some(_) => Err(NoIpHeader::Other),
        None => Err(NoIpHeader::Short),
    }
}

pub(crate) fn big_endian(data: &[u8], at: usize) -> Result<u16, NoIpHeader> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk()).ok_or(NoIpHeader::Short)?;
    Ok(u16::from_be_bytes(*bytes))
}

fn little_endian(data: &[u8], at: usize) -> Result<u16, NoIpHeader> {
    big_endian(data, at).map(u16::swap_bytes)
}

fn u32_at(data: &[u8], at: usize, order: fn([u8; 4]) -> u32) -> Result<u32, NoIpHeader> {
    data.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| order(*bytes)).ok_or(NoIpHeader::Short)
}

fn name_in_parentheses(link_type: u16) -> String {
    let name = match link_type {
        104 => "Cisco HDLC",
        107 => "Frame Relay",
        119 | 163 => "Wi-Fi behind a header of Prism or AVS",
        143 => "DOCSIS",
        147..=162 => "for private use",
        178..=181 => "Juniper's headers",
        187 | 201 | 254 => "Bluetooth HCI",
        189 | 220 | 249 => "USB",
        195 | 215 | 230 | 283 => "IEEE 802.15.4: Zigbee, Thread",
        227 => "CAN",
        251 | 256 | 272 => "Bluetooth Low Energy",
        253 => "netlink",
        _ => return String::new(),
    };
    format!(" ({name})")
}

impl NoIpHeader {
    /// Whether every network has such frames, so that they need not be reported: ARP, RARP, Wake-on-LAN, PPPoE
    /// discovery, 802.1X, LLDP, loopback tests, spanning tree.
    pub fn is_routine(self) -> bool {
        match self {
            Self::Llc | Self::WifiControl => true,
            Self::EtherType(number) => [0x0806, 0x8035, 0x0842, 0x8863, 0x888e, 0x88cc, 0x9000].contains(&number),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offset(link_type: u16, header: &[u8], version: u8) -> Result<usize, NoIpHeader> {
        ip_place(link_type, &[header, &[version << 4 | 5, 0, 0, 0]].concat()).map(|place| place.offset)
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
        assert_eq!(offset(204, &[1, 0xff, 3, 0, 0x21], 4), Ok(5), "behind a direction");
    }

    #[test]
    fn lengths_of_the_layers_around_it_bound_a_packet() {
        let packet = [&[0x45, 0, 0, 46][..], &[0; 42]].concat();
        let lengths = |link_type, header: &[u8], captured: usize| {
            let frame = [header, &packet].concat();
            let bytes = ip_bytes(link_type, CapturedBytes::new(&frame[..captured], frame.len() as u32)).unwrap();
            (bytes.data().len(), bytes.length())
        };
        let with = |rest: &[u8]| [&[0; 12][..], rest].concat();
        let pppoe = with(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 42, 0, 0x21]);
        assert_eq!(lengths(1, &pppoe, 68), (40, 40));
        assert_eq!(lengths(1, &pppoe, 44), (22, 40), "cut by the snaplen");
        let llc = with(&[0, 48, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        assert_eq!(lengths(1, &llc, 68), (40, 40));
        let tagged = with(&[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 1, 0, 42, 0, 0x21]);
        assert_eq!(lengths(1, &tagged, 72), (40, 40));
        let unsaid = with(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, 0x21]);
        assert_eq!(lengths(1, &unsaid, 68), (46, 46), "offloading leaves a length of 0");
    }

    #[test]
    fn headers_of_radios_and_of_capturing_systems_lead_to_the_ip_header() {
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        let wifi = |control: [u8; 2], length: usize| [&control[..], &vec![0; length - 2], &snap].concat();
        assert_eq!(offset(105, &wifi([0x08, 0x01], 24), 4), Ok(32));
        assert_eq!(offset(105, &wifi([0x88, 0x02], 26), 4), Ok(34), "with quality of service");
        assert_eq!(offset(105, &wifi([0x88, 0x83], 36), 4), Ok(44), "four addresses and a control field");
        assert_eq!(offset(105, &wifi([0x08, 0x41], 24), 4), Err(NoIpHeader::EncryptedWifi));
        assert_eq!(offset(105, &wifi([0x80, 0x00], 24), 4), Err(NoIpHeader::WifiControl));
        let aggregate = [&[0x88, 1][..], &[0; 22], &[0x80, 0]].concat();
        assert_eq!(offset(105, &aggregate, 4), Err(NoIpHeader::WifiAggregate));
        let radiotap = |rest: &[u8], frame: &[u8]| [&[0, 0, 8 + rest.len() as u8, 0][..], rest, frame].concat();
        let plain = [&[0, 0, 8, 0, 0, 0, 0, 0][..], &wifi([0x08, 1], 24)].concat();
        assert_eq!(offset(127, &plain, 4), Ok(40));
        // A time and flags, which say that 26 bytes of header are filled up to 28.
        let filled = [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[0; 8], &[0x20], &wifi([0x88, 1], 28)].concat();
        assert_eq!(offset(127, &filled, 4), Ok(17 + 36));
        assert!(offset(127, &radiotap(&[0; 60], &[]), 4).is_err());
        assert_eq!(offset(192, &[&[0, 0, 8, 0, 105, 0, 0, 0][..], &wifi([8, 1], 24)].concat(), 4), Ok(40));
        assert_eq!(offset(258, &[&[20, 0, 0, 0, 1, 0, 0, 0, 101, 0, 0, 0][..], &[0; 8]].concat(), 4), Ok(20));
        let nflog = |attributes: &[u8]| [&[2, 0, 0, 9][..], attributes].concat();
        assert_eq!(offset(239, &nflog(&[5, 0, 10, 0, 7, 0, 0, 0, 24, 0, 9, 0]), 4), Ok(16));
        assert_eq!(offset(239, &nflog(&[0, 8, 0, 10, 0, 0, 0, 1, 0, 24, 0, 9]), 6), Ok(16), "big-endian");
        assert_eq!(offset(239, &nflog(&[0; 4]), 4), Err(NoIpHeader::Other));
        assert_eq!(offset(117, &[&[61, 2][..], &[0; 62]].concat(), 4), Ok(64));
        assert_eq!(offset(109, &[0; 12], 4), Ok(12));
    }

    #[test]
    fn frames_without_ip_name_the_reason() {
        assert_eq!(offset(1, &[&[0; 12][..], &[8, 6]].concat(), 4), Err(NoIpHeader::EtherType(0x0806)));
        assert_eq!(offset(1, &[&[0; 12][..], &[0, 60, 0x42, 0x42, 3]].concat(), 4), Err(NoIpHeader::Llc));
        assert_eq!(offset(1, &[&[0; 12][..], &[0x88, 0x47, 0, 0, 1, 64]].concat(), 0), Err(NoIpHeader::Other));
        assert_eq!(offset(195, &[], 4), Err(NoIpHeader::LinkType(195)));
        for (number, name) in [(104, "Cisco HDLC"), (107, "Frame Relay"), (163, "Wi-Fi"), (180, "Juniper")] {
            let error = offset(number, &[0; 40], 4).unwrap_err();
            assert!(error.to_string().starts_with(&format!("link type {number} ({name}")), "{error}");
        }
        assert_eq!(ip_place(1, &[0; 13]), Err(NoIpHeader::Short));
        assert_eq!(offset(101, &[], 9), Err(NoIpHeader::Other));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_lead_beyond_the_frame(
            link_type in 0u16..300, data in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Ok(place) = ip_place(link_type, &data) {
                prop_assert!(place.offset < data.len());
            }
        }
    }
}
