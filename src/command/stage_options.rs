//! The options of stages that several subcommands set over a pipeline file.

use std::net::IpAddr;

use clap::Args;
use sizeleak_pipeline::{ConfigError, Pipeline};

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
    /// The addresses of gateways that are named; networks are none.
    pub(super) fn gateways(&self) -> Vec<IpAddr> {
        self.gateway.iter().filter_map(|gateway| gateway.parse().ok()).collect()
    }

    /// Sets the gateway of a pipeline.
    pub(super) fn set_gateway(&self, pipeline: &mut Pipeline) -> Result<(), ConfigError> {
        if self.gateway.is_empty() {
            return Ok(());
        }
        pipeline.set("flow-filter", "gateway", self.gateway.clone())
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
