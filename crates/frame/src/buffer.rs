//! A buffer to read into, parts of which batches may share instead of copying them.

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::sync::Arc;

/// The buffer grows by so many bytes at least.
const STEP: usize = 64 << 10;

/// So many buffers are kept for the time when nobody shares them any more.
const MOST_SPARE: usize = 6;

/// Bytes that were read and not used yet. What batches share is never written again: where one does, reading goes on in
/// another buffer, and the old one is used again once nobody shares it.
#[derive(Debug, Default)]
pub struct ReadBuffer {
    current: Arc<Vec<u8>>,
    spare: Vec<Arc<Vec<u8>>>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    /// The bytes that are there.
    #[inline]
    pub fn unread(&self) -> &[u8] {
        self.current.get(self.start..self.end).unwrap_or_default()
    }

    /// The buffer they lie in, to be shared.
    #[inline]
    pub fn shared(&self) -> &Arc<Vec<u8>> {
        &self.current
    }

    /// Goes on behind the first `count` bytes.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// The last `count` bytes before those that are there.
    pub fn consumed(&self, count: usize) -> Option<&[u8]> {
        self.current.get(self.start.checked_sub(count)?..self.start)
    }

    /// Reads more, up to `room` bytes or a little more; 0 is the end.
    ///
    /// # Errors
    /// The input's.
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

    /// Moves the bytes that are there to the front of a buffer nobody else shares, and gives what is free behind them.
    fn make_room(&mut self, unread: usize, room: usize) -> &mut [u8] {
        if Arc::get_mut(&mut self.current).is_none() {
            let free = self.spare.iter_mut().position(|spare| Arc::get_mut(spare).is_some());
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
            let before = mem::replace(&mut self.current, next);
            if self.spare.len() < MOST_SPARE {
                self.spare.push(before);
            }
            (self.start, self.end) = (0, unread);
        }
        let Some(buffer) = Arc::get_mut(&mut self.current) else { return &mut [] };
        if buffer.len() - self.end < room {
            buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, unread);
            // By what came, never by what a length claims.
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
        /// Whatever is shared stays as it was, and all bytes come in order, however they are used.
        #[test]
        fn what_is_shared_does_not_change(
            bytes in prop::collection::vec(any::<u8>(), 0..2000),
            steps in prop::collection::vec((1usize..300, 0usize..300, any::<bool>()), 1..60),
        ) {
            let mut input = &bytes[..];
            let mut buffer = ReadBuffer::default();
            let (mut at, mut kept) = (0, Vec::new());
            for (room, used, keep) in steps {
                buffer.fill(&mut input.by_ref().take(room as u64), room).unwrap();
                let used = used.min(buffer.unread().len());
                prop_assert_eq!(&buffer.unread()[..used], &bytes[at..at + used]);
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
