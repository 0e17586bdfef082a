//! Digests of the captures that a model is learned from: SHA-256, which people compare with those of other programs.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use sizeleak_model::CaptureDigest;

use crate::error::LearningError;

/// How many bytes are read at once.
const BLOCK: usize = 1 << 16;

/// The digests of captures, as [`digest_capture`]. Of several, unreadable ones are left out: they teach nothing.
///
/// # Errors
/// If there is one, and it is a folder or cannot be read.
pub fn digest_captures(captures: &[PathBuf]) -> Result<Vec<CaptureDigest>, LearningError> {
    let digests = captures.iter().map(|capture| digest_capture(capture));
    if captures.len() > 1 { Ok(digests.flatten().collect()) } else { digests.collect() }
}

/// The name and digest of a capture file as it is on disk, compressed or not.
///
/// # Errors
/// If the file is a folder or cannot be read.
pub fn digest_capture(capture: &Path) -> Result<CaptureDigest, LearningError> {
    let fault = |fault: String| LearningError::File { file: capture.display().to_string(), fault };
    if capture.is_dir() {
        return Err(fault("it is a folder: name the captures in it".to_owned()));
    }
    let sha256 = file_sha256(capture).map_err(|error| fault(error.to_string()))?;
    let name = capture.file_name().unwrap_or(capture.as_os_str()).to_string_lossy().into_owned();
    Ok(CaptureDigest { name, sha256 })
}

/// The SHA-256 digest of a file, in hexadecimal digits.
fn file_sha256(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(BLOCK, File::open(path)?);
    let mut digest = Sha256::new();
    while let block @ [_, ..] = file.fill_buf()? {
        digest.update(block);
        let read = block.len();
        file.consume(read);
    }
    Ok(digest.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string does not fail.
        _ = write!(hex, "{byte:02x}");
        hex
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_sha_256() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        std::fs::write(&path, "abc").unwrap();
        // The example of FIPS 180-4.
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned();
        assert_eq!(digest_capture(&path).unwrap(), CaptureDigest { name: "a.pcap".into(), sha256 });
        std::fs::write(&path, vec![b'a'; 1_000_000]).unwrap();
        assert!(digest_capture(&path).unwrap().sha256.starts_with("cdc76e5c9914fb92"));
    }

    #[test]
    fn of_several_captures_those_that_cannot_be_read_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let [here, gone] = ["here.pcap", "gone.pcap"].map(|name| folder.path().join(name));
        std::fs::write(&here, "abc").unwrap();
        let digests = digest_captures(&[gone.clone(), here, folder.path().to_owned()]).unwrap();
        assert_eq!(digests.iter().map(|digest| &*digest.name).collect::<Vec<_>>(), ["here.pcap"]);
        assert!(digest_captures(&[gone]).is_err());
    }

    #[test]
    fn errors_name_the_file() {
        let error = |path: &str| digest_capture(Path::new(path)).unwrap_err().to_string();
        assert!(error("none/a.pcap").starts_with("none/a.pcap: "));
        assert!(error(".").contains("folder"));
    }
}
