//! pcapng: blocks in sections, each section with interfaces of its own (draft-ietf-opsawg-pcapng).

use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, parse_block_be, parse_block_le};

use crate::error::Damage;
use crate::packet_batcher::{PacketBatcher, Stretch};
use crate::reader::{CapturedPacket, Step};
use crate::window::Window;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BIG_ENDIAN_MAGIC: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
const LEAST_BLOCK_BYTES: u64 = 12;
/// Of an enhanced packet block, before the data.
const ENHANCED_HEADER_BYTES: usize = 28;
const BLOCK: &str = "block";
const NANOSECONDS: u64 = 1_000_000_000;
const MOST_INTERFACES: usize = 65_536;

/// What the blocks so far say of the packets that follow.
#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Simple packets carry no time; they get that of the packet before.
    last_time_ns: i64,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: u16,
    snaplen: u32,
    /// Units of time a second.
    units: u64,
    offset_seconds: i64,
}

impl Pcapng {
    /// Goes over the next block if it holds no packet; false where one is next, or the end.
    pub(crate) fn skip(&mut self, window: &mut Window) -> Result<bool, Damage> {
        let offset = window.offset();
        let Some(header) = window.peek(LEAST_BLOCK_BYTES, BLOCK)? else { return Ok(false) };
        let kind = self.enter(header);
        let length = self.checked_length(header, offset)?;
        if is_packet(kind) {
            return Ok(false);
        }
        if !matches!(kind, SECTION_HEADER | INTERFACE) {
            // Names, statistics, keys, and what nobody knows: of any length.
            return window.skip(length, BLOCK);
        }
        let Some(block) = window.take(length, BLOCK)? else { return Ok(false) };
        if kind == SECTION_HEADER {
            self.interfaces.clear();
            return Ok(true);
        }
        let interface = match self.parse(block) {
            Some(Block::InterfaceDescription(description)) => Interface::new(&description),
            _ => return Err(malformed(offset, "an interface description cannot be read")),
        };
        if self.interfaces.len() >= MOST_INTERFACES {
            return Err(malformed(offset, "a section with more interfaces than there can be"));
        }
        self.interfaces.push(interface);
        Ok(true)
    }

