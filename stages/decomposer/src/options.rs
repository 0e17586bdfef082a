//! The options of `decomposer`: its flags and its keys in `pipeline.toml`.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_flow_models::build_per_section;
use sizeleak_inference::space::PriorName;
use sizeleak_platform::runtime::{ConfigureError, Runnable, StageOptions};

use crate::Decomposer;

/// Which model and prior to use, and how many candidates to list.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The model of the gateway, made by `sizeleak learn`; several files for several services or gateways
    #[arg(long, value_name = "FILE")]
    #[serde(with = "sizeleak_flow_models::model_files", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<sizeleak_flow_models::model_files::OneOrSeveral>")]
    pub model: Vec<PathBuf>,

    /// List at most this many candidates, and fewer if a frame would be too large; their number is exact in any case
    #[arg(
        long,
        value_name = "N",
        default_value_t = Options::default().limit,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    #[schemars(range(min = 1))]
    pub limit: u32,

    /// How probable actions are before a command's size is seen
    #[arg(long, value_enum, default_value_t = Options::default().prior)]
    pub prior: PriorName,

    /// Allow any number of any action in a command, whatever devices the model's inventory has; the pruner has the same
    /// option
    #[arg(long)]
    pub free: bool,
}

impl Default for Options {
    fn default() -> Self {
        // The paper's gateway has fewer than 1,000 candidates for any one sum. A list of this length takes 1.5 MB in a
        // frame.
        Self { model: Vec::new(), limit: 10_000, prior: PriorName::Recurring, free: false }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "decomposer";
    const ABOUT: &'static str = "The actions that add up to a command's size";
    const EXAMPLES: &'static [&'static str] =
        &["epsilon-corrector --model model.toml < commands.frames | decomposer --model model.toml --limit 100 \
         | sizeleak frames"];

    const PATHS: &'static [&'static str] = &["model"];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        if self.limit == 0 {
            return Err(ConfigureError::Usage("`limit` is 0: it must be at least 1".into()));
        }
        build_per_section(&self.model, |mut model| {
            model.inventory = model.inventory.filter(|_| !self.free);
            Decomposer::with_prior(model, self.limit as usize, self.prior)
        })
    }
}
