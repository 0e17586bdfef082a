//! The `[pipeline]` table of a pipeline file: settings of a whole run.

use std::path::PathBuf;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the stages of a pipeline run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// On threads of one process; external programs in processes of their own
    #[default]
    Threads,
    /// Each in a process of its own
    Processes,
}

/// How the pipeline is run
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RunSettings {
    /// Where the stages run
    pub(crate) mode: Mode,
    /// How many parcels of about 256 frames a channel between two threads holds before the sender waits; for packets
    /// and segments at most four
    pub(crate) queue_depth: usize,
    /// Write the stages' latencies to this file, as an HdrHistogram interval log
    pub(crate) latency_log: Option<PathBuf>,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self { mode: Mode::default(), queue_depth: 16, latency_log: None }
    }
}
