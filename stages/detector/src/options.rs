//! The options of `detector`: its flags and its keys in `pipeline.toml`.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_habits::{Budget, Profile};
use sizeleak_platform::runtime::{ConfigureError, Node, Runnable, StageOptions};

use crate::Detector;

/// What is usual, and how many false alarms are allowed.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// What the home usually does, made by `sizeleak profile`; without one it is learned, and there is no alarm until then
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<PathBuf>,

    /// How many false alarms a home may have, such as 1/week, 1/month or 0.1/day
    #[arg(long, value_name = "ALARMS/TIME", default_value_t = Options::default().budget)]
    #[schemars(with = "String")]
    pub budget: Budget,
}

impl Default for Options {
    fn default() -> Self {
        Self { profile: None, budget: Budget::WEEKLY }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "detector";
    const ABOUT: &'static str = "What is not as usual in a home, within a budget of false alarms (optional)";
    const EXAMPLES: &'static [&'static str] =
        &["sizeleak run home.pcap --gateway 192.168.1.20 --model model.toml --format frames | detector --profile \
         home.profile.toml | sizeleak frames --kind deviation"];

    const PATHS: &'static [&'static str] = &["profile"];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        let profile = match &self.profile {
            Some(path) => Profile::read(path).map_err(|error| ConfigureError::Input(error.to_string()))?,
            None => Profile::new("UTC").map_err(|error| ConfigureError::Usage(error.to_string()))?,
        };
        Ok(Box::new(Node::new(Detector::new(profile, self.budget))))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_profile_that_cannot_be_read_is_an_error_and_none_is_not() {
        let exit_code = |options: Options| options.build().map(|_| "a stage").unwrap_err().exit_code();
        assert_eq!(exit_code(Options { profile: Some("no-such-folder/p.toml".into()), ..Options::default() }), 1);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.toml");
        fs::write(&path, "schema = 7").unwrap();
        assert_eq!(exit_code(Options { profile: Some(path), ..Options::default() }), 1);
        assert!(Options::default().build().is_ok());
    }

    #[test]
    fn keys_are_those_of_the_pipeline_file() {
        let options: Options = toml::from_str("profile = \"p.toml\"\nbudget = \"1/month\"").unwrap();
        assert_eq!(options, Options { profile: Some("p.toml".into()), budget: "1/month".parse().unwrap() });
        assert!(toml::from_str::<Options>("budget = \"often\"").is_err());
    }
}
