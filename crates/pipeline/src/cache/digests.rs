//! Digests of files, remembered as long as a file looks unchanged, so that it need not be read again.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// So many files are remembered; those that were not asked for the longest go first.
const MOST: usize = 10_000;

/// A file that changed this shortly before it was read may change again within the same tick of its clock.
const SETTLED_AFTER: i64 = 2;

/// What tells that a file was written, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// This one cannot be set to what it was before.
    changed: (i64, i64),
}

impl State {
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
        now - self.modified.0.max(self.changed.0) > SETTLED_AFTER
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Remembered {
    state: State,
    #[serde(with = "super::hex")]
    digest: Hash,
    /// When it was asked for, in seconds since 1970.
    used: i64,
}

/// The digests of files.
#[derive(Debug)]
pub struct FileDigests {
    memory: PathBuf,
    known: BTreeMap<PathBuf, Remembered>,
    /// What this run asked for, as it was then.
    asked: Vec<(PathBuf, State)>,
}

impl FileDigests {
    /// Those remembered in this file. One that is not there or cannot be read remembers nothing.
    pub fn read(memory: PathBuf) -> Self {
        let text = fs::read(&memory).unwrap_or_default();
        let known: Vec<(PathBuf, Remembered)> = serde_json::from_slice(&text).unwrap_or_default();
        Self { memory, known: known.into_iter().collect(), asked: Vec::new() }
    }

    /// The digest of a regular file, and how many bytes it has.
    ///
    /// # Errors
    /// The system's; and where it is no regular file, which cannot be read twice.
    pub fn of(&mut self, path: &Path) -> io::Result<(Hash, u64)> {
        let path = path.canonicalize()?;
        // Opening a named pipe would wait for its writer.
        if !path.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let file = File::open(&path)?;
        let state = State::of(&file.metadata()?);
        let now = Timestamp::now().as_second();
        self.asked.push((path.clone(), state));
        if let Some(known) = self.known.get_mut(&path).filter(|known| known.state == state) {
            known.used = now;
            return Ok((known.digest, state.size));
        }
        let digest = Hasher::new().update_reader(file)?.finalize();
        // Names that are no text cannot be written down.
        if state.is_settled(now) && path.to_str().is_some() {
            self.known.insert(path, Remembered { state, digest, used: now });
        }
        Ok((digest, state.size))
    }

    /// Whether every file that was asked for is still as it was then.
    pub fn are_unchanged(&self) -> bool {
        self.asked.iter().all(|(path, state)| path.metadata().is_ok_and(|now| State::of(&now) == *state))
    }

    /// Writes down what is known, for later runs. Runs at the same time do not see half of it, at worst not all.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&mut self) -> io::Result<()> {
        let mut known: Vec<(&PathBuf, &Remembered)> = self.known.iter().collect();
        known.sort_by(|one, other| other.1.used.cmp(&one.1.used).then(one.0.cmp(other.0)));
        known.truncate(MOST);
        let mut file = NamedTempFile::new_in(self.memory.parent().unwrap_or(Path::new(".")))?;
        file.write_all(&serde_json::to_vec(&known)?)?;
        file.persist(&self.memory)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn aged(path: &Path, content: &str) {
        fs::write(path, content).unwrap();
        let long_ago = SystemTime::now() - Duration::from_hours(1);
        File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }

    #[test]
    fn what_is_written_down_is_believed_only_of_a_file_that_looks_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (file, memory) = (folder.path().join("a"), folder.path().join("digests.json"));
        aged(&file, "one");
        let mut digests = FileDigests::read(memory.clone());
        assert_eq!(digests.of(&file).unwrap(), (blake3::hash(b"one"), 3));
        // The time of change cannot be set back, so that what is remembered here is put there by hand.
        let state = State::of(&file.metadata().unwrap());
        let lie = Remembered { state, digest: blake3::hash(b"remembered"), used: 0 };
        digests.known.insert(file.canonicalize().unwrap(), lie);
        digests.write().unwrap();
        let mut again = FileDigests::read(memory.clone());
        assert_eq!(again.of(&file).unwrap().0, blake3::hash(b"remembered"), "it was not read again");
        aged(&file, "two");
        assert!(!again.are_unchanged());
        assert_eq!(FileDigests::read(memory.clone()).of(&file).unwrap().0, blake3::hash(b"two"));
        fs::write(&memory, "{").unwrap();
        assert_eq!(FileDigests::read(memory).of(&file).unwrap().0, blake3::hash(b"two"));
    }

    #[test]
    fn a_file_that_has_just_changed_is_not_remembered() {
        let state = State { device: 1, inode: 1, size: 1, modified: (100, 0), changed: (200, 0) };
        assert!(!state.is_settled(200) && !state.is_settled(202) && state.is_settled(203));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "one").unwrap();
        let mut digests = FileDigests::read(folder.path().join("digests.json"));
        digests.of(&file).unwrap();
        assert!(digests.known.is_empty() && digests.are_unchanged());
        assert!(digests.of(folder.path()).is_err(), "a folder is no file");
    }
}
