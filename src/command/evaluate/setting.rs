//! A setting to look at, among others over the same captures.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;

use anyhow::anyhow;

use crate::command::Failure;

/// The word for the pipeline without any change.
const STANDARD: &str = "standard";

/// Which pipeline is looked at: what is changed of the usual one, or another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command) enum Setting {
    /// Options of stages, `stage.key=value` each; none of them leave all as it is.
    Options(Vec<String>),
    /// A pipeline file.
    Pipeline(PathBuf),
}

impl Default for Setting {
    /// Nothing is changed.
    fn default() -> Self {
        Self::Options(Vec::new())
    }
}

impl Setting {
    /// A failure that names the setting it comes from.
    pub(in crate::command) fn blame(&self, failure: &Failure) -> Failure {
        Failure::with_code(failure.exit_code(), anyhow!("with `{self}`: {failure}"))
    }
}

impl std::str::FromStr for Setting {
    type Err = String;

    /// Reads options with commas between them, the word `standard`, or the path of a pipeline file. A value may hold commas:
    /// what has no `=` of its own belongs to the option before.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == STANDARD {
            return Ok(Self::Options(Vec::new()));
        }
        let mut options: Vec<String> = Vec::new();
        for part in text.split(',') {
            match options.last_mut() {
                _ if part.contains('=') => options.push(part.to_owned()),
                Some(last) => last.extend([",", part]),
                None if text.is_empty() => return Err("it is empty: give options, or a pipeline file".to_owned()),
                None => return Ok(Self::Pipeline(PathBuf::from(text))),
            }
        }
        Ok(Self::Options(options))
    }
}

impl Display for Setting {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Options(options) if options.is_empty() => formatter.write_str(STANDARD),
            Self::Options(options) => formatter.write_str(&options.join(",")),
            Self::Pipeline(file) => write!(formatter, "{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_options_or_a_file() {
        let options = |options: &[&str]| Ok(Setting::Options(options.iter().map(|text| (*text).to_owned()).collect()));
        let setting = |text: &str| text.parse::<Setting>();
        assert_eq!(setting("pruner.mode=paper"), options(&["pruner.mode=paper"]));
        assert_eq!(setting("a.gap=1s,b.keep=0.9"), options(&["a.gap=1s", "b.keep=0.9"]));
        assert_eq!(
            setting("f.gateway=10.0.0.1,10.0.0.2,b.keep=1"),
            options(&["f.gateway=10.0.0.1,10.0.0.2", "b.keep=1"])
        );
        assert_eq!(setting("own/pipeline.toml"), Ok(Setting::Pipeline("own/pipeline.toml".into())));
        assert_eq!(
            (setting("standard"), setting("./standard")),
            (options(&[]), Ok(Setting::Pipeline("./standard".into())))
        );
        assert_eq!(setting("standard").unwrap().to_string(), "standard");
        assert!(setting("").is_err());
        assert_eq!(setting("a.gap=1s,b.keep=0.9").unwrap().to_string(), "a.gap=1s,b.keep=0.9");
    }
}
