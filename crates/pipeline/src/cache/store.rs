//! The entries on disk: one folder each, created and removed by a rename, so that concurrent runs never see a partial
//! one.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use blake3::{Hash, Hasher};
use jiff::{SignedDuration, Timestamp};
use tempfile::{Builder, TempDir};

use super::{CacheEntry, FileDigests, private_folder};
use crate::recording::{Compression, Recording};
use sizeleak_platform::storage::{open_regular, read_regular};

const STREAM: &str = "stream.frames.zst";
const DESCRIPTION: &str = "entry.json";

/// What a killed run left is removed after this time: a live run may not have locked its file yet.
const REMOVE_UNLOCKED_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// What has no lock, or lies on a file system without locks, is removed after this time.
const REMOVE_OTHERS_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// The beginning of the names of folders that are not entries.
const TEMPORARY: &[u8] = b".";

/// The folder of the cache.
#[derive(Debug, Clone)]
pub struct CacheStore {
    root: PathBuf,
    /// The most bytes all entries may take together.
    limit: u64,
}

/// The result of a look-up.
pub enum CacheLookup {
    /// There is no entry.
    Missing,
    /// The entry was damaged, for this reason, and has been removed.
    Damaged(String),
    /// The entry and its stream, whose digest was checked.
    Found(Box<CacheEntry>, File),
}

/// An entry in the store.
#[derive(Debug, Clone)]
pub struct StoredEntry {
    /// Its description.
    pub entry: CacheEntry,
    /// When a run last started from it, or made it.
    pub used: Timestamp,
    folder: PathBuf,
}

/// An entry that is being written; removed when dropped.
pub(super) struct EntryDraft {
    folder: TempDir,
    /// Its stream, locked as long as the run lives.
    _locked: File,
}

impl CacheStore {
    /// The cache in this folder, of at most `limit` bytes.
    pub fn new(root: PathBuf, limit: u64) -> Self {
        Self { root, limit }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn entries(&self) -> PathBuf {
        self.root.join("entries")
    }

    fn folder_of(&self, key: Hash) -> PathBuf {
        self.entries().join(key.to_hex().as_str())
    }

    /// The digests of files that earlier runs read.
    pub fn digests(&self) -> FileDigests {
        FileDigests::read(self.root.join("digests.json"))
    }

    /// Creates the folder if it is missing, and removes what killed runs left in it.
    ///
    /// # Errors
    /// [`UnsafeFolder`](super::UnsafeFolder), and errors of the system.
    pub(super) fn prepare(&self) -> anyhow::Result<()> {
        private_folder::create(&self.root)?;
        private_folder::create(&self.entries())?;
        self.remove_leftovers()
    }

    /// Looks up an entry. Its stream is read to check the digest, and its last use is set to now.
    ///
    /// # Errors
    /// If a damaged one cannot be removed.
    pub fn look_up(&self, key: Hash) -> anyhow::Result<CacheLookup> {
        let folder = self.folder_of(key);
        let found = match read_description(&folder) {
            Ok(Some(entry)) if entry.key == key => {
                open_stream(&folder, &entry).map(|file| file.map(|file| (entry, file)))
            }
            Ok(Some(_)) => Err("it describes another entry".to_owned()),
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        };
        match found {
            Ok(None) => Ok(CacheLookup::Missing),
            Ok(Some((entry, file))) => {
                // Without permission to set times, the entry is still used.
                let _touched = file.set_modified(SystemTime::now());
                Ok(CacheLookup::Found(Box::new(entry), file))
            }
            Err(fault) => {
                self.remove(&folder)?;
                Ok(CacheLookup::Damaged(fault))
            }
        }
    }

    /// Starts a new entry, in a folder that is prepared.
    pub(super) fn draft(&self) -> io::Result<(EntryDraft, Recording)> {
        let folder = private_builder().prefix(".new-").tempdir_in(self.entries())?;
        let file = new_file(&folder.path().join(STREAM))?;
        match file.try_lock() {
            // Without locks, age tells what is left.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Err(ErrorKind::WouldBlock.into()),
        }
        let locked = file.try_clone()?;
        let recording = Recording::new(file, Compression::Zstd, Some(self.limit))?;
        Ok((EntryDraft { folder, _locked: locked }, recording))
    }

    /// Turns a draft into an entry. An entry that a concurrent run has made stays.
    pub(super) fn keep(&self, draft: EntryDraft, entry: &CacheEntry) -> anyhow::Result<()> {
        let sealed = CacheEntry { digest: sealed(entry.key, entry.digest), ..entry.clone() };
        let mut description = new_file(&draft.folder.path().join(DESCRIPTION))?;
        description.write_all(&serde_json::to_vec_pretty(&sealed)?)?;
        match fs::rename(draft.folder.path(), self.folder_of(entry.key)) {
            Ok(()) => {
                // The draft has moved: there is nothing to remove.
                let _gone = draft.folder.keep();
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// All entries, the most recently used first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> anyhow::Result<Vec<StoredEntry>> {
        private_folder::check(&self.root)?;
        private_folder::check(&self.entries())?;
        let mut all = Vec::new();
        for folder in self.folders()? {
            // An entry may be removed by a concurrent run; a damaged one is reported when it is looked up.
            let Ok(Some(entry)) = read_description(&folder) else { continue };
            let Ok(used) = used(&folder) else { continue };
            all.push(StoredEntry { entry, used, folder });
        }
        all.sort_by(|one, other| other.used.cmp(&one.used).then_with(|| one.folder.cmp(&other.folder)));
        Ok(all)
    }

    /// Removes the entries last used before this moment, or all, and returns them.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn clear(&self, before: Option<Timestamp>) -> anyhow::Result<Vec<StoredEntry>> {
        let mut removed = self.list()?;
        removed.retain(|stored| before.is_none_or(|before| stored.used < before));
        for stored in &removed {
            self.remove(&stored.folder)?;
        }
        if before.is_none() {
            // Also damaged and partial entries.
            for folder in self.folders()? {
                self.remove(&folder)?;
            }
            match fs::remove_file(self.root.join("digests.json")) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        Ok(removed)
    }

    /// Removes the least recently used entries beyond the size limit, and what killed runs left.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn tidy(&self) -> anyhow::Result<()> {
        let mut bytes = 0_u64;
        for stored in self.list()? {
            bytes = bytes.saturating_add(stored.entry.bytes);
            if bytes > self.limit {
                self.remove(&stored.folder)?;
            }
        }
        self.remove_leftovers()
    }

    /// Removes what killed runs left, but nothing of a run that lives.
    fn remove_leftovers(&self) -> anyhow::Result<()> {
        for folder in self.folders()? {
            let is_temporary = folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(TEMPORARY));
            if is_temporary && is_left(&folder) {
                self.remove(&folder)?;
            }
        }
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            let is_temporary = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(TEMPORARY));
            if is_temporary && path.is_file() && is_older(&path, REMOVE_OTHERS_AFTER) {
                fs::remove_file(&path).with_context(|| path.display().to_string())?;
            }
        }
        Ok(())
    }

    fn folders(&self) -> anyhow::Result<Vec<PathBuf>> {
        let entries = self.entries();
        let read = match fs::read_dir(&entries) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.with_context(|| entries.display().to_string())?,
        };
        read.map(|entry| Ok(entry?.path())).collect()
    }

    /// Renames a folder, then removes it. A concurrent run may have removed it already.
    fn remove(&self, folder: &Path) -> anyhow::Result<()> {
        let trash = private_builder().prefix(".old-").tempdir_in(self.entries());
        let trash = trash.with_context(|| folder.display().to_string())?;
        match fs::rename(folder, trash.path().join("entry")) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| folder.display().to_string())
            }
            _ => Ok(()),
        }
    }
}

