//! Digests of files, remembered while size, times and inode stay the same, so that large files are read once.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sizeleak_platform::storage::{Durability, PendingFile, make_private, read_regular};

/// At most this many files are remembered; the least recently used are dropped.
const MAX_FILES: usize = 10_000;

/// A file that changed within this many seconds may change again without a new time stamp.
const SETTLED_AFTER_S: i64 = 2;

/// Metadata that changes whenever a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Unlike the modification time, programs cannot set it.
    changed: (i64, i64),
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_settled(&self, now: i64) -> bool {
        now - self.modified.0.max(self.changed.0) > SETTLED_AFTER_S
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct KnownDigest {
    state: FileState,
    #[serde(with = "super::hex")]
    digest: Hash,
    /// When it was last used, in seconds since 1970.
    used: i64,
}

/// The digests of files.
#[derive(Debug)]
pub struct FileDigests {
    file: PathBuf,
    known: BTreeMap<PathBuf, KnownDigest>,
    /// The files this run used, with their state then.
    used: Vec<(PathBuf, FileState)>,
}

impl FileDigests {
    /// The digests stored in this file; none if the file is missing or damaged.
    pub fn read(file: PathBuf) -> Self {
        let text = read_regular(&file).unwrap_or_default();
        let known: Vec<(PathBuf, KnownDigest)> = serde_json::from_slice(&text).unwrap_or_default();
        Self { file, known: known.into_iter().collect(), used: Vec::new() }
    }

    /// The digest of a regular file and its size in bytes.
    ///
    /// # Errors
    /// I/O errors of the system, and anything but a regular file, which cannot be read twice.
    pub fn of(&mut self, path: &Path) -> io::Result<(Hash, u64)> {
        let path = path.canonicalize()?;
        // Opening a named pipe would wait for its writer.
        if !path.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let file = File::open(&path)?;
        let state = FileState::of(&file.metadata()?);
        let now = Timestamp::now().as_second();
        self.used.push((path.clone(), state));
        if let Some(known) = self.known.get_mut(&path).filter(|known| known.state == state) {
            known.used = now;
            return Ok((known.digest, state.size));
        }
        let digest = Hasher::new().update_reader(file)?.finalize();
        // JSON holds no paths that are not UTF-8.
        if state.is_settled(now) && path.to_str().is_some() {
            self.known.insert(path, KnownDigest { state, digest, used: now });
        }
        Ok((digest, state.size))
    }

    /// Whether every file that was used is still unchanged.
    pub fn are_unchanged(&self) -> bool {
        self.used.iter().all(|(path, state)| path.metadata().is_ok_and(|now| FileState::of(&now) == *state))
    }

    /// Stores the digests for later runs, in one step; a concurrent run may overwrite them.
    ///
    /// # Errors
    /// I/O errors of the system.
    pub fn write(&mut self) -> io::Result<()> {
        let mut known: Vec<(&PathBuf, &KnownDigest)> = self.known.iter().collect();
        known.sort_by(|one, other| other.1.used.cmp(&one.1.used).then(one.0.cmp(other.0)));
        known.truncate(MAX_FILES);
        let mut pending = PendingFile::create(&self.file, Durability::Disposable)?;
        let file = pending.file();
        make_private(file)?;
        file.write_all(&serde_json::to_vec(&known)?)?;
        pending.keep()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::time::{Duration, SystemTime};

    use super::*;

    fn aged(path: &Path, content: &str) {
        fs::write(path, content).unwrap();
        let long_ago = SystemTime::now() - Duration::from_hours(1);
        File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }

    #[test]
    fn stored_digest_is_used_only_while_the_file_state_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (file, store) = (folder.path().join("a"), folder.path().join("digests.json"));
        aged(&file, "one");
        let mut digests = FileDigests::read(store.clone());
        assert_eq!(digests.of(&file).unwrap(), (blake3::hash(b"one"), 3));
        // The change time cannot be set, so the stored digest is written directly.
        let state = FileState::of(&file.metadata().unwrap());
        let stored = KnownDigest { state, digest: blake3::hash(b"remembered"), used: 0 };
        digests.known.insert(file.canonicalize().unwrap(), stored);
        digests.write().unwrap();
        let mut again = FileDigests::read(store.clone());
        assert_eq!(again.of(&file).unwrap().0, blake3::hash(b"remembered"), "it was not read again");
        aged(&file, "two");
        assert!(!again.are_unchanged());
        assert_eq!(FileDigests::read(store.clone()).of(&file).unwrap().0, blake3::hash(b"two"));
        fs::write(&store, "{").unwrap();
        assert_eq!(FileDigests::read(store).of(&file).unwrap().0, blake3::hash(b"two"));
    }

    #[test]
    fn digest_of_a_file_that_has_just_changed_is_not_stored() {
        let state = FileState { device: 1, inode: 1, size: 1, modified: (100, 0), changed: (200, 0) };
        assert!(!state.is_settled(200) && !state.is_settled(202) && state.is_settled(203));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "one").unwrap();
        let mut digests = FileDigests::read(folder.path().join("digests.json"));
        digests.of(&file).unwrap();
        assert!(digests.known.is_empty() && digests.are_unchanged());
        assert!(digests.of(folder.path()).is_err(), "a folder is not a file");
    }
}
