//! A buffer to read into, parts of which batches share instead of copying.

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

const GROWTH_STEP_BYTES: usize = 64 << 10;

const MAX_SPARE: usize = 6;

/// Buffers to reuse once they are no longer shared.
#[derive(Debug, Default)]
pub struct SpareBuffers(Vec<Arc<Vec<u8>>>);

impl SpareBuffers {
    pub fn take(&mut self) -> Arc<Vec<u8>> {
        let free = self.0.iter_mut().position(|buffer| Arc::get_mut(buffer).is_some());
        free.map_or_else(Arc::default, |free| self.0.swap_remove(free))
    }

    pub fn keep(&mut self, buffer: Arc<Vec<u8>>) {
        if self.0.len() < MAX_SPARE {
            self.0.push(buffer);
        }
    }
}

/// Bytes that were read and not consumed yet. A buffer that batches share is never written: reading continues in
/// another one, and the old one is reused once it is no longer shared.
#[derive(Debug, Default)]
pub struct ReadBuffer {
    current: Arc<Vec<u8>>,
    spare: SpareBuffers,
    start: usize,
    end: usize,
}

impl ReadBuffer {
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

    /// Continues in another buffer, whose bytes in `range` follow the unread ones; those are copied in front of it.
    /// Returns false and changes nothing if there is no room for them or the buffer is shared.
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

    /// Moves the unread bytes to another buffer and releases the current one.
    pub fn move_out(&mut self) {
        let mut next = self.spare.take();
        if let Some(bytes) = Arc::get_mut(&mut next) {
            bytes.clear();
            bytes.extend_from_slice(self.unread());
            (self.start, self.end) = (0, bytes.len());
            self.current = next;
        }
    }

    /// Moves the unread bytes to the front of an unshared buffer; returns the free space after them.
    fn make_room(&mut self, unread: usize, room: usize) -> &mut [u8] {
        if Arc::get_mut(&mut self.current).is_none() {
            let mut next = self.spare.take();
            if let Some(next) = Arc::get_mut(&mut next) {
                let least = unread.next_multiple_of(GROWTH_STEP_BYTES);
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
            // By what was read, never by a claimed length.
            let least = (unread + room).next_multiple_of(GROWTH_STEP_BYTES);
            if buffer.len() < least {
                buffer.resize(least, 0);
            }
        }
        buffer.get_mut(self.end..).unwrap_or_default()
    }
}
