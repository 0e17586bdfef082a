//! Whose sizes are kept, what becomes of other packets, and why a capture cannot be stripped.

use std::io;

use sizeleak_platform::runtime::{ConfigureError, StageError};
use thiserror::Error;

/// What becomes of packets that are not from or to the gateway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OtherPackets {
    /// All their payload becomes zero.
    #[default]
    Zeroed,
    /// They are left out.
    Dropped,
}

/// What becomes of DNS messages of the gateway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DnsMessages {
    /// They become zero like any payload.
    #[default]
    Zeroed,
    /// They stay, so that services can still be selected by name.
    Kept,
}

/// Whose sizes are kept, and what becomes of other packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StripOptions {
    /// The addresses and networks of the gateways, as `flow-filter` reads them.
    pub gateway: Vec<String>,
    /// The tunnels to open, as `flow-filter` reads them; all if there are none.
    pub tunnel: Vec<String>,
    pub others: OtherPackets,
    pub dns: DnsMessages,
}

#[derive(Debug, Error)]
pub enum StripError {
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// A stage that looks for records failed: no packet is the gateway's, for example.
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error("the capture cannot be written")]
    Write(#[from] io::Error),
}
