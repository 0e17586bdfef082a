//! The recent history of a flow: its last record, and the requests of the gateway that wait for an answer. And
//! which flows connect the same gateway and service: traffic is learned for the two, not for one connection.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use sizeleak_frame::{Direction, Flow, Record};
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::periodic::Arrival;

/// The most flows that are remembered, by any algorithm; at least the half used last is kept.
pub(crate) const MAX_FLOWS: usize = 100_000;

/// The most requests that wait for an answer at once; the oldest is dropped for a new one.
const MAX_REQUESTS: usize = 32;

/// A silence as long as this, in nanoseconds, ends an exchange; and an answer that is late comes within this time after
/// the exchange began.
const EXCHANGE_NS: i64 = 3_000_000_000;

/// What TLS adds to a record of unknown cipher suite, in bytes: TLS 1.2 with AES-GCM, the most common case.
const USUAL_OVERHEAD: u64 = 24;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SizedRecord<'a> {
    pub(crate) record: &'a Record,
    /// The record's length, or its size in a model's basis.
    pub(crate) size: u32,
    pub(crate) size_class: SizeClass,
}

impl<'a> SizedRecord<'a> {
    pub(crate) fn new(record: &'a Record, size_class: SizeClass) -> Self {
        Self { record, size: record.length, size_class }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SizeClass {
    /// Only for a keep-alive or an acknowledgement.
    Tiny,
    Full,
}

impl SizeClass {
    /// The class of a record, where fewer than `min_size` bytes of plaintext are tiny.
    pub(crate) fn of(record: &Record, min_size: u64) -> Self {
        let size = record.plaintext.map_or(u64::from(record.length).saturating_sub(USUAL_OVERHEAD), |[_, max]| max);
        if size < min_size { Self::Tiny } else { Self::Full }
    }
}

#[derive(Debug, Default)]
pub(crate) struct FlowHistory {
    requests: VecDeque<Request>,
    last: Option<LastRecord>,
    /// What the service has sent since the gateway's last record.
    pub(crate) service_burst: ServiceBurst,
    /// When the service last sent something unsolicited, or the gateway last sent something soon after that.
    pub(crate) command_ns: Option<i64>,
    exchange: Option<Exchange>,
    pub(crate) has_gateway_record: bool,
    /// Whether the connection was seen before its first record of application data.
    is_known_from_start: bool,
    opening: Opening,
}

/// How a connection begins that the gateway opens. Its first message is a request, as of WebSocket, MQTT and HTTP, which
/// the service answers before it sends anything else, or soon after that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Opening {
    /// The handshake of TLS, which the gateway has begun.
    Handshake,
    /// The gateway has sent data, and the service none.
    Request,
    /// The service has sent data; or the service has opened the connection, or its beginning was not seen.
    #[default]
    Over,
}

/// Traffic of a flow without a silence of [`EXCHANGE_NS`].
#[derive(Debug, Clone, Copy)]
struct Exchange {
    begun_by: Direction,
    start_ns: i64,
    opening_size: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ServiceBurst {
    /// Nothing that may continue.
    #[default]
    None,
    Answer,
    Command,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    time_ns: i64,
    pub(crate) size: u32,
    size_class: SizeClass,
    /// The greatest time of this request and all before it.
    latest_ns: i64,
}

#[derive(Debug, Clone, Copy)]
struct LastRecord {
    time_ns: i64,
    direction: Direction,
    size: u32,
    size_class: SizeClass,
}

impl FlowHistory {
    pub(crate) fn add_handshake(&mut self, record: &Record) {
        if !self.is_known() && record.direction == Direction::FromGateway {
            self.opening = Opening::Handshake;
        }
        self.is_known_from_start = true;
    }

    /// Whether the service's next message is its first in a connection, behind a message of the gateway that opened it.
    pub(crate) fn awaits_first_answer(&self) -> bool {
        self.opening == Opening::Request
    }

    /// Remembers the flow's next record, after it was classified.
    pub(crate) fn remember(&mut self, sized: SizedRecord<'_>, same_write_ns: i64) {
        let Record { time_ns, direction, .. } = *sized.record;
        if self.begins_exchange(sized.record) {
            let Record { start_ns, direction: begun_by, .. } = *sized.record;
            self.exchange = Some(Exchange { begun_by, start_ns, opening_size: sized.size });
        }
        self.has_gateway_record |= direction == Direction::FromGateway;
        let is_open = self.opening != Opening::Over && direction == Direction::FromGateway;
        self.opening = if is_open { Opening::Request } else { Opening::Over };
        if self.is_acknowledged_by(sized, same_write_ns) {
            return;
        }
        self.last = Some(LastRecord { time_ns, direction, size: sized.size, size_class: sized.size_class });
        if direction == Direction::FromGateway {
            self.service_burst = ServiceBurst::None;
        }
    }

