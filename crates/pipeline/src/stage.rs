//! One stage of a configured pipeline, and the order of stages: each consumes what the stages before it make; and the
//! `[pipeline]` table of a pipeline file, the settings of a whole run.

use std::fmt::{Debug, Formatter};
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use sizeleak_platform::runtime::Runnable;
use toml::{Table, Value};

use crate::ConfigError;
use crate::registry::StageEntry;

/// The key, common to all stages, that names the file to save the stage's output to.
pub(crate) const SAVE: &str = "save";

#[derive(Debug, Clone)]
pub(crate) struct PipelineStage {
    pub(crate) kind: StageKind,
    pub(crate) line: Option<usize>,
    pub(crate) key_lines: Vec<(String, usize)>,
    pub(crate) save: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub(crate) enum StageKind {
    BuiltIn {
        entry: &'static StageEntry,
        options: Table,
    },
    /// A stage of the embedding program, run in process.
    Embedded {
        name: &'static str,
        build: BuildStage,
    },
    External {
        name: String,
        command: Vec<String>,
    },
}

#[derive(Clone)]
pub(crate) struct BuildStage(pub(crate) Arc<dyn Fn() -> Box<dyn Runnable> + Send + Sync>);

impl Debug for BuildStage {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("BuildStage")
    }
}

impl PipelineStage {
    pub(crate) fn new(kind: StageKind) -> Self {
        Self { kind, line: None, key_lines: Vec::new(), save: None }
    }

    pub(crate) fn name(&self) -> &str {
        match &self.kind {
            StageKind::BuiltIn { entry, .. } => entry.name,
            StageKind::Embedded { name, .. } => name,
            StageKind::External { name, .. } => name,
        }
    }

    pub(crate) fn entry(&self) -> Option<&'static StageEntry> {
        match &self.kind {
            StageKind::BuiltIn { entry, .. } => Some(entry),
            StageKind::Embedded { .. } | StageKind::External { .. } => None,
        }
    }

    pub(crate) fn line_of_key(&self, key: &str) -> Option<usize> {
        self.key_lines.iter().find(|(set, _)| set == key).map(|(_, line)| *line)
    }
}

pub(crate) fn save_path(value: &Value) -> Result<PathBuf, String> {
    let path = value.as_str().filter(|path| !path.is_empty() && *path != "-").map(PathBuf::from);
    path.ok_or_else(|| "it is the file to write to, such as \"records.frames.zst\"".to_owned())
}

/// Checks that every standard stage finds its input. What other stages make is unknown, so anything may follow them.
/// The error comes with the line of the stage.
pub(crate) fn check_order(stages: &[PipelineStage]) -> Result<(), (Option<usize>, ConfigError)> {
    if stages.is_empty() {
        return Err((None, ConfigError::usage("a pipeline without any `[[stage]]`".into())));
    }
    let mut made: Option<&str> = None;
    for (index, stage) in stages.iter().enumerate() {
        let Some(entry) = stage.entry() else {
            made = None;
            continue;
        };
        let first = index == 0;
        let fault = match (entry.consumes, made) {
            (Some(_), None) if first => {
                format!("`{}` cannot be the first stage: `capture` or a program of your own is", entry.name)
            }
            (None, _) if !first => format!("`{}` reads no frames: it can only be the first stage", entry.name),
            (Some(consumed), Some(made)) if consumed != made => {
                format!("`{}` works on frames of kind `{consumed}`, but the stages before it make `{made}`", entry.name)
            }
            _ => {
                made = Some(entry.makes);
                continue;
            }
        };
        return Err((stage.line, ConfigError::usage(fault)));
    }
    Ok(())
}

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
pub struct RunSettings {
    /// Where the stages run
    pub mode: Mode,
    /// How many parcels of about 256 frames a channel between two threads holds before the sender waits; for packets
    /// and segments at most four
    #[serde(deserialize_with = "queue_depth")]
    #[schemars(range(max = MAX_QUEUE_DEPTH))]
    pub queue_depth: usize,
    /// Write the stages' latencies to this file, as an HdrHistogram interval log
    pub latency_log: Option<PathBuf>,
    /// Give up the files and system calls that are not needed, once everything is open; not where a stage is a program
    /// of your own. Without it, a live capture also keeps root
    pub sandbox: bool,
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
