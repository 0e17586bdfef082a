//! Rejects packets that cannot concern a set of addresses, before anything else is parsed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::address_set::AddressSet;
use crate::fast;

/// Rejects packets that cannot concern a set of addresses. Clones share whether it is active.
#[derive(Debug, Clone)]
pub struct AddressPrefilter {
    addresses: AddressSet,
    is_active: Arc<AtomicBool>,
}

impl AddressPrefilter {
    /// A prefilter for packets from or to these addresses, active from the start.
    pub fn new(addresses: AddressSet) -> Self {
        Self { addresses, is_active: Arc::new(AtomicBool::new(true)) }
    }

    /// As [`new`](Self::new), but inactive until [`activate`](Self::activate) is called on any clone. `flow-filter`
    /// needs every packet until its gateway has appeared: if that never happens, it reports which addresses it saw
    /// instead.
    pub fn inactive(addresses: AddressSet) -> Self {
        Self { addresses, is_active: Arc::default() }
    }

    pub fn activate(&self) {
        self.is_active.store(true, Ordering::Relaxed);
    }

    /// Whether an earlier stage may drop what this prefilter rejects.
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Whether a packet cannot concern the addresses: it is neither from nor to them, and it cannot carry a packet that
    /// is. Packets for which that is not certain are not rejected.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the only work for most packets")]
    pub fn rejects(&self, link_type: u16, frame: &[u8]) -> bool {
        fast::addresses(link_type, frame).is_some_and(|addresses| !self.addresses.contains_any(addresses))
    }

    pub fn addresses(&self) -> &AddressSet {
        &self.addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packets_of_other_addresses_are_rejected() {
        let frame = |source: [u8; 4], destination: [u8; 4]| {
            let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
            [&[0; 12][..], &[8, 0], &ip, &source, &destination, &[0; 20]].concat()
        };
        let prefilter = AddressPrefilter::new(AddressSet::parse(["10.0.0.2"]).unwrap());
        assert!(prefilter.rejects(1, &frame([10, 0, 0, 1], [10, 0, 0, 3])));
        assert!(!prefilter.rejects(1, &frame([10, 0, 0, 2], [10, 0, 0, 3])));
        assert!(!prefilter.rejects(1, &frame([10, 0, 0, 1], [10, 0, 0, 2])));
        assert!(!prefilter.rejects(101, &frame([10, 0, 0, 1], [10, 0, 0, 3])), "another link type is not decided");
    }

    #[test]
    fn clones_are_activated_together() {
        let prefilter = AddressPrefilter::inactive(AddressSet::default());
        let clone = prefilter.clone();
        assert!(!clone.is_active());
        prefilter.activate();
        assert!(clone.is_active());
    }
}
