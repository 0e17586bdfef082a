//! Which flows connect the same gateway and service: traffic is learned for the two, not for one connection.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use foldhash::fast::FixedState;
use sizeleak_frame::Flow;
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::flow_history::MAX_FLOWS;

/// The most tunnels whose flows are taken together. In others each flow is taken alone.
const MAX_TUNNELS: usize = 1_000;

/// A gateway and a service that exchange records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndpointPair {
    ends: Ends,
    /// Computed once: what is known of a pair is looked up for every record.
    hash: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Ends {
    Addresses(IpAddr, SocketAddr),
    /// Their addresses in a tunnel, and its number.
    InTunnel(IpAddr, SocketAddr, u32),
    Flow(u64),
}

impl EndpointPair {
    pub(crate) fn unknown(flow: u64) -> Self {
        Ends::Flow(flow).into()
    }
}

impl From<Ends> for EndpointPair {
    fn from(ends: Ends) -> Self {
        Self { ends, hash: FixedState::default().hash_one(ends) }
    }
}

impl Hash for EndpointPair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Numbers of tunnels. What is in a tunnel may be anybody's, so it is apart from the same addresses outside.
#[derive(Debug, Default)]
pub(crate) struct Tunnels(BTreeMap<String, u32>);

impl Tunnels {
    pub(crate) fn endpoints(&mut self, flow: &Flow) -> EndpointPair {
        let Flow { flow: id, gateway, service, .. } = *flow;
        let ends = match &flow.encapsulation {
            None => Ends::Addresses(gateway, service),
            Some(tunnel) => {
                self.number(tunnel).map_or(Ends::Flow(id), |number| Ends::InTunnel(gateway, service, number))
            }
        };
        ends.into()
    }

    fn number(&mut self, tunnel: &str) -> Option<u32> {
        if let Some(number) = self.0.get(tunnel) {
            return Some(*number);
        }
        let number = u32::try_from(self.0.len()).ok().filter(|_| self.0.len() < MAX_TUNNELS)?;
        self.0.insert(tunnel.to_owned(), number);
        Some(number)
    }
}

#[derive(Debug)]
pub(crate) struct FlowEndpoints {
    flows: TwoGenerationCache<u64, Option<EndpointPair>>,
    tunnels: Tunnels,
}

impl Default for FlowEndpoints {
    fn default() -> Self {
        Self { flows: TwoGenerationCache::new(MAX_FLOWS), tunnels: Tunnels::default() }
    }
}

impl FlowEndpoints {
    pub(crate) fn add(&mut self, flow: &Flow) {
        *self.flows.get_or_default(flow.flow) = Some(self.tunnels.endpoints(flow));
    }

    #[inline]
    pub(crate) fn of(&mut self, flow: u64) -> EndpointPair {
        *self.flows.get_or_default(flow).get_or_insert_with(|| EndpointPair::unknown(flow))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Transport;

    use super::*;

    #[test]
    fn connections_of_one_gateway_to_one_service_have_the_same_endpoints() {
        let mut endpoints = FlowEndpoints::default();
        assert_eq!(endpoints.of(1), EndpointPair::unknown(1), "until its addresses are known");
        let tunnel = |number: &str| Some(format!("vxlan {number} 198.51.100.1-198.51.100.2"));
        for (flow, gateway, encapsulation) in [
            (1, "192.168.1.20", None),
            (2, "192.168.1.20", None),
            (3, "192.168.1.21", None),
            (5, "192.168.1.20", tunnel("7")),
            (6, "192.168.1.20", tunnel("7")),
            (7, "192.168.1.20", tunnel("8")),
        ] {
            let (gateway, service) = (gateway.parse().unwrap(), "203.0.113.10:443".parse().unwrap());
            endpoints.add(&Flow { encapsulation, ..Flow::new(flow, gateway, service, Transport::Tcp) });
        }
        assert_eq!(endpoints.of(5), endpoints.of(6));
        assert!(endpoints.of(5) != endpoints.of(1) && endpoints.of(5) != endpoints.of(7));
        assert_eq!(endpoints.of(1), endpoints.of(2));
        assert_ne!(endpoints.of(1), endpoints.of(3));
        assert_eq!([endpoints.of(4), endpoints.of(4)], [EndpointPair::unknown(4); 2]);
    }
}
