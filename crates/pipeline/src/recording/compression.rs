//! How a frame stream in a file is compressed.

use std::path::Path;

/// How a file is compressed.
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
    /// What the end of a file's name asks for: `.zst`, `.gz`, or nothing.
    pub fn of_name(file: &Path) -> Self {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("zst") => Self::Zstd,
            Some("gz") => Self::Gzip,
            _ => Self::None,
        }
    }

    /// What the first four bytes of a file say.
    pub(super) fn of_content(magic: &[u8]) -> Self {
        match magic {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0x1f, 0x8b, ..] => Self::Gzip,
            _ => Self::None,
        }
    }
}
