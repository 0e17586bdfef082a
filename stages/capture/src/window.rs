//! What the readers of all formats share: a window on a stream of bytes, in one reused buffer; and a packet as a capture
//! holds it, with who takes packets from a reader.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use sizeleak_frame::ReadBuffer;
use sizeleak_platform::runtime::FileProgress;

use crate::error::Damage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    pub time_ns: i64,
    /// A LINKTYPE_ value.
    pub link_type: u16,
    pub original_length: u32,
    /// The captured bytes, link layer first.
    pub data: &'a [u8],
}

impl CapturedPacket<'_> {
    #[inline]
    pub(crate) fn is_cut(&self) -> bool {
        self.data.len() < self.original_length as usize
    }
}

/// Takes packets straight from the buffer of a reader.
pub(crate) trait PacketVisitor {
    /// Takes packets from the front of `bytes`, which are part of `buffer`, until it wants no more or none is left.
    /// `parse` returns the first packet of the bytes and the bytes behind it; `None` where no whole packet follows.
    fn visit<'a>(
        &mut self,
        bytes: &'a [u8],
        buffer: &Arc<Vec<u8>>,
        parse: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> + Copy,
    ) -> Visited;
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Visited {
    pub(crate) packets: u64,
    /// Bytes of the buffer, headers included.
    pub(crate) bytes: usize,
    /// The time of the last packet taken, or of one before if none was.
    pub(crate) last_ns: Option<i64>,
}

/// As much is read at once, unless many captures are open.
pub(crate) const WINDOW_BYTES: usize = 256 << 10;

/// The longest packet, or block that describes packets, in bytes. libpcap writes none above 256 KiB, and a batch with
/// one must fit into a frame.
pub(crate) const MAX_PART: u64 = 8 << 20;

enum Supply {
    Source(ByteSource),
    /// Closed, and opened again at an offset when more bytes are needed.
    Suspended(Reopen),
}

pub(crate) type Reopen = Box<dyn Fn(u64) -> Result<ByteSource, Damage> + Send>;

pub(crate) struct Window {
    supply: Supply,
    buffer: ReadBuffer,
    read_bytes: usize,
    offset: u64,
    /// Why the source could not be read further while bytes were fetched ahead: it is said once these are consumed.
    failure: Option<io::Error>,
}

impl Window {
    pub(crate) fn new(source: ByteSource, read_bytes: usize) -> Self {
        Self { supply: Supply::Source(source), buffer: ReadBuffer::default(), read_bytes, offset: 0, failure: None }
    }

    pub(crate) fn read_at_once(&mut self, read_bytes: usize) {
        self.read_bytes = read_bytes;
    }

