//! `flow`: the two ends of a gateway's connection, once before its first use.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::address;

/// A connection of a gateway, named once before the first segment that refers to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The flow's identifier: the same for the same five-tuple in the same tunnel in any run.
    pub flow: u64,
    #[serde(with = "address")]
    pub gateway: IpAddr,
    /// The gateway's port; streams of older programs lack it, and ESP has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_port: Option<u16>,
    /// The other end, as `ip:port`.
    #[serde(with = "address")]
    pub service: SocketAddr,
    pub transport: Transport,
    /// The tunnel that the connection was seen in; `None` outside tunnels, and in one that the user has named. Old
    /// streams lack it.
    #[serde(default)]
    pub encapsulation: Option<String>,
    /// Whether the filter was asked for several gateways, so that this one need not be that of a model of another address.
    /// It is left out where it is false, as in old streams.
    #[serde(default, skip_serializing_if = "is_false")]
    pub among_several: bool,
}

impl Flow {
    /// A flow outside tunnels between these ends, of which nothing else is known.
    pub fn new(flow: u64, gateway: IpAddr, service: SocketAddr, transport: Transport) -> Self {
        let (gateway_port, encapsulation, among_several) = (None, None, false);
        Self { flow, gateway, gateway_port, service, transport, encapsulation, among_several }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "it is called by reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Tcp,
    Udp,
    /// ESP of IPsec, directly over IP: its port is 0.
    Esp,
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Esp => "esp",
        }
    }
}
