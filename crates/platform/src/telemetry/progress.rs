//! How much of the input has been read, in bytes and in files.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the input read so far, before decompression, and files. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    /// [`UNKNOWN`] until it is set.
    total_plus_one: AtomicU64,
    files_done: AtomicU64,
    /// 0 until it is set.
    files: AtomicU64,
}

const UNKNOWN: u64 = 0;

impl Progress {
    /// Nothing read yet, of an unknown total.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many bytes there are to read.
    pub fn expect(&self, total: u64) {
        self.0.total_plus_one.store(total.saturating_add(1), Ordering::Relaxed);
    }

    /// Adds bytes that were read. Call it once per buffer, not per packet.
    pub fn add(&self, bytes: u64) {
        self.0.read.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn expect_files(&self, files: u64) {
        self.0.files.store(files, Ordering::Relaxed);
    }

    pub fn add_files(&self, files: u64) {
        self.0.files_done.fetch_add(files, Ordering::Relaxed);
    }

    /// How many files are done, and how many there are; `None` if files are not counted.
    pub fn files(&self) -> Option<(u64, u64)> {
        let files = self.0.files.load(Ordering::Relaxed);
        (files > 0).then(|| (self.0.files_done.load(Ordering::Relaxed).min(files), files))
    }

    pub fn read(&self) -> u64 {
        self.0.read.load(Ordering::Relaxed)
    }

    /// Bytes to read in total; `None` if that is unknown, as for a pipe.
    pub fn total(&self) -> Option<u64> {
        match self.0.total_plus_one.load(Ordering::Relaxed) {
            UNKNOWN => None,
            total => Some(total - 1),
        }
    }
}

/// How far one file has been read. Bytes that are read again count once.
#[derive(Debug, Clone, Default)]
pub struct FileProgress {
    all: Progress,
    offset: Arc<AtomicU64>,
}

impl FileProgress {
    /// Counts a file as a part of `all`.
    pub fn new(all: &Progress) -> Self {
        Self { all: all.clone(), offset: Arc::default() }
    }

    /// Reports that the file was read up to this offset.
    pub fn reach(&self, offset: u64) {
        let before = self.offset.fetch_max(offset, Ordering::Relaxed);
        self.all.add(offset.saturating_sub(before));
    }

    /// Counts what is read from `input`, whose next byte is at `offset`.
    pub fn watch<R>(&self, input: R, offset: u64) -> ProgressReader<R> {
        ProgressReader { input, offset, progress: self.clone() }
    }
}

#[derive(Debug)]
pub struct ProgressReader<R> {
    input: R,
    offset: u64,
    progress: FileProgress,
}

impl<R: Read> Read for ProgressReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.offset += count as u64;
        self.progress.reach(self.offset);
        Ok(count)
    }
}

impl<R: AsFd> AsFd for ProgressReader<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_where_their_number_is_known() {
        let progress = Progress::new();
        progress.add_files(1);
        assert_eq!(progress.files(), None);
        progress.expect_files(3);
        assert_eq!(progress.files(), Some((1, 3)));
        progress.add_files(7);
        assert_eq!(progress.files(), Some((3, 3)));
    }

    #[test]
    fn bytes_read_again_count_once() {
        let (progress, content) = (Progress::new(), [0; 100]);
        assert_eq!((progress.read(), progress.total()), (0, None));
        progress.expect(0);
        assert_eq!(progress.total(), Some(0));
        let (one, other) = (FileProgress::new(&progress), FileProgress::new(&progress));
        let read = |watched: &mut ProgressReader<&[u8]>, count| watched.read_exact(&mut vec![0; count]).unwrap();
        read(&mut one.watch(&content, 0), 60);
        assert_eq!(progress.read(), 60);
        read(&mut one.watch(&content[40..], 40), 10);
        assert_eq!(progress.read(), 60);
        read(&mut one.watch(&content[40..], 40), 60);
        read(&mut other.watch(&content, 0), 7);
        assert_eq!(progress.read(), 107);
    }
}
