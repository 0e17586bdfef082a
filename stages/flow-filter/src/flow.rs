//! Flows: which connection a segment belongs to, and which of its ends is the gateway.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use foldhash::quality::RandomState;
use sha2::{Digest, Sha256};
use sizeleak_frame::{Direction, Segment, Transport};

use crate::address::GatewayEnds;
use crate::transport::TransportSegment;

/// A connection seen from the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownFlow {
    pub(crate) id: u64,
    pub(crate) gateway: SocketAddr,
    pub(crate) service: SocketAddr,
}

impl KnownFlow {
    /// Which way a segment of this flow travels.
    pub(crate) fn direction(&self, segment: &TransportSegment<'_>) -> Direction {
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

/// The transport and the two ends, the lesser one first, in as few bytes as tell connections apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Four(u128),
    Six([u128; 2], u64),
}

/// Which end of a segment its key names first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Source,
    Destination,
}

impl Key {
    fn of(segment: &TransportSegment<'_>) -> (Self, First) {
        let is_udp = segment.transport == Transport::Udp;
        match (segment.source, segment.destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                let end = |end: SocketAddrV4| u64::from(u32::from(*end.ip())) << 16 | u64::from(end.port());
                let (source, destination) = (end(source), end(destination));
                let first = if source <= destination { First::Source } else { First::Destination };
                let ends = u128::from(source.min(destination)) << 64 | u128::from(source.max(destination));
                (Self::Four(ends | u128::from(is_udp) << 127), first)
            }
            (source, destination) => {
                let first = if source <= destination { First::Source } else { First::Destination };
                let (lesser, greater) = (source.min(destination), source.max(destination));
                let ports = u64::from(lesser.port()) << 16 | u64::from(greater.port()) | u64::from(is_udp) << 32;
                (Self::Six([lesser.ip(), greater.ip()].map(in_six), ports), first)
            }
        }
    }
}

/// The bits of an address; a packet has two of one version.
fn in_six(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// What is remembered of a flow besides its key.
#[derive(Debug, Clone, Copy)]
struct Remembered {
    id: u64,
    gateway: GatewaySide,
}

/// Which of a key's ends is the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GatewaySide {
    Lesser,
    Greater,
}

/// Flows by their keys. Most are of IPv4, and those are kept small.
#[derive(Debug, Default)]
struct Generation {
    four: HashMap<u128, Remembered, RandomState>,
    six: HashMap<([u128; 2], u64), Remembered, RandomState>,
}

impl Generation {
    fn find(&self, key: Key) -> Option<Remembered> {
        match key {
            Key::Four(key) => self.four.get(&key).copied(),
            Key::Six(ends, ports) => self.six.get(&(ends, ports)).copied(),
        }
    }

    fn remove(&mut self, key: Key) -> Option<Remembered> {
        match key {
            Key::Four(key) => self.four.remove(&key),
            Key::Six(ends, ports) => self.six.remove(&(ends, ports)),
        }
    }

    fn insert(&mut self, key: Key, flow: Remembered) {
        match key {
            Key::Four(key) => self.four.insert(key, flow),
            Key::Six(ends, ports) => self.six.insert((ends, ports), flow),
        };
    }

    fn len(&self) -> usize {
        self.four.len() + self.six.len()
    }
}

/// The flows seen of late, in two generations: when the younger is full the elder is forgotten, so memory is bounded and
/// what is in use stays, whatever the order of the table.
#[derive(Debug)]
pub(crate) struct Flows {
    young: Generation,
    old: Generation,
    /// How many flows a generation holds.
    most: usize,
    pub(crate) forgotten: u64,
    /// How many younger generations there were before this one.
    turns: u32,
}

impl Flows {
    /// Remembers at most so many flows; at least half as many, those seen last.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            young: Generation::default(),
            old: Generation::default(),
            most: (most / 2).max(1),
            forgotten: 0,
            turns: 0,
        }
    }

    /// How many are remembered at most.
    pub(crate) fn most(&self) -> usize {
        2 * self.most
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Which generation the younger one is: flows found in it are there until another one begins.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.turns
    }

    /// Finds the flow of a segment with these gateways at its ends.
    pub(crate) fn look_up(&mut self, segment: &TransportSegment<'_>, gateways: GatewayEnds) -> Lookup {
        let (key, first) = Key::of(segment);
        let (lesser, greater) = match first {
            First::Source => (segment.source, segment.destination),
            First::Destination => (segment.destination, segment.source),
        };
        let known = |flow: Remembered| {
            let is_lesser = flow.gateway == GatewaySide::Lesser;
            let (gateway, service) = if is_lesser { (lesser, greater) } else { (greater, lesser) };
            KnownFlow { id: flow.id, gateway, service }
        };
        if let Some(flow) = self.young.find(key) {
            return Lookup::Known(known(flow));
        }
        let remembered = self.old.remove(key);
        if self.young.len() >= self.most {
            let before = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.forgotten += before.len() as u64;
            self.turns = self.turns.wrapping_add(1);
        }
        if let Some(flow) = remembered {
            self.young.insert(key, flow);
            return Lookup::Known(known(flow));
        }
        let flow = new_flow(segment, gateways);
        let gateway = if flow.gateway == lesser { GatewaySide::Lesser } else { GatewaySide::Greater };
        self.young.insert(key, Remembered { id: flow.id, gateway });
        Lookup::New(flow)
    }
}

