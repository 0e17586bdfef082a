//! Which ends of a packet are gateways, and what a service may be named by.

use std::net::IpAddr;

use sizeleak_packet::AddressSet;
use sizeleak_runtime::ConfigureError;

/// Which ends of a packet are gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatewayEnds {
    Source,
    Destination,
    Both,
}

impl GatewayEnds {
    /// Which ends of a packet are among the gateways; `None` where neither is.
    pub(crate) fn among(gateways: &AddressSet, source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (gateways.contains(source), gateways.contains(destination)) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Source),
            (false, true) => Some(Self::Destination),
            (false, false) => None,
        }
    }
}

/// What `--service` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceRule {
    /// Addresses.
    Networks(AddressSet),
    /// A host name, in lower case.
    Name(String),
}

impl ServiceRule {
    /// Reads an address, a network or a host name.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] where it is none of them.
    pub fn parse(text: &str) -> Result<Self, ConfigureError> {
        if let Some(networks) = AddressSet::parse_one(text) {
            return Ok(Self::Networks(networks));
        }
        let label =
            |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let name = text.trim_end_matches('.').to_ascii_lowercase();
        // A last label of digits alone is a mistyped address, not a name.
        let last_is_word = name.rsplit('.').next().is_some_and(|last| !last.bytes().all(|b| b.is_ascii_digit()));
        if name.split('.').all(label) && last_is_word {
            Ok(Self::Name(name))
        } else {
            Err(ConfigureError::Usage(format!("`{text}` is no IP address, no network and no host name")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services() {
        assert_eq!(ServiceRule::parse("Hub.Example.").unwrap(), ServiceRule::Name("hub.example".into()));
        let networks = AddressSet::parse_one("203.0.113.0/24").unwrap();
        assert_eq!(ServiceRule::parse("203.0.113.0/24").unwrap(), ServiceRule::Networks(networks));
        for wrong in ["", "a b", "203.0.113.400", "..", "203.0.113.0/99"] {
            assert!(ServiceRule::parse(wrong).is_err(), "{wrong}");
        }
    }
}
