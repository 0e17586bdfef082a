//! A window on a stream of bytes: as much of it as is looked at together, in one reused buffer.

use std::io::Read;
use std::sync::Arc;

use sizeleak_frame::ReadBuffer;

use crate::error::Damage;
use crate::plain::{Piece, PlainFile};

pub(crate) const WINDOW_BYTES: usize = 256 << 10;

/// No packet, and no block that describes packets, is longer than this, in bytes: libpcap has none above 256 KiB, and a
/// batch with one must fit into a frame.
pub(crate) const LARGEST_PART: u64 = 8 << 20;

/// Where the bytes come from.
pub(crate) enum Origin {
    Stream(Box<dyn Read + Send>),
    File(PlainFile),
}

/// The bytes of a stream from some offset on.
pub(crate) struct Window {
    input: Origin,
    buffer: ReadBuffer,
    /// The offset in the stream of the first byte not consumed.
    offset: u64,
}

impl Window {
    /// A window on a source at `offset`, where a stream is already.
    pub(crate) fn at(input: Origin, offset: u64) -> Self {
        Self { input, buffer: ReadBuffer::default(), offset }
    }

    /// The file it is on, if it is on one, and the offset of the first byte that is not there.
    pub(crate) fn file(&self) -> Option<(&PlainFile, u64)> {
        match &self.input {
            Origin::Stream(_) => None,
            Origin::File(file) => Some((file, self.offset + self.available().len() as u64)),
        }
    }

    /// Goes on in a piece of its file that somebody has read; false where it holds nothing that could follow.
    pub(crate) fn go_on_in(&mut self, piece: &mut Piece) -> bool {
        let Some((file, end)) = self.file() else { return false };
        let (reached, Some((buffer, range))) = (piece.end(), piece.behind(end)) else { return false };
        file.reach(reached);
        self.buffer.go_on_in(buffer, range)
    }

    /// Holds the buffer no longer that the bytes lie in that are there.
    pub(crate) fn move_out(&mut self) {
        self.buffer.move_out();
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
            let end = self.offset + self.available().len() as u64;
            let read = match &mut self.input {
                Origin::Stream(input) => self.buffer.fill(input, WINDOW_BYTES),
                Origin::File(file) => self.buffer.fill(&mut file.reader_at(end), WINDOW_BYTES),
            };
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