fn new_flow(segment: &TransportSegment<'_>, gateways: GatewayEnds) -> KnownFlow {
    let (source, destination) = (segment.source, segment.destination);
    let source_is_gateway = match gateways {
        GatewayEnds::Source => true,
        GatewayEnds::Destination => false,
        GatewayEnds::Both => is_client(segment),
    };
    let (gateway, service) = if source_is_gateway { (source, destination) } else { (destination, source) };
    KnownFlow { id: id(segment.transport, gateway, service), gateway, service }
}

/// Of two gateways the client is the one meant: who sends the SYN, or else (in mid-stream, and over UDP) has the higher
/// port.
fn is_client(segment: &TransportSegment<'_>) -> bool {
    match segment.flags & (Segment::SYN | Segment::ACK) {
        Segment::SYN => true,
        flags if flags == Segment::SYN | Segment::ACK => false,
        _ => (segment.source.port(), segment.source) > (segment.destination.port(), segment.destination),
    }
}

/// Two ends in IPv6, in bytes of text.
const LONGEST_NAME: usize = 128;

/// The same five-tuple gives the same number in any run and any release: the beginning of a SHA-256.
fn id(transport: Transport, gateway: SocketAddr, service: SocketAddr) -> u64 {
    let transport = match transport {
        Transport::Tcp => "tcp",
        Transport::Udp => "udp",
    };
    let mut text = String::with_capacity(LONGEST_NAME);
    // A string takes all that is written to it.
    let _written = write!(text, "{transport} {gateway} {service}");
    Sha256::digest(text).iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(source: &str, destination: &str, flags: u8) -> TransportSegment<'static> {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        let transport = Transport::Tcp;
        TransportSegment { transport, source, destination, sequence: 0, flags, length: 0, payload: &[] }
    }

    #[test]
    fn both_directions_are_one_flow_and_both_transports_two() {
        let mut flows = Flows::new(100);
        let there = segment("10.0.0.2:5000", "203.0.113.1:443", 0);
        let back = segment("203.0.113.1:443", "10.0.0.2:5000", 0);
        let Lookup::New(flow) = flows.look_up(&back, GatewayEnds::Destination) else { panic!() };
        assert_eq!(flows.look_up(&there, GatewayEnds::Source), Lookup::Known(flow));
        assert_eq!((flow.direction(&there), flow.direction(&back)), (Direction::FromGateway, Direction::ToGateway));
        assert_eq!(flow.id, 0x218a_a7a4_47c5_7869, "the same in any run");
        let datagram = TransportSegment { transport: Transport::Udp, ..there };
        assert!(matches!(flows.look_up(&datagram, GatewayEnds::Source), Lookup::New(other) if other.id != flow.id));
    }

    #[test]
    fn between_two_gateways_the_client_is_meant() {
        let gateway = |segment| match Flows::new(2).look_up(&segment, GatewayEnds::Both) {
            Lookup::New(flow) | Lookup::Known(flow) => flow.gateway.to_string(),
        };
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", Segment::SYN)), "10.0.0.1:80");
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", Segment::SYN | Segment::ACK)), "10.0.0.2:90");
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", 0)), "10.0.0.2:90");
        let there_and_back = [("10.0.0.1:80", "10.0.0.2:80"), ("10.0.0.2:80", "10.0.0.1:80")];
        assert_eq!(there_and_back.map(|(from, to)| gateway(segment(from, to, 0))), ["10.0.0.2:80"; 2]);
    }

    #[test]
    fn memory_is_bounded_and_what_is_in_use_stays() {
        let mut flows = Flows::new(1_000);
        let busy = segment("10.0.0.2:1", "203.0.113.1:443", 0);
        flows.look_up(&busy, GatewayEnds::Source);
        for number in 0..5_000 {
            let service = format!("{}:443", std::net::Ipv4Addr::from(0x0808_0000 + number));
            flows.look_up(&segment("10.0.0.2:1", &service, Segment::SYN), GatewayEnds::Source);
            if number % 100 == 0 {
                assert!(matches!(flows.look_up(&busy, GatewayEnds::Source), Lookup::Known(_)));
            }
            assert!(flows.len() <= 1_000);
        }
        assert!(flows.forgotten > 3_000);
    }
}
