//! One stage of a configured pipeline, and the order of stages: each consumes what the stages before it make.

use std::fmt::{Debug, Formatter};
use std::path::PathBuf;
use std::sync::Arc;

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
    /// An external program that reads and writes frames.
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
