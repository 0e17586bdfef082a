//! Files that a program writes: each appears whole or not at all, outlives a power cut, and never replaces a file that
//! the same run reads. A file of our own is written under a temporary name beside its target and renamed when it is whole,
//! private, or with the permissions of the one that it replaces; an output that the user names is such a file or something
//! that is written to directly.
//!
//! ```
//! use sizeleak_platform::storage::{RunFiles, replace};
//!
//! let folder = std::env::temp_dir().join(format!("sizeleak-storage-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let model = folder.join("model.toml");
//! replace(&model, b"schema = 1\n")?;
//!
//! let mut files = RunFiles::new();
//! files.reads("the model", &model);
//! files.writes("`--output`", &model);
//! assert!(files.check().unwrap_err().to_string().ends_with("is the model, which this run reads: name another file"));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempPath};
use thiserror::Error;

/// An output would destroy another file of the same run.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FileConflict(String);

impl FileConflict {
    fn new(output: &NamedPath, why: &str) -> Self {
        Self(format!("{} {}", named(&output.role, &output.path), why))
    }
}

#[derive(Debug, Default)]
pub struct RunFiles {
    inputs: Vec<NamedPath>,
    outputs: Vec<NamedPath>,
}

#[derive(Debug)]
struct NamedPath {
    role: String,
    path: PathBuf,
}

/// The device and the inode of a file.
type FileIdentity = (u64, u64);

/// `None` for pipes and devices: writing to them destroys nothing.
fn identity(metadata: io::Result<Metadata>) -> Option<FileIdentity> {
    let metadata = metadata.ok().filter(Metadata::is_file)?;
    Some((metadata.dev(), metadata.ino()))
}

fn identity_of(file: io::Result<File>) -> Option<FileIdentity> {
    identity(file.and_then(|file| file.metadata()))
}

impl RunFiles {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input: a file, or a folder whose files are read; `-` is stdin. `role` says what it is, as in `the model`.
    pub fn reads(&mut self, role: &str, path: &Path) {
        self.inputs.push(NamedPath { role: role.to_owned(), path: path.to_owned() });
    }

    pub fn reads_stdin(&mut self) {
        self.reads("stdin", Path::new("-"));
    }

    /// Adds an output; `-` is stdout. `role` is the option or key that names it.
    pub fn writes(&mut self, role: &str, path: &Path) {
        self.outputs.push(NamedPath { role: role.to_owned(), path: path.to_owned() });
    }

    pub fn extend(&mut self, other: Self) {
        self.inputs.extend(other.inputs);
        self.outputs.extend(other.outputs);
    }

    /// Finds an output that is an input or another output. Call it before the first output is created.
    pub fn check(&self) -> Result<(), FileConflict> {
        self.check_inputs()?;
        self.check_outputs()
    }

    fn check_inputs(&self) -> Result<(), FileConflict> {
        let targets = self.outputs.iter().flat_map(|output| {
            // A run that fails leaves what it wrote under the second name.
            let partial = resolved(&output.path).ok().and_then(|path| identity(partial(&path).metadata()));
            output.identity().into_iter().chain(partial).map(move |identity| (output, identity))
        });
        let targets: Vec<(&NamedPath, FileIdentity)> = targets.collect();
        let check = |input: &str, identity: Option<FileIdentity>| match targets
            .iter()
            .find(|(_, target)| Some(*target) == identity)
        {
            None => Ok(()),
            Some((output, _)) => {
                Err(FileConflict::new(output, &format!("is {input}, which this run reads: name another file")))
            }
        };
        for NamedPath { role, path } in &self.inputs {
            if path.as_os_str() == "-" {
                check("stdin", identity_of(io::stdin().as_fd().try_clone_to_owned().map(File::from)))?;
            } else if path.is_dir() {
                if !targets.is_empty() {
                    for_each_below(path, &mut |below| check(&named(role, below), identity(below.metadata())))?;
                }
                self.check_folder(path)?;
            } else {
                let is_output = targets.iter().any(|(output, _)| output.path == *path);
                let input = if is_output { role.clone() } else { named(role, path) };
                check(&input, identity(path.metadata()))?;
            }
        }
        Ok(())
    }

    /// A temporary file of an output might be taken for an input there.
    fn check_folder(&self, folder: &Path) -> Result<(), FileConflict> {
        let Ok(read) = folder.canonicalize() else { return Ok(()) };
        let is_there = |output: &&NamedPath| output.folder().is_some_and(|of_output| of_output.starts_with(&read));
        let why = format!("is in {}, whose files this run reads: name a file elsewhere", folder.display());
        self.outputs.iter().find(is_there).map_or(Ok(()), |output| Err(FileConflict::new(output, &why)))
    }

    fn check_outputs(&self) -> Result<(), FileConflict> {
        for (at, output) in self.outputs.iter().enumerate() {
            let earlier = self.outputs.get(..at).unwrap_or_default();
            if let Some(other) = earlier.iter().find(|other| output.is_same_file(other)) {
                let why = format!("and {} are the same file: name two", named(&other.role, &other.path));
                return Err(FileConflict::new(output, &why));
            }
        }
        Ok(())
    }
}

impl NamedPath {
    fn identity(&self) -> Option<FileIdentity> {
        descriptor(&self.path).map_or_else(|| identity(self.path.metadata()), identity_of)
    }

    fn folder(&self) -> Option<PathBuf> {
        folder_of(&target(&self.path)?).canonicalize().ok()
    }

