//! The entries on disk: one folder each, created and removed by a rename, so that concurrent runs never see a partial
//! one.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use blake3::{Hash, Hasher};
use jiff::{SignedDuration, Timestamp};
use tempfile::{Builder, TempDir};

use super::{CacheEntry, FileDigests};
use crate::recording::{Compression, Recording};

const STREAM: &str = "stream.frames.zst";
const DESCRIPTION: &str = "entry.json";

/// Files left by killed runs are removed after this time.
const REMOVE_LEFTOVERS_AFTER: SignedDuration = SignedDuration::from_hours(24);

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

    /// Starts a new entry.
    pub(super) fn draft(&self) -> io::Result<(EntryDraft, Recording)> {
        fs::create_dir_all(self.entries())?;
        let folder = Builder::new().prefix(".new-").tempdir_in(self.entries())?;
        let file = File::create(folder.path().join(STREAM))?;
        let recording = Recording::new(file, Compression::Zstd, Some(self.limit))?;
        Ok((EntryDraft { folder }, recording))
    }

    /// Turns a draft into an entry. An entry that a concurrent run has made stays.
    pub(super) fn keep(&self, draft: EntryDraft, entry: &CacheEntry) -> anyhow::Result<()> {
        fs::write(draft.folder.path().join(DESCRIPTION), serde_json::to_vec_pretty(entry)?)?;
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
        let before = SystemTime::from(Timestamp::now() - REMOVE_LEFTOVERS_AFTER);
        for folder in self.folders()? {
            let is_leftover = folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if is_leftover && folder.metadata().is_ok_and(|left| left.modified().is_ok_and(|time| time < before)) {
                self.remove(&folder)?;
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
        let trash = Builder::new().prefix(".old-").tempdir_in(self.entries());
        let trash = trash.with_context(|| folder.display().to_string())?;
        match fs::rename(folder, trash.path().join("entry")) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| folder.display().to_string())
            }
            _ => Ok(()),
        }
    }
}

/// The description of an entry; `None` if there is no entry.
fn read_description(folder: &Path) -> Result<Option<CacheEntry>, String> {
    match fs::read(folder.join(DESCRIPTION)) {
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.is_dir() => Ok(None),
        Err(error) => Err(format!("{DESCRIPTION}: {error}")),
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| format!("{DESCRIPTION}: {error}")),
    }
}

/// The stream of an entry, once its digest is checked; `None` if the entry is gone.
fn open_stream(folder: &Path, entry: &CacheEntry) -> Result<Option<File>, String> {
    let opened = File::open(folder.join(STREAM));
    let mut file = match opened {
        Ok(file) => file,
        // Removed by a concurrent run.
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.is_dir() => return Ok(None),
        Err(error) => return Err(format!("{STREAM}: {error}")),
    };
    let of_stream = |error: io::Error| format!("{STREAM}: {error}");
    let digest = Hasher::new().update_reader(&file).map_err(of_stream)?.finalize();
    if digest != entry.digest {
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
