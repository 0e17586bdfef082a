//! A batch of rows. The rows share a few buffers, so that a batch costs a few allocations, not hundreds.

use std::fmt::{Debug, Formatter};
use std::marker::PhantomData;
use std::slice;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limit::{BATCH_ROWS, BatchLimit};
use crate::row_bytes::{RowBytes, RowCursor, RowLocation};

/// A row as a batch stores it: everything but its bytes, and where those are.
pub trait Row: Copy + Debug {
    /// The row together with its bytes.
    type Item<'a>: Copy + Debug + PartialEq + Serialize;

    /// What a row is, for errors.
    const NAME: &'static str;

    /// The entries of a row, for errors.
    const ENTRIES: &'static [&'static str];

    /// A row of an item whose bytes are at this location.
    fn new(item: &Self::Item<'_>, location: RowLocation) -> Self;

    /// The location of the bytes.
    fn location(&self) -> RowLocation;

    /// The row with its bytes.
    fn item<'a>(&self, bytes: &'a [u8]) -> Self::Item<'a>;

    /// The bytes of an item.
    fn bytes<'i>(item: &'i Self::Item<'_>) -> &'i [u8];

    /// Reads the entries of a row in order.
    fn read<'de, A: SeqAccess<'de>>(entries: &mut Entries<A>) -> Result<Self::Item<'de>, A::Error>;
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

    /// Whether it shares buffers with a reader.
    pub fn shares_buffers(&self) -> bool {
        self.bytes.is_shared()
    }

    /// The rows in order.
    pub fn iter(&self) -> BatchIter<'_, R> {
        BatchIter { rows: self.rows.iter(), cursor: self.bytes.cursor() }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of data in all rows together.
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

/// The rows of a batch in order.
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

    /// Advances past the next row.
    #[inline]
    pub fn advance(&mut self) {
        self.rows.next();
    }

    /// The bytes of the row `rows` after the next one, for prefetching; empty unless it is in the current buffer.
    #[inline]
    pub fn data_ahead(&self, rows: usize) -> &'a [u8] {
        let row = self.rows.as_slice().get(rows);
        row.and_then(|row| self.cursor.in_same_buffer(row.location())).unwrap_or_default()
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

impl<R: Row> Serialize for Batch<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

pub(crate) struct BatchSeed<'a, R>(pub(crate) &'a Arc<Vec<u8>>, pub(crate) PhantomData<R>);

impl<'de, R: Row> DeserializeSeed<'de> for BatchSeed<'_, R> {
    type Value = Batch<R>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Batch<R>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, R: Row> Visitor<'de> for BatchSeed<'_, R> {
    type Value = Batch<R>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "a list of {} rows", R::NAME)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Batch<R>, A::Error> {
        let mut batch = Batch::default();
        while rows.next_element_seed(RowSeed(&mut batch, self.0))?.is_some() {}
        Ok(batch)
    }
}

struct RowSeed<'a, R>(&'a mut Batch<R>, &'a Arc<Vec<u8>>);

impl<'de, R: Row> DeserializeSeed<'de> for RowSeed<'_, R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, R: Row> Visitor<'de> for RowSeed<'_, R> {
    type Value = ();

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "a {} row: {}", R::NAME, R::ENTRIES.join(", "))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        let mut entries = Entries { source: entries, read: 0, row: R::NAME, count: R::ENTRIES.len() };
        self.0.push_shared(R::read(&mut entries)?, self.1);
        // Later versions may append entries.
        while entries.source.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// The entries of a row that is being decoded.
#[derive(Debug)]
pub struct Entries<A> {
    source: A,
    read: usize,
    row: &'static str,
    count: usize,
}

impl<'de, A: SeqAccess<'de>> Entries<A> {
    /// The next entry.
    pub fn read<T: Deserialize<'de>>(&mut self) -> Result<T, A::Error> {
        let read = self.read;
        self.read += 1;
        let entry = self.source.next_element()?;
        entry.ok_or_else(|| {
            let expected = format!("a {} row of {} entries", self.row, self.count);
            A::Error::invalid_length(read, &expected.as_str())
        })
    }

    /// The next entry, which may be null, and which rows of older programs lack.
    pub fn read_optional<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, A::Error> {
        self.read += 1;
        Ok(self.source.next_element::<Option<T>>()?.flatten())
    }
}

#[cfg(test)]
mod tests;
