//! Classic pcap (draft-ietf-opsawg-pcap), and the "modified" variant of old Linux systems with longer packet headers.

use pcap_parser::pcap::{PcapHeader, parse_pcap_header};

use crate::error::Damage;
use crate::packet::{CapturedPacket, PacketVisitor};
use crate::window::Window;

const HEADER_BYTES: u64 = 24;
const RECORD_HEADER_BYTES: u64 = 16;
const MODIFIED_HEADER_BYTES: u64 = 24;
const PACKET: &str = "packet";

/// What the file header says about the packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pcap {
    layout: Layout,
    /// Nanoseconds per unit of the sub-second field.
    fraction_ns: u16,
    link_type: u16,
}

/// The layout of a packet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    LittleEndian,
    BigEndian,
    /// Little-endian, with 8 bytes about the interface after the usual fields.
    Modified,
}

impl Layout {
    fn of(header: &PcapHeader) -> Self {
        if header.is_modified_format() {
            Self::Modified
        } else if header.is_bigendian() {
            Self::BigEndian
        } else {
            Self::LittleEndian
        }
    }

    fn header_bytes(self) -> u64 {
        if self == Self::Modified { MODIFIED_HEADER_BYTES } else { RECORD_HEADER_BYTES }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions a packet")]
    fn u32(self, bytes: [u8; 4]) -> u32 {
        if self == Self::BigEndian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

impl Pcap {
    pub(crate) fn read_header(window: &mut Window) -> Result<Self, Damage> {
        let header = window.take(HEADER_BYTES, "file header")?.ok_or(Damage::Empty)?;
        let (_, header) = parse_pcap_header(header)
            .map_err(|_| Damage::Malformed { offset: 0, fault: "its file header cannot be read".to_owned() })?;
        Ok(Self {
            layout: Layout::of(&header),
            fraction_ns: if header.is_nanosecond_precision() { 1 } else { 1000 },
            // The upper half of the field is the length of a frame check sequence, not the type.
            link_type: (header.network.0 & 0xffff) as u16,
        })
    }

    pub(crate) fn next_packet(self, window: &mut Window) -> Result<Option<CapturedPacket<'_>>, Damage> {
        let Some(header) = window.peek(self.layout.header_bytes(), PACKET)? else { return Ok(None) };
        let length = self.record_length(header).unwrap_or(u64::MAX);
        let offset = window.offset();
        let Some(record) = window.take(length, PACKET)? else { return Ok(None) };
        let packet = self.parse(record).map(|(packet, _)| packet);
        packet.map(Some).ok_or_else(|| Damage::Malformed { offset, fault: "a packet cannot be read".to_owned() })
    }

    /// Hands the packets that are whole in the window to a visitor; returns how many it took.
    pub(crate) fn visit_buffered(self, window: &mut Window, visitor: &mut impl PacketVisitor) -> u64 {
        let (bytes, buffer) = (window.available(), window.shared());
        let visited = match self.layout {
            // Nearly all captures. The same loop with a constant layout is twice as fast.
            Layout::LittleEndian => {
                visitor.visit(bytes, buffer, move |bytes| Self { layout: Layout::LittleEndian, ..self }.parse(bytes))
            }
            _ => visitor.visit(bytes, buffer, move |bytes| self.parse(bytes)),
        };
        window.consume(visited.bytes);
        visited.packets
    }

    /// The packet at the front of `bytes` and the bytes behind it; `None` where it is not whole.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions a packet")]
    fn parse(self, bytes: &[u8]) -> Option<(CapturedPacket<'_>, &[u8])> {
        let (header, behind) = bytes.split_first_chunk::<{ RECORD_HEADER_BYTES as usize }>()?;
        let number = |at: usize| {
            self.layout.u32([at, at + 1, at + 2, at + 3].map(|at| header.get(at).copied().unwrap_or_default()))
        };
        let behind = behind.get((self.layout.header_bytes() - RECORD_HEADER_BYTES) as usize..)?;
        let (data, behind) = behind.split_at_checked(number(8) as usize)?;
        let fraction = i64::from(number(4)) * i64::from(self.fraction_ns);
        let time_ns = i64::from(number(0)) * 1_000_000_000 + fraction;
        Some((CapturedPacket { time_ns, link_type: self.link_type, original_length: number(12), data }, behind))
    }

    /// The length of the record whose header is at the front of `bytes`.
    fn record_length(self, bytes: &[u8]) -> Option<u64> {
        let length = self.layout.u32(bytes.get(8..12)?.try_into().ok()?);
        Some(self.layout.header_bytes() + u64::from(length))
    }
}
