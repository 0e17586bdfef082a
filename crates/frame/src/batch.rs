//! A batch of rows. The rows share a few buffers, so that a batch costs a few allocations, not hundreds.

use std::fmt::{Debug, Formatter};
use std::slice;
use std::sync::Arc;

use crate::limit::{BATCH_ROWS, BatchLimit};
use crate::row_bytes::{RowBytes, RowCursor, RowLocation};

/// A row as a batch stores it: everything but its bytes, and where those are.
pub trait Row: Copy + Debug {
    /// The row together with its bytes.
    type Item<'a>: Copy + Debug + PartialEq;

    /// A row of an item whose bytes are at this location.
    fn new(item: &Self::Item<'_>, location: RowLocation) -> Self;

    fn location(&self) -> RowLocation;

    fn item<'a>(&self, bytes: &'a [u8]) -> Self::Item<'a>;

    fn bytes<'i>(item: &'i Self::Item<'_>) -> &'i [u8];
}

/// A batch of rows in capture order.
#[derive(Clone)]
pub struct Batch<R> {
    rows: Vec<R>,
    bytes: RowBytes,
    data_bytes: usize,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        Self { rows: Vec::new(), bytes: RowBytes::default(), data_bytes: 0 }
    }
}

impl<R: Row> Batch<R> {
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for `rows` rows, at most [`BATCH_ROWS`].
    pub fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows.min(BATCH_ROWS)), ..Self::default() }
    }

    /// Adds a row and copies its bytes.
    #[inline]
    pub fn push(&mut self, item: R::Item<'_>) {
        let location = self.bytes.copy(R::bytes(&item));
        self.add(&item, location);
    }

    /// Adds a row; its bytes are not copied if they are part of `buffer`.
    #[inline]
    pub fn push_shared(&mut self, item: R::Item<'_>, buffer: &Arc<Vec<u8>>) {
        let location = self.bytes.share(R::bytes(&item), buffer);
        self.add(&item, location);
    }

    /// Adds a row whose bytes are part of a row of `other`; they are not copied if `other` shares them.
    #[inline]
    pub fn push_from<Q>(&mut self, item: R::Item<'_>, other: &Batch<Q>) {
        let location = self.bytes.share_from(R::bytes(&item), &other.bytes);
        self.add(&item, location);
    }

    #[inline]
    fn add(&mut self, item: &R::Item<'_>, location: RowLocation) {
        self.data_bytes += location.length();
        self.rows.push(R::new(item, location));
    }

    /// Copies the bytes of a small batch, so that the buffers it shares are free for the next read.
    pub fn detach(&mut self) {
        let Some(shared) = self.bytes.detach(self.data_bytes) else { return };
        for row in &mut self.rows {
            let bytes = shared.at(row.location());
            *row = R::new(&row.item(bytes), self.bytes.copy(bytes));
        }
    }

    pub fn shares_buffers(&self) -> bool {
        self.bytes.is_shared()
    }

    pub fn iter(&self) -> BatchIter<'_, R> {
        BatchIter { rows: self.rows.iter(), cursor: self.bytes.cursor() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Bytes of memory it takes, without the buffers it shares.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.rows.capacity() * size_of::<R>() + self.bytes.memory_bytes()
    }

    /// Whether the batch has reached its size and is due to be sent.
    pub fn is_full(&self, limit: BatchLimit) -> bool {
        self.rows.len() >= BATCH_ROWS || self.data_bytes >= limit.bytes()
    }
}

#[derive(Debug, Clone)]
pub struct BatchIter<'a, R> {
    rows: slice::Iter<'a, R>,
    cursor: RowCursor<'a>,
}

impl<'a, R: Row> BatchIter<'a, R> {
    /// The next row, without advancing.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "callers use only some entries of a row")]
    pub fn peek(&mut self) -> Option<R::Item<'a>> {
        let row = self.rows.as_slice().first()?;
        Some(row.item(self.cursor.at(row.location())))
    }

    #[inline]
    pub fn advance(&mut self) {
        self.rows.next();
    }
}

impl<'a, R: Row> Iterator for BatchIter<'a, R> {
    type Item = R::Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<R::Item<'a>> {
        let item = self.peek()?;
        self.advance();
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl<R: Row> ExactSizeIterator for BatchIter<'_, R> {}

impl<'a, R: Row> IntoIterator for &'a Batch<R> {
    type Item = R::Item<'a>;
    type IntoIter = BatchIter<'a, R>;

    fn into_iter(self) -> BatchIter<'a, R> {
        self.iter()
    }
}

/// Batches are equal if their rows are equal, wherever the bytes are stored.
impl<R: Row> PartialEq for Batch<R> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<R: Row> Debug for Batch<R> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
