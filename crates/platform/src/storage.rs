//! Files that a program writes: each appears whole or not at all, outlives a power cut, and never replaces a file that
//! the same run reads.
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

mod output_file;

pub use output_file::{
    Durability, OutputError, OutputFile, PendingFile, UNIQUE_LETTERS, make_private, open_regular, read_regular,
    replace, sync_folder,
};

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use output_file::{descriptor, folder_of, partial, resolved};
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

    fn target(&self) -> Option<PathBuf> {
        if descriptor(&self.path).is_some() {
            return None;
        }
        let path = resolved(&self.path).ok()?;
        path.metadata().map_or(true, |metadata| metadata.is_file()).then_some(path)
    }

    fn folder(&self) -> Option<PathBuf> {
        folder_of(&self.target()?).canonicalize().ok()
    }

    fn is_same_file(&self, other: &Self) -> bool {
        let place = |output: &Self| Some(output.folder()?.join(output.target()?.file_name()?));
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

#[cfg(test)]
mod tests;
