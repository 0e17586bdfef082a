//! The options of `flow-filter`: its flags and its keys in `pipeline.toml`.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_runtime::{ConfigureError, Node, Runnable, StageOptions};

use crate::FlowFilter;

/// Whose flows, and which of them.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
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

    /// A gateway that is in no packet is a notice, not an error: for archives, where some captures miss it
    #[arg(long)]
    pub allow_absent: bool,

    /// Remember at most N flows; those idle for longest are forgotten, and announced again if seen
    #[arg(long, value_name = "N", default_value_t = Options::default().max_flows)]
    pub max_flows: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gateway: Vec::new(),
            service: Vec::new(),
            port: Vec::new(),
            allow_absent: false,
            // About 20 MB, a table that is growing included.
            max_flows: 100_000,
        }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "flow-filter";
    const ABOUT: &'static str = "TCP segments and UDP datagrams of a gateway's flows, out of packets";
    const EXAMPLES: &'static [&'static str] = &[
        "capture home.pcap | flow-filter --gateway 192.168.1.20 | sizeleak frames --kind flow",
        "capture home.pcap | flow-filter --gateway 192.168.1.0/24 --service hub.example --port 443 | record-sizer > records.frames",
    ];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        Ok(Box::new(Node::new(FlowFilter::new(self)?)))
    }
}
