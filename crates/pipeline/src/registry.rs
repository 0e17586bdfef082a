//! The seven stages in order: the only place that knows all of them.

use std::any::TypeId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use schemars::JsonSchema;
use sizeleak_runtime::{ConfigureError, Runnable, StageOptions, program};
use toml::{Table, Value};

use crate::schema;

/// A stage as the runner and the programs know it.
#[derive(Debug)]
pub struct StageEntry {
    /// The stage's name, which is also its program's.
    pub name: &'static str,
    /// The kind of frame it works on; `None` for a source.
    pub consumes: Option<&'static str>,
    /// The kind of frame it makes of them.
    pub makes: &'static str,
    about: &'static str,
    command: fn() -> Command,
    schema: fn() -> serde_json::Value,
    configure: fn(Table) -> Result<Box<dyn StageConfig>, toml::de::Error>,
}

/// The stages in the order of a pipeline.
pub static STAGES: [StageEntry; 7] = [
    StageEntry::new::<sizeleak_capture::Options>(None, "packets"),
    StageEntry::new::<sizeleak_flow_filter::Options>(Some("packets"), "segments"),
    StageEntry::new::<sizeleak_record_sizer::Options>(Some("segments"), "record"),
    StageEntry::new::<sizeleak_command_segmenter::Options>(Some("record"), "command"),
    StageEntry::new::<sizeleak_epsilon_corrector::Options>(Some("command"), "correction"),
    StageEntry::new::<sizeleak_decomposer::Options>(Some("correction"), "identification"),
    StageEntry::new::<sizeleak_pruner::Options>(Some("identification"), "identification"),
];

/// The stage of this name.
pub fn find(name: &str) -> Option<&'static StageEntry> {
    STAGES.iter().find(|entry| entry.name == name)
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
            about: O::ABOUT,
            command: program::command::<O>,
            schema: schema::of_type::<O>,
            configure: |table| Ok(Box::new(O::deserialize(Value::Table(table))?)),
        }
    }

    /// The command line of the stage's program.
    pub fn command(&self) -> Command {
        (self.command)()
    }

    /// What it does, in one sentence.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// The JSON Schema of its options: an object with a property for each.
    pub fn schema(&self) -> serde_json::Value {
        (self.schema)()
    }

    /// The names of its options.
    pub fn keys(&self) -> Vec<String> {
        let schema = self.schema();
        schema["properties"].as_object().map_or_else(Vec::new, |options| options.keys().cloned().collect())
    }

    /// The names of its options that name files.
    pub fn path_keys(&self) -> Vec<String> {
        let command = self.command();
        let keys = self.keys().into_iter();
        let names_files = |key: &String| {
            let argument = command.get_arguments().find(|argument| is_of_key(argument, key));
            argument.is_some_and(|argument| argument.get_value_parser().type_id() == TypeId::of::<PathBuf>())
        };
        keys.filter(names_files).collect()
    }

    /// The words an option can be, where it is a choice among some.
    pub fn choices(&self, key: &str) -> Vec<String> {
        let command = self.command();
        let argument = command.get_arguments().find(|argument| is_of_key(argument, key));
        let values = argument.filter(|argument| argument.get_action().takes_values()).map(Arg::get_possible_values);
        values.into_iter().flatten().map(|value| value.get_name().to_owned()).collect()
    }

    /// The stage with these options, keys named as its flags are.
    ///
    /// # Errors
    /// Where a key is unknown or its value is none the option can have.
    pub fn configure(&self, options: Table) -> Result<Box<dyn StageConfig>, toml::de::Error> {
        (self.configure)(options)
    }

    /// The command line of the stage's program that sets these options.
    pub fn arguments(&self, options: &Table) -> Vec<OsString> {
        let command = self.command();
        let (mut flags, mut operands) = (Vec::new(), Vec::new());
        for (key, value) in options {
            match command.get_arguments().find(|argument| is_of_key(argument, key)) {
                Some(argument) if argument.is_positional() => operands.extend(texts(value)),
                _ if *value == Value::Boolean(true) => flags.push(format!("--{key}").into()),
                _ if *value == Value::Boolean(false) => {}
                _ => flags.extend(texts(value).into_iter().map(|text| {
                    let mut flag = OsString::from(format!("--{key}="));
                    flag.push(text);
                    flag
                })),
            }
        }
        if !operands.is_empty() {
            flags.push("--".into());
        }
        flags.extend(operands);
        flags
    }
}

