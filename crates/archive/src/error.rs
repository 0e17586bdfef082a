//! Errors of an archive.

use std::io;
use std::path::{Path, PathBuf};

use sizeleak_pipeline::ConfigError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("another `sizeleak archive` is writing to {}: wait for its end (`--wait`), or name another folder", .0.display())]
    Locked(PathBuf),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl ArchiveError {
    pub(crate) fn usage(fault: String) -> Self {
        ConfigError::usage(fault).into()
    }

    pub(crate) fn of_file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| ConfigError::of_file(path, &error).into()
    }

    pub(crate) fn no_manifest(out: &Path) -> Self {
        let fault =
            format!("{} has no manifest.ndjson: name the folder that `sizeleak archive -o` wrote", out.display());
        ConfigError::input(fault).into()
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::Locked(_) => 1,
        }
    }
}
