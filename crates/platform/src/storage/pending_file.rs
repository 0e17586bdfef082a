//! A file that is written under a temporary name beside its target, and renamed when it is whole.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::storage::file_system::{Disk, FileSystem};

/// A name has at most 255 bytes; this leaves room for what makes a temporary one unique.
const LONGEST_STEM: usize = 200;

/// How often another temporary name is tried.
const MAX_ATTEMPTS: u32 = 1000;

/// What a power cut may do to a file that was reported as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: it is on the disk.
    Lasting,
    /// It may be lost or cut: whoever reads it checks it, and can make it again.
    Disposable,
}

/// A file that is being written. Unless it is kept, it disappears when dropped.
#[derive(Debug)]
pub struct PendingFile<S: FileSystem = Disk> {
    system: S,
    file: S::File,
    target: PathBuf,
    durability: Durability,
    /// Its name, until it has another one.
    temporary: Option<PathBuf>,
}

impl<S: FileSystem> PendingFile<S> {
    /// Creates the file that becomes `target`. A link is not followed here: it would be replaced.
    ///
    /// # Errors
    /// I/O errors of the system; a target without a name.
    pub fn create_on(system: S, target: &Path, durability: Durability) -> io::Result<Self> {
        let name = target.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "this is no file name"))?;
        let stem = name.as_bytes().get(..LONGEST_STEM).unwrap_or(name.as_bytes());
        for _ in 0..MAX_ATTEMPTS {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let unique = format!(".{}-{number}", process::id());
            let temporary = OsString::from_vec([b".", stem, unique.as_bytes()].concat());
            let temporary = folder_of(target).join(temporary);
            match system.create(&temporary, target) {
                // Left by a killed process that had the same number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    let (target, temporary) = (target.to_owned(), Some(temporary));
                    return Ok(Self { system, file, target, durability, temporary });
                }
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "all temporary names are taken"))
    }

    /// The open file.
    pub fn file(&mut self) -> &mut S::File {
        &mut self.file
    }

    /// The file that it becomes.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Gives the file its final name, in place of an earlier file.
    ///
    /// # Errors
    /// I/O errors of the system. Unless only the last step failed, the earlier file is as it was.
    pub fn keep(mut self) -> io::Result<()> {
        let target = self.target.clone();
        self.rename(&target)
    }

    /// Gives the file another name in the same folder than the one it was meant for.
    ///
    /// # Errors
    /// As [`PendingFile::keep`].
    pub fn keep_as(mut self, path: &Path) -> io::Result<()> {
        self.rename(path)
    }

    fn rename(&mut self, path: &Path) -> io::Result<()> {
        if self.durability == Durability::Lasting {
            // A rename may reach the disk before the bytes do.
            self.system.sync(&self.file)?;
        }
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        if let Err(error) = self.system.rename(&temporary, path) {
            self.temporary = Some(temporary);
            return Err(error);
        }
        if self.durability == Durability::Lasting {
            self.system.sync_folder(folder_of(path))?;
        }
        Ok(())
    }
}

impl PendingFile {
    /// Creates the file that becomes `target` on the disk of the machine.
    ///
    /// # Errors
    /// As [`PendingFile::create_on`].
    pub fn create(target: &Path, durability: Durability) -> io::Result<Self> {
        Self::create_on(Disk, target, durability)
    }
}

impl<S: FileSystem> Drop for PendingFile<S> {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            // It may be gone with its folder.
            let _removed = self.system.remove(&temporary);
        }
    }
}

/// The folder of a path, which may be a bare name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
