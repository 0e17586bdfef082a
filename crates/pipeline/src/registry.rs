//! The seven standard stages, and an optional one: the only module that knows all of them.

use std::path::Path;

use clap::{Arg, Command};
use schemars::JsonSchema;
use sizeleak_platform::runtime::{Access, ConfigureError, Runnable, StageOptions, program};
use toml::{Table, Value};

use crate::error::explained;
use crate::type_schema;

#[derive(Debug)]
pub struct StageEntry {
    pub name: &'static str,
    /// The kind of frame it consumes; `None` for a source.
    pub consumes: Option<&'static str>,
    pub makes: &'static str,
    pub paths: &'static [&'static str],
    pub about: &'static str,
    pub command: fn() -> Command,
    pub schema: fn() -> serde_json::Value,
    pub configure: fn(Table) -> Result<Box<dyn StageConfig>, toml::de::Error>,
}

pub static STAGES: [StageEntry; 7] = [
    StageEntry::new::<sizeleak_capture::Options>(None, "packets"),
    StageEntry::new::<sizeleak_flow_filter::Options>(Some("packets"), "segments"),
    StageEntry::new::<sizeleak_record_sizer::Options>(Some("segments"), "record"),
    StageEntry::new::<sizeleak_command_segmenter::Options>(Some("record"), "command"),
    StageEntry::new::<sizeleak_epsilon_corrector::Options>(Some("command"), "correction"),
    StageEntry::new::<sizeleak_decomposer::Options>(Some("correction"), "identification"),
    StageEntry::new::<sizeleak_pruner::Options>(Some("identification"), "identification"),
];

/// Stages that are in no pipeline unless it names them. They pass on what they look at.
pub static OPTIONAL: [StageEntry; 1] =
    [StageEntry::new::<sizeleak_detector::Options>(Some("identification"), "deviation")];

pub fn all() -> impl Iterator<Item = &'static StageEntry> + Clone {
    STAGES.iter().chain(&OPTIONAL)
}

pub fn find(name: &str) -> Option<&'static StageEntry> {
    all().find(|entry| entry.name == name)
}

impl StageEntry {
    const fn new<O: StageOptions + JsonSchema + Send + 'static>(
        consumes: Option<&'static str>,
        makes: &'static str,
    ) -> Self {
        Self {
            name: O::NAME,
            consumes,
            makes,
            paths: O::PATHS,
            about: O::ABOUT,
            command: program::command::<O>,
            schema: type_schema::of_type::<O>,
            configure: |table| Ok(Box::new(O::deserialize(Value::Table(table))?)),
        }
    }

    /// Sets one of the stage's options. A single value may be meant as a list of one. Every option has a default, so
    /// that each can be read alone and be blamed. From a pipeline file, paths become relative to what its `folder` is
    /// relative to.
    pub(crate) fn set(
        &self,
        options: &mut Table,
        key: &str,
        value: Value,
        folder: Option<&Path>,
    ) -> Result<(), String> {
        let fault = |message: &str| format!("{}.{key}: {}", self.name, explained(message));
        let with = |value: &Value| (self.configure)(Table::from_iter([(key.to_owned(), value.clone())]));
        let list = Value::Array(vec![value.clone()]);
        let (mut value, configured) = match with(&value) {
            Ok(configured) => (value, configured),
            Err(error) => (list.clone(), with(&list).map_err(|_| fault(error.message()))?),
        };
        if let Some(folder) = folder {
            // As it is written by its type, so that equal times are equal texts.
            value = configured.table().map_err(|error| fault(&error.to_string()))?.remove(key).unwrap_or(value);
            if self.paths.contains(&key) {
                self.resolve(&mut value, folder).map_err(fault)?;
            }
        }
        options.insert(key.to_owned(), value);
        Ok(())
    }

    /// Makes a relative path, or each in a list, relative to what `folder` is relative to.
    fn resolve(&self, value: &mut Value, folder: &Path) -> Result<(), &'static str> {
        match value {
            Value::String(stdin) if self.consumes.is_none() && stdin == "-" => Ok(()),
            Value::String(path) => {
                *path = folder
                    .join(&*path)
                    .into_os_string()
                    .into_string()
                    .map_err(|_| "path contains invalid UTF-8 characters")?;
                Ok(())
            }
            Value::Array(paths) => paths.iter_mut().try_for_each(|path| self.resolve(path, folder)),
            _ => Ok(()),
        }
    }

    pub fn arguments(&self, options: &Table) -> Vec<String> {
        let command = (self.command)();
        let (mut flags, mut operands) = (Vec::new(), Vec::new());
        for (key, value) in options {
            match command.get_arguments().find(|argument| is_of_key(argument, key)) {
                Some(argument) if argument.is_positional() => operands.extend(texts(value)),
                _ if *value == Value::Boolean(true) => flags.push(format!("--{key}")),
                _ if *value == Value::Boolean(false) => {}
                _ => flags.extend(texts(value).into_iter().map(|text| format!("--{key}={text}"))),
            }
        }
        if !operands.is_empty() {
            flags.push("--".to_owned());
        }
        flags.extend(operands);
        flags
    }
}

