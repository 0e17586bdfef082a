//! The format of the answers, and what they are.

use serde::{Deserialize, Serialize};
use sizeleak_output::OutputFormat;

/// The kind of frame that answers are.
pub(crate) const ANSWER: &str = "identification";

/// The format of the parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartFormat {
    /// Parquet, compressed by zstd.
    #[default]
    Parquet,
    /// A JSON object a line.
    Ndjson,
}

impl PartFormat {
    /// All formats.
    pub(crate) const ALL: [Self; 2] = [Self::Parquet, Self::Ndjson];

    /// How names of parts end.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Ndjson => "ndjson",
        }
    }

    /// The same format of another output.
    pub(crate) fn output(self) -> OutputFormat {
        match self {
            Self::Parquet => OutputFormat::Parquet,
            Self::Ndjson => OutputFormat::Ndjson,
        }
    }
}
