//! SHA-256 digests of files, by which people recognise a capture.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// How many bytes are read at once.
const BLOCK: usize = 1 << 16;

/// The SHA-256 digest of a file as it is on disk, in hexadecimal digits, and its size in bytes. Calls `on_read` with the
/// number of bytes of each block.
///
/// # Errors
/// I/O errors of the system.
pub fn file_sha256(path: &Path, mut on_read: impl FnMut(u64)) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let (mut hasher, mut block, mut bytes) = (Sha256::new(), vec![0; BLOCK], 0);
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        hasher.update(block.get(..read).unwrap_or_default());
        bytes += read as u64;
        on_read(read as u64);
    }
    let hex = hasher.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string does not fail.
        _ = write!(hex, "{byte:02x}");
        hex
    });
    Ok((hex, bytes))
}
