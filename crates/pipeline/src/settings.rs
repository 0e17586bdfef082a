//! The `[pipeline]` table of a pipeline file: settings of a whole run.

use std::path::PathBuf;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

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

/// The most parcels that a channel may hold. Each may hold hundreds of frames.
const MAX_QUEUE_DEPTH: usize = 4096;

/// How the pipeline is run
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table, `[pipeline]`")]
pub(crate) struct RunSettings {
    /// Where the stages run
    pub(crate) mode: Mode,
    /// How many parcels of about 256 frames a channel between two threads holds before the sender waits; for packets
    /// and segments at most four
    #[serde(deserialize_with = "queue_depth")]
    #[schemars(range(max = MAX_QUEUE_DEPTH))]
    pub(crate) queue_depth: usize,
    /// Write the stages' latencies to this file, as an HdrHistogram interval log
    pub(crate) latency_log: Option<PathBuf>,
    /// Give up the files and system calls that are not needed, once everything is open; not where a stage is a program
    /// of your own. Without it, a live capture also keeps root
    pub(crate) sandbox: bool,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self { mode: Mode::default(), queue_depth: 16, latency_log: None, sandbox: true }
    }
}

pub(crate) fn fault_of_queue_depth(depth: usize) -> Option<String> {
    (depth > MAX_QUEUE_DEPTH).then(|| format!("at most {MAX_QUEUE_DEPTH} parcels can wait in a channel, not {depth}"))
}

fn queue_depth<'de, D: Deserializer<'de>>(value: D) -> Result<usize, D::Error> {
    let depth = usize::deserialize(value)?;
    fault_of_queue_depth(depth).map_or(Ok(depth), |fault| Err(D::Error::custom(fault)))
}