/// Makes folders that only the user can enter.
fn private_builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.permissions(Permissions::from_mode(0o700));
    builder
}

/// A new file that only the user can read.
fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The digest of an entry's bytes, bound to its key.
fn sealed(key: Hash, digest: Hash) -> Hash {
    blake3::keyed_hash(key.as_bytes(), digest.as_bytes())
}

/// Whether nobody is writing this draft any more.
fn is_left(folder: &Path) -> bool {
    let lock = open_regular(&folder.join(STREAM)).map(|file| file.try_lock());
    match lock {
        Ok(Ok(())) => is_older(folder, REMOVE_UNLOCKED_AFTER),
        Ok(Err(TryLockError::WouldBlock)) => false,
        Ok(Err(TryLockError::Error(_))) | Err(_) => is_older(folder, REMOVE_OTHERS_AFTER),
    }
}

fn is_older(path: &Path, age: SignedDuration) -> bool {
    let before = SystemTime::from(Timestamp::now() - age);
    path.metadata().is_ok_and(|left| left.modified().is_ok_and(|time| time < before))
}

/// The description of an entry; `None` if there is no entry.
fn read_description(folder: &Path) -> Result<Option<CacheEntry>, String> {
    match read_regular(&folder.join(DESCRIPTION)) {
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.is_dir() => Ok(None),
        Err(error) => Err(format!("{DESCRIPTION}: {error}")),
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| format!("{DESCRIPTION}: {error}")),
    }
}

/// The stream of an entry, once its digest is checked; `None` if the entry is gone.
fn open_stream(folder: &Path, entry: &CacheEntry) -> Result<Option<File>, String> {
    let opened = open_regular(&folder.join(STREAM));
    let mut file = match opened {
        Ok(file) => file,
        // Removed by a concurrent run.
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.is_dir() => return Ok(None),
        Err(error) => return Err(format!("{STREAM}: {error}")),
    };
    let of_stream = |error: io::Error| format!("{STREAM}: {error}");
    let digest = Hasher::new().update_reader(&file).map_err(of_stream)?.finalize();
    if sealed(entry.key, digest) != entry.digest {
        return Err("its digest has changed".to_owned());
    }
    file.rewind().map_err(of_stream)?;
    Ok(Some(file))
}

fn used(folder: &Path) -> anyhow::Result<Timestamp> {
    Ok(Timestamp::try_from(folder.join(STREAM).metadata()?.modified()?)?)
}

#[cfg(test)]
mod tests;
