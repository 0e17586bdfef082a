//! A pipeline as it is configured: its stages in order, each with its options; and how far it has to run for the kinds of
//! frame that somebody asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sizeleak_model::ModelSet;
use sizeleak_platform::runtime::{Node, Stage, StageOptions};
use sizeleak_platform::storage::RunFiles;
use toml::{Table, Value};

use crate::ConfigError;
use crate::error::did_you_mean;
use crate::registry::{self, OPTIONAL, STAGES, StageEntry};
use crate::stage::{BuildStage, PipelineStage, RunSettings, SAVE, StageKind, save_path};

/// The stage whose options a model has, and which takes no model itself.
const SIZER: &str = "record-sizer";

const MODEL_STAGES: [&str; 4] = ["command-segmenter", "epsilon-corrector", "decomposer", "pruner"];

/// A pipeline that is configured but not running.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub settings: RunSettings,
    pub(crate) file: Option<PathBuf>,
    /// The text of that file, quoted in errors.
    pub(crate) text: String,
    pub(crate) stages: Vec<PipelineStage>,
}

/// A standard stage with all its options, defaults included.
#[derive(Debug)]
pub struct ResolvedStage {
    pub entry: &'static StageEntry,
    /// Its options; one that is not set and has no default is missing.
    pub options: Table,
}

impl Pipeline {
    pub fn standard() -> Self {
        let stage = |entry| PipelineStage::new(StageKind::BuiltIn { entry, options: Table::new() });
        let stages = STAGES.iter().map(stage).collect();
        Self { settings: RunSettings::default(), file: None, text: String::new(), stages }
    }

    /// Runs a stage of the calling program, in process, in place of every stage of this name. `build` is called once
    /// for every run. The new stage keeps its own name ([`Stage::NAME`]); what it consumes and makes is not checked.
    pub fn replace<S: Stage + 'static>(
        &mut self,
        stage: &str,
        build: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<(), ConfigError> {
        let build = BuildStage(Arc::new(move || Box::new(Node::new(build()))));
        let mut replaced = self.stages.iter_mut().filter(|other| other.name() == stage).peekable();
        if replaced.peek().is_none() {
            return Err(ConfigError::usage(format!("the pipeline has no stage `{stage}`")));
        }
        replaced.for_each(|other| other.kind = StageKind::Embedded { name: S::NAME, build: build.clone() });
        Ok(())
    }

    /// Gives every stage of this type of options these, in place of all that it has. Paths are relative to the current
    /// folder of the process.
    pub fn configure<O: StageOptions>(&mut self, options: &O) -> Result<(), ConfigError> {
        let table =
            |options| Table::try_from(options).map_err(|fault| ConfigError::usage(format!("{}: {fault}", O::NAME)));
        let (mut set, defaults) = (table(options)?, table(&O::default())?);
        set.retain(|key, value| defaults.get(key) != Some(value));
        let mut found = false;
        for stage in self.stages.iter_mut().filter(|stage| stage.name() == O::NAME) {
            if let StageKind::BuiltIn { options, .. } = &mut stage.kind {
                options.clone_from(&set);
                stage.key_lines.retain(|(key, _)| key == SAVE);
                found = true;
            }
        }
        if found { Ok(()) } else { Err(ConfigError::usage(format!("the pipeline has no stage `{}`", O::NAME))) }
    }

    /// Sets an option of every stage of this name, like its key in a pipeline file. Paths are relative to the current
    /// folder of the process.
    pub fn set(&mut self, stage: &str, key: &str, value: impl Into<Value>) -> Result<(), ConfigError> {
        let value = value.into();
        let mut found = false;
        for other in self.stages.iter_mut().filter(|other| other.name() == stage) {
            if key == SAVE {
                let path = save_path(&value).map_err(|fault| ConfigError::usage(format!("{stage}.{key}: {fault}")))?;
                other.save = Some(path);
            } else if let StageKind::BuiltIn { entry, options } = &mut other.kind {
                entry.set(options, key, value.clone(), None).map_err(ConfigError::usage)?;
            } else {
                continue;
            }
            found = true;
            other.key_lines.retain(|(set, _)| set != key);
        }
        if found { Ok(()) } else { Err(self.no_stage(stage, key)) }
    }