    /// Whether a record is small and the gateway sends it at once behind one of the service, as HTTP/2 widens a window:
    /// the service's message may go on behind it.
    fn is_acknowledged_by(&self, sized: SizedRecord<'_>, same_write_ns: i64) -> bool {
        let is_small = sized.record.direction == Direction::FromGateway && sized.size_class == SizeClass::Tiny;
        let follows_full = || self.last.is_some_and(|last| last.size_class == SizeClass::Full);
        is_small && follows_full() && self.delay(sized.record).is_some_and(|delay_ns| delay_ns <= same_write_ns)
    }

    pub(crate) fn begins_exchange(&self, record: &Record) -> bool {
        self.last.is_none_or(|last| record.start_ns.saturating_sub(last.time_ns) > EXCHANGE_NS)
    }

    /// The size of the gateway's record that began the exchange that a record of the service belongs to, if the gateway
    /// began it not long ago.
    pub(crate) fn opening_request(&self, record: &Record) -> Option<u32> {
        let exchange = self.exchange.filter(|exchange| exchange.begun_by == Direction::FromGateway)?;
        let is_recent = record.start_ns.saturating_sub(exchange.start_ns) <= EXCHANGE_NS;
        (is_recent && !self.begins_exchange(record)).then_some(exchange.opening_size)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.is_known_from_start || self.last.is_some()
    }

    pub(crate) fn continues_small(&self, record: &Record, within_ns: i64) -> bool {
        self.last.is_some_and(|last| last.size_class == SizeClass::Tiny) && self.is_continued_by(record, within_ns)
    }

    pub(crate) fn small_request(&self, sized: SizedRecord<'_>, within_ns: i64) -> Option<u32> {
        let last = self.last.filter(|last| last.size_class == SizeClass::Tiny)?;
        let is_answer = sized.size_class == SizeClass::Full && self.delay(sized.record)? <= within_ns;
        is_answer.then_some(last.size)
    }

    /// Adds a request of the gateway: a message of this size, which ends with the record.
    pub(crate) fn add_request(&mut self, sized: SizedRecord<'_>, size: u32) {
        if self.requests.len() >= MAX_REQUESTS {
            self.requests.pop_front();
        }
        let time_ns = sized.record.time_ns;
        let latest_ns = self.requests.back().map_or(time_ns, |before| before.latest_ns.max(time_ns));
        self.requests.push_back(Request { time_ns, size, size_class: sized.size_class, latest_ns });
    }

    pub(crate) fn arrival(&self, record: &Record) -> Arrival {
        let silence_ns = self.last.map(|last| record.start_ns.saturating_sub(last.time_ns));
        Arrival { time_ns: record.start_ns, silence_ns }
    }

    /// How long after the flow's last record a record comes, if it goes the other way.
    pub(crate) fn delay(&self, record: &Record) -> Option<i64> {
        let last = self.last.filter(|last| last.direction != record.direction)?;
        Some(record.start_ns.saturating_sub(last.time_ns))
    }

    pub(crate) fn size_before(&self, record: &Record, within_ns: i64) -> Option<u32> {
        let last = self.last.filter(|last| last.direction == record.direction)?;
        (record.start_ns.saturating_sub(last.time_ns) <= within_ns).then_some(last.size)
    }

    pub(crate) fn is_continued_by(&self, record: &Record, within_ns: i64) -> bool {
        self.size_before(record, within_ns).is_some()
    }

    /// The oldest request of the last `within_ns` that the service's record may answer, and its index. A tiny request
    /// has only a tiny answer, and a tiny answer is first of all for a tiny request.
    pub(crate) fn find_request(
        &self,
        answer: SizedRecord<'_>,
        within_ns: i64,
        is_possible: impl Fn(&Request) -> bool,
    ) -> Option<(usize, Request)> {
        let is_recent = |time_ns: i64| answer.record.start_ns.saturating_sub(time_ns) <= within_ns;
        // Many requests are never answered: old ones are not examined.
        let recent = self.requests.iter().rev().take_while(|request| is_recent(request.latest_ns)).count();
        let from = self.requests.len() - recent;
        let mut possible = (from..).zip(self.requests.range(from..).copied()).filter(|(_, request)| {
            is_recent(request.time_ns)
                && (answer.size_class == SizeClass::Tiny || request.size_class == SizeClass::Full)
                && is_possible(request)
        });
        let first = possible.next()?;
        let is_same_class = |(_, request): &(usize, Request)| request.size_class == answer.size_class;
        if is_same_class(&first) { Some(first) } else { possible.find(is_same_class).or(Some(first)) }
    }