fn is_of_key(argument: &Arg, key: &str) -> bool {
    argument.get_long() == Some(key) || argument.is_positional() && argument.get_id() == key
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

pub trait StageConfig: Send {
    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError>;

    fn access(&self) -> Access;

    fn table(&self) -> Result<Table, toml::ser::Error>;
}

impl<O: StageOptions + Send> StageConfig for O {
    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        StageOptions::build(self)
    }

    fn access(&self) -> Access {
        StageOptions::access(self)
    }

    fn table(&self) -> Result<Table, toml::ser::Error> {
        Table::try_from(self)
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::path::PathBuf;

    use super::*;

    fn keys(entry: &StageEntry) -> Vec<String> {
        (entry.schema)()["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn every_stage_consumes_the_frames_of_the_previous_one() {
        for pair in STAGES.windows(2) {
            assert_eq!(pair[1].consumes, Some(pair[0].makes), "{}", pair[1].name);
        }
        assert!(find("pruner").is_some() && find("prune").is_none());
    }

    #[test]
    fn every_key_is_a_flag_of_the_program() {
        for entry in all() {
            let defaults = (entry.configure)(Table::new()).unwrap().table().unwrap();
            let command = (entry.command)();
            for key in defaults.keys() {
                assert!(command.get_arguments().any(|argument| is_of_key(argument, key)), "{}: {key}", entry.name);
            }
            // Also those without a default.
            for key in keys(entry) {
                assert!(command.get_arguments().any(|argument| is_of_key(argument, &key)), "{}: {key}", entry.name);
            }
            assert!(defaults.keys().all(|key| keys(entry).contains(key)), "{}", entry.name);
            let arguments = entry.arguments(&defaults);
            let parsed = (entry.command)().try_get_matches_from([entry.name.to_owned()].into_iter().chain(arguments));
            assert!(parsed.is_ok(), "{}: {parsed:?}", entry.name);
        }
    }

    #[test]
    fn options_that_hold_paths_are_those_of_the_command_line() {
        let is_path = |argument: &&Arg| argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        for entry in all() {
            let command = (entry.command)();
            let keys = keys(entry)
                .into_iter()
                .filter(|key| command.get_arguments().filter(is_path).any(|argument| is_of_key(argument, key)));
            assert_eq!(keys.collect::<Vec<_>>(), entry.paths, "{}", entry.name);
        }
        let paths = STAGES.each_ref().map(|entry| entry.paths);
        let expected: [&[&str]; 7] = [&["files"], &[], &[], &["model"], &["model"], &["model"], &["model", "profile"]];
        assert_eq!(paths, expected);
    }

    #[test]
    fn paths_of_a_file_are_relative_to_its_folder() {
        let resolved = |entry: &StageEntry, key: &str, value: Value| {
            let mut options = Table::new();
            entry.set(&mut options, key, value, Some(Path::new("there"))).unwrap();
            options.remove(key).unwrap()
        };
        let files = || vec![Value::from("a.pcap"), "-".into(), "/b".into()];
        let expected = vec![Value::from("there/a.pcap"), "-".into(), "/b".into()];
        assert_eq!(resolved(&STAGES[0], "files", files().into()), expected.into());
        for (entry, key) in [(3, "model"), (4, "model"), (5, "model"), (6, "model"), (6, "profile")] {
            assert_eq!(resolved(&STAGES[entry], key, "m.toml".into()), "there/m.toml".into(), "{key}");
        }
        assert_eq!(resolved(&OPTIONAL[0], "profile", "p.toml".into()), "there/p.toml".into());
        assert_eq!(resolved(&STAGES[3], "gap", "0.08s".into()), resolved(&STAGES[3], "gap", "80ms".into()));
    }

    #[test]
    fn help_describes_the_program_and_prints_readable_durations() {
        for entry in all() {
            let help = (entry.command)().render_long_help().to_string();
            assert!(!help.starts_with("The flags") && !help.contains("default: PT"), "{help}");
        }
    }

    #[test]
    fn option_values_become_arguments() {
        let options = "files = [\"a.pcap\", \"-b.pcap\"]\nrecursive = true".parse().unwrap();
        assert_eq!(STAGES[0].arguments(&options), ["--recursive", "--", "a.pcap", "-b.pcap"]);
        let options = "gateway = [\"10.0.0.1\", \"::1\"]\nport = [443]".parse().unwrap();
        assert_eq!(STAGES[1].arguments(&options), ["--gateway=10.0.0.1", "--gateway=::1", "--port=443"]);
        let options = "keep = 0.5\nmode = \"paper\"\n".parse().unwrap();
        assert_eq!(STAGES[6].arguments(&options), ["--keep=0.5", "--mode=paper"]);
    }
}
