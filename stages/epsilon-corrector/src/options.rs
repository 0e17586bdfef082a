//! The options of `epsilon-corrector`: its flags and its keys in `pipeline.toml`.

use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_model::{Model, Smoothing};
use sizeleak_runtime::{ConfigureError, Node, Runnable, StageOptions};

use crate::EpsilonCorrector;

/// Which model to use, and how many of its neighbours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// How many labelled commands nearest in size to ask for ε; 1 takes the nearest at its word, as the paper
    /// does [default: the model's]
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub k: Option<u32>,
}

impl StageOptions for Options {
    const NAME: &'static str = "epsilon-corrector";
    const ABOUT: &'static str = "The variation of a command's size, from the labelled commands nearest in size";
    const EXAMPLES: &'static [&'static str] =
        &["epsilon-corrector --model model.toml < commands.frames | sizeleak frames --kind correction"];

    fn resolve_paths(&mut self, folder: &Path) {
        self.model = self.model.take().map(|model| folder.join(model));
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        let Some(path) = &self.model else {
            return Err(ConfigureError::Usage("`--model FILE` is missing: `sizeleak learn` makes one".into()));
        };
        if self.k == Some(0) {
            return Err(ConfigureError::Usage("`k` is 0: it must be 1 at least".into()));
        }
        let model = Model::read(path).map_err(|error| ConfigureError::Input(error.to_string()))?;
        let smoothing = match self.k {
            None => model.smoothing,
            Some(1) => Smoothing::NEAREST,
            Some(k) => Smoothing { k: k as usize, ..model.smoothing },
        };
        Ok(Box::new(Node::new(EpsilonCorrector::new(model, smoothing))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(options: &Options) -> (u8, String) {
        let error = options.build().map(|_| "a stage").unwrap_err();
        (error.exit_code(), error.to_string())
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(fault(&Options::default()).0, 2);
        let missing = Options { model: Some("no-such-folder/model.toml".into()), k: None };
        let (code, message) = fault(&missing);
        assert!(code == 1 && message.contains("no-such-folder/model.toml"), "{message}");
        assert_eq!(fault(&Options { k: Some(0), ..missing }).0, 2);
        let newer = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&newer, "schema = 999").unwrap();
        let (code, message) = fault(&Options { model: Some(newer.path().into()), k: None });
        let name = newer.path().display().to_string();
        assert!(code == 1 && message.contains(&name) && message.contains("999"), "{message}");
    }

    #[test]
    fn keys_are_those_of_the_pipeline_file() {
        let mut options: Options = toml::from_str("model = \"m.toml\"\nk = 5").unwrap();
        options.resolve_paths(Path::new("there"));
        assert_eq!(options, Options { model: Some("there/m.toml".into()), k: Some(5) });
        assert_eq!(toml::from_str::<Options>("").unwrap(), Options::default());
        assert!(toml::from_str::<Options>("K = 5").is_err());
    }
}