    pub(crate) fn remove_request(&mut self, index: usize) {
        self.requests.remove(index);
    }
}

/// The most tunnels whose flows are taken together. In others each flow is taken alone.
const MAX_TUNNELS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EndpointPair {
    Addresses(IpAddr, SocketAddr),
    /// Their addresses in a tunnel, and its number.
    InTunnel(IpAddr, SocketAddr, u32),
    /// Those of a flow, which are not known.
    Flow(u64),
}

/// By few whole numbers, since each record is looked up by them.
impl Hash for EndpointPair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (gateway, service, tunnel) = match *self {
            Self::Addresses(gateway, service) => (gateway, service, 0),
            Self::InTunnel(gateway, service, number) => (gateway, service, number),
            Self::Flow(flow) => return state.write_u64(flow),
        };
        match (gateway, service.ip()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                state.write_u64(u64::from(one.to_bits()) << 32 | u64::from(other.to_bits()));
            }
            addresses => addresses.hash(state),
        }
        state.write_u64(u64::from(tunnel) << 16 | u64::from(service.port()));
    }
}

/// Numbers of tunnels. What is in a tunnel may be anybody's, so it is apart from the same addresses outside.
#[derive(Debug, Default)]
pub(crate) struct Tunnels(BTreeMap<String, u32>);

impl Tunnels {
    pub(crate) fn endpoints(&mut self, flow: &Flow) -> EndpointPair {
        let Flow { flow: id, gateway, service, .. } = *flow;
        let Some(tunnel) = &flow.encapsulation else { return EndpointPair::Addresses(gateway, service) };
        let number = self.number(tunnel);
        number.map_or(EndpointPair::Flow(id), |number| EndpointPair::InTunnel(gateway, service, number))
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

#[derive(Debug, Default)]
pub(crate) struct FlowEndpoints {
    flows: TwoGenerationCache<u64, Option<EndpointPair>, MAX_FLOWS>,
    tunnels: Tunnels,
}

impl FlowEndpoints {
    pub(crate) fn add(&mut self, flow: &Flow) {
        *self.flows.get_or_default(flow.flow) = Some(self.tunnels.endpoints(flow));
    }

    #[inline]
    pub(crate) fn of(&mut self, flow: u64) -> EndpointPair {
        *self.flows.get_or_default(flow).get_or_insert(EndpointPair::Flow(flow))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Transport;

    use super::*;
    use crate::testing::{MS, from, to};

    #[test]
    fn the_oldest_recent_request_of_the_right_size_class_is_answered() {
        let mut history = FlowHistory::default();
        for (at_ms, size_class) in
            [(0, SizeClass::Full), (50, SizeClass::Full), (60, SizeClass::Tiny), (70, SizeClass::Full)]
        {
            history.add_request(SizedRecord::new(&from(at_ms, 0), size_class), at_ms as u32);
        }
        let answer = to(100, 0);
        let request_at = |size_class, within_ms: i64, other_than: u32| {
            let answer = SizedRecord::new(&answer, size_class);
            history
                .find_request(answer, within_ms * MS, |request| request.size != other_than)
                .map(|(_, request)| request.size)
        };
        assert_eq!(request_at(SizeClass::Full, 99, 1), Some(50), "the one of 0 ms is too old");
        assert_eq!(request_at(SizeClass::Full, 99, 50), Some(70), "a tiny request has only a tiny answer");
        assert_eq!(request_at(SizeClass::Tiny, 99, 1), Some(60));
        assert_eq!(request_at(SizeClass::Tiny, 99, 60), Some(50), "a tiny answer may be for any request");
        assert_eq!(request_at(SizeClass::Full, 20, 1), None);
    }

    #[test]
    fn the_number_of_requests_is_bounded() {
        let mut history = FlowHistory::default();
        (0..100).for_each(|n| history.add_request(SizedRecord::new(&from(n, 0), SizeClass::Full), n as u32));
        assert_eq!(history.requests.len(), MAX_REQUESTS);
        assert_eq!(history.requests[0].size, 100 - MAX_REQUESTS as u32);
    }

    #[test]
    fn connections_of_one_gateway_to_one_service_have_the_same_endpoints() {
        let mut endpoints = FlowEndpoints::default();
        assert_eq!(endpoints.of(1), EndpointPair::Flow(1), "until its addresses are known");
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
        assert_eq!([endpoints.of(4), endpoints.of(4)], [EndpointPair::Flow(4); 2]);
    }
}
