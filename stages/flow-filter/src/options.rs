//! The options of `flow-filter`: its flags and its keys in `pipeline.toml`.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose flows are kept, and which of them.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The gateway's address or network; several may be listed
    #[arg(long, value_name = "IP|CIDR", num_args = 1.., value_delimiter = ',')]
    pub gateway: Vec<String>,

    /// Only flows to this service: an address, a network, or a host name as DNS responses in the capture resolve it
    #[arg(long, value_name = "IP|CIDR|NAME", num_args = 1.., value_delimiter = ',')]
    pub service: Vec<String>,

    /// Believe the DNS answers of this resolver
    ///
    /// Without it, only answers to queries of the gateway that are in the capture tell the addresses of a service's
    /// name.
    #[arg(long, value_name = "IP|CIDR", num_args = 1.., value_delimiter = ',')]
    pub resolver: Vec<String>,

    /// Only flows to this port of the service
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub port: Vec<u16>,

    /// Open only this tunnel, and treat what is inside as if it came without one
    ///
    /// An end (198.51.100.1, 198.51.100.0/24) or both (198.51.100.1-198.51.100.2), also behind a kind and its number
    /// (`vxlan 7 198.51.100.1`, `gre`); `none` opens no tunnel. By default all are opened, and a connection in a tunnel
    /// is a flow of its own, apart from the same addresses and ports elsewhere. VLAN tags never separate flows.
    #[arg(long, value_name = "TUNNEL", num_args = 1.., value_delimiter = ',')]
    pub tunnel: Vec<String>,

    /// Accept captures without the gateway: report its absence as a notice, not as an error
    #[arg(long)]
    pub allow_absent: bool,

    /// Remember at most N flows; the longest idle are evicted, and announced again if they come back
    #[arg(long, value_name = "N", default_value_t = Options::default().max_flows)]
    pub max_flows: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gateway: Vec::new(),
            service: Vec::new(),
            resolver: Vec::new(),
            port: Vec::new(),
            tunnel: Vec::new(),
            allow_absent: false,
            // About 20 MB, including a table that is growing.
            max_flows: 100_000,
        }
    }
}
