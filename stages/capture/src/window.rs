//! A window on a stream of bytes, in one reused buffer.

use std::io::Read;
use std::sync::Arc;

use sizeleak_frame::ReadBuffer;

use crate::error::Damage;

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
}

impl Window {
    pub(crate) fn new(source: ByteSource, read_bytes: usize) -> Self {
        Self { supply: Supply::Source(source), buffer: ReadBuffer::default(), read_bytes, offset: 0 }
    }

    pub(crate) fn read_at_once(&mut self, read_bytes: usize) {
        self.read_bytes = read_bytes;
    }

    /// Closes the source until more bytes are needed than it keeps: what is read at once.
    pub(crate) fn suspend(&mut self, reopen: impl Fn(u64) -> Result<ByteSource, Damage> + Send + 'static) {
        let unread = self.available();
        let kept = unread.get(..self.read_bytes).unwrap_or(unread).to_vec();
        self.buffer = ReadBuffer::holding(kept);
        self.supply = Supply::Suspended(Box::new(reopen));
    }

    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self.supply, Supply::Suspended(_))
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(&self.supply, Supply::Source(source) if source.is_plain)
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
            return Err(Damage::TooLarge { offset: self.offset, part, claimed: length });
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
            if !self.fill().is_ok_and(|count| count > 0) {
                return false;
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
            Supply::Source(source) => self
                .buffer
                .fill(&mut source.input, self.read_bytes)
                .map_err(|source| Damage::Read { offset: self.offset, source }),
            Supply::Suspended(_) => Ok(0),
        }
    }

    /// Consumes the next `length` bytes and returns them; otherwise as [`Window::peek`].
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

pub(crate) struct ByteSource {
    pub(crate) input: Box<dyn Read + Send>,
    /// Whether it is a file that is not compressed.
    pub(crate) is_plain: bool,
}
