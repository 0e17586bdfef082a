//! Pipelines: which stages in which order with which options, and how they are run.
//!
//! One runner serves both modes. A stage is placed on a thread of this process, which it may share with the stages before
//! it, or in a process of its own; between two threads runs a bounded channel, everywhere else a pipe. The frames of the last stage come to a [`FrameSink`].
//! What any stage puts out can be recorded by a [`OutputRecorder`], and a run can begin behind any stage with a [`SavedStream`].

pub mod cache;
mod cause;
mod config;
mod error;
mod link;
mod order;
mod plan;
mod process;
pub mod recording;
pub mod registry;
mod relay;
mod replay;
mod run;
mod save;
pub mod schema;
mod sink;
mod suggestion;
mod tap;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use error::{ConfigError, RunError};
pub use plan::RunOptions;
pub use replay::SavedStream;
pub use run::{PreparedRun, RunEnding, RunReport};
pub use tap::{OnRecordingFailure, OutputRecorder};

use suggestion::{did_you_mean, fault_of_option};

use registry::{STAGES, StageEntry};

/// A pipeline as it is configured, not running.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// Where its stages run.
    pub mode: Mode,
    /// How many parcels (of about 256 frames or rows) a channel holds before its sender waits.
    pub queue_depth: usize,
    /// Where to write the stages' latencies as an `HdrHistogram` interval log.
    pub latency_log: Option<PathBuf>,
    /// Whether its runs use the cache and fill it.
    pub cache: bool,
    /// The file it was read from.
    file: Option<PathBuf>,
    /// What that file says, for quoting it.
    text: String,
    stages: Vec<Step>,
}

/// One of the seven stages as a pipeline has it.
#[derive(Debug)]
pub struct ResolvedStage {
    /// The stage.
    pub entry: &'static StageEntry,
    /// Its options, also those that were not set; none that has neither value nor default.
    pub options: Table,
}

/// Where the stages of a pipeline run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// On threads of one process; foreign programs in processes of their own
    #[default]
    Threads,
    /// Each in a process of its own
    Processes,
}

/// A stage of a pipeline.
#[derive(Debug, Clone)]
struct Step {
    work: Work,
    /// Where the pipeline file names it.
    line: Option<usize>,
    /// The lines of its keys in that file.
    key_lines: Vec<(String, usize)>,
    /// Where what it puts out is written besides.
    save: Option<PathBuf>,
}

#[derive(Debug, Clone)]
enum Work {
    /// One of the seven stages with its options.
    Known { entry: &'static StageEntry, options: Table },
    /// Somebody's program that speaks frames.
    Foreign { name: String, command: Vec<String> },
}

impl Step {
    fn name(&self) -> &str {
        match &self.work {
            Work::Known { entry, .. } => entry.name,
            Work::Foreign { name, .. } => name,
        }
    }
}

const QUEUE_DEPTH: usize = 16;

/// The key of every stage, whoever's it is, that names the file its output is written to besides.
const SAVE: &str = "save";

impl Pipeline {
    /// The seven stages with their defaults.
    pub fn standard() -> Self {
        let step = |entry| Step {
            work: Work::Known { entry, options: Table::new() },
            line: None,
            key_lines: Vec::new(),
            save: None,
        };
        Self {
            mode: Mode::default(),
            queue_depth: QUEUE_DEPTH,
            latency_log: None,
            cache: false,
            file: None,
            text: String::new(),
            stages: STAGES.iter().map(step).collect(),
        }
    }

    /// Sets an option of every stage of this name, as its key in a pipeline file would; paths are relative to where the
    /// program runs.
    ///
    /// # Errors
    /// [`ConfigError`] where there is no such stage, it has no such option, or the option cannot have this value.
    pub fn set(&mut self, stage: &str, key: &str, value: impl Into<Value>) -> Result<(), ConfigError> {
        let value = value.into();
        let mut found = false;
        for step in &mut self.stages {
            if key == SAVE && step.name() == stage {
                found = true;
                step.save =
                    Some(save_of(&value).map_err(|fault| ConfigError::usage(format!("{stage}.{key}: {fault}")))?);
                step.key_lines.retain(|(set, _)| set != key);
                continue;
            }
            let Work::Known { entry, options } = &mut step.work else { continue };
            if entry.name != stage {
                continue;
            }
            found = true;
            let option = Table::from_iter([(key.to_owned(), value.clone())]);
            let fault = |error: toml::de::Error| fault_of_option(entry, key, &value, error.message());
            entry.configure(option).map_err(|error| ConfigError::usage(fault(error)))?;
            options.insert(key.to_owned(), value.clone());
            step.key_lines.retain(|(set, _)| set != key);
        }
        if found { Ok(()) } else { Err(self.no_stage(stage, key)) }
    }