    /// Sets an option written as in `--set STAGE.KEY=VALUE`: the value is parsed as TOML, or else taken as text.
    pub fn set_text(&mut self, text: &str) -> Result<(), ConfigError> {
        let parts = text.split_once('=').and_then(|(name, value)| Some((name.split_once('.')?, value)));
        let Some(((stage, key), value)) = parts else {
            return Err(ConfigError::usage(format!("`{text}` is not of the form STAGE.KEY=VALUE")));
        };
        let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
        let literal = Value::String(value.to_owned());
        let (stage, key) = (stage.trim(), key.trim());
        let first = parsed.unwrap_or_else(|| literal.clone());
        // A number may be meant as text.
        let set = self.set(stage, key, first);
        if set.is_err() && self.set(stage, key, literal).is_ok() { Ok(()) } else { set }
    }

    /// Makes `capture` read these files; `-` is stdin.
    pub fn read_captures(&mut self, files: &[PathBuf]) -> Result<(), ConfigError> {
        let files = files.iter().map(|file| text_of(file)).collect::<Result<Vec<_>, _>>()?;
        self.set("capture", "files", files)
    }

    pub fn use_model(&mut self, model: &Path) -> Result<(), ConfigError> {
        self.use_models(std::slice::from_ref(&model))
    }

    /// Makes every stage that takes models use these files, whose sections are of different gateways or services. Records
    /// are sized as where these were learned, unless this pipeline says otherwise.
    pub fn use_models<P: AsRef<Path>>(&mut self, models: &[P]) -> Result<(), ConfigError> {
        // What is wrong with a model, the stages that use it say.
        if let Ok(learned) = ModelSet::read(models) {
            let sections = learned.sections().iter();
            for (key, value) in sections.filter_map(|model| model.learned.found_with.get(SIZER)).flatten() {
                if self.has(SIZER) && self.option(SIZER, key).is_none() {
                    self.set(SIZER, key, value.clone())?;
                }
            }
        }
        let models = models.iter().map(|model| text_of(model.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let value = match models.as_slice() {
            [only] => Value::from(*only),
            _ => Value::from(models),
        };
        self.set_where_it_is(&MODEL_STAGES, "model", &value)
    }

    fn set_where_it_is(&mut self, stages: &[&str], key: &str, value: &Value) -> Result<(), ConfigError> {
        stages.iter().try_for_each(|stage| if self.has(stage) { self.set(stage, key, value.clone()) } else { Ok(()) })
    }

    /// The captures that it reads; none if it reads none, or an interface.
    pub fn captures(&self) -> Vec<PathBuf> {
        let files = self.option("capture", "files").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        files.iter().filter_map(Value::as_str).map(PathBuf::from).collect()
    }

    pub fn models(&self) -> Vec<PathBuf> {
        let of_stage = |stage: &&str| self.option(stage, "model");
        match MODEL_STAGES.iter().find_map(of_stage) {
            Some(Value::String(only)) => vec![PathBuf::from(only)],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).map(PathBuf::from).collect(),
            _ => Vec::new(),
        }
    }

    pub fn use_profile(&mut self, profile: &Path) -> Result<(), ConfigError> {
        self.set_where_it_is(&["pruner", "detector"], "profile", &Value::from(text_of(profile)?))
    }

    pub fn makes(&self) -> Option<&'static str> {
        Some(self.stages.last()?.entry()?.makes)
    }

    pub fn has(&self, stage: &str) -> bool {
        self.options(stage).is_some()
    }

    pub fn option(&self, stage: &str, key: &str) -> Option<&Value> {
        self.options(stage)?.get(key)
    }

    /// The options of a standard stage that are set; `None` if there is no such stage.
    pub fn options(&self, stage: &str) -> Option<&Table> {
        self.stages.iter().find_map(|other| match &other.kind {
            StageKind::BuiltIn { entry, options } if entry.name == stage => Some(options),
            _ => None,
        })
    }

