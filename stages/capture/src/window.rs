//! A window on a stream of bytes, in one reused buffer.

use std::ops::Range;
use std::sync::Arc;

use sizeleak_frame::ReadBuffer;

use crate::byte_source::{ByteSource, PlainFile};
use crate::error::Damage;

const WINDOW_BYTES: usize = 256 << 10;

/// The longest packet, or block that describes packets, in bytes. libpcap writes none above 256 KiB, and a batch with
/// one must fit into a frame.
const LARGEST_PART: u64 = 8 << 20;

/// The bytes of a stream from some offset on.
pub(crate) struct Window {
    /// `None` while suspended.
    source: Option<ByteSource>,
    buffer: ReadBuffer,
    /// The offset in the stream of the first byte not consumed.
    offset: u64,
}

impl Window {
    /// A window at the beginning of a source.
    pub(crate) fn new(source: ByteSource) -> Self {
        Self { source: Some(source), buffer: ReadBuffer::default(), offset: 0 }
    }

    /// Closes the source and frees the buffer; the offset stays.
    pub(crate) fn suspend(&mut self) {
        (self.source, self.buffer) = (None, ReadBuffer::default());
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.source.is_none()
    }

    /// Continues with a source that stands at the offset.
    pub(crate) fn resume(&mut self, source: ByteSource) {
        self.source = Some(source);
    }

    /// The file, unless it is compressed or a stream. Its position is behind the bytes available.
    pub(crate) fn plain_file(&self) -> Option<&PlainFile> {
        match &self.source {
            Some(ByteSource::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Continues in another buffer: the bytes at `range` must be those at the position of the file. Returns false, and
    /// changes nothing, if the bytes available do not fit in front of them or the buffer is shared.
    pub(crate) fn adopt(&mut self, buffer: &mut Arc<Vec<u8>>, range: Range<usize>) -> bool {
        let Some(ByteSource::File(file)) = &mut self.source else { return false };
        let is_adopted = self.buffer.go_on_in(buffer, range.clone());
        if is_adopted {
            file.advance(range.len());
        }
        is_adopted
    }

    /// Releases the buffer, keeping the bytes available in another one.
    pub(crate) fn release_buffer(&mut self) {
        self.buffer.move_out();
    }

    /// The offset in the stream of the first byte not consumed.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes that are in the buffer.
    pub(crate) fn available(&self) -> &[u8] {
        self.buffer.unread()
    }

    /// The buffer itself, to be shared.
    pub(crate) fn shared(&self) -> &Arc<Vec<u8>> {
        self.buffer.shared()
    }

    /// Consumes `count` of the bytes available.
    pub(crate) fn consume(&mut self, count: usize) {
        self.buffer.consume(count);
        self.offset += count as u64;
    }

    /// The next `length` bytes, not consumed; `None` at the end of the stream. Fewer bytes are damage: a `part` was
    /// cut.
    pub(crate) fn peek(&mut self, length: u64, part: &'static str) -> Result<Option<&[u8]>, Damage> {
        if length > LARGEST_PART {
            return Err(Damage::TooLarge { offset: self.offset, part, claimed: length });
        }
        let length = length as usize;
        while self.available().len() < length {
            let read = self.source.as_mut().map_or(Ok(0), |source| self.buffer.fill(source, WINDOW_BYTES));
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
