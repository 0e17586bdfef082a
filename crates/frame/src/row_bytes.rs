//! The bytes of the rows of a batch: copied into the batch, or shared with the buffer they were read into.

use std::mem;
use std::sync::Arc;

use crate::extent::BATCH_BYTES;

#[derive(Debug, Clone, Default)]
pub(crate) struct RowBytes {
    own: Vec<u8>,
    shared: Vec<Arc<Vec<u8>>>,
}

/// Where the bytes of a row are. A batch is far shorter than 4 GiB.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowLocation {
    buffer: u32,
    start: u32,
    length: u32,
}

const OWN: u32 = u32::MAX;

/// Batches with at least this many bytes keep sharing: their rows fill most of the buffer.
pub(crate) const MIN_SHARED_BYTES: usize = BATCH_BYTES / 2;

impl RowBytes {
    /// If the rows are `bytes` bytes, few compared to the buffers they share: empties it and returns the old one, whose
    /// rows the caller copies. Buffers are then free for the next read.
    pub(crate) fn detach(&mut self, bytes: usize) -> Option<Self> {
        let is_small = bytes < MIN_SHARED_BYTES && self.is_shared();
        is_small.then(|| mem::replace(self, Self { own: Vec::with_capacity(bytes), shared: Vec::new() }))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.own.capacity() + self.shared.capacity() * size_of::<Arc<Vec<u8>>>()
    }

    #[inline]
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> RowLocation {
        let start = self.own.len() as u32;
        self.own.extend_from_slice(bytes);
        RowLocation { buffer: OWN, start, length: bytes.len() as u32 }
    }

    /// Adds bytes by sharing `buffer` if they are part of it, else by copying them.
    #[inline]
    pub(crate) fn share(&mut self, bytes: &[u8], buffer: &Arc<Vec<u8>>) -> RowLocation {
        let Some(start) = offset_in(buffer, bytes) else { return self.copy(bytes) };
        if !self.shared.last().is_some_and(|last| Arc::ptr_eq(last, buffer)) {
            self.shared.push(Arc::clone(buffer));
        }
        RowLocation { buffer: self.shared.len() as u32 - 1, start, length: bytes.len() as u32 }
    }

    /// Adds bytes of another batch by sharing their buffer if that batch does, else by copying them.
    #[inline]
    pub(crate) fn share_from(&mut self, bytes: &[u8], other: &Self) -> RowLocation {
        // Rows come in order: the buffer is nearly always that of the row before.
        let start = self.shared.last().and_then(|last| offset_in(last, bytes));
        match start.or_else(|| self.share_buffer_of(bytes, other)) {
            Some(start) => RowLocation { buffer: self.shared.len() as u32 - 1, start, length: bytes.len() as u32 },
            None => self.copy(bytes),
        }
    }

    /// Shares the other batch's buffer that holds these bytes, if there is one; returns their offset in it.
    #[cold]
    fn share_buffer_of(&mut self, bytes: &[u8], other: &Self) -> Option<u32> {
        let (buffer, start) = other.shared.iter().find_map(|buffer| Some((buffer, offset_in(buffer, bytes)?)))?;
        self.shared.push(Arc::clone(buffer));
        Some(start)
    }

    pub(crate) fn is_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    #[inline]
    pub(crate) fn cursor(&self) -> RowCursor<'_> {
        RowCursor { bytes: self, buffer: OWN, current: &self.own }
    }

    #[inline]
    pub(crate) fn at(&self, location: RowLocation) -> &[u8] {
        location.of(self.buffer(location.buffer))
    }

    #[inline]
    fn buffer(&self, index: u32) -> &[u8] {
        self.shared.get(index as usize).map_or(&self.own, |buffer| buffer)
    }
}

/// Reads rows in order. A row is nearly always in the same buffer as the previous one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowCursor<'a> {
    bytes: &'a RowBytes,
    buffer: u32,
    current: &'a [u8],
}

impl<'a> RowCursor<'a> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a row")]
    pub(crate) fn at(&mut self, location: RowLocation) -> &'a [u8] {
        if location.buffer != self.buffer {
            (self.buffer, self.current) = (location.buffer, self.bytes.buffer(location.buffer));
        }
        location.of(self.current)
    }
}

#[inline]
fn offset_in(whole: &[u8], part: &[u8]) -> Option<u32> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start as u32)
}

impl RowLocation {
    #[inline]
    fn of(self, buffer: &[u8]) -> &[u8] {
        let end = self.start as usize + self.length as usize;
        buffer.get(self.start as usize..end).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn length(self) -> usize {
        self.length as usize
    }
}
