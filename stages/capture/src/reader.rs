//! Reads one capture, whichever of the two formats it has.

use std::io::Read;

use crate::error::Damage;
use crate::packet_batcher::{PacketBatcher, Stretch};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::plain::{Piece, PlainFile};
use crate::window::{Origin, Window};

/// A packet as a capture holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    /// By the registry of LINKTYPE_ values.
    pub link_type: u16,
    /// Bytes on the wire.
    pub original_length: u32,
    /// What was captured of them.
    pub data: &'a [u8],
}

/// What reading on gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Packet(CapturedPacket<'a>),
    End,
}

/// A capture that is being read.
pub struct CaptureReader {
    window: Window,
    format: Format,
    skipped: u64,
    /// Nothing more can be read: it has ended, or is damaged.
    is_over: bool,
}

/// Where the reading of a capture was left off, and what is known of it.
pub(crate) struct Place {
    format: Format,
    offset: u64,
    skipped: u64,
    is_over: bool,
}

impl Place {
    /// Bytes of the capture, decompressed, that were read.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl CaptureReader {
    /// Reads the beginning of a capture, already decompressed.
    ///
    /// # Errors
    /// [`Damage`] where it is none.
    pub fn new(input: Box<dyn Read + Send>) -> Result<Self, Damage> {
        Self::of(Origin::Stream(input))
    }

    pub(crate) fn of(input: Origin) -> Result<Self, Damage> {
        let mut window = Window::at(input, 0);
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
        Ok(Self { window, format, skipped: 0, is_over: false })
    }

    /// Reads on where another reader of the same capture left off; a stream is there already.
    pub(crate) fn resume(input: Origin, place: Place) -> Self {
        let Place { format, offset, skipped, is_over } = place;
        Self { window: Window::at(input, offset), format, skipped, is_over }
    }

    /// Leaves off reading.
    pub(crate) fn leave(self) -> Place {
        Place { offset: self.window.offset(), format: self.format, skipped: self.skipped, is_over: self.is_over }
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// [`Damage`]; nothing comes after it.
    pub fn next_packet(&mut self) -> Result<Option<CapturedPacket<'_>>, Damage> {
        // Unless this comes to a packet, which is known only then.
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(None);
        }
        // Blocks that are no packets are gone over first, since a packet borrows the window.
        while self.format.skip(&mut self.window)? {
            self.skipped += 1;
        }
        match self.format.packet(&mut self.window)? {
            Step::Packet(packet) => {
                self.is_over = false;
                Ok(Some(packet))
            }
            Step::End => Ok(None),
        }
    }

    /// Takes the next packets as long as they are there without reading on, and may be taken; how many it took.
    pub(crate) fn gather(&mut self, stretch: &Stretch, filling: &mut PacketBatcher) -> u64 {
        match &mut self.format {
            _ if self.is_over => 0,
            Format::Pcap(pcap) => pcap.gather(&mut self.window, stretch, filling),
            Format::Pcapng(pcapng) => pcapng.gather(&mut self.window, stretch, filling),
        }
    }

    /// The file that it reads, if that is not compressed, and up to where it has.
    pub(crate) fn file(&self) -> Option<(&PlainFile, u64)> {
        self.window.file()
    }

    /// Goes on in a piece of that file; false where it holds nothing that could follow.
    pub(crate) fn go_on_in(&mut self, piece: &mut Piece) -> bool {
        self.window.go_on_in(piece)
    }

    /// Holds the buffer no longer that it reads in.
    pub(crate) fn move_out(&mut self) {
        self.window.move_out();
    }

    /// Whether a whole packet is there without reading on.
    pub(crate) fn is_buffered(&self) -> bool {
        let available = self.window.available();
        match &self.format {
            Format::Pcap(pcap) => pcap.record_length(available).is_some_and(|length| length <= available.len() as u64),
            Format::Pcapng(pcapng) => pcapng.holds_packet(available),
        }
    }

    /// How many bytes of the capture were read.
    pub(crate) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// How many blocks were no packets.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl Format {
    /// Goes over one block that is no packet, if one is next.
    fn skip(&mut self, window: &mut Window) -> Result<bool, Damage> {
        match self {
            Self::Pcap(_) => Ok(false),
            Self::Pcapng(pcapng) => pcapng.skip(window),
        }
    }

    fn packet<'a>(&mut self, window: &'a mut Window) -> Result<Step<'a>, Damage> {
        match self {
            Self::Pcap(pcap) => pcap.packet(window),
            Self::Pcapng(pcapng) => pcapng.packet(window),
        }
    }
}

/// Says what a file that is no capture looks like.
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