fn is_of_key(argument: &Arg, key: &str) -> bool {
    argument.get_long() == Some(key) || argument.is_positional() && argument.get_id() == key
}

/// A value, or each of a list's, as a command line writes it.
fn texts(value: &Value) -> Vec<OsString> {
    match value {
        Value::String(text) => vec![text.into()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        other => vec![other.to_string().into()],
    }
}

/// A stage's options, whichever stage it is.
pub trait StageConfig: Send {
    /// The stage, ready to run.
    ///
    /// # Errors
    /// [`ConfigureError`] where an option is wrong or a file it names cannot be used.
    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError>;

    /// The options as a table in which relative paths are relative to where the program runs, not to `folder`.
    ///
    /// # Errors
    /// Where a path cannot be written as text.
    fn resolved_in(&mut self, folder: &Path) -> Result<Table, toml::ser::Error>;
}

impl<O: StageOptions + Send> StageConfig for O {
    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        StageOptions::build(self)
    }

    fn resolved_in(&mut self, folder: &Path) -> Result<Table, toml::ser::Error> {
        self.resolve_paths(folder);
        Table::try_from(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_works_on_what_the_one_before_makes() {
        for pair in STAGES.windows(2) {
            assert_eq!(pair[1].consumes, Some(pair[0].makes), "{}", pair[1].name);
        }
        assert!(find("pruner").is_some() && find("prune").is_none());
    }

    /// What a pipeline file can say, the programs' command lines can say, in the same words.
    #[test]
    fn keys_are_flags() {
        for entry in &STAGES {
            let defaults = entry.configure(Table::new()).unwrap().resolved_in(Path::new("")).unwrap();
            let command = entry.command();
            for key in defaults.keys() {
                assert!(command.get_arguments().any(|argument| is_of_key(argument, key)), "{}: {key}", entry.name);
            }
            // Those without a default, too.
            for key in entry.keys() {
                assert!(command.get_arguments().any(|argument| is_of_key(argument, &key)), "{}: {key}", entry.name);
            }
            assert!(defaults.keys().all(|key| entry.keys().contains(key)), "{}", entry.name);
            let arguments = entry.arguments(&defaults);
            let parsed =
                entry.command().try_get_matches_from([OsString::from(entry.name)].into_iter().chain(arguments));
            assert!(parsed.is_ok(), "{}: {parsed:?}", entry.name);
        }
    }

    #[test]
    fn options_that_name_files_are_known() {
        let keys = STAGES.each_ref().map(StageEntry::path_keys);
        let model = vec!["model".to_owned()];
        assert_eq!(keys[0], ["files"]);
        assert!(keys[1].is_empty() && keys[2].is_empty());
        assert!(keys[3..].iter().all(|keys| *keys == model), "{keys:?}");
    }

    #[test]
    fn help_says_what_a_program_does_and_times_as_people_write_them() {
        for entry in &STAGES {
            let help = entry.command().render_long_help().to_string();
            assert!(!help.starts_with("The flags") && !help.contains("default: PT"), "{help}");
        }
    }

    #[test]
    fn values_become_arguments() {
        let options = "files = [\"a.pcap\", \"-b.pcap\"]\nrecursive = true".parse().unwrap();
        assert_eq!(STAGES[0].arguments(&options), ["--recursive", "--", "a.pcap", "-b.pcap"]);
        let options = "gateway = [\"10.0.0.1\", \"::1\"]\nport = [443]".parse().unwrap();
        assert_eq!(STAGES[1].arguments(&options), ["--gateway=10.0.0.1", "--gateway=::1", "--port=443"]);
        let options = "keep = 0.5\nmode = \"paper\"\n".parse().unwrap();
        assert_eq!(STAGES[6].arguments(&options), ["--keep=0.5", "--mode=paper"]);
    }
}
