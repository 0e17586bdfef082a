//! Which packets cannot matter to a stage further down, so that nobody need look at them again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Networks;
use crate::plain::{Ends, plain_ends, plain_tcp_ends};

/// Tells packets that cannot matter to whoever is interested in some addresses.
#[derive(Debug, Clone)]
pub struct Sieve {
    networks: Networks,
    appearance: Appearance,
}

/// Whether any of the addresses has appeared. Clones share the answer.
///
/// Until one has, a filter wants to see every packet: to say, if none ever does, who was there instead.
#[derive(Debug, Clone, Default)]
pub struct Appearance(Arc<AtomicBool>);

impl Appearance {
    /// Says that one has.
    pub fn tell(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Sieve {
    /// A sieve that holds packets of these addresses alone back from the first one on.
    pub fn new(networks: Networks) -> Self {
        let appearance = Appearance::default();
        appearance.tell();
        Self { networks, appearance }
    }

    /// A sieve that lets every packet pass until `appearance` is told.
    pub fn after(appearance: Appearance, networks: Networks) -> Self {
        Self { networks, appearance }
    }

    /// Whether it holds anything back yet.
    pub fn is_active(&self) -> bool {
        self.appearance.is_told()
    }

    /// Whether a packet cannot matter: it is of the plainest kind, and of none of the addresses.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all there is to do about most packets")]
    pub fn is_foreign(&self, link_type: u16, data: &[u8]) -> bool {
        match plain_tcp_ends(link_type, data) {
            Some([source, destination]) => !self.networks.contain_v4([source, destination]),
            None => self.is_foreign_otherwise(link_type, data),
        }
    }

    /// As [`is_foreign`](Self::is_foreign), for packets that are not of the most frequent kind.
    #[inline(never)]
    fn is_foreign_otherwise(&self, link_type: u16, data: &[u8]) -> bool {
        match plain_ends(link_type, data) {
            Some(Ends::Four(source, destination)) => !self.networks.contain_v4([source, destination]),
            Some(Ends::Six(source, destination)) => !self.networks.contain_v6([source, destination]),
            None => false,
        }
    }

    /// The addresses.
    pub fn networks(&self) -> &Networks {
        &self.networks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plain_addresses;

    proptest! {
        /// The sieve is the plain test, made quick.
        #[test]
        fn foreign_is_who_has_plain_addresses_and_none_of_them_is_meant(
            link_type in 0u16..3, mut data in prop::collection::vec(any::<u8>(), 0..80), six: bool, meant: [bool; 2],
        ) {
            let networks = Networks::parse(&["10.0.0.0/8".to_owned(), "2001:db8::/32".to_owned()]).unwrap();
            if let Some(header) = data.get_mut(12..58) {
                header[..3].copy_from_slice(if six { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] });
                let prefix: &[u8] = if six { &[0x20, 1, 0x0d, 0xb8] } else { &[10] };
                for (at, _) in [if six { [10, 26] } else { [14, 18] }].concat().into_iter().zip(meant).filter(|(_, m)| *m) {
                    header[at..at + prefix.len()].copy_from_slice(prefix);
                }
            }
            let foreign = plain_addresses(link_type, &data)
                .is_some_and(|(source, destination)| !networks.contains(source) && !networks.contains(destination));
            prop_assert_eq!(Sieve::new(networks).is_foreign(link_type, &data), foreign);
        }
    }
}
