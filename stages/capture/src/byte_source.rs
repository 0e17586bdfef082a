//! Where the bytes of a capture come from: a stream, or a file that is not compressed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use sizeleak_platform::runtime::FileProgress;

pub(crate) enum ByteSource {
    Stream(Box<dyn Read + Send>),
    File(PlainFile),
}

impl Read for ByteSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stream(input) => input.read(buffer),
            Self::File(file) => file.read(buffer),
        }
    }
}

/// A file that is not compressed: any part of it can be read at any time.
#[derive(Debug, Clone)]
pub(crate) struct PlainFile {
    file: Arc<File>,
    pub(crate) length: u64,
    pub(crate) position: u64,
    progress: FileProgress,
}

impl PlainFile {
    pub(crate) fn new(file: File, length: u64, position: u64, progress: &FileProgress) -> Self {
        Self { file: Arc::new(file), length, position, progress: progress.clone() }
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    pub(crate) fn advance(&mut self, count: usize) {
        self.position += count as u64;
        self.progress.reach(self.position);
    }
}

impl Read for PlainFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buffer, self.position)?;
        self.advance(count);
        Ok(count)
    }
}
