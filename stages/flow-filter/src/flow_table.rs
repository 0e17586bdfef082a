//! Flows: the connection a segment belongs to, and which of its ends is the gateway.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use foldhash::quality::RandomState;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sizeleak_frame::{Direction, Segment, Transport};
use sizeleak_packet::{AddressSet, Encapsulation, TransportSegment, is_private};
use sizeleak_platform::runtime::sorted_table;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatewayEnds {
    Source,
    Destination,
    Both,
}

impl GatewayEnds {
    pub(crate) fn of(gateways: &AddressSet, [source, destination]: [IpAddr; 2]) -> Option<Self> {
        match (gateways.contains(source), gateways.contains(destination)) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Source),
            (false, true) => Some(Self::Destination),
            (false, false) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GatewayFlow {
    pub(crate) id: u64,
    pub(crate) gateway: SocketAddr,
    pub(crate) service: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowRef {
    pub(crate) flow: u64,
    pub(crate) direction: Direction,
}

/// What distinguishes flows, the same in both directions: the transport, the two ends, the lesser one first, and the
/// tunnel. VLAN tags do not: a mirror port may see a packet with one, without, or with another in each direction. Most
/// flows are of IPv4 outside tunnels; the others are boxed, so that an entry of the table takes 32 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum FlowKey {
    V4(Transport, [SocketAddrV4; 2]),
    V6(Transport, Box<[SocketAddr; 2]>),
    Tunnelled(Transport, Box<([SocketAddr; 2], Encapsulation)>),
}

impl FlowKey {
    fn new(segment: &TransportSegment<'_>, encapsulation: Option<Encapsulation>) -> Self {
        let transport = segment.transport;
        let ends = [segment.source.min(segment.destination), segment.source.max(segment.destination)];
        match (encapsulation, ends) {
            (None, [SocketAddr::V4(lesser), SocketAddr::V4(greater)]) => Self::V4(transport, [lesser, greater]),
            (None, ends) => Self::V6(transport, Box::new(ends)),
            (Some(tunnel), ends) => Self::Tunnelled(transport, Box::new((ends, tunnel))),
        }
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct FlowEntry {
    id: u64,
    gateway_is_lesser: bool,
}

/// At most this many connections in tunnels are known to those that look for the same ones elsewhere.
const MAX_IN_TUNNELS: usize = 10_000;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FlowTable {
    pub(crate) entries: TwoGenerations<FlowKey, FlowEntry>,
    in_tunnels: TwoGenerations<FlowKey, u64>,
}

impl FlowTable {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { entries: TwoGenerations::new(capacity), in_tunnels: TwoGenerations::new(capacity.min(MAX_IN_TUNNELS)) }
    }

    /// The flow of a segment, and whether it is seen for the first time, or was evicted.
    pub(crate) fn look_up(
        &mut self,
        segment: &TransportSegment<'_>,
        gateways: GatewayEnds,
        encapsulation: Option<Encapsulation>,
    ) -> (GatewayFlow, bool) {
        let lesser = segment.source.min(segment.destination);
        let greater = segment.source.max(segment.destination);
        let key = FlowKey::new(segment, encapsulation);
        if let Some(FlowEntry { id, gateway_is_lesser }) = self.entries.get(&key) {
            let (gateway, service) = if gateway_is_lesser { (lesser, greater) } else { (greater, lesser) };
            return (GatewayFlow { id, gateway, service }, false);
        }
        let flow = GatewayFlow::new(segment, gateways, encapsulation);
        self.entries.insert(key, FlowEntry { id: flow.id, gateway_is_lesser: flow.gateway == lesser });
        (flow, true)
    }

    /// Whether the connection of a new flow was also seen by another way: in another tunnel, outside or inside of one.
    pub(crate) fn is_seen_elsewhere(
        &mut self,
        flow: u64,
        segment: &TransportSegment<'_>,
        encapsulation: Option<Encapsulation>,
    ) -> bool {
        let outside = FlowKey::new(segment, None);
        let in_tunnel = self.in_tunnels.get(&outside);
        if encapsulation.is_none() {
            return in_tunnel.is_some();
        }
        if in_tunnel.is_none() {
            self.in_tunnels.insert(outside.clone(), flow);
        }
        in_tunnel.is_some_and(|other| other != flow) || self.entries.contains(&outside)
    }
}

impl GatewayFlow {
    fn new(segment: &TransportSegment<'_>, gateways: GatewayEnds, encapsulation: Option<Encapsulation>) -> Self {
        let (source, destination) = (segment.source, segment.destination);
        let source_is_gateway = match gateways {
            GatewayEnds::Source => true,
            GatewayEnds::Destination => false,
            GatewayEnds::Both => match [source, destination].map(|end| is_private(end.ip())) {
                [true, false] => true,
                [false, true] => false,
                _ => is_from_client(segment),
            },
        };
        let (gateway, service) = if source_is_gateway { (source, destination) } else { (destination, source) };
        Self { id: flow_id(segment.transport, gateway, service, encapsulation), gateway, service }
    }

