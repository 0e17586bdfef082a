//! Why a command failed, with the exit code of the contract.

use std::fmt::{Display, Formatter};
use std::io;

use sizeleak_model::ModelError;
use sizeleak_simulator::SimulateError;

use sizeleak_pipeline::{ConfigError, RunError};

/// Why a command failed: one sentence for a person, and an exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// Something on the command line or in `pipeline.toml` makes no sense: exit code 2.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { code: 2, error: error.into() }
    }

    /// A failure with this exit code.
    pub fn with_code(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }

    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        self.code
    }
}

/// Bad input or I/O: exit code 1.
macro_rules! input {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self { code: 1, error: error.into() }
            }
        }
    )*};
}

input!(anyhow::Error, io::Error, ModelError, SimulateError);

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { code: error.exit_code(), error: error.into() }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self { code: error.exit_code(), error: error.into() }
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", self.error)
    }
}
