//! Which flows connect the same gateway and service: traffic is learned for the two, not for one connection.

use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::Flow;
use sizeleak_runtime::TwoGenerationCache;

/// The most flows with remembered endpoints; at least the half used last is kept.
const MAX_FLOWS: usize = 100_000;

/// A gateway and a service that exchange records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum EndpointPair {
    /// Their addresses.
    Addresses(IpAddr, SocketAddr),
    /// The flow, if its addresses are unknown.
    Flow(u64),
}

/// The endpoints of flows.
#[derive(Debug)]
pub(crate) struct FlowEndpoints {
    flows: TwoGenerationCache<u64, Option<EndpointPair>>,
}

impl Default for FlowEndpoints {
    fn default() -> Self {
        Self { flows: TwoGenerationCache::new(MAX_FLOWS) }
    }
}

impl FlowEndpoints {
    /// Remembers the addresses of a flow.
    pub(crate) fn add(&mut self, flow: &Flow) {
        *self.flows.get_or_default(flow.flow) = Some(EndpointPair::Addresses(flow.gateway, flow.service));
    }

    /// The endpoints of a flow.
    #[inline]
    pub(crate) fn of(&mut self, flow: u64) -> EndpointPair {
        *self.flows.get_or_default(flow).get_or_insert(EndpointPair::Flow(flow))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Transport;

    use super::*;

    #[test]
    fn connections_of_one_gateway_to_one_service_have_the_same_endpoints() {
        let mut endpoints = FlowEndpoints::default();
        assert_eq!(endpoints.of(1), EndpointPair::Flow(1), "until its addresses are known");
        for (flow, gateway) in [(1, "192.168.1.20"), (2, "192.168.1.20"), (3, "192.168.1.21")] {
            let (gateway, service) = (gateway.parse().unwrap(), "203.0.113.10:443".parse().unwrap());
            endpoints.add(&Flow { flow, gateway, service, transport: Transport::Tcp });
        }
        assert_eq!(endpoints.of(1), endpoints.of(2));
        assert_ne!(endpoints.of(1), endpoints.of(3));
        assert_eq!([endpoints.of(4), endpoints.of(4)], [EndpointPair::Flow(4); 2]);
    }
}
