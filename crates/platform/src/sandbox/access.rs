//! What a process opens after it is confined.

use std::path::{Path, PathBuf};

use rustix::fs::{self, Access as Permission};
use thiserror::Error;

/// The files that a process opens after it is confined, and whether it needs root before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    is_live: bool,
}

/// A folder that cannot be written.
#[derive(Debug, Error)]
#[error(
    "{} cannot be written by {user}, whom a live capture runs as once it is open: choose another folder, or keep root \
     with --no-sandbox",
    folder.display()
)]
pub struct AccessError {
    folder: PathBuf,
    user: String,
}

impl Access {
    /// It reads this file, or all files below this folder.
    pub fn read(&mut self, path: impl Into<PathBuf>) {
        self.reads.push(path.into());
    }

    /// It writes this file: under another name in its folder, or, if it is a link, in that of its target.
    pub fn write_beside(&mut self, file: &Path) {
        for file in [Some(file.to_owned()), file.canonicalize().ok()].into_iter().flatten() {
            let is_special = file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
            // A pipe or a device is opened before.
            if !is_special && let Some(folder) = file.parent() {
                self.write_in(if folder == Path::new("") { Path::new(".") } else { folder });
            }
        }
    }

    /// It writes and removes files and folders in this folder.
    pub fn write_in(&mut self, folder: &Path) {
        self.writes.push(folder.to_owned());
    }

    /// It captures from an interface, which needs root until that is open.
    pub fn capture_live(&mut self) {
        self.is_live = true;
    }

    /// Whether it captures from an interface.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Adds what another part of the process opens.
    pub fn extend(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.is_live |= other.is_live;
    }

    /// Checks, as this user, that files can be made in all folders that are written to.
    ///
    /// # Errors
    /// [`AccessError`] names the first folder where that is not so.
    pub fn check_folders(&self, user: &str) -> Result<(), AccessError> {
        let is_usable = |folder: &&PathBuf| fs::access(*folder, Permission::WRITE_OK | Permission::EXEC_OK).is_ok();
        match self.writes.iter().find(|folder| folder.is_dir() && !is_usable(folder)) {
            Some(folder) => Err(AccessError { folder: folder.clone(), user: user.to_owned() }),
            None => Ok(()),
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn reads(&self) -> &[PathBuf] {
        &self.reads
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn writes(&self) -> &[PathBuf] {
        &self.writes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_written_in_their_folder_and_in_that_of_a_links_target() {
        let folder = tempfile::tempdir().unwrap();
        let [target, link] = ["inner/target", "link"].map(|name| folder.path().join(name));
        std::fs::create_dir(target.parent().unwrap()).unwrap();
        std::fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut access = Access::default();
        access.write_beside(&link);
        assert_eq!(access.writes, [link.parent().unwrap(), target.canonicalize().unwrap().parent().unwrap()]);
        let mut access = Access::default();
        access.write_beside(Path::new("new.csv"));
        access.write_beside(Path::new("/dev/null"));
        assert_eq!(access.writes, [Path::new(".")]);
        assert!(access.check_folders("me").is_ok());
    }
}
