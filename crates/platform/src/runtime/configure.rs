//! The options of a stage: one struct for its flags and its keys in `pipeline.toml`.

use std::path::Path;

use crate::sandbox::Access;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::runtime::Runnable;

/// The options of a stage, from the command line or from `pipeline.toml`, with one set of defaults.
pub trait StageOptions: clap::Args + Serialize + DeserializeOwned + Default {
    const NAME: &'static str;

    /// What it does, in one sentence for the help text.
    const ABOUT: &'static str;

    /// Example command lines for the help text.
    const EXAMPLES: &'static [&'static str];

    /// Makes relative paths relative to `folder`, which holds the pipeline file.
    fn resolve_paths(&mut self, folder: &Path) {
        let _ = folder;
    }

    /// What the stage opens while it runs: by default nothing, since its files are read when it is built.
    fn access(&self) -> Access {
        Access::default()
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError>;
}

#[derive(Debug, Error)]
pub enum ConfigureError {
    /// An option is missing or invalid: a usage error, exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A file that an option names cannot be used: exit code 1.
    #[error("{0}")]
    Input(String),
}

impl ConfigureError {
    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Input(_) => 1,
        }
    }
}
