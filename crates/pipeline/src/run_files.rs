//! The files that a pipeline reads and writes.

use std::path::{Path, PathBuf};

use sizeleak_platform::storage::RunFiles;
use toml::Value;

use crate::Pipeline;
use crate::stage::{PipelineStage, SAVE, StageKind};

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
        if let Some(log) = &self.latency_log {
            files.writes("`latency-log`", log);
        }
        files
    }

    fn add_inputs(&self, stage: &PipelineStage, files: &mut RunFiles) {
        match &stage.kind {
            StageKind::BuiltIn { entry, options } => {
                for key in entry.path_keys() {
                    let paths = options.get(&key).map_or(&[][..], |value| match value {
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
