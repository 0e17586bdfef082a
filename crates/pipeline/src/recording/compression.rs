//! The compression of frame streams in files.

use std::path::Path;

/// The compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// By zstd, with a checksum.
    Zstd,
    /// By gzip.
    Gzip,
}

impl Compression {
    /// Chosen by the extension of a file name: `.zst`, `.gz`, or none.
    pub fn of_name(file: &Path) -> Self {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("zst") => Self::Zstd,
            Some("gz") => Self::Gzip,
            _ => Self::None,
        }
    }

    /// Recognised by the first four bytes of a file.
    pub(super) fn of_content(magic: &[u8]) -> Self {
        match magic {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0x1f, 0x8b, ..] => Self::Gzip,
            _ => Self::None,
        }
    }
}
