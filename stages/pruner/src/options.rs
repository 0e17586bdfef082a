//! The options of `pruner`: its flags and its keys in `pipeline.toml`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_model::Model;
use sizeleak_runtime::{ConfigureError, Node, Runnable, StageOptions};

use crate::Pruner;

/// Which model to use, and how to prune by it.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// What to keep
    #[arg(long, value_enum, default_value_t = Options::default().mode)]
    pub mode: Mode,

    /// Keep the fewest candidates that hold the truth with this probability (mode `learned`)
    #[arg(long, value_name = "P", default_value_t = Options::default().keep)]
    pub keep: f64,

    /// Let a command have any number of any action, whatever devices the model's inventory has; the decomposer has the
    /// same option
    #[arg(long)]
    pub free: bool,
}

/// What is kept of a command's candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The fewest that hold the truth with probability `keep`, given the replies; most probable first
    Learned,
    /// Those with as many actions as the replies show, as the paper does
    Paper,
    /// All, as they came
    None,
}

impl Default for Options {
    fn default() -> Self {
        Self { model: None, mode: Mode::Learned, keep: 0.999, free: false }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "pruner";
    const ABOUT: &'static str = "The decompositions that the traffic after a command does not contradict";
    const EXAMPLES: &'static [&'static str] = &[
        "decomposer --model model.toml < corrections.frames | pruner --model model.toml --keep 0.99 | sizeleak frames",
    ];

    fn resolve_paths(&mut self, folder: &Path) {
        self.model = self.model.take().map(|model| folder.join(model));
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        let Some(path) = &self.model else {
            return Err(ConfigureError::Usage("`--model FILE` is missing: `sizeleak learn` makes one".into()));
        };
        if !(self.keep > 0.0 && self.keep <= 1.0) {
            return Err(ConfigureError::Usage(format!("`keep` is {}: it must be above 0 and at most 1", self.keep)));
        }
        let mut model = Model::read(path).map_err(|error| ConfigureError::Input(error.to_string()))?;
        if self.free {
            model.inventory = None;
        }
        let pruner = Pruner::new(&model, self.mode, self.keep)
            .map_err(|error| ConfigureError::Input(format!("{}: {error}", path.display())))?;
        Ok(Box::new(Node::new(pruner)))
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
        let missing = Options { model: Some("no-such-folder/model.toml".into()), ..Options::default() };
        let (code, message) = fault(&missing);
        assert!(code == 1 && message.contains("no-such-folder/model.toml"), "{message}");
        for keep in [0.0, -1.0, 1.1, f64::NAN] {
            assert_eq!(fault(&Options { keep, ..missing.clone() }).0, 2);
        }
        let newer = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&newer, "schema = 999").unwrap();
        let (code, message) = fault(&Options { model: Some(newer.path().into()), ..Options::default() });
        let name = newer.path().display().to_string();
        assert!(code == 1 && message.contains(&name) && message.contains("999"), "{message}");
    }

    #[test]
    fn keys_are_those_of_the_pipeline_file() {
        let mut options: Options =
            toml::from_str("model = \"m.toml\"\nmode = \"paper\"\nkeep = 0.5\nfree = true").unwrap();
        options.resolve_paths(Path::new("there"));
        assert_eq!(options, Options { model: Some("there/m.toml".into()), mode: Mode::Paper, keep: 0.5, free: true });
        assert_eq!(toml::from_str::<Options>("").unwrap(), Options::default());
        assert!(toml::from_str::<Options>("mode = \"best\"").is_err());
    }
}
