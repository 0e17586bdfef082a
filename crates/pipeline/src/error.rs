//! Errors in the configuration of a pipeline, errors of its input, and errors that end a run.

use std::fmt::{Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model_fit::TrafficSeen;

/// Longer lines are quoted up to here, in characters.
const MAX_QUOTE: usize = 160;

/// An error in the configuration of a pipeline, or a file it names that cannot be used.
#[derive(Debug, Error)]
pub struct ConfigError {
    pub file: Option<PathBuf>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    pub fault: String,
    quote: Option<String>,
    code: u8,
}

impl Display for ConfigError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(formatter, "{}, line {line}: ", file.display())?,
            (Some(file), None) => write!(formatter, "{}: ", file.display())?,
            (None, _) => {}
        }
        formatter.write_str(&self.fault)?;
        match (self.line, &self.quote) {
            (Some(line), Some(text)) => write!(formatter, "\n  {line} | {text}"),
            _ => Ok(()),
        }
    }
}

impl ConfigError {
    pub fn usage(fault: String) -> Self {
        Self { file: None, line: None, fault, quote: None, code: 2 }
    }

    pub fn input(fault: String) -> Self {
        Self { code: 1, ..Self::usage(fault) }
    }

    pub(crate) fn cut(fault: String) -> Self {
        Self { code: 3, ..Self::usage(fault) }
    }

    pub fn of_file(file: &Path, error: &io::Error) -> Self {
        Self { file: Some(file.to_owned()), ..Self::input(error.to_string()) }
    }

    /// The same, at a line of a file, which is quoted from its text.
    pub(crate) fn at(self, file: Option<&Path>, line: Option<usize>, text: &str) -> Self {
        let quoted = line.and_then(|line| text.lines().nth(line.checked_sub(1)?));
        let quote = quoted.map(|quoted| quoted.trim_end().chars().take(MAX_QUOTE).collect());
        Self { file: file.map(Path::to_owned), line, quote, ..self }
    }

    /// The exit code of the contract: 2 for a usage error, 1 if a file cannot be used, 3 if it was cut short.
    pub fn exit_code(&self) -> u8 {
        self.code
    }
}

/// Why a run failed. All complete frames before the failure have reached the sink.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{stage}`: {cause}")]
pub struct RunError {
    pub stage: String,
    pub cause: String,
    pub(crate) code: u8,
}

impl RunError {
    /// An input that cannot be read, among others that can.
    pub fn of_input(cause: String) -> Self {
        Self { stage: "capture".to_owned(), cause, code: 1 }
    }

    pub fn exit_code(&self) -> u8 {
        self.code
    }
}

/// Why pipelines cannot be run over an input, or find no command in it.
#[derive(Debug, Error)]
pub enum InputError {
    /// The pipeline cannot be prepared, or its input cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("stopped before the captures were read to the end")]
    Interrupted,
    #[error(transparent)]
    Damaged(#[from] RunError),
    #[error("there is no command in the captures: {0}")]
    NoCommands(Box<TrafficSeen>),
    #[error("a temporary file for the traffic cannot be used: {0}")]
    Recording(io::Error),
}

impl InputError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::Damaged(error) => error.exit_code(),
            Self::Interrupted => 130,
            Self::NoCommands(_) | Self::Recording(_) => 1,
        }
    }

    /// Why a run found no command: the damage of the captures, or what was there instead.
    pub fn no_commands(damage: Option<RunError>, seen: TrafficSeen) -> Self {
        damage.map_or_else(|| Self::NoCommands(Box::new(seen)), Self::Damaged)
    }
}
