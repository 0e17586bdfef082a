//! What can be wrong with a scenario, and what can fail while it is simulated or written.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a scenario cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The text is no scenario: no TOML, an unknown key, or a value of the wrong kind.
    #[error("the scenario cannot be read, line {line}, column {column}: {reason}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, in characters from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A key's value is not possible.
    #[error("`{key}` of the scenario is {value}: it must be {wanted}")]
    Value {
        /// The key, with its tables: `replies.loss`.
        key: String,
        /// The value it has.
        value: String,
        /// What it must be.
        wanted: String,
    },
}

/// Why a simulation failed.
#[derive(Debug, Error)]
pub enum SimulateError {
    /// The scenario is not possible.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The certificate of a simulated service could not be made.
    #[error("the certificate of `{name}` cannot be made: {source}")]
    Certificate {
        /// The service's name.
        name: String,
        /// Why.
        source: rcgen::Error,
    },
    /// TLS refused something.
    #[error("the simulated TLS session failed: {0}")]
    Tls(#[from] rustls::Error),
    /// A TLS message did not come out as it went in.
    #[error("the simulated TLS session failed: {0}")]
    Record(io::Error),
    /// A packet could not be built.
    #[error("a simulated packet cannot be built: {0}")]
    Packet(String),
    /// A message is too long for its framing.
    #[error(
        "a message of {length} bytes does not fit {framing}, which carries {limit} at most: make the actions' values shorter"
    )]
    MessageTooLong {
        /// The framing.
        framing: &'static str,
        /// The message's bytes.
        length: usize,
        /// The most it can carry.
        limit: usize,
    },
    /// A capture, labels or an inventory could not be put into its format.
    #[error("{what} cannot be written: {reason}")]
    Format {
        /// What was being written.
        what: &'static str,
        /// Why it failed.
        reason: String,
    },
    /// A file could not be written.
    #[error("{} cannot be written: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