    pub(crate) fn direction(&self, segment: &TransportSegment<'_>) -> Direction {
        if segment.destination == self.gateway { Direction::ToGateway } else { Direction::FromGateway }
    }
}

/// Between two gateways, both at home or both outside, the client counts as the gateway. It sends the SYN; in mid-stream
/// and over UDP it is taken to have the higher port.
fn is_from_client(segment: &TransportSegment<'_>) -> bool {
    match segment.flags & (Segment::SYN | Segment::ACK) {
        Segment::SYN => true,
        flags if flags == Segment::SYN | Segment::ACK => false,
        _ => (segment.source.port(), segment.source) > (segment.destination.port(), segment.destination),
    }
}

/// The same number for the same five-tuple in the same tunnel in any run and any release: the first bytes of a SHA-256.
fn flow_id(transport: Transport, gateway: SocketAddr, service: SocketAddr, tunnel: Option<Encapsulation>) -> u64 {
    /// Two IPv6 ends, in bytes of text.
    const LONGEST_TEXT: usize = 128;
    let transport = transport.name();
    let mut text = String::with_capacity(LONGEST_TEXT);
    // Writing to a string never fails.
    let _written = write!(text, "{transport} {gateway} {service}");
    if let Some(tunnel) = tunnel {
        let _written = write!(text, " {tunnel}");
    }
    Sha256::digest(text).iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte))
}

/// A bounded map in two generations. When the young one is full, the old one is evicted, and the young one takes its
/// place. So entries in use stay, and nothing depends on the order of the hash tables.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "K: Ord + Serialize, V: Serialize",
    deserialize = "K: Eq + Hash + Deserialize<'de>, V: Deserialize<'de>"
))]
pub(crate) struct TwoGenerations<K, V> {
    #[serde(with = "sorted_table")]
    young: HashMap<K, V, RandomState>,
    #[serde(with = "sorted_table")]
    old: HashMap<K, V, RandomState>,
    half: usize,
    pub(crate) evicted: u64,
    /// The number of the young generation: entries used in it are not evicted as long as this number stays.
    pub(crate) generation: u32,
}

