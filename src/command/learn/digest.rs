//! Which captures a model was learned on: their names and SHA-256 digests.

use std::fmt::Write;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use sizeleak_model::CaptureDigest;

const BLOCK: usize = 1 << 16;

/// The digest of a capture file, as it lies there (compressed, where it is).
pub(super) fn of(capture: &Path) -> anyhow::Result<CaptureDigest> {
    let name = || capture.display().to_string();
    if capture.is_dir() {
        bail!("{} is a folder: name its captures", name());
    }
    let mut reader = BufReader::with_capacity(BLOCK, File::open(capture).with_context(name)?);
    let (mut hasher, mut block) = (Sha256::new(), vec![0; BLOCK]);
    loop {
        let read = reader.read(&mut block).with_context(name)?;
        if read == 0 {
            break;
        }
        hasher.update(block.get(..read).unwrap_or_default());
    }
    let mut sha256 = String::new();
    for byte in hasher.finalize() {
        write!(sha256, "{byte:02x}")?;
    }
    let name = capture.file_name().unwrap_or(capture.as_os_str()).to_string_lossy().into_owned();
    Ok(CaptureDigest { name, sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        std::fs::write(&path, "abc").unwrap();
        // FIPS 180-4's example.
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned();
        assert_eq!(of(&path).unwrap(), CaptureDigest { name: "a.pcap".into(), sha256 });
        std::fs::write(&path, vec![b'a'; 1_000_000]).unwrap();
        assert!(of(&path).unwrap().sha256.starts_with("cdc76e5c9914fb92"));
    }

    #[test]
    fn what_cannot_be_digested_is_named() {
        assert!(format!("{:#}", of(Path::new("none/a.pcap")).unwrap_err()).starts_with("none/a.pcap: "));
        assert!(of(Path::new(".")).unwrap_err().to_string().contains("folder"));
    }
}
