//! Reads `pipeline.toml`; errors name the line.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Deserialize;
use toml::de::{DeString, DeTable, DeValue};
use toml::{Spanned, Table, Value};

use crate::registry;
use crate::settings::RunSettings;
use crate::stage::{PipelineStage, SAVE, StageKind, check_order, save_path};
use crate::suggestion::{did_you_mean, fault_of_option, listed, nearest};
use crate::{ConfigError, Mode, Pipeline, type_schema};

/// A key and its value with their positions.
struct KeyValue<'a> {
    key: Spanned<DeString<'a>>,
    value: Spanned<DeValue<'a>>,
}

/// The largest pipeline file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The keys at the top of the file.
const TOP: [&str; 2] = ["pipeline", "stage"];

/// The keys of a `[[stage]]` that are not options of a standard stage.
const KEYS: [&str; 4] = ["run", "command", "name", SAVE];

impl Pipeline {
    /// Reads a pipeline file. Relative paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError`] with the line: a syntax error, an unknown key or stage, an invalid value, stages in an
    /// impossible order.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let of_file = |error| ConfigError::of_file(file, &error);
        if fs::metadata(file).map_err(of_file)?.len() > MAX_FILE_BYTES {
            let fault = format!("is not a pipeline file: it has more than {MAX_FILE_BYTES} bytes");
            return Err(ConfigError::usage(fault).at(Some(file), None));
        }
        let text = fs::read_to_string(file).map_err(of_file)?;
        Self::parse(&text, file)
    }

    /// Reads the text of a pipeline file; `file` is where it is.
    ///
    /// # Errors
    /// [`ConfigError`], as from [`read`](Self::read).
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let source = FileText { text, file };
        let document = DeTable::parse(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            source.fault(start, error.message().to_owned())
        })?;
        let mut settings = RunSettings::default();
        let mut stages = Vec::new();
        for (key, value) in document.into_inner() {
            let start = key.span().start;
            match (&**key.get_ref(), value.into_inner()) {
                ("pipeline", DeValue::Table(table)) => settings = source.settings(table)?,
                ("stage", DeValue::Array(array)) => {
                    for value in array {
                        let start = value.span().start;
                        let DeValue::Table(table) = value.into_inner() else {
                            return Err(source.fault(start, "a stage is a table, `[[stage]]`".into()));
                        };
                        stages.push(source.stage(start, table)?);
                    }
                }
                (name @ ("pipeline" | "stage"), _) => {
                    return Err(source.fault(start, format!("`{name}` is a table: `[pipeline]`, `[[stage]]`")));
                }
                (other, _) => {
                    let meant = did_you_mean(other, TOP);
                    let fault =
                        format!("`{other}` means nothing here{meant} (a file has `[pipeline]` and `[[stage]]`)");
                    return Err(source.fault(start, fault));
                }
            }
        }
        let folder = source.folder();
        settings.latency_log = settings.latency_log.map(|log| folder.join(log));
        let pipeline = Self { file: Some(file.to_owned()), text: text.to_owned(), ..Self::new(stages, settings) };
        check_order(&pipeline.stages).map_err(|(line, error)| error.at(Some(file), line).quoting(text))?;
        Ok(pipeline)
    }
}

impl KeyValue<'_> {
    fn start(&self) -> usize {
        self.key.span().start
    }
}

/// The pipeline file that is being read.
struct FileText<'a> {
    text: &'a str,
    file: &'a Path,
}

