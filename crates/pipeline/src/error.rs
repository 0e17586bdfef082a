//! Why a pipeline cannot be made, or did not come to its end.

use std::fmt::{Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A longer line is quoted up to here, in characters.
const LONGEST_QUOTE: usize = 160;

/// Why a pipeline cannot be made of what it was told.
#[derive(Debug, Error)]
#[error("{}{fault}{}", Place { file: file.as_deref(), line: *line }, Quote { line: *line, text: quote.as_deref() })]
pub struct ConfigError {
    /// The pipeline file, if it is one's fault.
    pub file: Option<PathBuf>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub fault: String,
    /// What that line says.
    quote: Option<String>,
    code: u8,
}

struct Place<'a> {
    file: Option<&'a Path>,
    line: Option<usize>,
}

impl Display for Place<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match (self.file, self.line) {
            (Some(file), Some(line)) => write!(formatter, "{}, line {line}: ", file.display()),
            (Some(file), None) => write!(formatter, "{}: ", file.display()),
            (None, _) => Ok(()),
        }
    }
}

/// A line of a file below a sentence about it.
struct Quote<'a> {
    line: Option<usize>,
    text: Option<&'a str>,
}

impl Display for Quote<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.text) {
            (Some(line), Some(text)) => write!(formatter, "\n  {line} | {text}"),
            _ => Ok(()),
        }
    }
}

impl ConfigError {
    pub(crate) fn usage(fault: String) -> Self {
        Self { file: None, line: None, fault, quote: None, code: 2 }
    }

    pub(crate) fn input(fault: String) -> Self {
        Self { file: None, line: None, fault, quote: None, code: 1 }
    }

    /// About input that was cut short.
    pub(crate) fn cut(fault: String) -> Self {
        Self { code: 3, ..Self::input(fault) }
    }

    pub(crate) fn of_file(file: &Path, error: &io::Error) -> Self {
        Self { file: Some(file.to_owned()), line: None, fault: error.to_string(), quote: None, code: 1 }
    }

    /// The same, at a line of a file.
    pub(crate) fn at(self, file: Option<&Path>, line: Option<usize>) -> Self {
        Self { file: file.map(Path::to_owned), line, ..self }
    }

    /// The same with its line quoted from the text of its file.
    pub(crate) fn quoting(self, text: &str) -> Self {
        let line = self.line.and_then(|line| text.lines().nth(line.checked_sub(1)?));
        let quote = line.map(|line| line.trim_end().chars().take(LONGEST_QUOTE).collect());
        Self { quote, ..self }
    }

    /// The exit code of the contract: 2 where something makes no sense, 1 where a file cannot be used.
    pub fn exit_code(&self) -> u8 {
        self.code
    }
}

/// Why a run did not come to its end; all that came before was given to the sink.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{stage}`: {cause}")]
pub struct RunError {
    /// The stage it began at.
    pub stage: String,
    /// What happened.
    pub cause: String,
    pub(crate) code: u8,
}

impl RunError {
    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        self.code
    }
}
