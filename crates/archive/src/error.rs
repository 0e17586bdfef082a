//! Errors of an archive.

use std::io;
use std::path::{Path, PathBuf};

use sizeleak_frame::WriteError;
use sizeleak_pipeline::ConfigError;
use thiserror::Error;

/// Why an archive cannot be processed.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// Another run is writing there.
    #[error("another `sizeleak archive` is writing to {}: wait for its end (`--wait`), or name another folder", .0.display())]
    Locked(PathBuf),
    /// There are no results yet.
    #[error("{} has no manifest.ndjson: name the folder that `sizeleak archive -o` wrote", .0.display())]
    NoManifest(PathBuf),
    /// The results hold no such point.
    #[error("{} holds no point `{point}`: `sizeleak archive status {}` lists its points", out.display(), out.display())]
    NoPoint {
        /// The name.
        point: String,
        /// The folder of results.
        out: PathBuf,
    },
    /// A pattern matches nothing.
    #[error("no file matches {}: in a pattern `*` stays within a name, and `**` stands for folders at any depth", .0.display())]
    NoMatch(PathBuf),
    /// A pattern is none.
    #[error("{}: {fault} at character {place} of the pattern: write `[` as `[[]`", pattern.display())]
    InvalidPattern {
        /// The pattern.
        pattern: PathBuf,
        /// The character, from 1.
        place: usize,
        /// What is wrong.
        fault: &'static str,
    },
    /// Two capture points cannot be told apart.
    #[error("{} and {} would both be the capture point `{name}`: name a folder above both", .one.display(), .other.display())]
    SameName {
        /// The name.
        name: String,
        /// One folder.
        one: PathBuf,
        /// The other one.
        other: PathBuf,
    },
    /// The pipeline or a folder cannot be used here.
    #[error("{0}")]
    Usage(String),
    /// The pipeline is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

impl ArchiveError {
    pub(crate) fn of_file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::File { path: path.to_owned(), error }
    }

    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::InvalidPattern { .. } | Self::SameName { .. } | Self::Usage(_) => 2,
            Self::Locked(_) | Self::NoManifest(_) | Self::NoMatch(_) | Self::NoPoint { .. } | Self::File { .. } => 1,
        }
    }
}

/// The error of the system behind one about frames.
pub(crate) fn io_error(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}
