//! A buffer to read into, parts of which batches may share instead of copying them.

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// The buffer grows by so many bytes at least.
const STEP: usize = 64 << 10;

/// So many buffers are kept for the time when nobody shares them any more.
const MOST_SPARE: usize = 6;

/// Buffers that may still be shared, to be used again once they are not.
#[derive(Debug, Default)]
pub struct SpareBuffers(Vec<Arc<Vec<u8>>>);

impl SpareBuffers {
    /// A buffer that nobody shares, an empty one if there is no other.
    pub fn take(&mut self) -> Arc<Vec<u8>> {
        let free = self.0.iter_mut().position(|buffer| Arc::get_mut(buffer).is_some());
        free.map_or_else(Arc::default, |free| self.0.swap_remove(free))
    }

    /// Keeps a buffer for later, unless there are many.
    pub fn keep(&mut self, buffer: Arc<Vec<u8>>) {
        if self.0.len() < MOST_SPARE {
            self.0.push(buffer);
        }
    }
}

/// Bytes that were read and not used yet. What batches share is never written again: where one does, reading goes on in
/// another buffer, and the old one is used again once nobody shares it.
#[derive(Debug, Default)]
pub struct ReadBuffer {
    current: Arc<Vec<u8>>,
    spare: SpareBuffers,
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

    /// Goes on in another buffer, of which the bytes in `range` follow those that are there. These go in front of them; where
    /// there is no room for that, or others share the buffer, nothing changes, and it is false.
    pub fn go_on_in(&mut self, other: &mut Arc<Vec<u8>>, range: Range<usize>) -> bool {
        let Some(start) = range.start.checked_sub(self.end - self.start) else { return false };
        let Some(bytes) = Arc::get_mut(other).filter(|bytes| range.end <= bytes.len()) else { return false };
        let (Some(to), Some(from)) = (bytes.get_mut(start..range.start), self.current.get(self.start..self.end)) else {
            return false;
        };
        to.copy_from_slice(from);
        self.spare.keep(mem::replace(&mut self.current, Arc::clone(other)));
        (self.start, self.end) = (start, range.end);
        true
    }

    /// Moves the bytes that are there to another buffer, so that the one they lay in is held no longer.
    pub fn move_out(&mut self) {
        let mut next = self.spare.take();
        if let Some(bytes) = Arc::get_mut(&mut next) {
            bytes.clear();
            bytes.extend_from_slice(self.unread());
            (self.start, self.end) = (0, bytes.len());
            self.current = next;
        }
    }

    /// Moves the bytes that are there to the front of a buffer nobody else shares, and gives what is free behind them.
    fn make_room(&mut self, unread: usize, room: usize) -> &mut [u8] {
        if Arc::get_mut(&mut self.current).is_none() {
            let mut next = self.spare.take();
            if let Some(next) = Arc::get_mut(&mut next) {
                let least = unread.next_multiple_of(STEP);
                if next.len() < least {
                    next.resize(least, 0);
                }
                if let (Some(to), Some(from)) = (next.get_mut(..unread), self.current.get(self.start..self.end)) {
                    to.copy_from_slice(from);
                }
            }
            self.spare.keep(mem::replace(&mut self.current, next));
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

    /// So much room is in front of what comes in another buffer.
    const HEADROOM: usize = 150;

    proptest! {
        /// Whatever is shared stays as it was, and all bytes come in order, however they are used and whatever buffer they
        /// come in.
        #[test]
        fn what_is_shared_does_not_change(
            bytes in prop::collection::vec(any::<u8>(), 0..2000),
            steps in prop::collection::vec((0..3, 1usize..300, 0usize..300, any::<bool>()), 1..60),
        ) {
            let mut buffer = ReadBuffer::default();
            let (mut read, mut at, mut kept) = (0, 0, Vec::new());
            for (kind, room, used, keep) in steps {
                let next = &bytes[read..bytes.len().min(read + room)];
                match kind {
                    0 => read += buffer.fill(&mut &*next, room).unwrap(),
                    1 => {
                        let mut other = Arc::new([&[0; HEADROOM], next].concat());
                        let fits = buffer.unread().len() <= HEADROOM;
                        prop_assert_eq!(buffer.go_on_in(&mut other, HEADROOM..HEADROOM + next.len()), fits);
                        read += if fits { next.len() } else { 0 };
                    }
                    _ => {
                        let held = Arc::downgrade(buffer.shared());
                        buffer.move_out();
                        prop_assert!(!std::ptr::eq(held.as_ptr(), Arc::as_ptr(buffer.shared())));
                    }
                }
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
