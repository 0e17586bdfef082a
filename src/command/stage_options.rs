//! The options of stages that several subcommands set over a pipeline file.

use clap::Args;
use sizeleak_pipeline::{ConfigError, Pipeline};

/// Options that take precedence over the pipeline file.
#[derive(Debug, Args)]
pub(super) struct StageOptionArguments {
    /// The gateway's address or network; can be repeated
    #[arg(long, value_name = "IP|CIDR", num_args = 1.., value_delimiter = ',')]
    gateway: Vec<String>,

    /// Set any option of a stage, such as `command-segmenter.gap=80ms`; takes precedence over the pipeline file
    #[arg(long, value_name = "STAGE.KEY=VALUE")]
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

    /// Sets all other options of a pipeline.
    pub(super) fn set_others(&self, pipeline: &mut Pipeline) -> Result<(), ConfigError> {
        self.set.iter().try_for_each(|option| pipeline.set_text(option))
    }
}
