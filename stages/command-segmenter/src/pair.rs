//! Which flows are of the same gateway and service: habits are theirs, not a connection's.

use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::Flow;

use crate::recent::Recent;

/// Flows of which the ends are remembered, half of them at least.
const MOST_FLOWS: usize = 50_000;

/// A gateway and a service that talk to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pair {
    /// Known by their addresses.
    Ends(IpAddr, SocketAddr),
    /// Known by their flow alone.
    Flow(u64),
}

/// The ends of flows.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    flows: Recent<u64, Option<Pair>, MOST_FLOWS>,
}

impl Pairs {
    /// Takes note of a flow's ends.
    pub(crate) fn learn(&mut self, flow: &Flow) {
        *self.flows.entry(flow.flow) = Some(Pair::Ends(flow.gateway, flow.service));
    }

    /// Who talks on a flow.
    pub(crate) fn of(&mut self, flow: u64) -> Pair {
        self.flows.entry(flow).unwrap_or(Pair::Flow(flow))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Transport;

    use super::*;

    #[test]
    fn connections_of_one_gateway_to_one_service_are_of_one_pair() {
        let mut pairs = Pairs::default();
        for (flow, gateway) in [(1, "192.168.1.20"), (2, "192.168.1.20"), (3, "192.168.1.21")] {
            let (gateway, service) = (gateway.parse().unwrap(), "203.0.113.10:443".parse().unwrap());
            pairs.learn(&Flow { flow, gateway, service, transport: Transport::Tcp });
        }
        assert_eq!(pairs.of(1), pairs.of(2));
        assert_ne!(pairs.of(1), pairs.of(3));
        assert_eq!(pairs.of(4), Pair::Flow(4));
    }
}
