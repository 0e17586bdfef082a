//! A buffer to read into, parts of which batches share instead of copying.

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::sync::Arc;

/// The buffer grows in multiples of this many bytes.
const STEP: usize = 64 << 10;

/// At most this many buffers are kept for reuse.
const MAX_SPARE: usize = 6;

/// Bytes that were read and not consumed yet. A buffer that batches share is never written: reading continues in
/// another one, and the old one is reused once it is no longer shared.
#[derive(Debug, Default)]
pub struct ReadBuffer {
    current: Arc<Vec<u8>>,
    spare: Vec<Arc<Vec<u8>>>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    pub fn holding(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self { current: Arc::new(bytes), end, ..Self::default() }
    }

    #[inline]
    pub fn unread(&self) -> &[u8] {
        self.current.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    pub fn shared(&self) -> &Arc<Vec<u8>> {
        &self.current
    }

    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// The last `count` consumed bytes.
    pub fn consumed(&self, count: usize) -> Option<&[u8]> {
        self.current.get(self.start.checked_sub(count)?..self.start)
    }

    /// Reads at most about `room` more bytes; returns their number, 0 at the end.
    pub fn fill(&mut self, input: &mut impl Read, room: usize) -> io::Result<usize> {
        let unread = self.end - self.start;
        let free = self.make_room(unread, room);
        loop {
            match input.read(free) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves the unread bytes to the front of an unshared buffer; returns the free space after them.
    fn make_room(&mut self, unread: usize, room: usize) -> &mut [u8] {
        if Arc::get_mut(&mut self.current).is_none() {
            let free = self.spare.iter_mut().position(|buffer| Arc::get_mut(buffer).is_some());
            let mut next = free.map_or_else(Arc::default, |free| self.spare.swap_remove(free));
            if let Some(next) = Arc::get_mut(&mut next) {
                let least = unread.next_multiple_of(STEP);
                if next.len() < least {
                    next.resize(least, 0);
                }
                if let (Some(to), Some(from)) = (next.get_mut(..unread), self.current.get(self.start..self.end)) {
                    to.copy_from_slice(from);
                }
            }
            let shared = mem::replace(&mut self.current, next);
            if self.spare.len() < MAX_SPARE {
                self.spare.push(shared);
            }
            (self.start, self.end) = (0, unread);
        }
        let Some(buffer) = Arc::get_mut(&mut self.current) else { return &mut [] };
        if buffer.len() - self.end < room {
            buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, unread);
            // By what was read, never by a claimed length.
            let least = (unread + room).next_multiple_of(STEP);
            if buffer.len() < least {
                buffer.resize(least, 0);
            }
        }
        buffer.get_mut(self.end..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_arrive_in_order_and_shared_buffers_do_not_change(
            bytes in prop::collection::vec(any::<u8>(), 0..2000),
            steps in prop::collection::vec((1usize..300, 0usize..300, any::<bool>()), 1..60),
            held in 0usize..300,
        ) {
            let mut read = held.min(bytes.len());
            let mut buffer = ReadBuffer::holding(bytes[..read].to_vec());
            let (mut at, mut kept) = (0, Vec::new());
            for (room, used, keep) in steps {
                let next = &bytes[read..bytes.len().min(read + room)];
                read += buffer.fill(&mut &*next, room).unwrap();
                prop_assert_eq!(buffer.unread(), &bytes[at..read]);
                let used = used.min(buffer.unread().len());
                if keep {
                    kept.push((Arc::clone(buffer.shared()), buffer.start, at, used));
                }
                buffer.consume(used);
                at += used;
            }
            for (shared, start, at, length) in kept {
                prop_assert_eq!(&shared[start..start + length], &bytes[at..at + length]);
            }
        }
    }
}
