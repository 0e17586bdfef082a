//! A folder that only the user can read and write: what others could put into it would become results.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use thiserror::Error;

/// Nobody else may enter it.
const PRIVATE: u32 = 0o700;

/// Others may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A folder is not safe to use.
#[derive(Debug, Error)]
pub enum UnsafeFolder {
    /// It belongs to somebody else.
    #[error("{} belongs to another user: name a folder of your own with `--cache-dir`", .0.display())]
    OfAnother(PathBuf),
    /// Others can put files into it.
    #[error(
        "{path} can be written by other users, who could put results into it: `chmod 700 {path}`, or name another \
         folder with `--cache-dir`",
        path = .0.display()
    )]
    WritableByOthers(PathBuf),
    /// It is something else.
    #[error("{} is not a folder", .0.display())]
    NotFolder(PathBuf),
    /// The system reports an error.
    #[error("{}: {source}", path.display())]
    System {
        /// The folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Checks that a folder is the user's and nobody else writes to it. A folder that is missing is safe.
///
/// # Errors
/// [`UnsafeFolder`].
pub(super) fn check(folder: &Path) -> Result<(), UnsafeFolder> {
    match folder.metadata() {
        Ok(metadata) => check_metadata(folder, &metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(UnsafeFolder::System { path: folder.to_owned(), source }),
    }
}

fn check_metadata(folder: &Path, metadata: &Metadata) -> Result<(), UnsafeFolder> {
    if !metadata.is_dir() {
        Err(UnsafeFolder::NotFolder(folder.to_owned()))
    } else if metadata.uid() != geteuid().as_raw() {
        Err(UnsafeFolder::OfAnother(folder.to_owned()))
    } else if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        Err(UnsafeFolder::WritableByOthers(folder.to_owned()))
    } else {
        Ok(())
    }
}

/// Creates a folder, and those above it, for the user alone; one that exists is checked and closed to others.
///
/// # Errors
/// [`UnsafeFolder`].
pub(super) fn create(folder: &Path) -> Result<(), UnsafeFolder> {
    let system = |source| UnsafeFolder::System { path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(PRIVATE).create(folder).map_err(system)?;
    let metadata = folder.metadata().map_err(system)?;
    check_metadata(folder, &metadata)?;
    if metadata.mode() & 0o777 != PRIVATE {
        // Others could read what is cached.
        fs::set_permissions(folder, Permissions::from_mode(PRIVATE)).map_err(system)?;
    }
    Ok(())
}
