//! The options of `pruner`: its flags and its keys in `pipeline.toml`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use sizeleak_signature::Model;
use sizeleak_stage::{ConfigureError, Node, Runnable, StageOptions};

use crate::Pruner;

/// Which model to use, and how to prune by it.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
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
}

/// What is kept of a command's candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Those that are likely given the replies, most probable first
    Learned,
    /// Those with exactly as many actions as the replies show
    Paper,
    /// All
    None,
}

impl Default for Options {
    fn default() -> Self {
        Self { model: None, mode: Mode::Learned, keep: 0.999 }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "pruner";
    const ABOUT: &'static str = "The decompositions that the traffic after a command does not contradict";

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
        let model = Model::read(path).map_err(|error| ConfigureError::Input(error.to_string()))?;
        let pruner = Pruner::new(&model, self.mode, self.keep)
            .map_err(|error| ConfigureError::Input(format!("{}: {error}", path.display())))?;
        Ok(Box::new(Node::new(pruner)))
    }
}
