//! Where things are in the folder of results, its lock, how files appear in it, and what can be wrong with it.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use sizeleak_pipeline::ConfigError;
use sizeleak_platform::storage::sync_folder;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("another `sizeleak archive` is writing to {}: wait for its end (`--wait`), or name another folder", .0.display())]
    Locked(PathBuf),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl ArchiveError {
    pub(crate) fn usage(fault: String) -> Self {
        ConfigError::usage(fault).into()
    }

    pub(crate) fn of_file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| ConfigError::of_file(path, &error).into()
    }

    pub(crate) fn no_manifest(out: &Path) -> Self {
        let fault =
            format!("{} has no manifest.ndjson: name the folder that `sizeleak archive -o` wrote", out.display());
        ConfigError::input(fault).into()
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::Locked(_) => 1,
        }
    }
}

const LOCK: &str = ".lock";

#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

pub(crate) struct LockedLayout {
    pub(crate) layout: Layout,
    _lock: File,
}

impl Drop for LockedLayout {
    fn drop(&mut self) {
        // What is left is removed by the next run.
        _ = self.layout.remove_staging();
    }
}

pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    if_there(fs::remove_file(path))
}

pub(crate) fn has_length(path: &Path, bytes: u64) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
}

/// The outcome of a removal; that there was nothing is none.
fn if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn exists(&self) -> bool {
        self.root.join(LOCK).exists()
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.root.join("manifest.ndjson")
    }

    pub(crate) fn points(&self) -> PathBuf {
        self.root.join("points")
    }

    pub(crate) fn description(&self, point: &str) -> PathBuf {
        self.points().join(format!("{point}.json"))
    }

    pub(crate) fn records(&self, point: &str) -> PathBuf {
        self.root.join("records").join(point)
    }

    /// Removes the records of a point, and the states between them.
    pub(crate) fn remove_records(&self, point: &str) -> io::Result<()> {
        if_there(fs::remove_dir_all(self.records(point)))
    }

    pub(crate) fn identifications(&self) -> PathBuf {
        self.root.join("identifications")
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.root.join(".new")
    }

    /// Creates the folder if it is missing, locks it, and removes what killed runs left.
    pub(crate) fn lock(self) -> Result<LockedLayout, ArchiveError> {
        let root = self.root.clone();
        let of_root = ArchiveError::of_file(&root);
        let foreign = || {
            ArchiveError::usage(format!(
                "{} is not empty and was not made by `sizeleak archive`: name an empty or a new folder",
                root.display()
            ))
        };
        if root.exists() && !root.is_dir() {
            return Err(foreign());
        }
        fs::create_dir_all(&self.root).map_err(&of_root)?;
        let file = self.root.join(LOCK);
        if !file.exists() && fs::read_dir(&root).map_err(&of_root)?.next().is_some() {
            return Err(foreign());
        }
        let lock = File::options().create(true).append(true).open(&file).map_err(ArchiveError::of_file(&file))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ArchiveError::Locked(self.root)),
            Err(TryLockError::Error(error)) => return Err(ArchiveError::of_file(&file)(error)),
        }
        self.begin_staging().map_err(&of_root)?;
        let folders = [self.points(), self.root.join("records"), self.identifications()];
        folders.iter().try_for_each(fs::create_dir_all).map_err(&of_root)?;
        Ok(LockedLayout { layout: self, _lock: lock })
    }

    pub(crate) fn begin_staging(&self) -> io::Result<()> {
        self.remove_staging()?;
        fs::create_dir_all(self.staging())
    }

    pub(crate) fn remove_staging(&self) -> io::Result<()> {
        if_there(fs::remove_dir_all(self.staging()))
    }

    /// Writes a file, completely or not at all, which is on the disk then.
    pub(crate) fn write(&self, target: &Path, content: &[u8]) -> io::Result<()> {
        let staged = self.staged(target);
        let mut file = File::create(&staged)?;
        file.write_all(content)?;
        file.sync_all()?;
        Self::publish(&staged, target)
    }

    /// Where a file is written before it gets its place. Points have units of the same name; no point has `=` in its own, which
    /// a folder of its answers has here.
    pub(crate) fn staged(&self, target: &Path) -> PathBuf {
        let place = target.strip_prefix(&self.root).unwrap_or(target).to_string_lossy();
        self.staging().join(format!("={}", place.replace('/', "+")))
    }

    pub(crate) fn publish(staged: &Path, target: &Path) -> io::Result<()> {
        let folder = target.parent().ok_or(ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        fs::rename(staged, target)?;
        sync_folder(folder)
    }
}
