//! Flows: which connection a segment belongs to, and which of its ends is the gateway.

use std::collections::HashMap;
use std::net::SocketAddr;

use foldhash::quality::RandomState;
use sha2::{Digest, Sha256};
use sizeleak_frame::{Direction, Segment};

use crate::address::Networks;
use crate::segment::TcpSegment;

/// So many flows are remembered at least; those not seen for longest go first.
pub(crate) const LEAST_REMEMBERED: usize = 50_000;

/// A connection seen from the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownFlow {
    pub(crate) id: u64,
    pub(crate) gateway: SocketAddr,
    pub(crate) service: SocketAddr,
}

impl KnownFlow {
    /// Which way a segment of this flow travels.
    pub(crate) fn direction(&self, segment: &TcpSegment<'_>) -> Direction {
        if segment.destination == self.gateway { Direction::ToGateway } else { Direction::FromGateway }
    }
}

/// What is known of a segment's flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// It was seen before.
    Known(KnownFlow),
    /// It is seen for the first time, or was forgotten.
    New(KnownFlow),
}

/// The flows seen of late, in two generations: when the younger is full the elder is forgotten, so memory is bounded and
/// what is in use stays, whatever the order of the table.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    young: HashMap<(SocketAddr, SocketAddr), KnownFlow, RandomState>,
    old: HashMap<(SocketAddr, SocketAddr), KnownFlow, RandomState>,
    pub(crate) forgotten: u64,
}

impl Flows {
    /// Finds the flow of a segment of which one end at least is a gateway.
    pub(crate) fn look_up(&mut self, segment: &TcpSegment<'_>, gateways: &Networks) -> Lookup {
        let (source, destination) = (segment.source, segment.destination);
        let key = if source <= destination { (source, destination) } else { (destination, source) };
        if let Some(flow) = self.young.get(&key) {
            return Lookup::Known(*flow);
        }
        let remembered = self.old.remove(&key);
        if self.young.len() >= LEAST_REMEMBERED {
            let before = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.forgotten += before.len() as u64;
        }
        let flow = remembered.unwrap_or_else(|| new_flow(segment, gateways));
        self.young.insert(key, flow);
        if remembered.is_some() { Lookup::Known(flow) } else { Lookup::New(flow) }
    }
}

fn new_flow(segment: &TcpSegment<'_>, gateways: &Networks) -> KnownFlow {
    let (source, destination) = (segment.source, segment.destination);
    let source_is_gateway = match (gateways.contains(source.ip()), gateways.contains(destination.ip())) {
        (true, true) => is_client(segment),
        (source_is, _) => source_is,
    };
    let (gateway, service) = if source_is_gateway { (source, destination) } else { (destination, source) };
    KnownFlow { id: id(gateway, service), gateway, service }
}

/// Of two gateways the client is the one meant: who sends the SYN, or else has the higher port.
fn is_client(segment: &TcpSegment<'_>) -> bool {
    match segment.flags & (Segment::SYN | Segment::ACK) {
        Segment::SYN => true,
        flags if flags == Segment::SYN | Segment::ACK => false,
        _ => (segment.source.port(), segment.source) > (segment.destination.port(), segment.destination),
    }
}

/// The same five-tuple gives the same number in any run and any release: the beginning of a SHA-256.
fn id(gateway: SocketAddr, service: SocketAddr) -> u64 {
    let digest = Sha256::digest(format!("tcp {gateway} {service}"));
    digest.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(source: &str, destination: &str, flags: u8) -> TcpSegment<'static> {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        TcpSegment { source, destination, sequence: 0, flags, length: 0, payload: &[] }
    }

    fn gateways(text: &str) -> Networks {
        Networks::parse(&[text.to_owned()]).unwrap()
    }

    #[test]
    fn both_directions_are_one_flow() {
        let (mut flows, gateways) = (Flows::default(), gateways("10.0.0.2"));
        let there = segment("10.0.0.2:5000", "203.0.113.1:443", 0);
        let back = segment("203.0.113.1:443", "10.0.0.2:5000", 0);
        let Lookup::New(flow) = flows.look_up(&back, &gateways) else { panic!() };
        assert_eq!(flows.look_up(&there, &gateways), Lookup::Known(flow));
        assert_eq!((flow.direction(&there), flow.direction(&back)), (Direction::FromGateway, Direction::ToGateway));
        assert_eq!(flow.id, 0x218a_a7a4_47c5_7869, "the same in any run");
    }

    #[test]
    fn between_two_gateways_the_client_is_meant() {
        let gateways = gateways("10.0.0.0/8");
        let gateway = |segment| match Flows::default().look_up(&segment, &gateways) {
            Lookup::New(flow) | Lookup::Known(flow) => flow.gateway.to_string(),
        };
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", Segment::SYN)), "10.0.0.1:80");
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", Segment::SYN | Segment::ACK)), "10.0.0.2:90");
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", 0)), "10.0.0.2:90");
    }

    #[test]
    fn memory_is_bounded_and_what_is_in_use_stays() {
        let (mut flows, gateways) = (Flows::default(), gateways("10.0.0.2"));
        let busy = segment("10.0.0.2:1", "203.0.113.1:443", 0);
        flows.look_up(&busy, &gateways);
        for number in 0..3 * LEAST_REMEMBERED as u32 {
            let service = format!("{}:443", std::net::Ipv4Addr::from(0x0808_0000 + number));
            flows.look_up(&segment("10.0.0.2:1", &service, Segment::SYN), &gateways);
            if number % 1000 == 0 {
                assert!(matches!(flows.look_up(&busy, &gateways), Lookup::Known(_)));
            }
        }
        assert!(flows.young.len() + flows.old.len() <= 2 * LEAST_REMEMBERED);
        assert!(flows.forgotten > 0);
    }
}
