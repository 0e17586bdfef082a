//! Classic pcap (draft-ietf-opsawg-pcap), and the "modified" variant of old Linux systems with longer packet headers.

use pcap_parser::pcap::parse_pcap_header;

use crate::error::Damage;
use crate::resync::{Candidate, PacketFormat, is_near};
use crate::window::{CapturedPacket, PacketVisitor, Window};

const HEADER_BYTES: u64 = 24;
const RECORD_HEADER_BYTES: u64 = 16;
const MODIFIED_HEADER_BYTES: u64 = 24;
const PACKET: &str = "packet";
const NANOSECONDS: u32 = 1_000_000_000;

/// The longest packet that tools of today write, in bytes. A longer one is doubted, as is one that was longer in the
/// capture than on the wire, or has no byte.
const LONGEST: u32 = 262_144;

/// The longest packet on the wire that is looked for behind damage: offloading makes packets longer than any network
/// has.
const LONGEST_ON_WIRE: u32 = 1 << 20;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pcap {
    layout: Layout,
    /// Nanoseconds per unit of the sub-second field.
    fraction_ns: u16,
    link_type: u16,
    snaplen: u32,
    last_ns: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct RecordHeader {
    seconds: u32,
    fraction: u32,
    captured: u32,
    original: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    is_big_endian: bool,
    /// Of a packet. The modified variant has 8 bytes about the interface after the usual fields.
    header_bytes: u64,
}

/// Nearly all captures.
const USUAL: Layout = Layout { is_big_endian: false, header_bytes: RECORD_HEADER_BYTES };

/// The first bytes of the modified variant in big-endian order, which the parser does not know.
const MODIFIED_BIG_ENDIAN: [u8; 4] = [0xa1, 0xb2, 0xcd, 0x34];
const BIG_ENDIAN: [u8; 4] = [0xa1, 0xb2, 0xc3, 0xd4];

impl Pcap {
    pub(crate) fn read_header(window: &mut Window) -> Result<Self, Damage> {
        let mut bytes = window.take(HEADER_BYTES, "file header")?.ok_or(Damage::Empty)?.to_vec();
        let is_modified_big_endian = bytes.starts_with(&MODIFIED_BIG_ENDIAN);
        if is_modified_big_endian {
            bytes.splice(..BIG_ENDIAN.len(), BIG_ENDIAN);
        }
        let (_, header) = parse_pcap_header(&bytes)
            .map_err(|_| Damage::Malformed { offset: 0, fault: "its file header cannot be read".to_owned() })?;
        // The two lengths of a packet are in the other order; 543 is of one system that did not follow the change.
        if matches!((header.version_major, header.version_minor), (2, ..4 | 543) | (..2, _)) {
            return Err(Damage::OtherFormat("an old system (pcap before version 2.4)"));
        }
        let is_modified = is_modified_big_endian || header.is_modified_format();
        let header_bytes = if is_modified { MODIFIED_HEADER_BYTES } else { RECORD_HEADER_BYTES };
        Ok(Self {
            layout: Layout { is_big_endian: header.is_bigendian(), header_bytes },
            fraction_ns: if header.is_nanosecond_precision() { 1 } else { 1000 },
            // The upper half of the field is the length of a frame check sequence, not the type.
            link_type: (header.network.0 & 0xffff) as u16,
            snaplen: header.snaplen,
            last_ns: None,
        })
    }

    /// The length of the next packet with its header, all of which is in the window then; `None` at the end. An error
    /// consumes nothing.
    pub(crate) fn find_packet(&self, window: &mut Window) -> Result<Option<u64>, Damage> {
        let offset = window.offset();
        let Some(bytes) = window.peek(self.layout.header_bytes, PACKET)? else { return Ok(None) };
        let cannot_be_read = || Damage::Malformed { offset, fault: "a packet cannot be read".to_owned() };
        let header = self.header(bytes).ok_or_else(cannot_be_read)?;
        let length = self.layout.header_bytes + u64::from(header.captured);
        if window.peek(length, PACKET)?.is_none() {
            return Ok(None);
        }
        if header.is_doubtful() && !self.is_confirmed(header, length, window) {
            return Err(Damage::Malformed { offset, fault: header.fault() });
        }
        Ok(Some(length))
    }

    pub(crate) fn take_packet<'a>(
        &mut self,
        length: u64,
        window: &'a mut Window,
    ) -> Result<Option<CapturedPacket<'a>>, Damage> {
        let Some(record) = window.take(length, PACKET)? else { return Ok(None) };
        let packet = self.header(record).and_then(|header| self.record(header, record)).map(|(packet, _)| packet);
        self.last_ns = packet.map(|packet| packet.time_ns).or(self.last_ns);
        Ok(packet)
    }

    /// Whether a doubtful packet is right all the same: its time is near the one before, and so is that of the packet
    /// that follows, or the capture ends there.
    fn is_confirmed(&self, header: RecordHeader, length: u64, window: &mut Window) -> bool {
        let time_ns = self.time_ns(header);
        if !self.last_ns.is_none_or(|last_ns| is_near(time_ns, last_ns)) {
            return false;
        }
        window.fetch((length + self.layout.header_bytes) as usize);
        let behind = window.available().get(length as usize..).unwrap_or_default();
        if behind.is_empty() {
            return true;
        }
        let follows = |next: RecordHeader| {
            next.captured <= LONGEST && self.has_valid_fraction(next) && is_near(self.time_ns(next), time_ns)
        };
        self.header(behind).is_some_and(follows)
    }

    pub(crate) fn visit_buffered(&mut self, window: &mut Window, visitor: &mut impl PacketVisitor) -> u64 {
        let (this, bytes, buffer) = (*self, window.available(), window.shared());
        let visited = if this.layout == USUAL {
            // The same loop with a constant layout is twice as fast.
            visitor.visit(bytes, buffer, move |bytes| Self { layout: USUAL, ..this }.parse(bytes))
        } else {
            visitor.visit(bytes, buffer, move |bytes| this.parse(bytes))
        };
        window.consume(visited.bytes);
        if visited.packets > 0 {
            self.last_ns = visited.last_ns;
        }
        visited.packets
    }

    /// The packet at the front of `bytes` and the bytes behind it; `None` where it is not whole, or doubtful.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions a packet")]
    fn parse(self, bytes: &[u8]) -> Option<(CapturedPacket<'_>, &[u8])> {
        let header = self.header(bytes)?;
        if header.is_doubtful() { None } else { self.record(header, bytes) }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions a packet")]
    fn record(self, header: RecordHeader, bytes: &[u8]) -> Option<(CapturedPacket<'_>, &[u8])> {
        let behind = bytes.get(self.layout.header_bytes as usize..)?;
        let (data, behind) = behind.split_at_checked(header.captured as usize)?;
        let (time_ns, original_length) = (self.time_ns(header), header.original);
        Some((CapturedPacket { time_ns, link_type: self.link_type, original_length, data }, behind))
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions a packet")]
    fn header(self, bytes: &[u8]) -> Option<RecordHeader> {
        let header = bytes.first_chunk::<{ RECORD_HEADER_BYTES as usize }>()?;
        let number = |at: usize| {
            let bytes = [at, at + 1, at + 2, at + 3].map(|at| header.get(at).copied().unwrap_or_default());
            if self.layout.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        Some(RecordHeader { seconds: number(0), fraction: number(4), captured: number(8), original: number(12) })
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions a packet")]
    fn time_ns(self, header: RecordHeader) -> i64 {
        let fraction = i64::from(header.fraction) * i64::from(self.fraction_ns);
        i64::from(header.seconds) * i64::from(NANOSECONDS) + fraction
    }

    fn has_valid_fraction(self, header: RecordHeader) -> bool {
        header.fraction < NANOSECONDS / u32::from(self.fraction_ns)
    }
}

impl RecordHeader {
    /// Whether the packet has no byte, more than there were on the wire, or more than tools write: see
    /// [`Pcap::is_confirmed`].
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "one comparison a packet")]
    fn is_doubtful(self) -> bool {
        self.captured.wrapping_sub(1) >= self.original.min(LONGEST)
    }

    fn fault(self) -> String {
        format!("a packet claims {} bytes captured of {} on the wire", self.captured, self.original)
    }
}

impl PacketFormat for Pcap {
    fn candidate(&self, bytes: &[u8]) -> Candidate {
        let header_bytes = self.layout.header_bytes as usize;
        let Some(header) = self.header(bytes) else { return Candidate::Incomplete(header_bytes) };
        let snaplen = if self.snaplen == 0 { LONGEST } else { self.snaplen.min(LONGEST) };
        let is_plausible = !header.is_doubtful()
            && header.captured <= snaplen
            && header.original <= LONGEST_ON_WIRE
            && self.has_valid_fraction(header);
        if !is_plausible {
            return Candidate::Implausible;
        }
        let length = header_bytes + header.captured as usize;
        Candidate::Plausible { length, time_ns: Some(self.time_ns(header)) }
    }

    fn last_ns(&self) -> Option<i64> {
        self.last_ns
    }
}
