//! Files of our own on the disk: written under a temporary name beside their target and renamed when they are whole, read
//! where they are regular, private, and with the permissions of those that they replace.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A name has at most 255 bytes; this leaves room for what makes a temporary one unique.
const LONGEST_STEM: usize = 200;

/// How many letters and digits make a temporary name unique.
pub const UNIQUE_LETTERS: usize = 12;

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
pub struct PendingFile {
    file: NamedTempFile,
    target: PathBuf,
    durability: Durability,
}

impl PendingFile {
    /// Creates the file that becomes `target`. A link is not followed here: it would be replaced.
    pub fn create(target: &Path, durability: Durability) -> io::Result<Self> {
        let name = target.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "this is no file name"))?;
        let stem = name.as_bytes().get(..LONGEST_STEM).unwrap_or(name.as_bytes());
        let prefix = OsString::from_vec([b".", stem, b"."].concat());
        let replaced = target.metadata().ok();
        // Never more open than the file that it becomes; the umask applies to new files only.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let file = Builder::new()
            .prefix(&prefix)
            .rand_bytes(UNIQUE_LETTERS)
            .make_in(folder_of(target), |path| OpenOptions::new().write(true).create_new(true).mode(mode).open(path))?;
        if let Some(replaced) = replaced {
            keep_permissions(file.as_file(), &replaced)?;
        }
        Ok(Self { file, target: target.to_owned(), durability })
    }

    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Gives the file its final name, in place of an earlier file.
    ///
    /// # Errors
    /// I/O errors of the system. Unless only the last step failed, the earlier file is as it was.
    pub fn keep(self) -> io::Result<()> {
        let target = self.target.clone();
        self.keep_as(&target)
    }

    /// Gives the file another name in the same folder than the one it was meant for.
    pub fn keep_as(self, path: &Path) -> io::Result<()> {
        if self.durability == Durability::Disposable {
            return Ok(self.file.persist(path).map(drop)?);
        }
        // A rename may reach the disk before the bytes do.
        self.file.as_file().sync_all()?;
        self.file.persist(path)?;
        sync_folder(folder_of(path))
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file that a program of ours wrote. Another thing in its place, such as a pipe that nobody writes to, is an error:
/// opening it might never end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "this is no regular file: remove what is in its place"));
    }
    File::open(path)
}

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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_rename_that_fails_leaves_the_earlier_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        for durability in [Durability::Lasting, Durability::Disposable] {
            let mut pending = PendingFile::create(&target, durability).unwrap();
            pending.file().write_all(b"new").unwrap();
            // Something else has taken its name meanwhile.
            fs::create_dir(&target).unwrap();
            assert_eq!(pending.keep().unwrap_err().kind(), ErrorKind::IsADirectory);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            fs::remove_dir(&target).unwrap();
        }
        assert_eq!(
            PendingFile::create(&target.join("x"), Durability::Lasting).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }

    #[test]
    fn longest_name_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("ä".repeat(127) + "x");
        for _ in 0..3 {
            PendingFile::create(&target, Durability::Lasting).unwrap().keep().unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
