//! Errors in the configuration of a pipeline, with what an unknown word probably meant; errors of its input, and errors
//! that end a run.

use std::fmt::{Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

use strsim::{damerau_levenshtein, jaro_winkler};
use thiserror::Error;

use crate::model_fit::TrafficSeen;

const MAX_QUOTE_CHARACTERS: usize = 160;

/// An error in the configuration of a pipeline, or a file it names that cannot be used.
#[derive(Debug, Error)]
pub struct ConfigError {
    pub file: Option<PathBuf>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    pub fault: String,
    quote: Option<String>,
    code: u8,
}

impl Display for ConfigError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(formatter, "{}, line {line}: ", file.display())?,
            (Some(file), None) => write!(formatter, "{}: ", file.display())?,
            (None, _) => {}
        }
        formatter.write_str(&self.fault)?;
        match (self.line, &self.quote) {
            (Some(line), Some(text)) => write!(formatter, "\n  {line} | {text}"),
            _ => Ok(()),
        }
    }
}

impl ConfigError {
    pub fn usage(fault: String) -> Self {
        Self { file: None, line: None, fault, quote: None, code: 2 }
    }

    pub fn input(fault: String) -> Self {
        Self { code: 1, ..Self::usage(fault) }
    }

    pub(crate) fn cut(fault: String) -> Self {
        Self { code: 3, ..Self::usage(fault) }
    }

    pub fn of_file(file: &Path, error: &io::Error) -> Self {
        Self { file: Some(file.to_owned()), ..Self::input(error.to_string()) }
    }

    /// The same, at a line of a file, which is quoted from its text.
    pub(crate) fn at(self, file: Option<&Path>, line: Option<usize>, text: &str) -> Self {
        let quoted = line.and_then(|line| text.lines().nth(line.checked_sub(1)?));
        let quote = quoted.map(|quoted| quoted.trim_end().chars().take(MAX_QUOTE_CHARACTERS).collect());
        Self { file: file.map(Path::to_owned), line, quote, ..self }
    }

    /// The exit code of the contract: 2 for a usage error, 1 if a file cannot be used, 3 if it was cut short.
    pub fn exit_code(&self) -> u8 {
        self.code
    }
}

/// Why a run failed. All complete frames before the failure have reached the sink.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{stage}`: {cause}")]
pub struct RunError {
    pub stage: String,
    pub cause: String,
    pub(crate) code: u8,
}

impl RunError {
    /// An input that cannot be read, among others that can.
    pub fn of_input(cause: String) -> Self {
        Self { stage: "capture".to_owned(), cause, code: 1 }
    }

    pub fn exit_code(&self) -> u8 {
        self.code
    }
}

/// Why pipelines cannot be run over an input, or find no command in it.
#[derive(Debug, Error)]
pub enum InputError {
    /// The pipeline cannot be prepared, or its input cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("stopped before the captures were read to the end")]
    Interrupted,
    #[error(transparent)]
    Damaged(#[from] RunError),
    #[error("there is no command in the captures: {0}")]
    NoCommands(Box<TrafficSeen>),
    #[error("a temporary file for the traffic cannot be used: {0}")]
    Recording(#[from] io::Error),
}

impl InputError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(error) => error.exit_code(),
            Self::Damaged(error) => error.exit_code(),
            Self::Interrupted => 130,
            Self::NoCommands(_) | Self::Recording(_) => 1,
        }
    }

    pub fn no_commands(damage: Option<RunError>, seen: TrafficSeen) -> Self {
        damage.map_or_else(|| Self::NoCommands(Box::new(seen)), Self::Damaged)
    }
}

const MIN_SIMILARITY: f64 = 0.8;

pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('_', "-");
    let similarity = |known: &str| {
        // `segmenter` is short for `command-segmenter`, `stages` is too long for `stage`.
        let is_part = word.len() > 3 && (known.split('-').any(|part| part == word) || word.starts_with(known));
        let edits = damerau_levenshtein(&word, known);
        if is_part || edits <= 1 && word.len() > 2 { 1.0 - edits as f64 / 1000.0 } else { jaro_winkler(&word, known) }
    };
    let scored = known
        .into_iter()
        .map(|known| (similarity(known), known))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY);
    scored.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, known)| known)
}

pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

/// A parser's message, with the word that was probably meant where it knows one.
pub(crate) fn explained(message: &str) -> String {
    if message.contains("` as i128") || message.contains("` as u128") {
        return "a number that is too large".to_owned();
    }
    let mut words = message.split('`').skip(1).step_by(2);
    let fault = if message.starts_with("unknown field") { "means nothing here" } else { "is not a choice" };
    let Some(word) = words.next().filter(|_| message.starts_with("unknown ")) else {
        return message.trim_end().to_owned();
    };
    let known: Vec<&str> = words.collect();
    let meant = did_you_mean(word, known.iter().copied());
    let joint = if meant.is_empty() { "; there are" } else { " There are" };
    format!("`{word}` {fault}{meant}{joint} `{}`", known.join("`, `"))
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;
    use crate::registry;

    #[test]
    fn similar_words_are_suggested() {
        let stages = || registry::all().map(|entry| entry.name);
        for (word, meant) in [
            ("segmenter", Some("command-segmenter")),
            ("comand-segmenter", Some("command-segmenter")),
            ("record_sizer", Some("record-sizer")),
            ("Pruner", Some("pruner")),
            ("prune", Some("pruner")),
            ("captures", Some("capture")),
            ("decompose", Some("decomposer")),
            ("wireshark", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, stages()), meant, "{word}");
        }
        assert_eq!(nearest("stages", ["pipeline", "stage"]), Some("stage"));
    }

    #[test]
    fn unknown_options_and_values_list_the_alternatives() {
        let segmenter = registry::find("command-segmenter").unwrap();
        let fault = |key: &str, value: &str| segmenter.set(&mut Table::new(), key, value.into(), None).unwrap_err();
        assert!(
            fault("gapp", "1s").starts_with("command-segmenter.gapp: `gapp` means nothing here; did you mean `gap`?")
        );
        assert!(
            fault("colour", "red").contains("means nothing here; there are `algorithm`, `"),
            "{}",
            fault("colour", "red")
        );
        assert!(
            fault("algorithm", "adaptiv")
                .contains("`adaptiv` is not a choice; did you mean `adaptive`? There are `gap`")
        );
        assert!(fault("gap", "x").starts_with("command-segmenter.gap: "));
    }
}
