//! pcapng: blocks in sections; each section has its own interfaces (draft-ietf-opsawg-pcapng).

use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, OptionCode, parse_block_be, parse_block_le};

use crate::error::Damage;
use crate::resync::{Candidate, PacketFormat};
use crate::window::{CapturedPacket, MAX_PART, PacketVisitor, Window};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BIG_ENDIAN_MAGIC: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
const MIN_BLOCK_BYTES: u64 = 12;
/// Bytes of an enhanced or obsolete packet block before the data.
const PACKET_HEADER_BYTES: usize = 28;
/// Every block ends with its length once more.
const TRAILER_BYTES: usize = 4;
const BLOCK: &str = "block";
const NANOSECONDS: u64 = 1_000_000_000;
const MAX_INTERFACES: usize = 65_536;
const LONGEST_BLOCK: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Simple packets have no time of their own; they get that of the packet before.
    last_ns: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: u16,
    snaplen: u32,
    units: u64,
    offset_seconds: i64,
}

impl Pcapng {
    /// Skips the next block if it holds no packet; false if a packet or the end comes next. An error consumes nothing,
    /// unless in a block too large to be checked first.
    pub(crate) fn skip_block(&mut self, window: &mut Window) -> Result<bool, Damage> {
        let offset = window.offset();
        let Some(header) = window.peek(MIN_BLOCK_BYTES, BLOCK)? else { return Ok(false) };
        let kind = self.read_kind(header);
        let length = self.checked_length(header, offset)?;
        if is_packet(kind) {
            return Ok(false);
        }
        let has_meaning = matches!(kind, SECTION_HEADER | INTERFACE);
        if !has_meaning && length > MAX_PART {
            // Names, statistics, keys and unknown blocks may have any length.
            return window.skip(length, BLOCK);
        }
        let Some(block) = window.peek(length, BLOCK)? else { return Ok(false) };
        if !self.ends_with_length(block) {
            return Err(malformed(offset, "the two lengths of a block differ"));
        }
        if kind == INTERFACE {
            let interface = match self.parse(block) {
                Some(Block::InterfaceDescription(description)) => Interface::new(&description, self.big_endian),
                _ => return Err(malformed(offset, "an interface description cannot be read")),
            };
            if self.interfaces.len() >= MAX_INTERFACES {
                return Err(malformed(offset, "a section with more interfaces than there can be"));
            }
            self.interfaces.push(interface);
        } else if kind == SECTION_HEADER {
            self.interfaces.clear();
        }
        window.consume(length as usize);
        Ok(true)
    }

    /// The length of the next block, which holds a packet and is in the window then; `None` at the end. An error
    /// consumes nothing.
    pub(crate) fn find_packet(&self, window: &mut Window) -> Result<Option<u64>, Damage> {
        let offset = window.offset();
        let Some(header) = window.peek(MIN_BLOCK_BYTES, BLOCK)? else { return Ok(None) };
        let length = self.checked_length(header, offset)?;
        let Some(block) = window.peek(length, BLOCK)? else { return Ok(None) };
        let packet = self.packet(block);
        packet.ok_or_else(|| malformed(offset, "a packet block cannot be read, or has no interface"))?;
        Ok(Some(length))
    }