    /// Sets an option as `--set STAGE.KEY=VALUE` writes it: the value as TOML, or else as it stands.
    ///
    /// # Errors
    /// As [`Pipeline::set`], and where the text is not of that form.
    pub fn set_text(&mut self, text: &str) -> Result<(), ConfigError> {
        let parts = text.split_once('=').and_then(|(name, value)| Some((name.split_once('.')?, value)));
        let Some(((stage, key), value)) = parts else {
            return Err(ConfigError::usage(format!("`{text}` is not of the form STAGE.KEY=VALUE")));
        };
        let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
        let literal = Value::String(value.to_owned());
        let (stage, key) = (stage.trim(), key.trim());
        let first = parsed.unwrap_or_else(|| literal.clone());
        // A number may be the text an option wants, and a single value may stand for a list of one.
        let others = [literal.clone(), Value::Array(vec![first.clone()]), Value::Array(vec![literal])];
        let set = self.set(stage, key, first);
        if set.is_err() && others.into_iter().any(|other| self.set(stage, key, other).is_ok()) { Ok(()) } else { set }
    }

    /// Has its capture read these files; `-` is stdin.
    ///
    /// # Errors
    /// [`ConfigError`] where the pipeline has no capture, or a path is no text.
    pub fn read_captures(&mut self, files: &[PathBuf]) -> Result<(), ConfigError> {
        let files = files.iter().map(|file| text_of(file)).collect::<Result<Vec<_>, _>>()?;
        self.set("capture", "files", files)
    }

    /// Has every stage that takes a model use this one.
    ///
    /// # Errors
    /// [`ConfigError`] where the path is no text.
    pub fn use_model(&mut self, model: &Path) -> Result<(), ConfigError> {
        let model = text_of(model)?;
        for stage in ["command-segmenter", "epsilon-corrector", "decomposer", "pruner"] {
            if self.has(stage) {
                self.set(stage, "model", model)?;
            }
        }
        Ok(())
    }

    /// The kind of frame its last stage makes; `None` where that is a foreign one.
    pub fn makes(&self) -> Option<&'static str> {
        match &self.stages.last()?.work {
            Work::Known { entry, .. } => Some(entry.makes),
            Work::Foreign { .. } => None,
        }
    }

    /// Whether one of the seven stages is in it.
    pub fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|step| matches!(&step.work, Work::Known { entry, .. } if entry.name == stage))
    }

    /// What a stage's option is set to, where it is.
    pub fn option(&self, stage: &str, key: &str) -> Option<&Value> {
        self.options(stage)?.get(key)
    }

    /// What was set of a stage's options; `None` where there is no such stage.
    pub fn options(&self, stage: &str) -> Option<&Table> {
        self.stages.iter().find_map(|step| match &step.work {
            Work::Known { entry, options } if entry.name == stage => Some(options),
            _ => None,
        })
    }

    /// The part of it from the first stage up to and including the last one of this name.
    ///
    /// # Errors
    /// [`ConfigError`] where there is none.
    pub fn until(&self, stage: &str) -> Result<Self, ConfigError> {
        let last = self.stages.iter().rposition(|step| step.name() == stage);
        let Some(last) = last else { return Err(ConfigError::usage(format!("the pipeline has no stage `{stage}`"))) };
        let mut part = self.clone();
        part.stages.truncate(last + 1);
        Ok(part)
    }

    /// The part of it before the first stage of this name; all of it where there is none.
    #[must_use]
    pub fn before(&self, stage: &str) -> Self {
        let mut part = self.clone();
        if let Some(first) = self.stages.iter().position(|step| step.name() == stage) {
            part.stages.truncate(first);
        }
        part
    }

    /// The stages before the first program of somebody's, each with all its options.
    pub fn resolved_stages(&self) -> Vec<ResolvedStage> {
        let effective = |step: &Step| match &step.work {
            Work::Known { entry, options } => {
                let mut configured = entry.configure(options.clone()).ok()?;
                Some(ResolvedStage { entry, options: configured.resolved_in(Path::new("")).ok()? })
            }
            Work::Foreign { .. } => None,
        };
        self.stages.iter().map_while(effective).collect()
    }

    /// The place of the first stage whose output is saved, counted from 0.
    pub fn first_save(&self) -> Option<usize> {
        self.stages.iter().position(|step| step.save.is_some())
    }

    /// What the stage of a place (counted from 0) puts out, in words: `records of record-sizer`.
    pub fn output_of(&self, place: usize) -> String {
        match self.stages.get(place).map(|step| &step.work) {
            Some(Work::Known { entry, .. }) => {
                let made = entry.makes;
                format!("{made}{} of {}", if made.ends_with('s') { "" } else { "s" }, entry.name)
            }
            Some(Work::Foreign { name, .. }) => format!("frames of {name}"),
            None => String::new(),
        }
    }

    /// The same pipeline without saving what its stages put out: for a command that runs it for a purpose of its own.
    #[must_use]
    pub fn without_saves(mut self) -> Self {
        self.stages.iter_mut().for_each(|step| step.save = None);
        self
    }

    fn no_stage(&self, stage: &str, key: &str) -> ConfigError {
        let names: Vec<&str> = self.stages.iter().map(Step::name).collect();
        let known = if registry::find(stage).is_some() {
            "that stage is not in this pipeline".to_owned()
        } else {
            format!("there is no such stage{}", did_you_mean(stage, names.iter().copied()))
        };
        let fault = format!("{stage}.{key}: {known} (this pipeline has {})", names.join(", "));
        ConfigError::usage(fault)
    }
}

