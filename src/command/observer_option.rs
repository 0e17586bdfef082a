//! Who watches: an observer of records, or one of a tunnel with them.

use clap::Args;
use sizeleak_audit::tunnel::{Tunnel, TunnelKind};
use sizeleak_model::Model;

/// What is observed.
#[derive(Debug, Args)]
pub(super) struct ObserverOption {
    /// What who sees the packets of a tunnel learns: wireguard, esp-gcm, esp-cbc, or a policy by which it pads packets
    ///
    /// Such as multiple:128. The observer counts the packets that are sent at once, and adds up their bytes.
    #[arg(long, value_name = "NAME")]
    tunnel: Option<TunnelKind>,
}

impl ObserverOption {
    /// The tunnel, if that is what is observed.
    pub(super) fn tunnel(&self, model: &Model) -> Option<Tunnel> {
        self.tunnel.clone().map(|kind| Tunnel::new(kind, model))
    }
}
