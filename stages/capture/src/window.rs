//! A window on a stream of bytes: as much of it as is looked at together, in one reused buffer.

use std::io::{self, Read};

use crate::error::Damage;

const WINDOW_BYTES: usize = 256 << 10;

/// No packet, and no block that describes packets, is longer than this, in bytes: libpcap has none above 256 KiB, and a
/// batch with one must fit into a frame.
pub(crate) const LARGEST_PART: u64 = 8 << 20;

/// The bytes of a stream from some offset on.
pub(crate) struct Window {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset of `start` in the stream.
    offset: u64,
}

impl Window {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, buffer: Vec::new(), start: 0, end: 0, offset: 0 }
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
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// The next `length` bytes, not consumed; `None` at the end of the stream. Any less is damage: a `part` that was
    /// cut.
    pub(crate) fn peek(&mut self, length: u64, part: &'static str) -> Result<Option<&[u8]>, Damage> {
        if length > LARGEST_PART {
            return Err(Damage::TooLarge { offset: self.offset, part, claimed: length });
        }
        let length = length as usize;
        while self.end - self.start < length {
            if self.fill(length).map_err(|source| Damage::Read { offset: self.offset, source })? == 0 {
                let there = self.end - self.start;
                if there == 0 {
                    return Ok(None);
                }
                return Err(Damage::Cut { offset: self.offset, missing: (length - there) as u64, part });
            }
        }
        Ok(self.buffer.get(self.start..self.start + length))
    }

    /// The next `length` bytes, as [`Window::peek`], and goes on behind them.
    pub(crate) fn take(&mut self, length: u64, part: &'static str) -> Result<Option<&[u8]>, Damage> {
        if self.peek(length, part)?.is_none() {
            return Ok(None);
        }
        let start = self.start;
        self.start += length as usize;
        self.offset += length;
        Ok(self.buffer.get(start..self.start))
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

    /// Reads more, making room for `length` bytes in all.
    fn fill(&mut self, length: usize) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < length.max(WINDOW_BYTES) {
            // Grows with what has come, so that a claimed length takes no memory by itself.
            let size = length.min((self.end * 2).max(WINDOW_BYTES)).max(WINDOW_BYTES);
            self.buffer.resize(size, 0);
        }
        loop {
            let free = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(free) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
        }
    }
}
