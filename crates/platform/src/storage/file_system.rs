//! Files of our own on the disk: read where they are regular, private, and with the permissions of those that they replace.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

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
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_regular(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Waits until the names in a folder are on the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot sync folders, and some folders can be written but not read.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::PermissionDenied) => Ok(()),
        synced => synced,
    }
}

/// Leaves a file to its owner alone.
pub fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Gives a new file the owner, group and permissions of the one it replaces, as far as the user may.
pub(super) fn keep_permissions(file: &File, replaced: &Metadata) -> io::Result<()> {
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
