//! Which packets cannot matter to a stage further down, so that nobody need look at them again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::AddressSet;
use crate::around::Around;
use crate::plain::{Ends, plain_ends, plain_tcp_ends};

/// Tells packets that cannot matter to whoever is interested in some addresses.
#[derive(Debug, Clone)]
pub struct AddressPrefilter {
    networks: AddressSet,
    around: Around,
    appearance: GatewaySeen,
}

/// Whether any of the addresses has appeared. Clones share the answer.
///
/// Until one has, a filter wants to see every packet: to say, if none ever does, who was there instead.
#[derive(Debug, Clone, Default)]
pub struct GatewaySeen(Arc<AtomicBool>);

impl GatewaySeen {
    /// Says that one has.
    pub fn tell(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl AddressPrefilter {
    /// A sieve that holds packets of these addresses alone back from the first one on.
    pub fn new(networks: AddressSet) -> Self {
        let appearance = GatewaySeen::default();
        appearance.tell();
        Self::after(appearance, networks)
    }

    /// A sieve that lets every packet pass until `appearance` is told.
    pub fn after(appearance: GatewaySeen, networks: AddressSet) -> Self {
        Self { around: Around::new(&networks), networks, appearance }
    }

    /// Whether it holds anything back yet.
    pub fn is_active(&self) -> bool {
        self.appearance.is_told()
    }

    /// Whether a packet cannot matter: it is of the plainest kind, and of none of the addresses.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all there is to do about most packets")]
    pub fn rejects(&self, link_type: u16, data: &[u8]) -> bool {
        match plain_tcp_ends(link_type, data) {
            Some([source, destination]) => !self.networks.contain_v4([source, destination]),
            None => self.rejects_otherwise(link_type, data),
        }
    }

    /// As [`rejects`](Self::rejects), quicker where it is so of nearly all packets.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all there is to do about most packets")]
    pub fn rejects_as_most(&self, link_type: u16, data: &[u8]) -> bool {
        self.around.excludes(link_type, data) || self.rejects_otherwise(link_type, data)
    }

    /// As [`rejects`](Self::rejects), for packets that are not of the most frequent kind.
    #[inline(never)]
    fn rejects_otherwise(&self, link_type: u16, data: &[u8]) -> bool {
        match plain_ends(link_type, data) {
            Some(Ends::Four(source, destination)) => !self.networks.contain_v4([source, destination]),
            Some(Ends::Six(source, destination)) => !self.networks.contain_v6([source, destination]),
            None => false,
        }
    }

    /// The addresses.
    pub fn addresses(&self) -> &AddressSet {
        &self.networks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plain_addresses;

    proptest! {
        /// The sieve is the plain test, made quick, whatever is meant.
        #[test]
        fn foreign_is_who_has_plain_addresses_and_none_of_them_is_meant(
            link_type in 0u16..3, mut data in prop::collection::vec(any::<u8>(), 0..80), six: bool, tcp: bool,
            near: [Option<bool>; 2],
            meant in prop::sample::subsequence(vec!["10.0.0.0/8", "10.7.0.0/16", "9.1.1.1", "2001:db8::/32"], 0..=4),
        ) {
            let meant: Vec<String> = meant.into_iter().map(str::to_owned).collect();
            let networks = AddressSet::parse(&meant).unwrap();
            if let Some(header) = data.get_mut(12..58) {
                header[..3].copy_from_slice(if six { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] });
                if tcp {
                    header[if six { 8 } else { 11 }] = 6;
                }
                let dressed = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 7];
                for (at, is_dressed) in (if six { [10, 26] } else { [14, 18] }).into_iter().zip(near) {
                    let prefix = match is_dressed {
                        None => continue,
                        Some(true) if six => &dressed[..],
                        Some(_) if six => &[0x20, 1, 0x0d, 0xb8],
                        Some(_) => &[10],
                    };
                    header[at..at + prefix.len()].copy_from_slice(prefix);
                }
            }
            let foreign = plain_addresses(link_type, &data)
                .is_some_and(|(source, destination)| !networks.contains(source) && !networks.contains(destination));
            let sieve = AddressPrefilter::new(networks);
            prop_assert_eq!(sieve.rejects(link_type, &data), foreign);
            prop_assert_eq!(sieve.rejects_as_most(link_type, &data), foreign);
            prop_assert!(foreign || !sieve.around.excludes(link_type, &data));
        }
    }

    #[test]
    fn both_versions_are_decided_at_once() {
        let of_six = |address: &str| {
            let mut packet = vec![0; 60];
            packet[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
            packet[20] = 6;
            packet[22..38].copy_from_slice(&address.parse::<std::net::Ipv6Addr>().unwrap().octets());
            packet
        };
        let sieve = |meant: &[&str]| {
            AddressPrefilter::new(
                AddressSet::parse(&meant.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap(),
            )
        };
        let four = sieve(&["192.168.1.20", "192.168.1.0/30"]);
        assert!(four.around.excludes(1, &of_six("2001:db8::1")));
        assert!(!four.around.excludes(1, &of_six("::ffff:192.168.1.20")));
        assert!(!four.around.excludes(1, &of_six("::ffff:192.168.1.16")), "around, but not meant");
        assert!(four.rejects_as_most(1, &of_six("::ffff:192.168.1.16")));
        let with_six = sieve(&["192.168.1.20", "2001:db8::5"]);
        assert!(!with_six.around.excludes(1, &of_six("2001:db8::1")), "it may be one of the six");
        assert!(with_six.rejects_as_most(1, &of_six("2001:db8::1")));
        assert!(!sieve(&[]).around.excludes(1, &of_six("2001:db8::1")));
    }
}
