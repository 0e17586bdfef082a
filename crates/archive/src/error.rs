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
    /// The folder for results holds something else.
    #[error("{} is not empty and was not made by `sizeleak archive`: name an empty or a new folder", .0.display())]
    NotArchive(PathBuf),
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
    /// The folder for results would be read, or the other way round.
    #[error("{out} and {input} lie inside each other: name a folder elsewhere for the results",
        out = .out.display(), input = .input.display())]
    Inside {
        /// The folder for results.
        out: PathBuf,
        /// What is read.
        input: PathBuf,
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
    /// The taps cannot be used.
    #[error(transparent)]
    Tap(#[from] TapFault),
    /// The pipeline cannot be used here.
    #[error("{0}")]
    Pipeline(String),
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
    /// An error of the system about a file.
    pub(crate) fn of_file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::File { path: path.to_owned(), error }
    }

    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::NotArchive(_)
            | Self::InvalidPattern { .. }
            | Self::Inside { .. }
            | Self::SameName { .. }
            | Self::Tap(_)
            | Self::Pipeline(_) => 2,
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

/// The longest name of a tap, in bytes.
pub(crate) const MAX_NAME: usize = 32;

/// Why taps cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TapFault {
    /// It is not of the form.
    #[error(
        "write NAME=GLOB, such as lan='captures/mirror/*.pcap*', with a name of at most {MAX_NAME} letters, digits, \
         `-` and `_`"
    )]
    Form,
    /// The pattern is none.
    #[error("tap `{tap}`: {pattern} is no pattern: {fault} at character {place}; write `[` as `[[]`")]
    Pattern {
        /// The name of the tap.
        tap: String,
        /// The pattern.
        pattern: String,
        /// What is wrong.
        fault: String,
        /// The character, from 1.
        place: usize,
    },
    /// Nothing matches.
    #[error("tap `{tap}`: no file matches {pattern}: quote it, and check what it would match with `ls`")]
    NoMatch {
        /// The name of the tap.
        tap: String,
        /// The pattern.
        pattern: String,
    },
    /// A file belongs to two taps.
    #[error("{file} is of tap `{one}` and of tap `{other}`: a capture is of one tap", file = file.display())]
    InTwo {
        /// The file.
        file: PathBuf,
        /// The first tap.
        one: String,
        /// The other one.
        other: String,
    },
    /// The point of the taps has the name of a folder.
    #[error("{} is the capture point `{name}`, which would be that of the taps, too: give a tap another name",
        folder.display())]
    SameName {
        /// The name.
        name: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The times of packets are not used.
    #[error("taps are compared by the times of their packets: leave out `capture.order`")]
    WithoutTimes,
    /// The folder for results would be read.
    #[error("{file} is in the folder for results, and of tap `{tap}`: name a folder elsewhere", file = file.display())]
    InResults {
        /// The file.
        file: PathBuf,
        /// The name of the tap.
        tap: String,
    },
}
