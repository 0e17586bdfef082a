//! Classic pcap: a header, then packets (draft-ietf-opsawg-pcap), and the variant of some old Linux systems whose packets
//! have a longer header.

use pcap_parser::pcap::{PcapHeader, parse_pcap_header};

use crate::error::Damage;
use crate::packet_batcher::{PacketBatcher, Stretch};
use crate::reader::{CapturedPacket, Step};
use crate::window::Window;

const HEADER_BYTES: u64 = 24;
const RECORD_HEADER_BYTES: u64 = 16;
const MODIFIED_HEADER_BYTES: u64 = 24;
const PACKET: &str = "packet";

/// What a file's header says of its packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pcap {
    layout: Layout,
    /// What the fraction of a second counts, in nanoseconds.
    fraction_ns: u16,
    link_type: u16,
}

/// How a packet's header is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    LittleEndian,
    BigEndian,
    /// Little-endian, with 8 bytes about the interface behind the usual fields.
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
}

impl Pcap {
    pub(crate) fn read_header(window: &mut Window) -> Result<Self, Damage> {
        let header = window.take(HEADER_BYTES, "file header")?.ok_or(Damage::Empty)?;
        let (_, header) = parse_pcap_header(header)
            .map_err(|_| Damage::Malformed { offset: 0, fault: "its file header cannot be read".to_owned() })?;
        Ok(Self {
            layout: Layout::of(&header),
            fraction_ns: if header.is_nanosecond_precision() { 1 } else { 1000 },
            // The upper half of the field holds the length of a frame check sequence, not the type.
            link_type: (header.network.0 & 0xffff) as u16,
        })
    }

    pub(crate) fn packet(self, window: &mut Window) -> Result<Step<'_>, Damage> {
        let Some(header) = window.peek(self.layout.header_bytes(), PACKET)? else { return Ok(Step::End) };
        let length = self.record_length(header).unwrap_or(u64::MAX);
        let offset = window.offset();
        let Some(record) = window.take(length, PACKET)? else { return Ok(Step::End) };
        let packet = self.first(record).map(|(packet, _)| packet);
        packet
            .map(Step::Packet)
            .ok_or_else(|| Damage::Malformed { offset, fault: "a packet cannot be read".to_owned() })
    }

    /// Takes the packets that are whole in the window, as far as they may be taken; how many it took.
    pub(crate) fn gather(self, window: &mut Window, stretch: &Stretch, filling: &mut PacketBatcher) -> u64 {
        let (bytes, shared) = (window.available(), window.shared());
        let (rest, taken) = match self.layout {
            // Nearly all captures; the same walk with a layout that is known is twice as fast.
            Layout::LittleEndian => filling.gather(bytes, stretch, shared, move |bytes| {
                Self { layout: Layout::LittleEndian, ..self }.first(bytes)
            }),
            _ => filling.gather(bytes, stretch, shared, move |bytes| self.first(bytes)),
        };
        let left = rest.len();
        window.consume(window.available().len() - left);
        taken
    }

    /// The packet that `bytes` begin with, and what is behind it, if all of it is there.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions a packet")]
    fn first(self, bytes: &[u8]) -> Option<(CapturedPacket<'_>, &[u8])> {
        let (header, behind) = bytes.split_first_chunk::<{ RECORD_HEADER_BYTES as usize }>()?;
        let number = |at: usize| {
            let bytes = [at, at + 1, at + 2, at + 3].map(|at| header.get(at).copied().unwrap_or_default());
            if self.layout == Layout::BigEndian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let behind = behind.get((self.layout.header_bytes() - RECORD_HEADER_BYTES) as usize..)?;
        let (data, behind) = behind.split_at_checked(number(8) as usize)?;
        let fraction = i64::from(number(4)) * i64::from(self.fraction_ns);
        let time_ns = i64::from(number(0)) * 1_000_000_000 + fraction;
        Some((CapturedPacket { time_ns, link_type: self.link_type, original_length: number(12), data }, behind))
    }

    /// The length of the record whose header `bytes` begin with.
    pub(crate) fn record_length(self, bytes: &[u8]) -> Option<u64> {
        let length: [u8; 4] = bytes.get(8..12)?.try_into().ok()?;
        let big_endian = self.layout == Layout::BigEndian;
        let length = if big_endian { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) };
        Some(self.layout.header_bytes() + u64::from(length))
    }
}
