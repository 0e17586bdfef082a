//! SHA-256 digests of files, by which people recognise a capture.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// How many bytes are read at once.
const BLOCK: usize = 1 << 16;

/// A reader that digests all that is read from it.
#[derive(Debug)]
pub struct Sha256Reader<R> {
    input: R,
    hasher: Sha256,
    bytes: u64,
}

impl<R: Read> Sha256Reader<R> {
    /// Digests what is read of `input` from here on.
    pub fn new(input: R) -> Self {
        Self { input, hasher: Sha256::new(), bytes: 0 }
    }

    /// Reads what is left. Returns the digest of all, in hexadecimal digits, and its size in bytes.
    ///
    /// # Errors
    /// I/O errors of the input.
    pub fn finish(mut self) -> io::Result<(String, u64)> {
        let mut block = vec![0; BLOCK];
        while self.read(&mut block)? > 0 {}
        Ok((hex(&self.hasher.finalize()), self.bytes))
    }
}

impl<R: Read> Read for Sha256Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The SHA-256 digest of a file as it is on disk, in hexadecimal digits, and its size in bytes.
///
/// # Errors
/// I/O errors of the system.
pub fn file_sha256(path: &Path) -> io::Result<(String, u64)> {
    Sha256Reader::new(File::open(path)?).finish()
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string does not fail.
        _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_of_all_bytes_whoever_reads_them() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for read in 0..=3 {
            let mut reader = Sha256Reader::new(&b"abc"[..]);
            reader.read_exact(&mut vec![0; read]).unwrap();
            assert_eq!(reader.finish().unwrap(), (abc.to_owned(), 3));
        }
    }
}