impl FileText<'_> {
    fn line(&self, start: usize) -> usize {
        self.text.get(..start).unwrap_or(self.text).matches('\n').count() + 1
    }

    fn fault(&self, start: usize, fault: String) -> ConfigError {
        ConfigError::usage(fault).at(Some(self.file), Some(self.line(start))).quoting(self.text)
    }

    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    fn settings(&self, table: DeTable<'_>) -> Result<RunSettings, ConfigError> {
        let mut plain = Table::new();
        for (key, value) in table {
            let (start, key) = (key.span().start, key.into_inner().into_owned());
            let single = Table::from_iter([(key.clone(), self.plain(value)?)]);
            RunSettings::deserialize(Value::Table(single.clone())).map_err(|error| {
                let fault = fault_of_setting(&key, single.get(&key), error.message());
                self.fault(start, fault)
            })?;
            plain.extend(single);
        }
        let settings = RunSettings::deserialize(Value::Table(plain));
        settings.map_err(|error| self.fault(0, error.message().to_owned()))
    }

    fn stage(&self, start: usize, table: DeTable<'_>) -> Result<PipelineStage, ConfigError> {
        let (mut run, mut command, mut name, mut save) = (None, None, None, None);
        let mut others: Vec<KeyValue<'_>> = Vec::new();
        for (key, value) in table {
            let entry = KeyValue { key, value };
            match &**entry.key.get_ref() {
                "run" => run = Some(entry),
                "command" => command = Some(entry),
                "name" => name = Some(entry),
                SAVE => save = Some(entry),
                _ => others.push(entry),
            }
        }
        let save = save.map(|save| self.save(save)).transpose()?;
        let mut stage = self.unsaved_stage(start, [run, command, name], others)?;
        if let Some((path, line)) = save {
            stage.save = Some(path);
            stage.key_lines.push((SAVE.to_owned(), line));
        }
        Ok(stage)
    }

    /// The file the output is saved to, and the line of the key.
    fn save(&self, entry: KeyValue<'_>) -> Result<(PathBuf, usize), ConfigError> {
        let start = entry.start();
        let path =
            save_path(&self.plain(entry.value)?).map_err(|fault| self.fault(start, format!("`{SAVE}`: {fault}")))?;
        Ok((self.folder().join(path), self.line(start)))
    }

    fn unsaved_stage(
        &self,
        start: usize,
        [run, command, name]: [Option<KeyValue<'_>>; 3],
        others: Vec<KeyValue<'_>>,
    ) -> Result<PipelineStage, ConfigError> {
        match (run, command, name) {
            (Some(run), None, None) => self.built_in(&run, others),
            (None, Some(command), name) => self.external(command, name, &others),
            (Some(_), None, Some(name)) => {
                Err(self.fault(name.start(), "`name` belongs to `command`: `run` already names the stage".into()))
            }
            (Some(_), Some(command), _) => {
                Err(self.fault(command.start(), "a stage has `run` or `command`, not both".into()))
            }
            (None, None, _) => {
                let needs =
                    "a stage needs `run = \"<stage>\"`, or `command = [\"program\", …]` for a program of your own";
                let meant = |entry: &KeyValue<'_>| nearest(entry.key.get_ref(), KEYS).map(|key| (entry.start(), key));
                Err(match others.iter().find_map(meant) {
                    Some((start, key)) => self.fault(start, format!("{needs}; did you mean `{key}`?")),
                    None => self.fault(start, needs.into()),
                })
            }
        }
    }

    fn built_in(&self, run: &KeyValue<'_>, others: Vec<KeyValue<'_>>) -> Result<PipelineStage, ConfigError> {
        let start = run.start();
        let Some(entry) = run.value.get_ref().as_str().and_then(registry::find) else {
            let names: Vec<&str> = registry::all().map(|entry| entry.name).collect();
            let shown = run.value.get_ref().as_str().unwrap_or("this");
            let meant = did_you_mean(shown, names.iter().copied());
            let words: Vec<String> = shown.split_whitespace().map(|word| format!("{word:?}")).collect();
            let own = format!("a program of your own is named by `command = [{}]`", words.join(", "));
            let fault = format!("`{shown}` is not a stage{meant} (there are {}); {own}", names.join(", "));
            return Err(self.fault(start, fault));
        };
        let mut options = Table::new();
        let mut key_lines = Vec::new();
        for KeyValue { key, value } in others {
            let (start, key) = (key.span().start, key.into_inner().into_owned());
            // Every option has a default, so each key can be parsed alone and an error be blamed on it.
            let value = self.plain(value)?;
            let fail = |message: &str| self.fault(start, fault_of_option(entry, &key, &value, message));
            let configured = entry.configure_one(&key, value.clone()).map_err(|error| fail(error.message()));
            let (_, mut configured) = configured?;
            let resolved = configured.resolved_in(self.folder()).map_err(|error| fail(&error.to_string()))?;
            options.extend(resolved.into_iter().filter(|(resolved, _)| *resolved == key));
            key_lines.push((key, self.line(start)));
        }
        Ok(PipelineStage {
            kind: StageKind::BuiltIn { entry, options },
            line: Some(self.line(start)),
            key_lines,
            save: None,
        })
    }

    fn external(
        &self,
        command: KeyValue<'_>,
        name: Option<KeyValue<'_>>,
        others: &[KeyValue<'_>],
    ) -> Result<PipelineStage, ConfigError> {
        let start = command.start();
        if let Some(other) = others.first() {
            let fault = format!("`{}` is not a key of a `command` stage: give it as an argument", other.key.get_ref());
            return Err(self.fault(other.start(), fault));
        }
        let command = Vec::<String>::deserialize(self.plain(command.value)?).ok().filter(|command| !command.is_empty());
        let Some(command) = command else {
            let fault = "`command` is a list of a program and its arguments, such as [\"python3\", \"stage.py\"]";
            return Err(self.fault(start, fault.into()));
        };
        let name = match name {
            Some(name) => {
                let text = name.value.get_ref().as_str().filter(|name| !name.is_empty()).map(str::to_owned);
                text.ok_or_else(|| self.fault(name.start(), "`name` must be text".into()))?
            }
            None => self.name_of(&command),
        };
        let line = Some(self.line(start));
        Ok(PipelineStage { line, ..PipelineStage::new(StageKind::External { name, command }) })
    }

    /// The name of an external stage in messages: the script if there is one, else the program.
    fn name_of(&self, command: &[String]) -> String {
        let script = command.iter().skip(1).find(|argument| self.folder().join(argument).is_file());
        let named = script.or(command.first()).map_or("", String::as_str);
        Path::new(named).file_stem().map_or_else(|| named.to_owned(), |stem| stem.display().to_string())
    }

    fn plain(&self, value: Spanned<DeValue<'_>>) -> Result<Value, ConfigError> {
        let start = value.span().start;
        plain(value.into_inner()).ok_or_else(|| self.fault(start, "a number that is too large".into()))
    }
}

/// Why `[pipeline]` rejects a key, given the message of the parser.
fn fault_of_setting(key: &str, value: Option<&Value>, message: &str) -> String {
    let schema = type_schema::of_type::<RunSettings>();
    let keys: Vec<String> =
        schema["properties"].as_object().into_iter().flat_map(|keys| keys.keys().cloned()).collect();
    let modes: Vec<String> = Mode::value_variants()
        .iter()
        .filter_map(|mode| Some(mode.to_possible_value()?.get_name().to_owned()))
        .collect();
    let known = |words: &[String], word: &str| did_you_mean(word, words.iter().map(String::as_str));
    match value {
        _ if !keys.iter().any(|known| known == key) => {
            format!("`{key}` is not a setting{} (there are {})", known(&keys, key), listed(&keys))
        }
        Some(Value::String(mode)) if key == "mode" => {
            format!("`{mode}` is not a mode{} (there are {})", known(&modes, mode), listed(&modes))
        }
        _ => format!("`{key}`: {}", message.trim_end()),
    }
}

/// A value without its position; `None` for a number too large for TOML.
fn plain(value: DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok()?),
        DeValue::Float(number) => Value::Float(number.as_str().parse().ok()?),
        DeValue::Boolean(truth) => Value::Boolean(truth),
        DeValue::Datetime(time) => Value::Datetime(time),
        DeValue::Array(values) => {
            Value::Array(values.into_iter().map(|value| plain(value.into_inner())).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let entries = table.into_iter();
            let plain = entries.map(|(key, value)| Some((key.into_inner().into_owned(), plain(value.into_inner())?)));
            Value::Table(plain.collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests;