    /// The packet of the next block, which holds one.
    pub(crate) fn packet<'a>(&mut self, window: &'a mut Window) -> Result<Step<'a>, Damage> {
        let offset = window.offset();
        let Some(header) = window.peek(LEAST_BLOCK_BYTES, BLOCK)? else { return Ok(Step::End) };
        let (kind, length) = (self.number(header).unwrap_or_default(), self.checked_length(header, offset)?);
        let Some(block) = window.take(length, BLOCK)? else { return Ok(Step::End) };
        let packet = match kind {
            OBSOLETE_PACKET => self.obsolete(block),
            _ => match self.parse(block) {
                Some(Block::EnhancedPacket(packet)) => self.interface(packet.if_id).and_then(|interface| {
                    Some(CapturedPacket {
                        time_ns: interface.time_ns(packet.ts_high, packet.ts_low),
                        link_type: interface.link_type,
                        original_length: packet.origlen,
                        // What the parser gives includes the padding.
                        data: packet.data.get(..packet.caplen as usize)?,
                    })
                }),
                Some(Block::SimplePacket(packet)) => self.interface(0).map(|interface| {
                    let snaplen = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
                    let length = packet.origlen.min(snaplen) as usize;
                    CapturedPacket {
                        time_ns: self.last_time_ns,
                        link_type: interface.link_type,
                        original_length: packet.origlen,
                        data: packet.data.get(..length).unwrap_or(packet.data),
                    }
                }),
                _ => None,
            },
        };
        let packet = packet.ok_or_else(|| malformed(offset, "a packet block cannot be read, or has no interface"))?;
        self.last_time_ns = packet.time_ns;
        Ok(Step::Packet(packet))
    }

    /// Takes the packets that are whole in the window, up to a block of another kind, as far as they may be taken; how many
    /// it took.
    pub(crate) fn gather(&mut self, window: &mut Window, stretch: &Stretch, filling: &mut PacketBatcher) -> u64 {
        let this = &*self;
        let (rest, taken) =
            filling.gather(window.available(), stretch, window.shared(), move |bytes| this.first(bytes));
        let left = rest.len();
        window.consume(window.available().len() - left);
        if let Some(last_ns) = filling.last_ns().filter(|_| taken > 0) {
            self.last_time_ns = last_ns;
        }
        taken
    }

    /// The packet of the enhanced packet block that `bytes` begin with, and what is behind it, if all of it is there and as
    /// it should be.
    fn first<'a>(&self, bytes: &'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> {
        let (header, _) = bytes.split_first_chunk::<{ ENHANCED_HEADER_BYTES }>()?;
        let field = |at: usize| self.number(header.get(at..)?);
        let length = field(4)? as usize;
        if field(0)? != ENHANCED_PACKET || !length.is_multiple_of(4) {
            return None;
        }
        let (block, behind) = bytes.split_at_checked(length)?;
        // The block's length stands behind the data once more.
        let (block, trailer) = block.split_last_chunk::<4>()?;
        let data = block.get(ENHANCED_HEADER_BYTES..)?.get(..field(20)? as usize)?;
        if self.number(trailer)? as usize != length {
            return None;
        }
        let interface = self.interface(field(8)?)?;
        let (time_ns, link_type) = (interface.time_ns(field(12)?, field(16)?), interface.link_type);
        Some((CapturedPacket { time_ns, link_type, original_length: field(24)?, data }, behind))
    }

    /// Whether `bytes` hold a whole packet, whatever other blocks stand before it.
    pub(crate) fn holds_packet(&self, mut bytes: &[u8]) -> bool {
        let mut order = Self { big_endian: self.big_endian, ..Self::default() };
        while let Some(header) = bytes.get(..LEAST_BLOCK_BYTES as usize) {
            let kind = order.enter(header);
            let length = order.block_length(header).unwrap_or_default();
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if is_packet(kind) || length < LEAST_BLOCK_BYTES as usize {
                // What cannot be right is told at once, too.
                return length <= bytes.len();
            }
            bytes = bytes.get(length..).unwrap_or_default();
        }
        false
    }

    /// The kind of the block with this header; the header of a section sets the byte order.
    fn enter(&mut self, header: &[u8]) -> u32 {
        if self.number(header) == Some(SECTION_HEADER) {
            self.big_endian = header.get(8..12) == Some(&BIG_ENDIAN_MAGIC);
        }
        self.number(header).unwrap_or_default()
    }

    /// The length of the block whose header `bytes` begin with.
    fn block_length(&self, bytes: &[u8]) -> Option<u64> {
        self.number(bytes.get(4..)?).map(u64::from)
    }

    fn checked_length(&self, header: &[u8], offset: u64) -> Result<u64, Damage> {
        let length = self.block_length(header).unwrap_or_default();
        if length < LEAST_BLOCK_BYTES || !length.is_multiple_of(4) {
            return Err(malformed(offset, &format!("a block claims to be {length} bytes long")));
        }
        Ok(length)
    }

    fn parse<'a>(&self, block: &'a [u8]) -> Option<Block<'a>> {
        let parsed = if self.big_endian { parse_block_be(block) } else { parse_block_le(block) };
        parsed.ok().map(|(_, block)| block)
    }

    fn number(&self, bytes: &[u8]) -> Option<u32> {
        let bytes: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn interface(&self, number: u32) -> Option<&Interface> {
        self.interfaces.get(number as usize)
    }

    /// The packet block of before 2004, which pcap-parser does not read.
    fn obsolete<'a>(&self, block: &'a [u8]) -> Option<CapturedPacket<'a>> {
        let field = |at: usize| self.number(block.get(at..)?);
        let interface: [u8; 2] = block.get(8..10)?.try_into().ok()?;
        let interface = if self.big_endian { u16::from_be_bytes(interface) } else { u16::from_le_bytes(interface) };
        let interface = self.interface(interface.into())?;
        let captured = field(20)? as usize;
        Some(CapturedPacket {
            time_ns: interface.time_ns(field(12)?, field(16)?),
            link_type: interface.link_type,
            original_length: field(24)?,
            // The block's length stands behind the data once more.
            data: block.get(28..block.len().checked_sub(4)?)?.get(..captured)?,
        })
    }
}

impl Interface {
    fn new(description: &InterfaceDescriptionBlock<'_>) -> Self {
        // RFC draft, `if_tsresol`: the top bit tells powers of 2 from powers of 10.
        let exponent = u32::from(description.if_tsresol & 0x7f);
        let base: u64 = if description.if_tsresol & 0x80 == 0 { 10 } else { 2 };
        Self {
            link_type: (description.linktype.0 & 0xffff) as u16,
            snaplen: description.snaplen,
            units: base.checked_pow(exponent).unwrap_or(u64::MAX),
            offset_seconds: description.if_tsoffset,
        }
    }

    /// Nanoseconds since the epoch; times that do not fit are the nearest that do.
    fn time_ns(&self, high: u32, low: u32) -> i64 {
        let time = u64::from(high) << 32 | u64::from(low);
        // Nearly all: powers of ten up to nanoseconds, in times of our age, and no offset.
        if NANOSECONDS.is_multiple_of(self.units) && self.offset_seconds == 0 {
            let ns = time.checked_mul(NANOSECONDS / self.units);
            if let Some(ns) = ns.and_then(|ns| i64::try_from(ns).ok()) {
                return ns;
            }
        }
        let time = i128::from(time);
        let ns = time * 1_000_000_000 / i128::from(self.units) + i128::from(self.offset_seconds) * 1_000_000_000;
        i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
    }
}

fn is_packet(kind: u32) -> bool {
    matches!(kind, OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET)
}

fn malformed(offset: u64, fault: &str) -> Damage {
    Damage::Malformed { offset, fault: fault.to_owned() }
}