/// The file that `save` names.
fn save_of(value: &Value) -> Result<PathBuf, String> {
    let path = value.as_str().filter(|path| !path.is_empty() && *path != "-").map(PathBuf::from);
    path.ok_or_else(|| "it is the file to write to, such as \"records.frames.zst\"".to_owned())
}

fn text_of(path: &Path) -> Result<&str, ConfigError> {
    path.to_str().ok_or_else(|| ConfigError::usage(format!("the path {} is no UTF-8 text", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_name() {
        let mut pipeline = Pipeline::standard();
        pipeline.set("pruner", "mode", "paper").unwrap();
        pipeline.set_text("flow-filter.port=[443, 8883]").unwrap();
        pipeline.set_text("command-segmenter.gap=80ms").unwrap();
        pipeline.set_text("flow-filter.gateway=10.0.0.1").unwrap();
        assert_eq!(pipeline.option("flow-filter", "gateway"), Some(&Value::from(vec!["10.0.0.1"])));
        assert_eq!(pipeline.option("pruner", "mode"), Some(&Value::from("paper")));
        assert_eq!(pipeline.option("command-segmenter", "gap"), Some(&Value::from("80ms")));
        for (wrong, why) in [
            ("pruner.mode=loud", "loud"),
            ("pruner.modes=paper", "modes"),
            ("prune.mode=paper", "no such stage"),
            ("pruner=paper", "STAGE.KEY=VALUE"),
            ("decomposer.limit=-1", "limit"),
        ] {
            let error = pipeline.set_text(wrong).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn every_stage_that_takes_a_model_is_given_it() {
        let mut pipeline = Pipeline::standard();
        pipeline.use_model(Path::new("m.toml")).unwrap();
        let with_model =
            STAGES.iter().filter(|entry| pipeline.option(entry.name, "model") == Some(&Value::from("m.toml")));
        let takes_model =
            |entry: &&StageEntry| entry.command().get_arguments().any(|argument| argument.get_id() == "model");
        let names = |entry: &StageEntry| entry.name;
        assert_eq!(
            with_model.map(names).collect::<Vec<_>>(),
            STAGES.iter().filter(takes_model).map(names).collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_a_stage_puts_out_can_be_saved_by_name() {
        let mut pipeline = Pipeline::standard();
        pipeline.set_text("record-sizer.save=r.frames.zst").unwrap();
        let saves =
            |pipeline: &Pipeline| pipeline.stages.iter().filter_map(|step| step.save.clone()).collect::<Vec<_>>();
        assert_eq!(saves(&pipeline), [PathBuf::from("r.frames.zst")]);
        assert_eq!(pipeline.option("record-sizer", "save"), None, "it is no option of the stage");
        assert!(pipeline.set_text("record-sizer.save=-").unwrap_err().to_string().contains("the file to write to"));
        assert!(saves(&pipeline.without_saves()).is_empty());
    }

    #[test]
    fn a_pipeline_can_end_early() {
        let part = Pipeline::standard().until("command-segmenter").unwrap();
        assert!(part.has("command-segmenter") && !part.has("epsilon-corrector"));
        assert!(part.until("pruner").is_err());
        let part = Pipeline::standard().before("epsilon-corrector");
        assert!(part.has("command-segmenter") && !part.has("epsilon-corrector"));
        assert!(part.before("pruner").has("command-segmenter"), "all of it");
    }
}
