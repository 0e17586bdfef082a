//! Errors of scenarios and of simulating them.

use std::io;
use std::path::PathBuf;

use sizeleak_platform::storage::OutputError;
use thiserror::Error;

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
    #[error("`{key}` of the scenario is {value}: it must be {wanted}")]
    Value {
        /// The key, with its tables: `replies.loss`.
        key: String,
        /// The value found.
        value: String,
        /// The accepted values.
        wanted: String,
    },
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
