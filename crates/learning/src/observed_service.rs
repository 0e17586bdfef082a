//! The services whose commands were observed: the same one may have many connections and addresses.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::{Flow, Session};
use sizeleak_model::{Scope, ServiceName};

/// The most addresses that a scope names.
const MOST_ADDRESSES: usize = 128;

/// A service of a gateway: by its server name if a handshake showed it, else by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedService {
    /// The gateway's address.
    pub gateway: IpAddr,
    /// The server name.
    pub name: Option<String>,
    /// Its addresses and ports, in ascending order, at least one.
    pub addresses: Vec<SocketAddr>,
}

impl fmt::Display for ObservedService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.addresses.first()) {
            (Some(name), _) => formatter.write_str(name),
            (None, Some(address)) => address.fmt(formatter),
            (None, None) => formatter.write_str("an unknown service"),
        }
    }
}

/// The scope of a model learned on these services.
pub(crate) fn scope_of(services: &[&ObservedService]) -> Scope {
    let first = services.first().map(|service| service.gateway);
    let gateway = first.filter(|gateway| services.iter().all(|service| service.gateway == *gateway));
    let names = services.iter().filter_map(|service| service.name.as_ref()?.parse::<ServiceName>().ok());
    let addresses =
        services.iter().flat_map(|service| &service.addresses).map(|address| ServiceName::Address(*address));
    let mut services: Vec<ServiceName> = names.collect();
    services.sort_unstable();
    services.dedup();
    services.truncate(MOST_ADDRESSES);
    let mut addresses: Vec<ServiceName> = addresses.collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.truncate(MOST_ADDRESSES);
    services.append(&mut addresses);
    Scope { gateway, services, reports: false }
}

/// The flows of a run, and what their handshakes showed.
#[derive(Debug, Default)]
pub(crate) struct ObservedFlows {
    flows: BTreeMap<u64, (IpAddr, SocketAddr)>,
    /// The names that were asked for at an address.
    names: BTreeMap<(IpAddr, SocketAddr), String>,
}

impl ObservedFlows {
    pub(crate) fn add_flow(&mut self, flow: &Flow) {
        self.flows.insert(flow.flow, (flow.gateway, flow.service));
    }

    pub(crate) fn add_session(&mut self, session: &Session) {
        if let (Some(ends), Some(name)) = (self.flows.get(&session.flow), &session.server_name) {
            self.names.insert(*ends, name.to_lowercase());
        }
    }

    /// All services, in order of gateway, then names before addresses; and the service of each flow, by its index.
    pub(crate) fn services(&self) -> (Vec<ObservedService>, BTreeMap<u64, usize>) {
        type Key<'a> = (IpAddr, Option<&'a str>, Option<SocketAddr>);
        let key = |(gateway, address): &(IpAddr, SocketAddr)| -> Key<'_> {
            let name = self.names.get(&(*gateway, *address)).map(String::as_str);
            (*gateway, name, Some(*address).filter(|_| name.is_none()))
        };
        let mut by_key: BTreeMap<Key<'_>, Vec<SocketAddr>> = BTreeMap::new();
        for ends in self.flows.values() {
            by_key.entry(key(ends)).or_default().push(ends.1);
        }
        let index: BTreeMap<Key<'_>, usize> = by_key.keys().copied().zip(0..).collect();
        let of_flow = self.flows.iter().filter_map(|(flow, ends)| Some((*flow, *index.get(&key(ends))?)));
        let of_flow = of_flow.collect();
        let services = by_key.into_iter().map(|((gateway, name, _), mut addresses)| {
            addresses.sort_unstable();
            addresses.dedup();
            ObservedService { gateway, name: name.map(str::to_owned), addresses }
        });
        (services.collect(), of_flow)
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Transport;

    use super::*;

    fn flow(flow: u64, service: &str) -> Flow {
        let (gateway, service) = ("192.0.2.1".parse().unwrap(), service.parse().unwrap());
        Flow { flow, gateway, service, transport: Transport::Tcp, encapsulation: None, among_several: false }
    }

    fn session(flow: u64, name: &str) -> Session {
        Session { time_ns: 0, flow, server_name: Some(name.to_owned()), tls_version: None, cipher_suite: None }
    }

    #[test]
    fn addresses_of_one_server_name_are_one_service() {
        let mut flows = ObservedFlows::default();
        for (number, service) in [(1, "198.51.100.7:443"), (2, "198.51.100.8:443"), (3, "198.51.100.9:443")] {
            flows.add_flow(&flow(number, service));
        }
        // A second connection to the first address, whose handshake was not captured.
        flows.add_flow(&flow(4, "198.51.100.7:443"));
        flows.add_session(&session(1, "Cloud.example.com"));
        flows.add_session(&session(2, "cloud.example.com"));
        let (services, of_flow) = flows.services();
        let texts: Vec<String> = services.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["198.51.100.9:443", "cloud.example.com"]);
        assert_eq!(of_flow, BTreeMap::from([(1, 1), (2, 1), (3, 0), (4, 1)]));
        let scope = scope_of(&[&services[1]]);
        assert_eq!(scope.to_string(), "gateway 192.0.2.1, cloud.example.com, 198.51.100.7:443, 198.51.100.8:443");
    }
}
