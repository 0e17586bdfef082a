//! Reads `pipeline.toml`; errors name the line.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::{Spanned, Table, Value};

use crate::error::{did_you_mean, explained, nearest};
use crate::stage::{PipelineStage, RunSettings, SAVE, StageKind, check_order, save_path};
use crate::{ConfigError, Pipeline, registry};

const MAX_FILE_BYTES: u64 = 1 << 20;

/// The keys of a `[[stage]]` that are not options of a standard stage.
const KEYS: [&str; 4] = ["run", "command", "name", SAVE];

/// What a file holds. What a stage's keys mean depends on its `run`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default)]
    pipeline: RunSettings,
    #[serde(default)]
    stage: Vec<Spanned<Keys>>,
}

type Keys = BTreeMap<Spanned<String>, Value>;

impl Pipeline {
    /// Reads a pipeline file. Relative paths in it are relative to its folder.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let of_file = |error| ConfigError::of_file(file, &error);
        if fs::metadata(file).map_err(of_file)?.len() > MAX_FILE_BYTES {
            let fault = format!("is not a pipeline file: it has more than {MAX_FILE_BYTES} bytes");
            return Err(ConfigError::usage(fault).at(Some(file), None, ""));
        }
        let text = fs::read_to_string(file).map_err(of_file)?;
        Self::parse(&text, file)
    }

    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let source = FileText { text, file, folder: file.parent().unwrap_or(Path::new("")) };
        let contents: Contents = toml::from_str(text).map_err(|error| {
            let fault = explained(error.message());
            // Nothing else at the top is a list.
            let fault = fault.replace("a sequence", "tables, `[[stage]]`").replace("a map", "a table, `[[stage]]`");
            source.fault(error.span().unwrap_or_default(), fault)
        })?;
        let stages = contents.stage.into_iter().map(|keys| source.stage(keys)).collect::<Result<_, _>>()?;
        let mut settings = contents.pipeline;
        settings.latency_log = settings.latency_log.map(|log| source.folder.join(log));
        let pipeline = Self { settings, file: Some(file.to_owned()), text: text.to_owned(), stages };
        check_order(&pipeline.stages).map_err(|(line, error)| error.at(Some(file), line, text))?;
        Ok(pipeline)
    }
}

struct FileText<'a> {
    text: &'a str,
    file: &'a Path,
    folder: &'a Path,
}

impl FileText<'_> {
    fn line(&self, place: Range<usize>) -> usize {
        self.text.get(..place.start).unwrap_or(self.text).matches('\n').count() + 1
    }

    fn fault(&self, place: Range<usize>, fault: impl Into<String>) -> ConfigError {
        ConfigError::usage(fault.into()).at(Some(self.file), Some(self.line(place)), self.text)
    }

    fn stage(&self, table: Spanned<Keys>) -> Result<PipelineStage, ConfigError> {
        let (place, mut keys) = (table.span(), table.into_inner());
        let [run, command, name, save] = KEYS.map(|key| keys.remove_entry(key));
        let mut stage = match (run, command, name) {
            (Some(run), None, None) => self.built_in(&run, keys),
            (None, Some(command), name) => self.external(command, name, &keys),
            (Some(_), None, Some((name, _))) => {
                Err(self.fault(name.span(), "`name` belongs to `command`: `run` already names the stage"))
            }
            (Some(_), Some((command, _)), _) => {
                Err(self.fault(command.span(), "a stage has `run` or `command`, not both"))
            }
            (None, None, _) => {
                let needs =
                    "a stage needs `run = \"<stage>\"`, or `command = [\"program\", …]` for a program of your own";
                let meant = keys.keys().find_map(|key| Some((key.span(), nearest(key.get_ref(), KEYS)?)));
                Err(match meant {
                    Some((place, key)) => self.fault(place, format!("{needs}; did you mean `{key}`?")),
                    None => self.fault(place, needs),
                })
            }
        }?;
        if let Some((key, value)) = save {
            let path = save_path(&value).map_err(|fault| self.fault(key.span(), format!("`{SAVE}`: {fault}")))?;
            stage.save = Some(self.folder.join(path));
            stage.key_lines.push((SAVE.to_owned(), self.line(key.span())));
        }
        Ok(stage)
    }

    fn built_in(&self, (run, stage): &(Spanned<String>, Value), keys: Keys) -> Result<PipelineStage, ConfigError> {
        let shown = stage.as_str().unwrap_or("this");
        let Some(entry) = registry::find(shown) else {
            let names: Vec<&str> = registry::all().map(|entry| entry.name).collect();
            let meant = did_you_mean(shown, names.iter().copied());
            let words: Vec<String> = shown.split_whitespace().map(|word| format!("{word:?}")).collect();
            let own = format!("a program of your own is named by `command = [{}]`", words.join(", "));
            let fault = format!("`{shown}` is not a stage{meant} (there are {}); {own}", names.join(", "));
            return Err(self.fault(run.span(), fault));
        };
        let mut options = Table::new();
        let mut key_lines = Vec::new();
        for (key, value) in keys {
            let (place, key) = (key.span(), key.into_inner());
            let set = entry.set(&mut options, &key, value, Some(self.folder));
            set.map_err(|fault| self.fault(place.clone(), fault))?;
            key_lines.push((key, self.line(place)));
        }
        let kind = StageKind::BuiltIn { entry, options };
        Ok(PipelineStage { kind, line: Some(self.line(run.span())), key_lines, save: None })
    }

    fn external(
        &self,
        (key, command): (Spanned<String>, Value),
        name: Option<(Spanned<String>, Value)>,
        others: &Keys,
    ) -> Result<PipelineStage, ConfigError> {
        if let Some(other) = others.keys().next() {
            let fault = format!("`{}` is not a key of a `command` stage: give it as an argument", other.get_ref());
            return Err(self.fault(other.span(), fault));
        }
        let command: Vec<String> =
            command.try_into().ok().filter(|command: &Vec<_>| !command.is_empty()).ok_or_else(|| {
                let fault = "`command` is a list of a program and its arguments, such as [\"python3\", \"stage.py\"]";
                self.fault(key.span(), fault)
            })?;
        let name = match name {
            Some((key, name)) => {
                let text = name.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
                text.ok_or_else(|| self.fault(key.span(), "`name` must be text"))?
            }
            None => self.name_of(&command),
        };
        let line = Some(self.line(key.span()));
        Ok(PipelineStage { line, ..PipelineStage::new(StageKind::External { name, command }) })
    }

    fn name_of(&self, command: &[String]) -> String {
        let script = command.iter().skip(1).find(|argument| self.folder.join(argument).is_file());
        let named = script.or(command.first()).map_or("", String::as_str);
        Path::new(named).file_stem().map_or_else(|| named.to_owned(), |stem| stem.display().to_string())
    }
}

#[cfg(test)]
mod tests;
