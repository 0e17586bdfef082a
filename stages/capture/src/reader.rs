//! Reads one capture, pcap or pcapng, packet by packet.

use std::io::Read;

use crate::byte_source::ByteSource;
use crate::error::Damage;
use crate::packet::{CapturedPacket, PacketVisitor};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::window::Window;

/// A capture that is being read.
pub struct CaptureReader {
    pub(crate) window: Window,
    format: Format,
    /// Blocks without a packet.
    pub(crate) skipped_blocks: u64,
    /// The end or damage has been reached: no packet follows.
    pub(crate) is_over: bool,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl CaptureReader {
    /// Reads the header of a capture, which must not be compressed.
    ///
    /// # Errors
    /// [`Damage`] if it is not a capture.
    pub fn new(input: Box<dyn Read + Send>) -> Result<Self, Damage> {
        Self::of(ByteSource::Stream(input))
    }

    pub(crate) fn of(input: ByteSource) -> Result<Self, Damage> {
        let mut window = Window::new(input);
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
            | [0x34, 0xcd, 0xb2, 0xa1] => Format::Pcap(Pcap::read_header(&mut window)?),
            _ => return Err(not_capture(window.available())),
        };
        Ok(Self { window, format, skipped_blocks: 0, is_over: false })
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// [`Damage`]; no packet follows it.
    pub fn next_packet(&mut self) -> Result<Option<CapturedPacket<'_>>, Damage> {
        // Reset below if a packet is found.
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(None);
        }
        let packet = match &mut self.format {
            Format::Pcap(pcap) => pcap.next_packet(&mut self.window)?,
            Format::Pcapng(pcapng) => {
                while pcapng.skip_block(&mut self.window)? {
                    self.skipped_blocks += 1;
                }
                pcapng.next_packet(&mut self.window)?
            }
        };
        self.is_over = packet.is_none();
        Ok(packet)
    }

    /// Hands the packets that are in the buffer already to a visitor; returns how many it took.
    pub(crate) fn visit_buffered(&mut self, visitor: &mut impl PacketVisitor) -> u64 {
        match &mut self.format {
            _ if self.is_over => 0,
            Format::Pcap(pcap) => pcap.visit_buffered(&mut self.window, visitor),
            Format::Pcapng(pcapng) => pcapng.visit_buffered(&mut self.window, visitor),
        }
    }

    /// Continues a suspended capture with a source that `reopen` opens at an offset.
    pub(crate) fn resume(&mut self, reopen: impl FnOnce(u64) -> Result<ByteSource, Damage>) -> Result<(), Damage> {
        self.is_over = true;
        self.window.resume(reopen(self.window.offset())?);
        self.is_over = false;
        Ok(())
    }
}

/// Describes what a file that is not a capture looks like.
fn not_capture(beginning: &[u8]) -> Damage {
    let shown = beginning.get(..beginning.len().min(4)).unwrap_or_default();
    let looks = match beginning {
        [0x81, ..] => "a sizeleak frame stream".to_owned(),
        [b'{' | b'[', ..] => "JSON".to_owned(),
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
