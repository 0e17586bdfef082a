//! What is counted of addresses, whatever becomes of their connections, and the bounded table of the busiest.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::{Flow, Transport};

pub(crate) trait Busy {
    fn messages(&self) -> u64;
}

/// Keeps the values with the most messages; of those with as many, the latest.
#[derive(Debug)]
pub(crate) struct BusiestTable<K, V> {
    values: BTreeMap<K, (u64, V)>,
    capacity: usize,
    added: u64,
    pub(crate) forgotten: u64,
}

impl<K: Ord + Copy, V: Busy> BusiestTable<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { values: BTreeMap::new(), capacity: capacity.max(2), added: 0, forgotten: 0 }
    }

    pub(crate) fn find(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }

    pub(crate) fn find_or_add(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        if self.values.len() >= self.capacity && !self.values.contains_key(&key) {
            self.forget_the_quietest();
        }
        let added = &mut self.added;
        let (_, value) = self.values.entry(key).or_insert_with(|| {
            *added += 1;
            (*added, value())
        });
        value
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.values.iter().map(|(key, (_, value))| (key, value))
    }

    fn forget_the_quietest(&mut self) {
        let mut ranks: Vec<(u64, u64)> =
            self.values.values().map(|(added, value)| (value.messages(), *added)).collect();
        let half = ranks.len() / 2;
        let (_, &mut least, _) = ranks.select_nth_unstable(half);
        let before = self.values.len();
        self.values.retain(|_, (added, value)| (value.messages(), *added) >= least);
        self.forgotten += (before - self.values.len()) as u64;
    }
}

/// The most services, clients and ports that are told apart for an address.
const MAX_ENDS: usize = 64;

/// As many clients make a server.
pub(crate) const MANY_CLIENTS: usize = 4;

/// Records from this length on are parts of large transfers.
const LARGE: u32 = 8192;

#[derive(Debug, Default)]
pub(crate) struct AddressTally {
    /// Connections that it opened, with messages or without.
    pub(crate) opened: u64,
    /// Messages on the connections that it opened.
    pub(crate) messages: u64,
    /// Those that are parts of large transfers.
    pub(crate) large: u64,
    /// The services of connections that it opened and that carried messages.
    pub(crate) services: BTreeSet<SocketAddr>,
    /// How many connections it opened to each port.
    pub(crate) ports: BTreeMap<(Transport, u16), u64>,
    /// Who opened connections to it that carried messages.
    pub(crate) clients: BTreeSet<IpAddr>,
    /// Messages on those.
    pub(crate) served: u64,
}

impl AddressTally {
    pub(crate) fn open(&mut self, flow: &Flow) {
        self.opened += 1;
        let port = (flow.transport, flow.service.port());
        if self.ports.len() < MAX_ENDS || self.ports.contains_key(&port) {
            *self.ports.entry(port).or_default() += 1;
        }
    }

    pub(crate) fn add_opened(&mut self, service: SocketAddr, length: u32) {
        self.messages += 1;
        self.large += u64::from(length >= LARGE);
        add(&mut self.services, service);
    }

    pub(crate) fn add_served(&mut self, client: IpAddr) {
        self.served += 1;
        self.add_client(client);
    }

    pub(crate) fn add_client(&mut self, client: IpAddr) {
        add(&mut self.clients, client);
    }
}

impl Busy for AddressTally {
    fn messages(&self) -> u64 {
        self.messages.saturating_add(self.served)
    }
}

fn add<T: Ord>(set: &mut BTreeSet<T>, value: T) {
    if set.len() < MAX_ENDS {
        set.insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Busy for u64 {
        fn messages(&self) -> u64 {
            *self
        }
    }

    #[test]
    fn a_flood_of_quiet_values_forgets_no_busy_one() {
        let mut table: BusiestTable<u64, u64> = BusiestTable::new(100);
        *table.find_or_add(7, || 0) = 50;
        for key in 1000..100_000 {
            table.find_or_add(key, || 1);
            assert!(table.iter().count() <= 100);
        }
        assert_eq!(table.find(&7), Some(&mut 50));
        assert!(table.find(&99_999).is_some() && table.find(&1000).is_none());
        assert_eq!(table.forgotten + table.iter().count() as u64, 99_001);
    }

    #[test]
    fn a_scan_of_all_ports_and_addresses_is_counted_in_bounded_memory() {
        let mut tally = AddressTally::default();
        for port in 1..2000 {
            tally.add_opened(SocketAddr::from(([203, 0, 113, 1], port)), 9000);
            tally.add_served(IpAddr::from([10, 0, (port / 250) as u8, (port % 250) as u8]));
        }
        assert_eq!((tally.services.len(), tally.clients.len()), (MAX_ENDS, MAX_ENDS));
        assert_eq!((tally.messages(), tally.large), (3998, 1999));
    }
}
