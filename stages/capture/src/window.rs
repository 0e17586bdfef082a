//! A window on a stream of bytes: as much of it as is looked at together, in one reused buffer.

use std::io::Read;
use std::sync::Arc;

use sizeleak_frame::ReadBuffer;

use crate::error::Damage;

pub(crate) const WINDOW_BYTES: usize = 256 << 10;

/// No packet, and no block that describes packets, is longer than this, in bytes: libpcap has none above 256 KiB, and a
/// batch with one must fit into a frame.
pub(crate) const LARGEST_PART: u64 = 8 << 20;

/// The bytes of a stream from some offset on.
pub(crate) struct Window {
    input: Box<dyn Read + Send>,
    buffer: ReadBuffer,
    /// The offset in the stream of the first byte not consumed.
    offset: u64,
}

impl Window {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, buffer: ReadBuffer::default(), offset: 0 }
    }

    /// A window on a stream that is at `offset` already.
    pub(crate) fn at(input: Box<dyn Read + Send>, offset: u64) -> Self {
        Self { offset, ..Self::new(input) }
    }

    /// The offset in the stream of the first byte not consumed.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// What is there already.
    pub(crate) fn available(&self) -> &[u8] {
        self.buffer.unread()
    }

    /// The buffer that is in, to be shared.
    pub(crate) fn shared(&self) -> &Arc<Vec<u8>> {
        self.buffer.shared()
    }

    /// Goes on behind `count` bytes that are there.
    pub(crate) fn consume(&mut self, count: usize) {
        self.buffer.consume(count);
        self.offset += count as u64;
    }

    /// The next `length` bytes, not consumed; `None` at the end of the stream. Any less is damage: a `part` that was
    /// cut.
    pub(crate) fn peek(&mut self, length: u64, part: &'static str) -> Result<Option<&[u8]>, Damage> {
        if length > LARGEST_PART {
            return Err(Damage::TooLarge { offset: self.offset, part, claimed: length });
        }
        let length = length as usize;
        while self.available().len() < length {
            let read = self.buffer.fill(&mut self.input, WINDOW_BYTES);
            if read.map_err(|source| Damage::Read { offset: self.offset, source })? == 0 {
                let there = self.available().len();
                if there == 0 {
                    return Ok(None);
                }
                return Err(Damage::Cut { offset: self.offset, missing: (length - there) as u64, part });
            }
        }
        Ok(self.available().get(..length))
    }

    /// The next `length` bytes, as [`Window::peek`], and goes on behind them.
    pub(crate) fn take(&mut self, length: u64, part: &'static str) -> Result<Option<&[u8]>, Damage> {
        if self.peek(length, part)?.is_none() {
            return Ok(None);
        }
        self.consume(length as usize);
        Ok(self.buffer.consumed(length as usize))
    }

    /// Goes on behind the next `length` bytes without holding them; false at the end of the stream.
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