    /// The part of the pipeline up to and including the last stage of this name.
    pub fn until(&self, stage: &str) -> Result<Self, ConfigError> {
        let last = self.stages.iter().rposition(|other| other.name() == stage);
        let Some(last) = last else { return Err(ConfigError::usage(format!("the pipeline has no stage `{stage}`"))) };
        let mut part = self.clone();
        part.stages.truncate(last + 1);
        Ok(part)
    }

    /// The part of the pipeline before the first stage of this name; all of it if there is none.
    #[must_use]
    pub fn before(&self, stage: &str) -> Self {
        let mut part = self.clone();
        if let Some(first) = self.stages.iter().position(|other| other.name() == stage) {
            part.stages.truncate(first);
        }
        part
    }

    #[must_use]
    pub fn behind(&self, index: usize) -> Self {
        let mut part = self.clone();
        part.stages.drain(..part.stages.len().min(index.saturating_add(1)));
        part
    }

    /// The standard stages before the first embedded or external one, each with all its options.
    pub fn resolved_stages(&self) -> Vec<ResolvedStage> {
        let resolved = |stage: &PipelineStage| match &stage.kind {
            StageKind::BuiltIn { entry, options } => {
                Some(ResolvedStage { entry, options: (entry.configure)(options.clone()).ok()?.table().ok()? })
            }
            StageKind::Embedded { .. } | StageKind::External { .. } => None,
        };
        self.stages.iter().map_while(resolved).collect()
    }

    /// The output of the stage at this index in words: `records of record-sizer`.
    pub fn output_of(&self, index: usize) -> String {
        let Some(stage) = self.stages.get(index) else { return String::new() };
        match stage.entry() {
            Some(entry) => {
                let plural = if entry.makes.ends_with('s') { "" } else { "s" };
                format!("{}{plural} of {}", entry.makes, entry.name)
            }
            None => format!("frames of {}", stage.name()),
        }
    }

    /// The same pipeline without saved outputs, for commands that use it for another purpose than `sizeleak run`.
    #[must_use]
    pub fn without_saves(mut self) -> Self {
        self.stages.iter_mut().for_each(|stage| stage.save = None);
        self
    }

    fn no_stage(&self, stage: &str, key: &str) -> ConfigError {
        let names: Vec<&str> = self.stages.iter().map(PipelineStage::name).collect();
        let known = if registry::find(stage).is_some() {
            "that stage is not in this pipeline".to_owned()
        } else {
            format!("there is no such stage{}", did_you_mean(stage, names.iter().copied()))
        };
        let fault = format!("{stage}.{key}: {known} (this pipeline has {})", names.join(", "));
        ConfigError::usage(fault)
    }
}

fn text_of(path: &Path) -> Result<&str, ConfigError> {
    path.to_str().ok_or_else(|| ConfigError::usage(format!("the path {} is not valid UTF-8", path.display())))
}

impl Pipeline {
    /// The files that a run reads, and those that it writes besides its output: what the stages from index `saving` on
    /// save to, all of them unless given, and the log of latencies.
    pub fn files(&self, saving: Option<usize>) -> RunFiles {
        let mut files = RunFiles::new();
        if let Some(file) = &self.file {
            files.reads("the pipeline file", file);
        }
        for stage in &self.stages {
            self.add_inputs(stage, &mut files);
        }
        for stage in self.stages.iter().skip(saving.unwrap_or(0)) {
            if let Some(save) = &stage.save {
                files.writes(&format!("`{}.{SAVE}`", stage.name()), save);
            }
        }
        if let Some(log) = &self.settings.latency_log {
            files.writes("`latency-log`", log);
        }
        files
    }

