//! Errors of scenarios and of simulating them.

use std::io;
use std::path::PathBuf;

use sizeleak_platform::storage::OutputError;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why a scenario cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The text is not a scenario: not TOML, an unknown key, or a value of the wrong type.
    #[error("the scenario cannot be read, line {line}, column {column}: {reason}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, in characters from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The value of a key is out of bounds.
    #[error("{}`{key}` of the scenario is {value}: it must be {wanted}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Value {
        /// The line of the key, where the scenario was read from text that has it.
        line: Option<usize>,
        /// The key, with its tables: `replies.loss`.
        key: String,
        /// The value found.
        value: String,
        /// The accepted values.
        wanted: String,
    },
}

impl ScenarioError {
    /// The same with the line of the key in the text of the scenario: of several tables, the one that is named behind it.
    pub(crate) fn in_text(mut self, text: &str) -> Self {
        if let Self::Value { line, key, .. } = &mut self {
            *line = line_of(text, key);
        }
        self
    }
}

fn line_of(text: &str, key: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let (path, name) = (key.split([' ', ',']).next()?, key.split('`').nth(1));
    let is_named = |table: &&Spanned<DeValue<'_>>| {
        name.is_none_or(|name| table.get_ref().get("name").and_then(|own| own.get_ref().as_str()) == Some(name))
    };
    let (mut table, mut start) = (document.get_ref(), None);
    for part in path.split('.') {
        let Some((at, value)) = table.get_key_value(part) else { break };
        start = Some(at.span().start);
        table = match value.get_ref() {
            DeValue::Table(inner) => inner,
            DeValue::Array(tables) => match tables.iter().find(is_named).map(Spanned::get_ref) {
                Some(DeValue::Table(inner)) => inner,
                _ => break,
            },
            _ => break,
        };
    }
    Some(text.get(..start?)?.matches('\n').count() + 1)
}

/// Why a simulation failed.
#[derive(Debug, Error)]
pub enum SimulateError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A sequence of actions cannot be read.
    #[error("the sequence, line {line}: {reason}; it needs the columns time, device and action")]
    Sequence {
        /// The line, from 1.
        line: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A service's certificate cannot be created.
    #[error("the certificate of `{name}` cannot be created: {source}")]
    Certificate {
        /// The service's name.
        name: String,
        /// The cause.
        source: rcgen::Error,
    },
    /// rustls reports an error.
    #[error("the simulated TLS session failed: {0}")]
    Tls(#[from] rustls::Error),
    /// A message cannot be encrypted, or is decrypted to other bytes.
    #[error("the simulated TLS session failed: {0}")]
    Record(io::Error),
    /// A message is too long for its framing.
    #[error(
        "a message of {length} bytes is too long for {framing}, whose limit is {limit}: shorten the values of actions"
    )]
    MessageTooLong {
        /// The framing.
        framing: &'static str,
        /// The message's length, in bytes.
        length: usize,
        /// The limit of the framing, in bytes.
        limit: usize,
    },
    /// A message cannot be padded to so many bytes.
    #[error("a message is padded to {length} bytes, more than {limit}: choose a policy with less padding")]
    PaddedTooLong {
        /// The padded length, in bytes.
        length: u64,
        /// The most bytes of a padded message.
        limit: usize,
    },
    /// A packet, a capture, labels or an inventory cannot be encoded.
    #[error("{what} cannot be encoded: {reason}")]
    Format {
        /// What could not be encoded.
        what: &'static str,
        /// The cause.
        reason: String,
    },
    /// A command that the home cannot do.
    #[error("the home cannot do this: {0}")]
    Command(String),
    /// The folder cannot be created.
    #[error("{} cannot be created: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] OutputError),
}
