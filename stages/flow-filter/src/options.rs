//! The options of `flow-filter`: its flags and its keys in `pipeline.toml`; and which tunnels they open.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_packet::{AddressSet, Encapsulation, TunnelKind};
use sizeleak_platform::runtime::ConfigureError;

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

/// What `--tunnel` says instead of a tunnel to close all of them.
const NONE: &str = "none";

#[derive(Debug)]
pub(crate) enum TunnelSelection {
    /// All. Anybody may send packets through some tunnel, so what is inside one never meets what comes by another way.
    All,
    /// Those that the user knows. What is inside is as if it came without a tunnel.
    Named(Vec<TunnelPattern>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TunnelTreatment {
    /// Their flows are of this tunnel alone.
    Apart,
    /// Their flows are those that packets outside belong to.
    Joined,
    Closed,
}

/// Tunnels that the user has named. What is not given does not matter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TunnelPattern {
    kind: Option<TunnelKind>,
    id: Option<u32>,
    /// One of them at either end, or one at each end; any if empty.
    ends: Vec<AddressSet>,
}

impl TunnelSelection {
    /// Reads tunnels: `none`, an address or network at either end (`198.51.100.1`), both ends
    /// (`198.51.100.1-198.51.100.2`), each also behind a kind and a number (`vxlan 7 198.51.100.0/24`, `gre`).
    pub(crate) fn parse(texts: &[String]) -> Result<Self, ConfigureError> {
        if texts.is_empty() {
            return Ok(Self::All);
        }
        if texts.len() > 1 && texts.iter().any(|text| text == NONE) {
            return Err(ConfigureError::Usage("`tunnel` names `none` and other tunnels".into()));
        }
        let named = texts.iter().filter(|text| *text != NONE);
        let patterns = named.map(|text| {
            TunnelPattern::parse(text).ok_or_else(|| {
                ConfigureError::Usage(format!(
                    "`{text}` is not a tunnel: wanted is `none`, an end (198.51.100.1, 198.51.100.0/24), both ends \
                     (198.51.100.1-198.51.100.2), or these behind a kind and its number (`vxlan 7 198.51.100.1`)"
                ))
            })
        });
        Ok(Self::Named(patterns.collect::<Result<_, _>>()?))
    }

    pub(crate) fn treatment(&self, tunnel: &Encapsulation) -> TunnelTreatment {
        match self {
            Self::All => TunnelTreatment::Apart,
            Self::Named(patterns) if patterns.iter().any(|pattern| pattern.matches(tunnel)) => TunnelTreatment::Joined,
            Self::Named(_) => TunnelTreatment::Closed,
        }
    }
}

impl TunnelPattern {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().peekable();
        let kind = words.peek().and_then(|word| TunnelKind::ALL.into_iter().find(|kind| kind.name() == *word));
        if kind.is_some() {
            words.next();
        }
        let id = words.peek().and_then(|word| word.parse().ok()).filter(|_| kind.is_some());
        if id.is_some() {
            words.next();
        }
        let ends = words.next().map(|ends| ends.splitn(2, '-').map(|end| AddressSet::parse([end])).collect());
        let ends: Vec<AddressSet> = ends.unwrap_or(Ok(Vec::new())).ok()?;
        (words.next().is_none() && (kind.is_some() || !ends.is_empty())).then_some(Self { kind, id, ends })
    }

    fn matches(&self, tunnel: &Encapsulation) -> bool {
        let [lesser, greater] = tunnel.ends;
        let are_the_ends = match &self.ends[..] {
            [either] => either.contains(lesser) || either.contains(greater),
            [one, other] => {
                one.contains(lesser) && other.contains(greater) || one.contains(greater) && other.contains(lesser)
            }
            _ => true,
        };
        are_the_ends
            && self.kind.is_none_or(|kind| kind == tunnel.kind)
            && self.id.is_none_or(|id| Some(id) == tunnel.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(texts: &[&str]) -> Result<TunnelSelection, ConfigureError> {
        TunnelSelection::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_tunnel_is_named_by_its_ends_its_kind_and_its_number() {
        let ends = ["198.51.100.1".parse().unwrap(), "198.51.100.2".parse().unwrap()];
        let tunnel = Encapsulation { kind: TunnelKind::Vxlan, id: Some(7), ends };
        let text = tunnel.to_string();
        for (named, treatment) in [
            (&[][..], TunnelTreatment::Apart),
            (&["none"], TunnelTreatment::Closed),
            (&["198.51.100.2"], TunnelTreatment::Joined),
            (&["198.51.100.2-198.51.100.1"], TunnelTreatment::Joined),
            (&["198.51.100.0/24-10.0.0.0/8"], TunnelTreatment::Closed),
            (&["10.0.0.1", "198.51.100.0/24"], TunnelTreatment::Joined),
            (&["vxlan"], TunnelTreatment::Joined),
            (&["vxlan 8"], TunnelTreatment::Closed),
            (&["gre 198.51.100.2"], TunnelTreatment::Closed),
            (&[&text], TunnelTreatment::Joined),
        ] {
            assert_eq!(selection(named).unwrap().treatment(&tunnel), treatment, "{named:?}");
        }
    }

    #[test]
    fn text_that_names_no_tunnel_is_an_error() {
        for wrong in [&["none", "10.0.0.1"][..], &[""], &["7"], &["router"], &["10.0.0.1-"], &["ip 10.0.0.1 10.0.0.2"]]
        {
            assert!(selection(wrong).is_err(), "{wrong:?}");
        }
    }
}