    fn add_inputs(&self, stage: &PipelineStage, files: &mut RunFiles) {
        match &stage.kind {
            StageKind::BuiltIn { entry, options } => {
                for key in entry.paths {
                    let paths = options.get(*key).map_or(&[][..], |value| match value {
                        Value::Array(values) => values,
                        single => std::slice::from_ref(single),
                    });
                    let role = if entry.consumes.is_none() { "the capture".to_owned() } else { format!("the {key}") };
                    paths.iter().filter_map(Value::as_str).for_each(|path| files.reads(&role, Path::new(path)));
                    if entry.consumes.is_none() && paths.is_empty() {
                        files.reads_stdin();
                    }
                }
            }
            // Which of its arguments are files is not known: those that exist.
            StageKind::External { name, command } => {
                let folder = self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
                let paths = command.iter().map(|argument| folder.join(argument)).filter(|path| path.is_file());
                paths.for_each(|path: PathBuf| files.reads(&format!("a file of stage `{name}`"), &path));
            }
            StageKind::Embedded { .. } => {}
        }
    }
}

/// Kinds that a stage emits besides the kind it makes, and that all later stages pass on.
const PASSED_ON: [(&str, &str); 2] = [("flow", "segments"), ("session", "record")];

impl Pipeline {
    /// The part of the pipeline that makes these kinds: it ends with the stage that makes the last of them, and a later
    /// stage consumes what this one makes, so that it must not run. Flows and sessions come out of any longer pipeline
    /// too, so they shorten it only where nothing is asked for that every stage emits, as notices are. A stage whose
    /// output is saved is never left out, and nor is one up to index `at_least`.
    #[must_use]
    pub fn making(&self, kinds: &[impl AsRef<str>], at_least: Option<usize>) -> Self {
        let mut part = self.clone();
        let saved = self.stages.iter().rposition(|stage| stage.save.is_some());
        if let Some(last) = self.last_needed(kinds) {
            part.stages.truncate(last.max(saved.unwrap_or(0)).max(at_least.unwrap_or(0)) + 1);
        }
        part
    }

    /// Those of these kinds that cannot come out of this pipeline, because one of its stages consumes them, each with
    /// that stage.
    pub fn consumed<'a>(&self, kinds: &'a [String]) -> Vec<(&'a str, &'static str)> {
        let consumer = |kind: &'a String| {
            let made = self.stages.iter().rposition(|stage| stage.entry().is_some_and(|entry| entry.makes == kind));
            let behind = self.stages.get(made? + 1..)?;
            let mut entries = behind.iter().filter_map(PipelineStage::entry);
            let is_optional = |name: &str| OPTIONAL.iter().any(|optional| optional.name == name);
            let consumer = entries.find(|entry| entry.consumes == Some(kind.as_str()) && !is_optional(entry.name))?;
            Some((kind.as_str(), consumer.name))
        };
        kinds.iter().filter_map(consumer).collect()
    }

    /// The index of the last stage that these kinds need; `None` if they need all of them.
    fn last_needed(&self, kinds: &[impl AsRef<str>]) -> Option<usize> {
        let passed_on = |kind: &str| PASSED_ON.iter().find(|(name, _)| *name == kind).map(|(_, made_with)| *made_with);
        let mut last = None;
        let (mut is_of_every_stage, mut is_made) = (kinds.is_empty(), false);
        for kind in kinds.iter().map(AsRef::as_ref) {
            let maker = self.last_maker(passed_on(kind).unwrap_or(kind));
            is_of_every_stage |= maker.is_none();
            is_made |= maker.is_some() && passed_on(kind).is_none();
            last = last.max(maker);
        }
        last.filter(|_| is_made || !is_of_every_stage)
    }

    fn last_maker(&self, kind: &str) -> Option<usize> {
        let is_next = |stage: &PipelineStage| stage.entry().is_some();
        let makes = |stage: &PipelineStage| stage.entry().is_some_and(|entry| entry.makes == kind);
        let consumes = |stage: &PipelineStage| stage.entry().is_some_and(|entry| entry.consumes == Some(kind));
        match self.stages.iter().rposition(makes) {
            Some(made) => {
                let behind = self.stages.get(made + 1..)?;
                Some(made + behind.iter().position(is_next).unwrap_or(behind.len()))
            }
            // A program of somebody makes it.
            None => self.stages.iter().position(consumes)?.checked_sub(1),
        }
    }
}

#[cfg(test)]
mod tests;
