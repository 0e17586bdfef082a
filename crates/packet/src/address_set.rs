//! A set of IP addresses and networks.

use std::fmt::{Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use thiserror::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressSet {
    networks: Vec<IpNet>,
    ipv4: Vec<Prefix<u32>>,
    ipv6: Vec<Prefix<u128>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Prefix<T> {
    bits: T,
    mask: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressPair {
    V4([Ipv4Addr; 2]),
    V6([Ipv6Addr; 2]),
}

impl From<AddressPair> for [IpAddr; 2] {
    fn from(pair: AddressPair) -> Self {
        match pair {
            AddressPair::V4(addresses) => addresses.map(IpAddr::from),
            AddressPair::V6(addresses) => addresses.map(IpAddr::from),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is neither an IP address nor a network in CIDR notation")]
pub struct InvalidAddress(String);

impl AddressSet {
    pub fn parse(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, InvalidAddress> {
        let mut addresses = Self::default();
        for text in texts {
            addresses.insert(text.as_ref())?;
        }
        Ok(addresses)
    }

    pub fn insert(&mut self, text: &str) -> Result<(), InvalidAddress> {
        let address = || text.parse().map(|address: IpAddr| IpNet::from(address.to_canonical()));
        let network = text.parse().or_else(|_| address()).map_err(|_| InvalidAddress(text.to_owned()))?;
        self.networks.push(network);
        match network {
            IpNet::V4(network) => {
                self.ipv4.push(Prefix { bits: network.network().into(), mask: network.netmask().into() });
            }
            IpNet::V6(network) => {
                self.ipv6.push(Prefix { bits: network.network().into(), mask: network.netmask().into() });
            }
        }
        Ok(())
    }

    /// An IPv4-mapped IPv6 address counts as the IPv4 address.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.contains_v4([address]),
            IpAddr::V6(address) => self.contains_v6(address),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the only work for most packets")]
    pub fn contains_any(&self, addresses: AddressPair) -> bool {
        match addresses {
            AddressPair::V4(addresses) => self.contains_v4(addresses),
            AddressPair::V6([source, destination]) => self.contains_v6(source) || self.contains_v6(destination),
        }
    }

    #[inline]
    fn contains_v4<const N: usize>(&self, addresses: [Ipv4Addr; N]) -> bool {
        let addresses = addresses.map(u32::from);
        let mut networks = self.ipv4.iter();
        networks.any(|network| addresses.iter().any(|address| address & network.mask == network.bits))
    }

    #[inline]
    fn contains_v6(&self, address: Ipv6Addr) -> bool {
        match address.to_ipv4_mapped() {
            Some(address) => self.contains_v4([address]),
            None => self.ipv6.iter().any(|network| u128::from(address) & network.mask == network.bits),
        }
    }

    pub fn holds_several(&self) -> bool {
        let is_network = |network: &IpNet| network.prefix_len() < network.max_prefix_len();
        let is_other = |network: &IpNet| self.networks.first().is_some_and(|first| first != network);
        self.networks.iter().any(|network| is_network(network) || is_other(network))
    }

    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }
}

impl Display for AddressSet {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        for (at, network) in self.networks.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            if network.prefix_len() == network.max_prefix_len() {
                write!(formatter, "{separator}{}", network.addr())?;
            } else {
                write!(formatter, "{separator}{network}")?;
            }
        }
        Ok(())
    }
}

/// Whether an address is of a private network: RFC 1918, RFC 6598, RFC 4193, or link-local.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let is_shared = matches!(address.octets(), [100, 64..=127, ..]);
            address.is_private() || address.is_link_local() || address.is_loopback() || is_shared
        }
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local() || address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn private_networks_are_those_of_both_versions() {
        let private =
            ["192.168.1.20", "10.0.0.1", "172.31.0.1", "100.64.0.1", "fd00::20", "fe80::1", "::ffff:10.0.0.1"];
        let public = ["203.0.113.10", "172.32.0.1", "100.128.0.1", "2001:db8::1"];
        assert!(private.iter().all(|address| is_private(address.parse().unwrap())));
        assert!(!public.iter().any(|address| is_private(address.parse().unwrap())));
    }

    #[test]
    fn networks_and_different_addresses_are_several() {
        let holds_several = |texts: &[&str]| AddressSet::parse(texts).unwrap().holds_several();
        assert!(holds_several(&["10.0.0.0/30"]) && holds_several(&["10.0.0.1", "2001:db8::1"]));
        assert!(!holds_several(&[]) && !holds_several(&["10.0.0.1", "10.0.0.1/32", "::ffff:10.0.0.1"]));
    }

    #[test]
    fn addresses_and_networks_of_both_versions_are_read_and_shown() {
        let addresses = AddressSet::parse(["192.168.1.20", "10.0.0.0/8", "2001:db8::/32"]).unwrap();
        for (address, is_inside) in [
            ("192.168.1.20", true),
            ("192.168.1.21", false),
            ("10.9.8.7", true),
            ("2001:db8::1", true),
            ("::ffff:10.0.0.1", true),
        ] {
            assert_eq!(addresses.contains(address.parse().unwrap()), is_inside, "{address}");
        }
        assert_eq!(addresses.to_string(), "192.168.1.20, 10.0.0.0/8, 2001:db8::/32");
        assert!(AddressSet::parse(["192.168.1.300"]).unwrap_err().to_string().contains("192.168.1.300"));
    }

    proptest! {
        #[test]
        fn contains_agrees_with_ipnet(network: IpAddr, length in 0u8..=128, address: IpAddr, near: bool) {
            let length = length.min(if network.is_ipv4() { 32 } else { 128 });
            let network = IpNet::new(network, length).unwrap();
            let address = if near { network.broadcast() } else { address };
            let set = AddressSet::parse([network.to_string()]).unwrap();
            prop_assert_eq!(set.contains(address), network.contains(&address.to_canonical()));
        }
    }
}
