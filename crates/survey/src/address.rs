//! What is counted of an address, whatever becomes of its connections.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::{Flow, Transport};

use crate::busiest::Busy;

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
