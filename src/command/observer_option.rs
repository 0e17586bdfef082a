//! Who watches: an observer of records, or one of a tunnel with them.

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use sizeleak_audit::tunnel::{Tunnel, TunnelKind};
use sizeleak_model::Model;

use super::failure::Failure;

/// What is observed.
#[derive(Debug, Args)]
pub(super) struct ObserverOption {
    /// Who watches: somebody who sees records, or the packets of a tunnel with them [default: record]
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true,
        value_name = "WHO"
    )]
    observer: Observed,

    /// The tunnel: wireguard, esp-gcm, esp-cbc, or a policy by which it pads packets, such as multiple:128 [default: wireguard]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    tunnel: Option<TunnelKind>,
}

/// Where the observer is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Observed {
    /// Sees records, each by itself
    #[default]
    Record,
    /// Sees the packets of a tunnel: how many are sent at once, and their bytes together
    Tunnel,
}

impl ObserverOption {
    /// The tunnel, if that is what is observed.
    pub(super) fn tunnel(&self, model: &Model) -> Result<Option<Tunnel>, Failure> {
        match (self.observer, &self.tunnel) {
            (Observed::Tunnel, kind) => {
                let kind = kind.clone().unwrap_or(TunnelKind::WireGuard);
                Ok(Some(Tunnel::new(kind, model)))
            }
            (Observed::Record, Some(_)) => Err(without_tunnel("--tunnel")),
            (Observed::Record, None) => Ok(None),
        }
    }
}

/// An option that says nothing without a tunnel.
pub(super) fn without_tunnel(option: &str) -> Failure {
    Failure::usage(anyhow!("`{option}` is about a tunnel: it needs `--observer tunnel`"))
}
