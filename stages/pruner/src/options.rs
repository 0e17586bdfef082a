//! The options of `pruner`: its flags and its keys in `pipeline.toml`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_flow_models::build_per_section;
use sizeleak_habits::{HabitPrior, Profile};
use sizeleak_model::InventoryError;
use sizeleak_platform::runtime::{ConfigureError, Runnable, StageOptions};

use crate::{Pruner, PruningMode};

/// Which model to use, and what to keep.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The model of the gateway, made by `sizeleak learn`; several files for several services or gateways
    #[arg(long, value_name = "FILE")]
    #[serde(with = "sizeleak_flow_models::model_files", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<sizeleak_flow_models::model_files::OneOrSeveral>")]
    pub model: Vec<PathBuf>,

    /// Which candidates to keep
    #[arg(long, value_enum, default_value_t = Options::default().mode)]
    pub mode: PruningMode,

    /// Keep the fewest candidates that hold the truth with this probability (mode `learned`)
    #[arg(long, value_name = "P", default_value_t = Options::default().keep)]
    pub keep: f64,

    /// Allow any number of any action in a command, whatever devices the model's inventory has; the decomposer has the
    /// same option
    #[arg(long)]
    pub free: bool,

    /// What the home usually does, made by `sizeleak profile`: a prior beside the model's (mode `learned`)
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { model: Vec::new(), mode: PruningMode::Learned, keep: 0.999, free: false, profile: None }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "pruner";
    const ABOUT: &'static str = "The decompositions that the traffic after a command does not contradict";
    const EXAMPLES: &'static [&'static str] = &[
        "decomposer --model model.toml < corrections.frames | pruner --model model.toml --keep 0.99 | sizeleak frames",
    ];

    const PATHS: &'static [&'static str] = &["model", "profile"];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        if !(self.keep > 0.0 && self.keep <= 1.0) {
            return Err(ConfigureError::Usage(format!("`keep` is {}: it must be above 0 and at most 1", self.keep)));
        }
        if self.profile.is_some() && self.mode != PruningMode::Learned {
            return Err(ConfigureError::Usage(
                "`profile` is used by mode `learned` alone: leave one of them out".into(),
            ));
        }
        let profile = self.profile.as_deref().map(Profile::read).transpose();
        let profile = profile.map_err(|error| ConfigureError::Input(error.to_string()))?;
        let habits = profile.map(|profile| Arc::new(Mutex::new(HabitPrior::new(profile))));
        build_per_section(&self.model, |mut model| {
            model.inventory = model.inventory.filter(|_| !self.free);
            let pruner = Pruner::new(&model, self.mode, self.keep)?;
            Ok::<_, InventoryError>(habits.iter().fold(pruner, |pruner, habits| pruner.with_habits(Arc::clone(habits))))
        })
    }
}
