//! A capture that lies in a file as it is: any part of it can be read at any time.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use sizeleak_frame::SpareBuffers;
use sizeleak_runtime::FileProgress;

/// In front of a piece there is room for so much of what comes before it: the part of a packet that ends in it.
const HEADROOM: usize = 64 << 10;
/// A piece lies in its page of memory as it lies in its page of the file: where it lies up to 31 bytes further on, some
/// processors take twice as long to copy it there.
const PAGE: usize = 4096;

/// A file that is not compressed.
#[derive(Debug, Clone)]
pub(crate) struct PlainFile {
    file: Arc<File>,
    length: u64,
    furthest: FileProgress,
}

impl PlainFile {
    /// A file of so many bytes; `furthest` is told how far it was read.
    pub(crate) fn new(file: File, length: u64, furthest: &FileProgress) -> Self {
        Self { file: Arc::new(file), length, furthest: furthest.clone() }
    }

    /// How many bytes it had when it was opened.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Whether this is the same file, opened once.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }

    /// What it holds from this offset on.
    pub(crate) fn reader_at(&self, offset: u64) -> impl Read + '_ {
        ReaderAt { file: self, offset }
    }

    /// Tells that it was read up to this offset.
    pub(crate) fn reach(&self, offset: u64) {
        self.furthest.reach(offset);
    }
}

struct ReaderAt<'a> {
    file: &'a PlainFile,
    offset: u64,
}

impl Read for ReaderAt<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        self.file.reach(self.offset);
        Ok(count)
    }
}

/// A piece of a file, in a buffer that others may share.
#[derive(Debug)]
pub(crate) struct Piece {
    /// So many bytes it is to have.
    wanted: usize,
    buffer: Arc<Vec<u8>>,
    /// Buffers whose packets somebody may still look at.
    others: SpareBuffers,
    /// Where in the file it begins.
    offset: u64,
    /// Where in the buffer.
    start: usize,
    length: usize,
}

impl Piece {
    /// Of so many bytes, and not read yet.
    pub(crate) fn new(wanted: usize) -> Self {
        Self { wanted, buffer: Arc::default(), others: SpareBuffers::default(), offset: 0, start: 0, length: 0 }
    }

    /// Reads the piece of a file that begins at this offset, as far as the file and the system let it.
    pub(crate) fn read(&mut self, file: &PlainFile, offset: u64) {
        (self.offset, self.length) = (offset, 0);
        let wanted = self.wanted;
        let buffer = self.make_room();
        let start = HEADROOM + (offset as usize).wrapping_sub(buffer.as_ptr() as usize + HEADROOM) % PAGE;
        let Some(room) = buffer.get_mut(start..start + wanted) else { return };
        let mut length = 0;
        while let Some(free) = room.get_mut(length..).filter(|free| !free.is_empty()) {
            match file.file.read_at(free, offset + length as u64) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Whoever goes on there is told the reason.
                Ok(0) | Err(_) => break,
                Ok(count) => length += count,
            }
        }
        (self.start, self.length) = (start, length);
    }

    /// Whether nothing follows it, as far as it could be told.
    pub(crate) fn is_last(&self) -> bool {
        self.length < self.wanted
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.length as u64
    }

    /// What follows what comes before this offset, if it holds that: the buffer and the place in it.
    pub(crate) fn behind(&mut self, offset: u64) -> Option<(&mut Arc<Vec<u8>>, Range<usize>)> {
        let gone = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        (gone < self.length).then_some((&mut self.buffer, self.start + gone..self.start + self.length))
    }

    /// A buffer nobody else shares.
    fn make_room(&mut self) -> &mut [u8] {
        if Arc::get_mut(&mut self.buffer).is_none() {
            let next = self.others.take();
            self.others.keep(std::mem::replace(&mut self.buffer, next));
        }
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else { return &mut [] };
        if buffer.is_empty() {
            *buffer = vec![0; HEADROOM + PAGE + self.wanted];
        }
        buffer
    }
}
