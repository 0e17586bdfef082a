//! Reads one capture, pcap or pcapng, packet by packet.

use std::io::Read;

use sizeleak_text::{may_be_stand_in, stand_in};

use crate::error::Damage;
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::resync::skip_damage;
use crate::window::{ByteSource, CapturedPacket, PacketVisitor, WINDOW_BYTES, Window};

pub struct CaptureReader {
    pub(crate) window: Window,
    format: Format,
    pub(crate) skipped_blocks: u64,
    pub(crate) skipped_bytes: u64,
    /// The end or damage has been reached: no packet follows.
    pub(crate) is_over: bool,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl CaptureReader {
    /// Reads the header of a capture, which must not be compressed.
    pub fn new(input: Box<dyn Read + Send>) -> Result<Self, Damage> {
        Self::of(ByteSource::Stream(input), WINDOW_BYTES)
    }

    pub(crate) fn of(input: ByteSource, read_bytes: usize) -> Result<Self, Damage> {
        let mut window = Window::new(input, read_bytes);
        let magic = match window.peek(4, "capture") {
            Ok(Some(magic)) => <[u8; 4]>::try_from(magic).unwrap_or_default(),
            Ok(None) => return Err(Damage::Empty),
            Err(Damage::Cut { .. }) => return Err(not_capture(window.available())),
            Err(other) => return Err(other),
        };
        let format = match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => Format::Pcapng(Pcapng::default()),
            [0xd4, 0xc3, 0xb2, 0xa1]
            | [0xa1, 0xb2, 0xc3, 0xd4]
            | [0x4d, 0x3c, 0xb2, 0xa1]
            | [0xa1, 0xb2, 0x3c, 0x4d]
            | [0x34, 0xcd, 0xb2, 0xa1]
            | [0xa1, 0xb2, 0xcd, 0x34] => Format::Pcap(Pcap::read_header(&mut window)?),
            _ => {
                // A pipe may bring a few bytes at once.
                while may_be_stand_in(window.available())
                    && window.peek(window.available().len() as u64 + 1, "capture").is_ok()
                {}
                // Enough for what tells other formats; a shorter file is none of them.
                _ = window.peek(16, "capture");
                return Err(not_capture(window.available()));
            }
        };
        Ok(Self { window, format, skipped_blocks: 0, skipped_bytes: 0, is_over: false })
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// [`Damage`]; only behind [`Damage::Skipped`] packets follow.
    pub fn next_packet(&mut self) -> Result<Option<CapturedPacket<'_>>, Damage> {
        // Reset below if a packet is found.
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(None);
        }
        let length = match self.find_packet() {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(None),
            Err(damage) => return Err(self.skip(damage)),
        };
        let packet = match &mut self.format {
            Format::Pcap(pcap) => pcap.take_packet(length, &mut self.window)?,
            Format::Pcapng(pcapng) => pcapng.take_packet(length, &mut self.window)?,
        };
        self.is_over = packet.is_none();
        Ok(packet)
    }

    fn find_packet(&mut self) -> Result<Option<u64>, Damage> {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.find_packet(&mut self.window),
            Format::Pcapng(pcapng) => {
                while pcapng.skip_block(&mut self.window)? {
                    self.skipped_blocks += 1;
                }
                pcapng.find_packet(&mut self.window)
            }
        }
    }

    fn skip(&mut self, damage: Damage) -> Damage {
        let Some((offset, fault)) = damage.place() else { return damage };
        let skipped = match &self.format {
            Format::Pcap(pcap) => skip_damage(&mut self.window, pcap),
            Format::Pcapng(pcapng) => skip_damage(&mut self.window, pcapng),
        };
        let Some(bytes) = skipped else { return damage };
        self.is_over = false;
        self.skipped_bytes += bytes;
        Damage::Skipped { offset, fault, bytes }
    }

    /// Hands the packets that are in the buffer already to a visitor; returns how many it took.
    pub(crate) fn visit_buffered(&mut self, visitor: &mut impl PacketVisitor) -> u64 {
        match &mut self.format {
            _ if self.is_over => 0,
            Format::Pcap(pcap) => pcap.visit_buffered(&mut self.window, visitor),
            Format::Pcapng(pcapng) => pcapng.visit_buffered(&mut self.window, visitor),
        }
    }
}

fn not_capture(beginning: &[u8]) -> Damage {
    if let Some(what) = stand_in(beginning) {
        return Damage::StandIn(what);
    }
    if let Some(format) = other_format(beginning) {
        return Damage::OtherFormat(format);
    }
    let shown = beginning.get(..beginning.len().min(4)).unwrap_or_default();
    // As the tables of an inventory, and lines of a log.
    let is_named = matches!(beginning, [b'[', b'[', name, ..] | [b'[', name, ..] if name.is_ascii_alphabetic());
    let looks = match beginning {
        [0x81, ..] => "a sizeleak frame stream".to_owned(),
        [b'{' | b'[', ..] if !is_named => "JSON".to_owned(),
        _ if shown.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => {
            format!("the text `{}`", String::from_utf8_lossy(shown).escape_debug())
        }
        _ => {
            let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("the bytes {}", hex.join(" "))
        }
    };
    Damage::NotCapture(looks)
}

/// The program or device whose captures begin like this, in a format that is not read.
fn other_format(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [b's', b'n', b'o', b'o', b'p', 0, 0, 0, ..] => Some("snoop"),
        [b'R', b'T', b'S', b'S', ..] | [b'G', b'M', b'B', b'U', ..] => Some("Microsoft Network Monitor"),
        [0x54, 0x52, 0x00, 0x64, 0x00, ..] | [0, 0, 0, 1, 0, 0, 0, 0, 0, 7, 0xd0, 0, ..] => Some("nettl (HP-UX)"),
        // ERF has no magic number: a time since the epoch, a type, and a length that is not shorter than the header. Text
        // may look like that, but has no control characters, as the lengths of a packet have.
        [_, _, _, _, s0, s1, s2, s3, kind, _, high, low, _, _, wire_high, wire_low, ..] => {
            /// The years 2000 to 2040.
            const SECONDS: std::ops::Range<u32> = 946_684_800..2_208_988_800;
            const HEADER: u16 = 16;
            let length = u16::from_be_bytes([*high, *low]);
            let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
            let is_erf = [high, low, wire_high, wire_low].into_iter().any(is_control)
                && SECONDS.contains(&u32::from_le_bytes([*s0, *s1, *s2, *s3]))
                && (1..=48).contains(&(kind & 0x7f))
                && length > HEADER
                && u16::from_be_bytes([*wire_high, *wire_low]) > 0;
            is_erf.then_some("a DAG card (ERF)")
        }
        _ => None,
    }
}
