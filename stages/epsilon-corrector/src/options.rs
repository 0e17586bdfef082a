//! The options of `epsilon-corrector`: its flags and its keys in `pipeline.toml`.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_flow_models::build_per_section;
use sizeleak_model::Smoothing;
use sizeleak_platform::runtime::{ConfigureError, Runnable, StageOptions};

use crate::EpsilonCorrector;

/// Which model to use, and how many of its labelled commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The model of the gateway, made by `sizeleak learn`; several files for several services or gateways
    #[arg(long, value_name = "FILE")]
    #[serde(with = "sizeleak_flow_models::model_files", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<sizeleak_flow_models::model_files::OneOrSeveral>")]
    pub model: Vec<PathBuf>,

    /// Estimate ε from this many labelled commands nearest in size; 1 uses the nearest one without smoothing, as in the
    /// paper [default: the model's]
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub k: Option<u32>,

    /// Take all messages to be as long as those that the model was learned from, and do not follow a gateway or a
    /// service whose messages become longer or shorter
    #[arg(long)]
    pub fixed: bool,
}

impl StageOptions for Options {
    const NAME: &'static str = "epsilon-corrector";
    const ABOUT: &'static str = "The variation of a command's size, from the labelled commands nearest in size";
    const EXAMPLES: &'static [&'static str] =
        &["epsilon-corrector --model model.toml < commands.frames | sizeleak frames --kind correction"];

    const PATHS: &'static [&'static str] = &["model"];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        if self.k == Some(0) {
            return Err(ConfigureError::Usage("`k` is 0: it must be at least 1".into()));
        }
        build_per_section(&self.model, |model| {
            let smoothing = match self.k {
                None => model.smoothing,
                Some(1) => Smoothing::NEAREST,
                Some(k) => Smoothing { k: k as usize, ..model.smoothing },
            };
            let corrector = EpsilonCorrector::new(model, smoothing);
            Ok::<_, Infallible>(if self.fixed { corrector.fixed() } else { corrector })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_model_and_no_neighbours_are_usage_errors() {
        let exit_code = |options: Options| options.build().map(|_| "a stage").unwrap_err().exit_code();
        assert_eq!(exit_code(Options::default()), 2);
        let model = vec!["no-such-folder/model.toml".into()];
        assert_eq!(exit_code(Options { model: model.clone(), k: Some(0), fixed: false }), 2);
        assert_eq!(exit_code(Options { model, ..Options::default() }), 1);
    }

    #[test]
    fn keys_are_those_of_the_pipeline_file() {
        let options: Options = toml::from_str("model = \"m.toml\"\nk = 5\nfixed = true").unwrap();
        assert_eq!(options, Options { model: vec!["m.toml".into()], k: Some(5), fixed: true });
        assert_eq!(toml::from_str::<Options>("").unwrap(), Options::default());
        assert!(toml::from_str::<Options>("K = 5").is_err());
    }
}
