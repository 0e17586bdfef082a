//! The options of `decomposer`: its flags and its keys in `pipeline.toml`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_model::Model;
use sizeleak_runtime::{ConfigureError, Node, Runnable, StageOptions};

use crate::Decomposer;

/// Which model to use, what of it, and how many candidates to list.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// List this many candidates at most, and fewer where a frame would be too large; their number is exact all the same
    #[arg(long, value_name = "N", default_value_t = Options::default().limit, value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub limit: u32,

    /// How probable actions are before a command's size is seen
    #[arg(long, value_enum, default_value_t = Options::default().prior)]
    pub prior: Prior,

    /// Let a command have any number of any action, whatever devices the model's inventory has; the pruner has the same
    /// option
    #[arg(long)]
    pub free: bool,
}

/// What is taken to be known of actions before a command's size is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prior {
    /// What the model learned of habits: how many actions commands have, and how often each
    Learned,
    /// Nothing: every multiset of actions is as likely as any other
    Flat,
}

impl Default for Options {
    fn default() -> Self {
        // The paper's gateway has fewer than 1,000 candidates for any one sum; a full list of its takes 1.5 MB in a frame.
        Self { model: None, limit: 10_000, prior: Prior::Learned, free: false }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "decomposer";
    const ABOUT: &'static str = "The actions that add up to a command's size";
    const EXAMPLES: &'static [&'static str] = &[
        "epsilon-corrector --model model.toml < commands.frames | decomposer --model model.toml --limit 100 | sizeleak frames",
    ];

    fn resolve_paths(&mut self, folder: &Path) {
        self.model = self.model.take().map(|model| folder.join(model));
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        let Some(path) = &self.model else {
            return Err(ConfigureError::Usage("`--model FILE` is missing: `sizeleak learn` makes one".into()));
        };
        if self.limit == 0 {
            return Err(ConfigureError::Usage("`limit` is 0: it must be 1 at least".into()));
        }
        let mut model = Model::read(path).map_err(|error| ConfigureError::Input(error.to_string()))?;
        if self.prior == Prior::Flat {
            model.prior = None;
        }
        if self.free {
            model.inventory = None;
        }
        let decomposer = Decomposer::new(model, self.limit as usize)
            .map_err(|error| ConfigureError::Input(format!("{}: {error}", path.display())))?;
        Ok(Box::new(Node::new(decomposer)))
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
        assert_eq!(fault(&Options { limit: 0, ..missing }).0, 2);
        let newer = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&newer, "schema = 999").unwrap();
        let (code, message) = fault(&Options { model: Some(newer.path().into()), ..Options::default() });
        let name = newer.path().display().to_string();
        assert!(code == 1 && message.contains(&name) && message.contains("999"), "{message}");
    }

    #[test]
    fn keys_are_those_of_the_pipeline_file() {
        let mut options: Options = toml::from_str("model = \"m.toml\"\nlimit = 5").unwrap();
        options.resolve_paths(Path::new("there"));
        assert_eq!(options, Options { model: Some("there/m.toml".into()), limit: 5, ..Options::default() });
        let options: Options = toml::from_str("prior = \"flat\"\nfree = true").unwrap();
        assert_eq!((options.prior, options.free), (Prior::Flat, true));
        assert!(toml::from_str::<Options>("prior = \"best\"").is_err());
        assert_eq!(toml::from_str::<Options>("").unwrap(), Options::default());
        assert!(toml::from_str::<Options>("limits = 5").is_err());
    }
}
