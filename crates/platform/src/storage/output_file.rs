//! An output that the user names: a file that appears when it is whole, or something that is written to directly.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::storage::pending_file::make_private;
use crate::storage::pending_file::{Durability, PendingFile, folder_of};

/// Longer chains of links are circles.
const MAX_LINKS: usize = 40;

#[derive(Debug, Error)]
#[error("{} cannot be written: {source}", path.display())]
pub struct OutputError {
    path: PathBuf,
    source: io::Error,
}

impl OutputError {
    fn new(path: &Path, error: io::Error) -> Self {
        let folder = folder_of(path);
        let source = match error.kind() {
            ErrorKind::NotFound if !folder.is_dir() => io::Error::new(error.kind(), "there is no such folder"),
            ErrorKind::NotADirectory => io::Error::new(error.kind(), "a part of its path is not a folder"),
            _ if path.is_dir() => io::Error::new(error.kind(), "it is a folder"),
            _ => error,
        };
        Self { path: path.to_owned(), source }
    }
}

/// An output that is being written. A regular file keeps its earlier content until [`OutputFile::keep`].
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Pending(PendingFile),
    /// A pipe, a device, or what a file descriptor stands for.
    Direct(File),
}

impl OutputFile {
    /// Begins an output; `-` is stdout. The target of a link is written, not the link.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let fault = |error| OutputError::new(path, error);
        if let Some(direct) = descriptor(path) {
            return Ok(Self { path: path.to_owned(), target: Target::Direct(direct.map_err(fault)?) });
        }
        let resolved = resolved(path).map_err(fault)?;
        let target = match resolved.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(fault(ErrorKind::IsADirectory.into())),
            Ok(metadata) if !metadata.is_file() => {
                Target::Direct(File::options().write(true).open(&resolved).map_err(fault)?)
            }
            _ => Target::Pending(PendingFile::create(&resolved, Durability::Lasting).map_err(fault)?),
        };
        Ok(Self { path: path.to_owned(), target })
    }

    /// Standard output, as a file: the standard library would buffer it by lines.
    pub fn stdout() -> io::Result<Self> {
        Ok(Self { path: PathBuf::from("stdout"), target: Target::Direct(stdout()?) })
    }

    /// A file to write to. It may be used until the output is kept.
    pub fn writer(&mut self) -> Result<File, OutputError> {
        let file = match &mut self.target {
            Target::Pending(pending) => pending.file().try_clone(),
            Target::Direct(file) => file.try_clone(),
        };
        file.map_err(|error| OutputError::new(&self.path, error))
    }

    /// Leaves a file that is being written to its owner alone, whatever the umask and the file before it allow.
    pub fn make_private(&mut self) -> Result<(), OutputError> {
        match &mut self.target {
            Target::Pending(pending) => {
                make_private(pending.file()).map_err(|error| OutputError::new(&self.path, error))
            }
            Target::Direct(_) => Ok(()),
        }
    }

    /// Makes the output what its name stands for. Call it when everything is written.
    pub fn keep(self) -> Result<(), OutputError> {
        match self.target {
            Target::Pending(pending) => pending.keep().map_err(|error| OutputError::new(&self.path, error)),
            Target::Direct(_) => Ok(()),
        }
    }

    /// Keeps what was written of an output that is not whole, beside the earlier file and with `.partial` after its
    /// name. Returns that path; `None` if nothing was written, or not to a file.
    pub fn keep_partial(self) -> Result<Option<PathBuf>, OutputError> {
        let Target::Pending(mut pending) = self.target else { return Ok(None) };
        let path = partial(pending.target());
        let fault = |error| OutputError::new(&path, error);
        if pending.file().metadata().map_err(fault)?.len() == 0 {
            return Ok(None);
        }
        pending.keep_as(&path).map_err(fault)?;
        Ok(Some(path))
    }
}

pub(crate) fn partial(target: &Path) -> PathBuf {
    let mut path = target.as_os_str().to_owned();
    path.push(".partial");
    PathBuf::from(path)
}

/// Writes a file, completely or not at all; `-` is stdout. Anything but a regular file is written to.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), OutputError> {
    let mut output = OutputFile::create(path)?;
    output.writer()?.write_all(content).map_err(|error| OutputError::new(path, error))?;
    output.keep()
}

fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// What a name of a file descriptor stands for. Behind it may be a file, which must not get another inode.
pub(crate) fn descriptor(path: &Path) -> Option<io::Result<File>> {
    match path.to_str()? {
        "-" | "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(stdout()),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => {
            Some(io::stderr().as_fd().try_clone_to_owned().map(File::from))
        }
        other if other.starts_with("/dev/fd/") || other.starts_with("/proc/self/fd/") => {
            // Opened again it would begin at offset 0.
            Some(File::options().append(true).open(other))
        }
        _ => None,
    }
}

/// The path behind a chain of links, which may not exist.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            // No link, or nothing at all.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("its links are a circle"))
}

#[cfg(test)]
mod tests;
