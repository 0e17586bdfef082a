//! Which flows are of the same gateway and service: habits are theirs, not a connection's.

use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::Flow;
use sizeleak_runtime::TwoGenerationCache;

/// Flows whose ends are remembered, half of them at least.
const MOST_FLOWS: usize = 100_000;

/// A gateway and a service that talk to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum EndpointPair {
    /// Known by their addresses.
    Ends(IpAddr, SocketAddr),
    /// Known by their flow alone.
    Flow(u64),
}

/// The ends of flows.
#[derive(Debug)]
pub(crate) struct FlowEndpoints {
    flows: TwoGenerationCache<u64, Option<EndpointPair>>,
}

impl Default for FlowEndpoints {
    fn default() -> Self {
        Self { flows: TwoGenerationCache::new(MOST_FLOWS) }
    }
}

impl FlowEndpoints {
    /// Takes note of a flow's ends.
    pub(crate) fn learn(&mut self, flow: &Flow) {
        *self.flows.get_or_default(flow.flow) = Some(EndpointPair::Ends(flow.gateway, flow.service));
    }

    /// Who talks on a flow.
    #[inline]
    pub(crate) fn of(&mut self, flow: u64) -> &EndpointPair {
        self.flows.get_or_default(flow).get_or_insert(EndpointPair::Flow(flow))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Transport;

    use super::*;

    #[test]
    fn connections_of_one_gateway_to_one_service_are_of_one_pair() {
        let mut pairs = FlowEndpoints::default();
        for (flow, gateway) in [(1, "192.168.1.20"), (2, "192.168.1.20"), (3, "192.168.1.21")] {
            let (gateway, service) = (gateway.parse().unwrap(), "203.0.113.10:443".parse().unwrap());
            pairs.learn(&Flow { flow, gateway, service, transport: Transport::Tcp });
        }
        let mut pair = |flow| *pairs.of(flow);
        assert_eq!(pair(1), pair(2));
        assert_ne!(pair(1), pair(3));
        assert_eq!([pair(4), pair(4)], [EndpointPair::Flow(4); 2]);
    }

    #[test]
    fn ends_told_late_are_taken_note_of() {
        let mut pairs = FlowEndpoints::default();
        assert_eq!(*pairs.of(1), EndpointPair::Flow(1));
        let (gateway, service) = ("192.168.1.20".parse().unwrap(), "203.0.113.10:443".parse().unwrap());
        pairs.learn(&Flow { flow: 1, gateway, service, transport: Transport::Tcp });
        assert_eq!(*pairs.of(1), EndpointPair::Ends(gateway, service));
    }
}
