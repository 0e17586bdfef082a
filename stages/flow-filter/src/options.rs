//! The options of `flow-filter`: its flags and its keys in `pipeline.toml`.

use clap::Args;
use serde::{Deserialize, Serialize};
use sizeleak_stage::{ConfigureError, Node, Runnable, StageOptions};

use crate::FlowFilter;

/// Whose flows, and which of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The gateway's address or network; several may be given
    #[arg(long, value_name = "IP|CIDR", num_args = 1.., value_delimiter = ',')]
    pub gateway: Vec<String>,

    /// Only flows to this service: an address, a network, or a name as DNS answers in the capture resolve it
    #[arg(long, value_name = "IP|CIDR|NAME", num_args = 1.., value_delimiter = ',')]
    pub service: Vec<String>,

    /// Only flows to this port of the service
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub port: Vec<u16>,
}

impl StageOptions for Options {
    const NAME: &'static str = "flow-filter";
    const ABOUT: &'static str = "TCP segments of a gateway's flows, out of packets";

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        Ok(Box::new(Node::new(FlowFilter::new(self)?)))
    }
}