    pub(crate) fn take_packet<'a>(
        &mut self,
        length: u64,
        window: &'a mut Window,
    ) -> Result<Option<CapturedPacket<'a>>, Damage> {
        let packet = window.take(length, BLOCK)?.and_then(|block| self.packet(block));
        self.last_ns = packet.map(|packet| packet.time_ns).or(self.last_ns);
        Ok(packet)
    }

    fn packet<'a>(&self, block: &'a [u8]) -> Option<CapturedPacket<'a>> {
        match self.number(block)? {
            ENHANCED_PACKET => self.parse_enhanced(block).map(|(packet, _)| packet),
            SIMPLE_PACKET => self.parse_simple(block),
            OBSOLETE_PACKET => self.parse_obsolete(block),
            _ => None,
        }
    }

    /// Hands the enhanced packet blocks that are whole in the window, up to a block of another kind, to a visitor;
    /// returns how many it took.
    pub(crate) fn visit_buffered(&mut self, window: &mut Window, visitor: &mut impl PacketVisitor) -> u64 {
        let this = &*self;
        let visited = visitor.visit(window.available(), window.shared(), move |bytes| this.parse_enhanced(bytes));
        window.consume(visited.bytes);
        self.last_ns = visited.last_ns.filter(|_| visited.packets > 0).or(self.last_ns);
        visited.packets
    }

    /// The enhanced packet block at the front of `bytes` and the bytes behind it; `None` where it is another block, not
    /// whole or malformed.
    fn parse_enhanced<'a>(&self, bytes: &'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> {
        let (header, _) = bytes.split_first_chunk::<PACKET_HEADER_BYTES>()?;
        let field = |at: usize| self.number(header.get(at..)?);
        let length = field(4)? as usize;
        if field(0)? != ENHANCED_PACKET || !length.is_multiple_of(4) {
            return None;
        }
        let (block, behind) = bytes.split_at_checked(length)?;
        let (block, trailer) = block.split_last_chunk::<TRAILER_BYTES>()?;
        let data = block.get(PACKET_HEADER_BYTES..)?.get(..field(20)? as usize)?;
        if self.number(trailer)? as usize != length {
            return None;
        }
        let interface = self.interface(field(8)?)?;
        let (time_ns, link_type) = (interface.time_ns(field(12)?, field(16)?), interface.link_type);
        Some((CapturedPacket { time_ns, link_type, original_length: field(24)?, data }, behind))
    }

    /// A simple packet block: it has no time, and its length is limited by the snaplen of the first interface.
    fn parse_simple<'a>(&self, block: &'a [u8]) -> Option<CapturedPacket<'a>> {
        let interface = self.interface(0)?;
        let original_length = self.number(block.get(8..)?)?;
        let (block, _) = block.split_last_chunk::<TRAILER_BYTES>()?;
        let data = block.get(12..)?;
        let snaplen = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
        let data = data.get(..original_length.min(snaplen) as usize).unwrap_or(data);
        let time_ns = self.last_ns.unwrap_or_default();
        Some(CapturedPacket { time_ns, link_type: interface.link_type, original_length, data })
    }

    /// The packet block from before 2004: like an enhanced one, but with 16 bits each for the interface and for drops.
    fn parse_obsolete<'a>(&self, block: &'a [u8]) -> Option<CapturedPacket<'a>> {
        let (block, _) = block.split_last_chunk::<TRAILER_BYTES>()?;
        let field = |at: usize| self.number(block.get(at..)?);
        let interface: [u8; 2] = block.get(8..10)?.try_into().ok()?;
        let interface = if self.big_endian { u16::from_be_bytes(interface) } else { u16::from_le_bytes(interface) };
        let interface = self.interface(interface.into())?;
        Some(CapturedPacket {
            time_ns: interface.time_ns(field(12)?, field(16)?),
            link_type: interface.link_type,
            original_length: field(24)?,
            data: block.get(PACKET_HEADER_BYTES..)?.get(..field(20)? as usize)?,
        })
    }

    fn read_kind(&mut self, header: &[u8]) -> u32 {
        if self.number(header) == Some(SECTION_HEADER) {
            self.big_endian = header.get(8..12) == Some(&BIG_ENDIAN_MAGIC);
        }
        self.number(header).unwrap_or_default()
    }

    fn block_length(&self, bytes: &[u8]) -> Option<u64> {
        self.number(bytes.get(4..)?).map(u64::from)
    }

    fn checked_length(&self, header: &[u8], offset: u64) -> Result<u64, Damage> {
        let length = self.block_length(header).unwrap_or_default();
        if length < MIN_BLOCK_BYTES || !length.is_multiple_of(4) {
            return Err(malformed(offset, &format!("a block claims to be {length} bytes long")));
        }
        Ok(length)
    }

    fn ends_with_length(&self, block: &[u8]) -> bool {
        block.split_last_chunk::<TRAILER_BYTES>().and_then(|(_, trailer)| self.number(trailer)).map(u64::from)
            == self.block_length(block)
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
}

impl PacketFormat for Pcapng {
    /// Any block whose two lengths are the same; one with a packet must be readable.
    fn candidate(&self, bytes: &[u8]) -> Candidate {
        let (Some(kind), Some(length)) = (self.number(bytes), self.block_length(bytes)) else {
            return Candidate::Incomplete(MIN_BLOCK_BYTES as usize);
        };
        let length = length as usize;
        if length < MIN_BLOCK_BYTES as usize || !length.is_multiple_of(4) || length > LONGEST_BLOCK {
            return Candidate::Implausible;
        }
        let Some(block) = bytes.get(..length) else { return Candidate::Incomplete(length) };
        if !self.ends_with_length(block) {
            return Candidate::Implausible;
        }
        match self.packet(block) {
            Some(packet) => Candidate::Plausible { length, time_ns: Some(packet.time_ns) },
            None if is_packet(kind) => Candidate::Implausible,
            None => Candidate::Plausible { length, time_ns: None },
        }
    }

    fn last_ns(&self) -> Option<i64> {
        self.last_ns
    }
}

impl Interface {
    fn new(description: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Self {
        // `if_tsresol`: the top bit selects powers of 2 instead of powers of 10.
        let exponent = u32::from(description.if_tsresol & 0x7f);
        let base: u64 = if description.if_tsresol & 0x80 == 0 { 10 } else { 2 };
        // The parser takes `if_tsoffset` for little-endian in every section.
        let mut options = description.options.iter().filter(|option| option.code == OptionCode::IfTsoffset);
        let offset: Option<[u8; 8]> = options.find_map(|option| option.as_bytes().ok()?.try_into().ok());
        Self {
            link_type: (description.linktype.0 & 0xffff) as u16,
            snaplen: description.snaplen,
            units: base.checked_pow(exponent).unwrap_or(u64::MAX),
            offset_seconds: offset.map_or(0, if big_endian { i64::from_be_bytes } else { i64::from_le_bytes }),
        }
    }

    /// Nanoseconds since the epoch; times out of range become the nearest that fits.
    fn time_ns(&self, high: u32, low: u32) -> i64 {
        let time = u64::from(high) << 32 | u64::from(low);
        // Nearly all captures: powers of ten up to nanoseconds, no offset, no overflow.
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
