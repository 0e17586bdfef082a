//! Errors of scenarios and of simulating them.

use std::fmt::Display;

use sizeleak_platform::storage::OutputError;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioError {
    #[error("the scenario cannot be read, line {line}, column {column}: {reason}")]
    Syntax { line: usize, column: usize, reason: String },
    #[error("{}`{key}` of the scenario is {value}: it must be {wanted}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Value { line: Option<usize>, key: String, value: String, wanted: String },
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

/// Why a simulation failed, in a sentence.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SimulateError(pub(crate) String);

impl SimulateError {
    pub(crate) fn encoding<E: Display>(what: &'static str) -> impl Fn(E) -> Self + Copy {
        move |error| Self(format!("{what} cannot be encoded: {error}"))
    }

    pub(crate) fn impossible(fault: impl Display) -> Self {
        Self(format!("the home cannot do this: {fault}"))
    }

    pub(crate) fn tls(error: impl Display) -> Self {
        Self(format!("the simulated TLS session failed: {error}"))
    }
}

impl From<ScenarioError> for SimulateError {
    fn from(error: ScenarioError) -> Self {
        Self(error.to_string())
    }
}

impl From<rustls::Error> for SimulateError {
    fn from(error: rustls::Error) -> Self {
        Self::tls(error)
    }
}

impl From<OutputError> for SimulateError {
    fn from(error: OutputError) -> Self {
        Self(error.to_string())
    }
}