impl<K: Eq + Hash, V: Copy> TwoGenerations<K, V> {
    /// A map of at most `capacity` entries, but at least two. It always holds the half of them that was used last.
    pub(crate) fn new(capacity: usize) -> Self {
        let (young, old) = (HashMap::default(), HashMap::default());
        Self { young, old, half: (capacity / 2).max(1), evicted: 0, generation: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        2 * self.half
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(*value);
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.insert(key, value);
        Some(value)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.young.contains_key(key) || self.old.contains_key(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.half {
            self.evicted += self.old.len() as u64;
            self.old = std::mem::take(&mut self.young);
            self.generation = self.generation.wrapping_add(1);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_packet::{CapturedBytes, TunnelKind};

    use super::*;

    fn segment(source: &str, destination: &str, flags: u8) -> TransportSegment<'static> {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        let (transport, payload) = (Transport::Tcp, CapturedBytes::default());
        TransportSegment { transport, source, destination, sequence: 0, flags, acknowledgement: None, payload }
    }

    #[test]
    fn both_directions_are_one_flow_and_both_transports_are_two() {
        let mut flows = FlowTable::new(100);
        let there = segment("10.0.0.2:5000", "203.0.113.1:443", 0);
        let back = segment("203.0.113.1:443", "10.0.0.2:5000", 0);
        let (flow, true) = flows.look_up(&back, GatewayEnds::Destination, None) else { panic!() };
        assert_eq!(flows.look_up(&there, GatewayEnds::Source, None), (flow, false));
        assert_eq!((flow.direction(&there), flow.direction(&back)), (Direction::FromGateway, Direction::ToGateway));
        assert_eq!(flow.id, 0x218a_a7a4_47c5_7869, "the same in any run");
        let datagram = TransportSegment { transport: Transport::Udp, ..there };
        let lookup = flows.look_up(&datagram, GatewayEnds::Source, None);
        assert!(matches!(lookup, (other, true) if other.id != flow.id));
    }

    #[test]
    fn each_tunnel_has_flows_of_its_own() {
        let mut flows = FlowTable::new(100);
        let there = segment("10.0.0.2:5000", "203.0.113.1:443", 0);
        let ends = ["198.51.100.1".parse().unwrap(), "198.51.100.2".parse().unwrap()];
        let tunnel = |id| Some(Encapsulation { kind: TunnelKind::Vxlan, id: Some(id), ends });
        let mut ids = Vec::new();
        for (tunnel, elsewhere) in [(tunnel(7), false), (None, true), (tunnel(8), true), (tunnel(7), false)] {
            match flows.look_up(&there, GatewayEnds::Source, tunnel) {
                (flow, true) => {
                    assert_eq!(flows.is_seen_elsewhere(flow.id, &there, tunnel), elsewhere, "{tunnel:?}");
                    ids.push(flow.id);
                }
                (flow, false) => assert_eq!(flow.id, ids[0]),
            }
        }
        assert_eq!(ids[0], 0x380a_67c7_196f_43e0, "the same in any run");
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn an_entry_takes_32_bytes() {
        assert_eq!(size_of::<(FlowKey, FlowEntry)>(), 32);
    }

    #[test]
    fn between_two_gateways_the_one_at_home_counts_as_the_gateway_else_the_client() {
        let gateway = |segment| FlowTable::new(2).look_up(&segment, GatewayEnds::Both, None).0.gateway.to_string();
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", Segment::SYN)), "10.0.0.1:80");
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", Segment::SYN | Segment::ACK)), "10.0.0.2:90");
        assert_eq!(gateway(segment("10.0.0.1:80", "10.0.0.2:90", 0)), "10.0.0.2:90");
        for flags in [0, Segment::SYN] {
            assert_eq!(gateway(segment("203.0.113.7:5000", "10.0.0.2:90", flags)), "10.0.0.2:90", "a webhook");
        }
        let both_directions = [("10.0.0.1:80", "10.0.0.2:80"), ("10.0.0.2:80", "10.0.0.1:80")];
        assert_eq!(both_directions.map(|(from, to)| gateway(segment(from, to, 0))), ["10.0.0.2:80"; 2]);
    }

    #[test]
    fn the_map_is_bounded_and_entries_in_use_stay() {
        let mut map = TwoGenerations::new(100);
        map.insert(0, "in use");
        for key in 1..1000 {
            map.insert(key, "used once");
            if key % 20 == 0 {
                assert_eq!(map.get(&0), Some("in use"));
            }
            assert!(map.young.len() + map.old.len() <= map.capacity());
        }
        assert_eq!((map.get(&1), map.evicted), (None, 1000 - (map.young.len() + map.old.len()) as u64));
        assert!(map.generation > 10);
    }
}
