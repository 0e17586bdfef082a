//! The options of stages that several subcommands set over a pipeline file.

use anyhow::anyhow;
use clap::Args;
use sizeleak_pipeline::{ConfigError, Pipeline};

use super::failure::Failure;
use super::help::{INPUT, STAGES};

/// Options that take precedence over the pipeline file.
#[derive(Debug, Args)]
pub(super) struct StageOptionArguments {
    /// The gateway's address or network; can be repeated
    #[arg(long, value_name = "IP|CIDR", value_delimiter = ',', help_heading = INPUT)]
    gateway: Vec<String>,

    /// Set an option of a stage, as in pruner.keep=1
    ///
    /// `STAGE --help` lists them. It takes precedence over the pipeline file. Can be repeated.
    #[arg(long, value_name = "STAGE.KEY=VALUE", help_heading = STAGES)]
    set: Vec<String>,
}

impl StageOptionArguments {
    /// Sets the gateway of a pipeline.
    pub(super) fn set_gateway(&self, pipeline: &mut Pipeline) -> Result<(), ConfigError> {
        if self.gateway.is_empty() {
            return Ok(());
        }
        pipeline.set("flow-filter", "gateway", self.gateway.clone())
    }

    /// Checks that captures are read for a gateway that is known.
    pub(super) fn check_gateway(&self, pipeline: &Pipeline) -> Result<(), Failure> {
        if self.gateway.is_empty() && pipeline.has("flow-filter") && pipeline.option("flow-filter", "gateway").is_none()
        {
            return Err(Failure::usage(anyhow!(
                "`--gateway IP|CIDR` is missing: name the gateway of these captures; `sizeleak survey CAPTURE` says which \
                 addresses look like gateways"
            )));
        }
        Ok(())
    }

    /// Whether a model is among the options that are set.
    pub(super) fn name_a_model(&self) -> bool {
        let mut keys = self.set.iter().filter_map(|option| option.split_once('=')?.0.split_once('.'));
        keys.any(|(_, key)| key.trim() == "model")
    }

    /// Sets all other options of a pipeline.
    pub(super) fn set_others(&self, pipeline: &mut Pipeline) -> Result<(), ConfigError> {
        self.set.iter().try_for_each(|option| pipeline.set_text(option))
    }
}