    /// Closes the source until more bytes are needed than it keeps: what is read at once.
    pub(crate) fn suspend(&mut self, reopen: impl Fn(u64) -> Result<ByteSource, Damage> + Send + 'static) {
        let unread = self.available();
        let kept = unread.get(..self.read_bytes).unwrap_or(unread).to_vec();
        let length = kept.len();
        self.buffer = ReadBuffer::default();
        self.buffer.go_on_in(&mut Arc::new(kept), 0..length);
        self.supply = Supply::Suspended(Box::new(reopen));
    }

    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self.supply, Supply::Suspended(_))
    }

    /// The file, unless it is compressed or a stream. Its position is behind the bytes available.
    pub(crate) fn plain_file(&self) -> Option<&PlainFile> {
        match &self.supply {
            Supply::Source(ByteSource::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Continues in another buffer: the bytes at `range` must be those at the position of the file. Returns false, and
    /// changes nothing, if the bytes available do not fit in front of them or the buffer is shared.
    pub(crate) fn adopt(&mut self, buffer: &mut Arc<Vec<u8>>, range: Range<usize>) -> bool {
        let Supply::Source(ByteSource::File(file)) = &mut self.supply else { return false };
        let is_adopted = self.buffer.go_on_in(buffer, range.clone());
        if is_adopted {
            file.advance(range.len());
        }
        is_adopted
    }

    pub(crate) fn release_buffer(&mut self) {
        self.buffer.move_out();
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn available(&self) -> &[u8] {
        self.buffer.unread()
    }

    pub(crate) fn shared(&self) -> &Arc<Vec<u8>> {
        self.buffer.shared()
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.buffer.consume(count);
        self.offset += count as u64;
    }

    /// The next `length` bytes, not consumed; `None` at the end of the stream. Fewer bytes are damage: a `part` was
    /// cut.
    pub(crate) fn peek(&mut self, length: u64, part: &'static str) -> Result<Option<&[u8]>, Damage> {
        if length > MAX_PART {
            let fault = format!("a {part} claims {length} bytes");
            return Err(Damage::Malformed { offset: self.offset, fault });
        }
        let length = length as usize;
        while self.available().len() < length {
            if self.fill()? == 0 {
                let there = self.available().len();
                if there == 0 {
                    return Ok(None);
                }
                return Err(Damage::Cut { offset: self.offset, missing: (length - there) as u64, part });
            }
        }
        Ok(self.available().get(..length))
    }

    /// Reads until `length` bytes are available; false at the end, and where the source cannot be read further.
    pub(crate) fn fetch(&mut self, length: usize) -> bool {
        while self.available().len() < length {
            match self.fill() {
                Ok(1..) => {}
                Err(Damage::Read { source, .. }) => {
                    self.failure = Some(source);
                    return false;
                }
                _ => return false,
            }
        }
        true
    }

    /// Reads more bytes and returns their number, 0 at the end. Opens the source first if it is suspended.
    fn fill(&mut self) -> Result<usize, Damage> {
        if let Supply::Suspended(reopen) = &self.supply {
            self.supply = Supply::Source(reopen(self.offset + self.available().len() as u64)?);
        }
        match &mut self.supply {
            Supply::Source(source) => {
                let read = self.failure.take().map_or_else(|| self.buffer.fill(source, self.read_bytes), Err);
                read.map_err(|source| Damage::Read { offset: self.offset, source })
            }
            Supply::Suspended(_) => Ok(0),
        }
    }

    pub(crate) fn take(&mut self, length: u64, part: &'static str) -> Result<Option<&[u8]>, Damage> {
        if self.peek(length, part)?.is_none() {
            return Ok(None);
        }
        self.consume(length as usize);
        Ok(self.buffer.consumed(length as usize))
    }

    /// Consumes the next `length` bytes without keeping them; false at the end of the stream.
    pub(crate) fn skip(&mut self, length: u64, part: &'static str) -> Result<bool, Damage> {
        let offset = self.offset;
        let mut missing = length;
        while missing > 0 {
            let step = missing.min(WINDOW_BYTES as u64);
            match self.take(step, part) {
                Ok(Some(_)) => missing -= step,
                Ok(None) if missing == length => return Ok(false),
                Ok(None) => return Err(Damage::Cut { offset, missing, part }),
                Err(Damage::Cut { missing: of_step, .. }) => {
                    return Err(Damage::Cut { offset, missing: missing - step + of_step, part });
                }
                Err(other) => return Err(other),
            }
        }
        Ok(true)
    }
}

pub(crate) enum ByteSource {
    Stream(Box<dyn Read + Send>),
    File(PlainFile),
}

impl Read for ByteSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stream(input) => input.read(buffer),
            Self::File(file) => file.read(buffer),
        }
    }
}

/// A file that is not compressed: any part of it can be read at any time.
#[derive(Debug, Clone)]
pub(crate) struct PlainFile {
    file: Arc<File>,
    pub(crate) length: u64,
    pub(crate) position: u64,
    progress: FileProgress,
}

impl PlainFile {
    pub(crate) fn new(file: File, length: u64, position: u64, progress: &FileProgress) -> Self {
        Self { file: Arc::new(file), length, position, progress: progress.clone() }
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    pub(crate) fn advance(&mut self, count: usize) {
        self.position += count as u64;
        self.progress.reach(self.position);
    }
}

impl Read for PlainFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buffer, self.position)?;
        self.advance(count);
        Ok(count)
    }
}
