//! A set of addresses and networks.

use std::fmt::{Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use sizeleak_runtime::ConfigureError;

/// A set of addresses and networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressSet {
    named: Vec<IpNet>,
    four: Vec<Masked<u32>>,
    six: Vec<Masked<u128>>,
}

/// A network as the bits that its addresses share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Masked<T> {
    pub(crate) bits: T,
    pub(crate) mask: T,
}

impl Masked<u32> {
    /// What is around both.
    pub(crate) fn around(self, other: Self) -> Self {
        let mask = self.mask & other.mask & !(self.bits ^ other.bits);
        Self { bits: self.bits & mask, mask }
    }

    /// Whether any of the addresses is in it. One sign tells of all: a branch for each would be foretold wrongly half the
    /// time.
    #[inline]
    pub(crate) fn holds_any<const N: usize>(self, addresses: [u32; N]) -> bool {
        let difference = |address: u32| i64::from((address & self.mask) ^ self.bits);
        addresses.into_iter().fold(0, |signs, address| signs | (difference(address) - 1)) < 0
    }
}

impl AddressSet {
    /// Reads addresses (`192.168.1.20`) and networks (`10.0.0.0/8`, `2001:db8::/32`).
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] about the first that is neither.
    pub fn parse(texts: &[String]) -> Result<Self, ConfigureError> {
        let mut networks = Self::default();
        for text in texts {
            let network = network(text).ok_or_else(|| {
                ConfigureError::Usage(format!("`{text}` is no IP address and no network in CIDR form"))
            })?;
            networks.add(network);
        }
        Ok(networks)
    }

    /// Reads one address or network; `None` where it is neither.
    pub fn parse_one(text: &str) -> Option<Self> {
        let mut networks = Self::default();
        networks.add(network(text)?);
        Some(networks)
    }

    fn add(&mut self, network: IpNet) {
        self.named.push(network);
        match network {
            IpNet::V4(network) => {
                let [bits, mask] = [network.network(), network.netmask()].map(in_packets);
                self.four.push(Masked { bits, mask });
            }
            IpNet::V6(network) => {
                self.six.push(Masked { bits: network.network().into(), mask: network.netmask().into() });
            }
        }
    }

    pub(crate) fn four(&self) -> &[Masked<u32>] {
        &self.four
    }

    pub(crate) fn six(&self) -> &[Masked<u128>] {
        &self.six
    }

    /// Whether an address is in the set. An IPv4 address in IPv6 clothes is the IPv4 one.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.contain_v4([address]),
            IpAddr::V6(address) => self.contain_v6([address]),
        }
    }

    /// Whether any of these is in the set.
    #[inline]
    pub(crate) fn contain_v4<const N: usize>(&self, addresses: [Ipv4Addr; N]) -> bool {
        let addresses = addresses.map(in_packets);
        // Most often there is one, and no loop is needed.
        match self.four.as_slice() {
            [only] => only.holds_any(addresses),
            all => any_holds(all, addresses),
        }
    }

    /// As [`Self::contain_v4`].
    #[inline]
    pub(crate) fn contain_v6<const N: usize>(&self, addresses: [Ipv6Addr; N]) -> bool {
        addresses.into_iter().any(|address| match address.to_ipv4_mapped() {
            Some(address) => self.contain_v4([address]),
            None => self.six.iter().any(|network| u128::from(address) & network.mask == network.bits),
        })
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}

impl Display for AddressSet {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let shown = |network: &IpNet| {
            if network.prefix_len() == network.max_prefix_len() {
                network.addr().to_string()
            } else {
                network.to_string()
            }
        };
        formatter.write_str(&self.named.iter().map(shown).collect::<Vec<_>>().join(", "))
    }
}

/// Out of line, so that the usual case keeps its registers.
#[inline(never)]
fn any_holds<const N: usize>(networks: &[Masked<u32>], addresses: [u32; N]) -> bool {
    networks.iter().any(|network| network.holds_any(addresses))
}

/// The bits of an address in the order they lie in memory: there is nothing to turn round in a packet's.
#[inline]
fn in_packets(address: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(address.octets())
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn networks(texts: &[&str]) -> AddressSet {
        AddressSet::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
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
        assert!(AddressSet::parse(&["192.168.1.300".to_owned()]).is_err());
    }

    proptest! {
        #[test]
        fn contains_what_ipnet_says(network: IpAddr, length in 0u8..=128, address: IpAddr, near: bool) {
            let length = length.min(if network.is_ipv4() { 32 } else { 128 });
            let network = IpNet::new(network, length).unwrap();
            let address = if near { network.broadcast() } else { address };
            let set = networks(&[&network.to_string()]);
            prop_assert_eq!(set.contains(address), network.contains(&address.to_canonical()));
        }
    }
}
