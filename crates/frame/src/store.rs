//! The bytes that the rows of a batch lie in: copied into the batch, or shared with whoever read them.

use std::mem;
use std::sync::Arc;

use crate::limit::BATCH_BYTES;

/// The bytes of a batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    own: Vec<u8>,
    shared: Vec<Arc<Vec<u8>>>,
}

/// Where the bytes of a row are. A batch is far shorter than 4 GiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Which of the shared buffers; [`OWN`] is none of them.
    pub(crate) buffer: u32,
    pub(crate) start: u32,
    pub(crate) length: u32,
}

/// The buffer that a batch has itself.
pub(crate) const OWN: u32 = u32::MAX;

/// The rows of batches with so many bytes lie close together: few such batches share a reader's buffer.
pub(crate) const LARGE: usize = BATCH_BYTES / 2;

impl Store {
    /// Begins anew where its rows, of so many bytes in all, are little of the buffers they share: gives what they are to be
    /// [copied](Self::copy) from then.
    pub(crate) fn detach(&mut self, bytes: usize) -> Option<Self> {
        let is_little = bytes < LARGE && self.is_shared();
        is_little.then(|| mem::replace(self, Self { own: Vec::with_capacity(bytes), shared: Vec::new() }))
    }

    /// Bytes of memory it takes, without the buffers it shares.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.own.capacity() + self.shared.capacity() * size_of::<Arc<Vec<u8>>>()
    }

    /// Copies the bytes of a row.
    #[inline]
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Place {
        let start = self.own.len() as u32;
        self.own.extend_from_slice(bytes);
        Place { buffer: OWN, start, length: bytes.len() as u32 }
    }

    /// Takes the bytes of a row without copying them where they lie in `buffer`.
    #[inline]
    pub(crate) fn share(&mut self, bytes: &[u8], buffer: &Arc<Vec<u8>>) -> Place {
        let Some(start) = offset_in(buffer, bytes) else { return self.copy(bytes) };
        if !self.shared.last().is_some_and(|last| Arc::ptr_eq(last, buffer)) {
            self.shared.push(Arc::clone(buffer));
        }
        Place { buffer: self.shared.len() as u32 - 1, start, length: bytes.len() as u32 }
    }

    /// Takes bytes that lie in another batch without copying them where that one shares them itself.
    #[inline]
    pub(crate) fn take_over(&mut self, bytes: &[u8], other: &Self) -> Place {
        // Rows come in order: the buffer of the row before is nearly always that of this one.
        let start = self.shared.last().and_then(|last| offset_in(last, bytes));
        match start.or_else(|| self.share_of(bytes, other)) {
            Some(start) => Place { buffer: self.shared.len() as u32 - 1, start, length: bytes.len() as u32 },
            None => self.copy(bytes),
        }
    }

    /// Shares the buffer that these bytes of another batch lie in, if it does; where they begin in it.
    #[cold]
    fn share_of(&mut self, bytes: &[u8], other: &Self) -> Option<u32> {
        let (buffer, start) = other.shared.iter().find_map(|buffer| Some((buffer, offset_in(buffer, bytes)?)))?;
        self.shared.push(Arc::clone(buffer));
        Some(start)
    }

    /// Whether it shares any buffer.
    pub(crate) fn is_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// To read many rows one after the other.
    #[inline]
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { store: self, buffer: OWN, bytes: &self.own }
    }

    /// The bytes of a row.
    #[inline]
    pub(crate) fn at(&self, place: Place) -> &[u8] {
        place.of(self.buffer(place.buffer))
    }

    #[inline]
    pub(crate) fn buffer(&self, number: u32) -> &[u8] {
        self.shared.get(number as usize).map_or(&self.own, |buffer| buffer)
    }
}

/// Reads rows: nearly always one lies in the same buffer as the one before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    store: &'a Store,
    buffer: u32,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The bytes of a row.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a row")]
    pub(crate) fn at(&mut self, place: Place) -> &'a [u8] {
        if place.buffer != self.buffer {
            self.turn_to(place.buffer);
        }
        place.of(self.bytes)
    }

    #[cold]
    fn turn_to(&mut self, buffer: u32) {
        (self.buffer, self.bytes) = (buffer, self.store.buffer(buffer));
    }
}

/// Where `part` begins in `whole`, if it is a part of it.
#[inline]
pub(crate) fn offset_in(whole: &[u8], part: &[u8]) -> Option<u32> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start as u32)
}

impl Place {
    /// The bytes that are there in a buffer.
    #[inline]
    pub(crate) fn of(self, buffer: &[u8]) -> &[u8] {
        let end = self.start as usize + self.length as usize;
        buffer.get(self.start as usize..end).unwrap_or_default()
    }

    /// How many bytes there are.
    #[inline]
    pub(crate) fn length(self) -> usize {
        self.length as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_bytes_are_not_copied_and_others_are() {
        let buffers = [Arc::new(b"first".to_vec()), Arc::new(b"second".to_vec())];
        let mut store = Store::default();
        let places = [
            store.share(&buffers[0][1..3], &buffers[0]),
            store.share(&buffers[1][2..], &buffers[1]),
            store.share(&buffers[0][4..], &buffers[1]),
            store.copy(b"own"),
        ];
        assert_eq!(places.map(|place| store.at(place)), [&b"ir"[..], b"cond", b"t", b"own"]);
        assert_eq!((store.shared.len(), &store.own[..]), (2, &b"town"[..]));
        let mut other = Store::default();
        let taken = places.map(|place| other.take_over(store.at(place), &store));
        assert_eq!(taken.map(|place| other.at(place)), [&b"ir"[..], b"cond", b"t", b"own"]);
        assert_eq!((other.shared.len(), &other.own[..]), (2, &b"town"[..]));
    }
}
