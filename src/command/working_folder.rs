//! What `sizeleak.toml` in the working folder says where the command line does not.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde::Deserialize;
use sizeleak_platform::telemetry::log::{LogFlags, say};
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};

use super::failure::Failure;

/// Where it is.
const FILE: &str = "sizeleak.toml";

/// The gateway, model and labels that somebody works with in a folder.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WorkingFolder {
    gateway: Several<String>,
    model: Several<PathBuf>,
    labels: Option<PathBuf>,
}

/// One value, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "it must be a text, or a list of texts")]
enum Several<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> From<Several<T>> for Vec<T> {
    fn from(several: Several<T>) -> Self {
        match several {
            Several::One(only) => vec![only],
            Several::Many(all) => all,
        }
    }
}

impl WorkingFolder {
    /// Reads the file, if there is one.
    fn read() -> Result<Self, Failure> {
        if !Path::new(FILE).is_file() {
            return Ok(Self::default());
        }
        let text = read_text(Path::new(FILE), MAX_WRITTEN_BYTES).context(FILE)?;
        toml::from_str(&text).map_err(|error| {
            let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            Failure::usage(anyhow!("{FILE}, line {line}: {}", error.message()))
        })
    }

    /// The gateways; none if it names none.
    pub(super) fn gateways(log: &LogFlags) -> Result<Vec<String>, Failure> {
        let found: Vec<String> = Self::read()?.gateway.into();
        report(log, "gateway", &found.join(", "));
        Ok(found)
    }

    /// The models; none if it names none.
    pub(super) fn models(log: &LogFlags) -> Result<Vec<PathBuf>, Failure> {
        let found: Vec<PathBuf> = Self::read()?.model.into();
        let shown: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        report(log, "model", &shown.join(", "));
        Ok(found)
    }

    /// The labels.
    pub(super) fn labels() -> Result<Option<PathBuf>, Failure> {
        Ok(Self::read()?.labels)
    }

    /// Says which labels are used.
    pub(super) fn report_labels(labels: &Path, log: &LogFlags) {
        report(log, "labels", &labels.display().to_string());
    }
}

/// Says what is used, which nobody named on the command line.
fn report(log: &LogFlags, what: &str, value: &str) {
    if !value.is_empty() && !log.is_quiet() {
        say("sizeleak", &format!("{what} {value}, from ./{FILE}"));
    }
}
