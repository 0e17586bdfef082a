//! The options of `decomposer`: its flags and its keys in `pipeline.toml`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use sizeleak_signature::Model;
use sizeleak_stage::{ConfigureError, Node, Runnable, StageOptions};

use crate::Decomposer;

/// Which model to use, and how many candidates to list.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// List this many candidates at most; their number is exact all the same
    #[arg(long, value_name = "N", default_value_t = Options::default().limit, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub limit: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { model: None, limit: 10_000 }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "decomposer";
    const ABOUT: &'static str = "The actions that add up to a command's size";

    fn resolve_paths(&mut self, folder: &Path) {
        self.model = self.model.take().map(|model| folder.join(model));
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        let Some(path) = &self.model else {
            return Err(ConfigureError::Usage("`--model FILE` is missing: `sizeleak learn` makes one".into()));
        };
        if !(1..=50_000).contains(&self.limit) {
            return Err(ConfigureError::Usage(format!("`limit` is {}: it must be 1 to 50000", self.limit)));
        }
        let model = Model::read(path).map_err(|error| ConfigureError::Input(error.to_string()))?;
        let decomposer = Decomposer::new(model, self.limit as usize)
            .map_err(|error| ConfigureError::Input(format!("{}: {error}", path.display())))?;
        Ok(Box::new(Node::new(decomposer)))
    }
}
