//! The few operations of a file system that make a whole file, so that tests can cut them off at any point.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// What [`PendingFile`](crate::storage::PendingFile) asks of a file system.
pub trait FileSystem {
    /// An open file.
    type File: Write;

    /// Creates a file that does not exist yet, with the permissions of the file `replaced` if that exists.
    ///
    /// # Errors
    /// I/O errors of the system; [`ErrorKind::AlreadyExists`].
    fn create(&self, path: &Path, replaced: &Path) -> io::Result<Self::File>;

    /// Waits until everything written to a file is on the disk.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// Renames a file, over another one if that exists.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Waits until the names in a folder are on the disk.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disk;

impl FileSystem for Disk {
    type File = File;

    fn create(&self, path: &Path, replaced: &Path) -> io::Result<File> {
        let replaced = replaced.metadata().ok();
        // Never more open than the file that it becomes; the umask applies to new files only.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        if let Some(replaced) = replaced {
            keep_permissions(&file, &replaced)?;
        }
        Ok(file)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            // Some file systems cannot sync folders, and some folders can be written but not read.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::PermissionDenied) => Ok(()),
            synced => synced,
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// Opens a file that a program of ours wrote. Another thing in its place, such as a pipe that nobody writes to, is an error:
/// opening it might never end.
///
/// # Errors
/// I/O errors of the system; [`ErrorKind::InvalidInput`] for what is no file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "this is no regular file: remove what is in its place"));
    }
    File::open(path)
}

/// The content of such a file.
///
/// # Errors
/// As [`open_regular`].
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_regular(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Leaves a file to its owner alone.
///
/// # Errors
/// I/O errors of the system.
pub fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Gives a new file the owner, group and permissions of the one it replaces, as far as the user may.
fn keep_permissions(file: &File, replaced: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    let mut mode = replaced.mode() & 0o777;
    if own.uid() != replaced.uid() {
        // Only root may give files away.
        let _stays_mine = fchown(file, Some(replaced.uid()), None);
    }
    if own.gid() != replaced.gid() && fchown(file, None, Some(replaced.gid())).is_err() {
        // Another group must not get what the old one had.
        mode = mode & 0o707 | (mode & 0o007) << 3;
    }
    file.set_permissions(Permissions::from_mode(mode))
}