    fn is_same_file(&self, other: &Self) -> bool {
        let place = |output: &Self| Some(output.folder()?.join(target(&output.path)?.file_name()?));
        let has_same_place = place(self).is_some_and(|same| place(other) == Some(same));
        // Two hard links are two names: each gets its own file. A descriptor has the file itself.
        let shares_descriptor = [self, other].iter().any(|output| descriptor(&output.path).is_some())
            && self.identity().is_some_and(|identity| other.identity() == Some(identity));
        has_same_place || shares_descriptor
    }
}

fn named(role: &str, path: &Path) -> String {
    format!("{role} {}", path.display())
}

/// Calls `check` for every file below a folder that is read with all below it. What cannot be read is reported by
/// whoever reads it.
fn for_each_below(
    folder: &Path,
    check: &mut impl FnMut(&Path) -> Result<(), FileConflict>,
) -> Result<(), FileConflict> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => check(&entry.path())?,
            }
        }
    }
    Ok(())
}

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
    file: File,
    /// The temporary name of the file, which disappears with it unless it is kept, and the name that it gets; `None` for
    /// what is written to directly.
    pending: Option<(TempPath, PathBuf)>,
}

impl OutputFile {
    /// Begins an output; `-` is stdout. The target of a link is written, not the link.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        Self::begin(path).map_err(|error| OutputError::new(path, error))
    }

    fn begin(path: &Path) -> io::Result<Self> {
        let direct = |file| Self { path: path.to_owned(), file, pending: None };
        if let Some(file) = descriptor(path) {
            return file.map(direct);
        }
        let target = resolved(path)?;
        let replaced = match target.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => return File::options().write(true).open(&target).map(direct),
            metadata => metadata.ok(),
        };
        let name = target.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "this is no file name"))?;
        let stem = name.as_bytes().get(..LONGEST_STEM).unwrap_or(name.as_bytes());
        let prefix = OsString::from_vec([b".", stem, b"."].concat());
        // Never more open than the file that it becomes; the umask applies to new files only.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let (file, temporary) = Builder::new()
            .prefix(&prefix)
            .rand_bytes(UNIQUE_LETTERS)
            .make_in(folder_of(&target), |path| OpenOptions::new().write(true).create_new(true).mode(mode).open(path))?
            .into_parts();
        if let Some(replaced) = replaced {
            keep_permissions(&file, &replaced)?;
        }
        Ok(Self { path: path.to_owned(), file, pending: Some((temporary, target)) })
    }

    /// Standard output, as a file: the standard library would buffer it by lines.
    pub fn stdout() -> io::Result<Self> {
        Ok(Self { path: PathBuf::from("stdout"), file: stdout()?, pending: None })
    }

    /// A file to write to. It may be used until the output is kept.
    pub fn writer(&mut self) -> Result<File, OutputError> {
        self.file.try_clone().map_err(|error| OutputError::new(&self.path, error))
    }

    /// Leaves a file that is being written to its owner alone, whatever the umask and the file before it allow.
    pub fn make_private(&mut self) -> Result<(), OutputError> {
        let made = self.pending.as_ref().map_or(Ok(()), |_| make_private(&self.file));
        made.map_err(|error| OutputError::new(&self.path, error))
    }

    pub fn finish(mut self, content: &[u8]) -> Result<(), OutputError> {
        self.file.write_all(content).map_err(|error| OutputError::new(&self.path, error))?;
        self.keep()
    }

    /// Makes the output what its name stands for. Call it when everything is written. Unless only the last step fails, the
    /// earlier file is as it was.
    pub fn keep(self) -> Result<(), OutputError> {
        let kept = self.pending.map_or(Ok(()), |(temporary, target)| persist(&self.file, temporary, &target));
        kept.map_err(|error| OutputError::new(&self.path, error))
    }

    /// Keeps what was written of an output that is not whole, beside the earlier file and with `.partial` after its
    /// name. Returns that path; `None` if nothing was written, or not to a file.
    pub fn keep_partial(self) -> Result<Option<PathBuf>, OutputError> {
        let Some((temporary, target)) = self.pending else { return Ok(None) };
        let path = partial(&target);
        let fault = |error| OutputError::new(&path, error);
        if self.file.metadata().map_err(fault)?.len() == 0 {
            return Ok(None);
        }
        persist(&self.file, temporary, &path).map_err(fault)?;
        Ok(Some(path))
    }
}

/// Gives a file its final name, in place of an earlier file, when all of it is on the disk: a rename may reach that before
/// the bytes do.
fn persist(file: &File, temporary: TempPath, target: &Path) -> io::Result<()> {
    file.sync_all()?;
    temporary.persist(target)?;
    sync_folder(folder_of(target))
}

fn partial(target: &Path) -> PathBuf {
    let mut path = target.as_os_str().to_owned();
    path.push(".partial");
    PathBuf::from(path)
}

/// Writes a file, completely or not at all; `-` is stdout. Anything but a regular file is written to.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), OutputError> {
    OutputFile::create(path)?.finish(content)
}

fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// What a name of a file descriptor stands for. Behind it may be a file, which must not get another inode.
fn descriptor(path: &Path) -> Option<io::Result<File>> {
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

/// The file that an output of this name becomes; `None` if it is written to directly, as a pipe, a device or a descriptor.
pub(crate) fn target(path: &Path) -> Option<PathBuf> {
    if descriptor(path).is_some() {
        return None;
    }
    let path = resolved(path).ok()?;
    path.metadata().map_or(true, |metadata| metadata.is_file()).then_some(path)
}

/// The path behind a chain of links, which may not exist.
fn resolved(path: &Path) -> io::Result<PathBuf> {
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

/// A name has at most 255 bytes; this leaves room for what makes a temporary one unique.
const LONGEST_STEM: usize = 200;

/// How many letters and digits make a temporary name unique.
pub const UNIQUE_LETTERS: usize = 12;

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

#[cfg(test)]
mod tests;
