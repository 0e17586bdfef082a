//! An output that is compressed if its name says so.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use sizeleak_pipeline::recording::{Compression, Recording};

/// A file, or what is compressed on its way into one.
pub(super) struct EncodedFile {
    file: File,
    compression: Compression,
    member: Option<Recording>,
}

impl EncodedFile {
    /// What is written to `file`, compressed as the name of the output says.
    pub(super) fn new(file: File, name: Option<&Path>) -> Self {
        Self { file, compression: name.map_or(Compression::None, Compression::of_name), member: None }
    }

    /// Whether what is written so far can be read before the end.
    pub(super) fn is_plain(&self) -> bool {
        self.compression == Compression::None
    }
}

impl Write for EncodedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_plain() {
            return self.file.write(bytes);
        }
        if self.member.is_none() {
            self.member = Some(Recording::new(self.file.try_clone()?, self.compression)?);
        }
        self.member.as_mut().map_or(Ok(0), |member| member.write(bytes))
    }

    /// Ends a compressed stream. A file may be several of them, but its bytes would depend on when they end: only at the
    /// end of all.
    fn flush(&mut self) -> io::Result<()> {
        self.member.take().map_or(Ok(()), |member| member.finish().map(drop))?;
        self.file.flush()
    }
}
