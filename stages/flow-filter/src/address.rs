//! Which addresses are meant, and the quick test that spares most packets a full parse.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use sizeleak_stage::ConfigureError;

use crate::tunnel::{VXLAN_PORT, may_be_tunnel};

/// A set of addresses and networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// Reads addresses (`192.168.1.20`) and networks (`10.0.0.0/8`, `2001:db8::/32`).
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] about the first that is neither.
    pub fn parse(texts: &[String]) -> Result<Self, ConfigureError> {
        let networks = texts.iter().map(|text| {
            network(text)
                .ok_or_else(|| ConfigureError::Usage(format!("`{text}` is no IP address and no network in CIDR form")))
        });
        Ok(Self(networks.collect::<Result<_, _>>()?))
    }

    /// Whether an address is in the set. An IPv4 address in IPv6 clothes is the IPv4 one.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Which ends of a packet are in the set; `None` where neither is.
    pub(crate) fn ends(&self, source: IpAddr, destination: IpAddr) -> Option<GatewayEnds> {
        match (self.contains(source), self.contains(destination)) {
            (true, true) => Some(GatewayEnds::Both),
            (true, false) => Some(GatewayEnds::Source),
            (false, true) => Some(GatewayEnds::Destination),
            (false, false) => None,
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Which ends of a packet are gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatewayEnds {
    Source,
    Destination,
    Both,
}

impl std::fmt::Display for Networks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |network: &IpNet| {
            if network.prefix_len() == network.max_prefix_len() {
                network.addr().to_string()
            } else {
                network.to_string()
            }
        };
        formatter.write_str(&self.0.iter().map(shown).collect::<Vec<_>>().join(", "))
    }
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())))
}

/// What `--service` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceRule {
    /// Addresses.
    Networks(Networks),
    /// A host name, in lower case.
    Name(String),
}

impl ServiceRule {
    /// Reads an address, a network or a host name.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] where it is none of them.
    pub fn parse(text: &str) -> Result<Self, ConfigureError> {
        if let Some(network) = network(text) {
            return Ok(Self::Networks(Networks(vec![network])));
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

const ETHERNET: u16 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DNS_PORT: u16 = 53;

/// The addresses of a packet of the plainest kind, Ethernet with IPv4 or IPv6 right behind it, where they alone tell
/// whether it matters. `None` for all others, which need a closer look: a tunnel, or a part of one, may have the
/// gateway's packet inside, and an answer of a name server to anyone tells where a service is.
pub(crate) fn plain_addresses(link_type: u16, data: &[u8]) -> Option<(IpAddr, IpAddr)> {
    if link_type != ETHERNET {
        return None;
    }
    match data.get(12..15)? {
        [0x08, 0x00, version] if version >> 4 == 4 => {
            let four = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(data.get(at..at + 4)?).ok()?));
            let protocol = *data.get(23)?;
            // Nearly all are TCP: they are spared the closer look.
            if protocol != TCP && !is_decided(protocol, plain_ports(data)) {
                return None;
            }
            Some((four(26)?.into(), four(30)?.into()))
        }
        [0x86, 0xdd, version] if version >> 4 == 6 => {
            let sixteen = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(data.get(at..at + 16)?).ok()?));
            let protocol = *data.get(20)?;
            if protocol != TCP && !is_decided(protocol, data.get(54..58)) {
                return None;
            }
            Some((sixteen(22)?.into(), sixteen(38)?.into()))
        }
        _ => None,
    }
}

/// The ports of a packet in IPv4 without options, where they would move, and in one piece, where they cannot be missing.
fn plain_ports(data: &[u8]) -> Option<&[u8]> {
    match data.get(14..22)? {
        [0x45, _, _, _, _, _, 0 | 0x40, 0] => data.get(34..38),
        _ => None,
    }
}

/// Whether a packet of this protocol, and over UDP with these ports, is nobody's but its ends'.
fn is_decided(protocol: u8, ports: Option<&[u8]>) -> bool {
    if protocol != UDP {
        return !may_be_tunnel(protocol);
    }
    let Some([source, source_low, destination, destination_low]) = ports else { return false };
    u16::from_be_bytes([*source, *source_low]) != DNS_PORT
        && u16::from_be_bytes([*destination, *destination_low]) != VXLAN_PORT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[&str]) -> Networks {
        Networks::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn addresses_and_networks() {
        let networks = networks(&["192.168.1.20", "10.0.0.0/8", "2001:db8::/32"]);
        for (address, inside) in [
            ("192.168.1.20", true),
            ("192.168.1.21", false),
            ("10.9.8.7", true),
            ("2001:db8::1", true),
            ("::ffff:10.0.0.1", true),
        ] {
            assert_eq!(networks.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert_eq!(networks.to_string(), "192.168.1.20, 10.0.0.0/8, 2001:db8::/32");
        assert!(Networks::parse(&["192.168.1.300".to_owned()]).is_err());
    }

    #[test]
    fn services() {
        assert_eq!(ServiceRule::parse("Hub.Example.").unwrap(), ServiceRule::Name("hub.example".into()));
        assert_eq!(ServiceRule::parse("203.0.113.0/24").unwrap(), ServiceRule::Networks(networks(&["203.0.113.0/24"])));
        for wrong in ["", "a b", "203.0.113.400", "..", "203.0.113.0/99"] {
            assert!(ServiceRule::parse(wrong).is_err(), "{wrong}");
        }
    }
}
