//! What is known of one connection and of an address, whatever becomes of its connections: counts, and the sizes of
//! messages, how many are in each range, and the exact ones as far as they fit. And the bounded table of the busiest.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use sizeleak_command_segmenter::{ClassifiedRecord, RecordRole};
use sizeleak_frame::{
    Command, ContentType, Direction, Flow, Notice, PerDirection, Protocol, Record, Session, Transport, what,
};

/// Longer server names are cut: DNS has none (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 255;

/// A connection, seen from the side that counts as the gateway.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) gateway: IpAddr,
    pub(crate) service: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) tunnel: Option<String>,
    /// The times of its first and last record.
    pub(crate) span_ns: Option<[i64; 2]>,
    server_name: Option<String>,
    /// Whether the other side is the client, by its first record.
    pub(crate) is_opened_by_service: bool,
    pub(crate) tls_version: Option<String>,
    pub(crate) cipher_suite: Option<String>,
    /// Whether application data came before any handshake; `None` without application data.
    is_joined: Option<bool>,
    has_session: bool,
    /// What it carries, as a session, a record or a notice says.
    pub(crate) carried: Option<String>,
    /// Whether lengths of segments stand for records.
    pub(crate) is_sized_by_segments: bool,
    pub(crate) messages: MessageSums,
}

impl Connection {
    pub(crate) fn new(flow: &Flow) -> Self {
        Self {
            gateway: flow.gateway,
            service: flow.service,
            transport: flow.transport,
            tunnel: flow.encapsulation.clone(),
            span_ns: None,
            server_name: None,
            is_opened_by_service: false,
            tls_version: None,
            cipher_suite: None,
            is_joined: None,
            has_session: false,
            carried: None,
            is_sized_by_segments: false,
            messages: MessageSums::default(),
        }
    }

    /// Takes what a handshake revealed; a later one replaces what it says anew. Of datagrams without a handshake a session
    /// says the protocol alone.
    pub(crate) fn add_session(&mut self, session: Session) {
        let is_of_tls = session.protocol.as_deref().is_none_or(|protocol| protocol == Protocol::Tls.name());
        let Session { server_name, tls_version, cipher_suite, .. } = &session;
        self.has_session |= is_of_tls || [server_name, tls_version, cipher_suite].iter().any(|told| told.is_some());
        self.carried = session.protocol.or(self.carried.take());
        let name = session.server_name.map(|name| name.chars().take(LONGEST_NAME).collect());
        self.server_name = name.or(self.server_name.take());
        self.tls_version = session.tls_version.or(self.tls_version.take());
        self.cipher_suite = session.cipher_suite.or(self.cipher_suite.take());
    }

    /// Takes a record. True if it carries a message.
    pub(crate) fn add_record(&mut self, record: &Record) -> bool {
        if self.span_ns.is_none() && record.content_type == ContentType::Handshake {
            self.is_opened_by_service = record.direction == Direction::ToGateway;
        }
        let [first, last] = self.span_ns.unwrap_or([record.start_ns, record.time_ns]);
        self.span_ns = Some([first.min(record.start_ns), last.max(record.time_ns)]);
        self.carried.get_or_insert_with(|| record.protocol.name().to_owned());
        let is_message = record.content_type == ContentType::ApplicationData && !record.handshake;
        if is_message {
            self.is_joined.get_or_insert(!self.has_session);
            self.messages.sizes.of_mut(record.direction).add(record.length.into());
        }
        is_message
    }

    pub(crate) fn add_notice(&mut self, notice: &Notice) {
        match &*notice.what {
            what::NOT_TLS => self.carried = Some(Protocol::Tcp.name().to_owned()),
            what::ASSUMED if self.transport == Transport::Tcp && self.carried.is_none() => {
                self.is_sized_by_segments = true;
            }
            _ => {}
        }
    }

    pub(crate) fn add_command(&mut self, command: &Command) {
        let messages = self.messages.unprompted.of_mut(command.direction);
        messages.sizes.add(command.size);
        messages.replied += u64::from(command.replies > 0);
    }

    pub(crate) fn add_role(&mut self, record: &ClassifiedRecord) {
        if record.role != RecordRole::Message {
            self.messages.roles.entry((record.direction, record.role)).or_default().add(record.length.into());
        }
    }

    /// The name of the service: what the gateway asked for. What a client asks the gateway for is the gateway's name.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref().filter(|_| !self.is_opened_by_service)
    }

    /// The port of the service; `None` if the service is the client, which has another one each time.
    pub(crate) fn service_port(&self) -> Option<u16> {
        (!self.is_opened_by_service).then(|| self.service.port())
    }

    /// Whether it had long been open when the capture began, or its handshake is missing; `None` if it carries no TLS,
    /// or no messages.
    pub(crate) fn joined_mid_stream(&self) -> Option<bool> {
        self.is_joined.filter(|_| self.carried.as_deref().is_some_and(Protocol::has_tls_handshake))
    }

    pub(crate) fn duration_ns(&self) -> i64 {
        self.span_ns.map_or(0, |[first, last]| last.saturating_sub(first))
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct MessageSums {
    pub(crate) sizes: PerDirection<Sizes>,
    /// Commands, and reports.
    pub(crate) unprompted: PerDirection<Messages>,
    /// The records that belong to no command and no report.
    pub(crate) roles: BTreeMap<(Direction, RecordRole), Sizes>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Messages {
    pub(crate) sizes: Sizes,
    pub(crate) replied: u64,
}

impl MessageSums {
    pub(crate) fn add(&mut self, other: &Self) {
        for direction in Direction::BOTH {
            self.sizes.of_mut(direction).merge(other.sizes.of(direction));
            let (messages, more) = (self.unprompted.of_mut(direction), other.unprompted.of(direction));
            messages.sizes.merge(&more.sizes);
            messages.replied = messages.replied.saturating_add(more.replied);
        }
        for (role, sizes) in &other.roles {
            self.roles.entry(*role).or_default().merge(sizes);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.sizes.to_gateway.count.saturating_add(self.sizes.from_gateway.count)
    }

    pub(crate) fn of_role(&self, role: RecordRole) -> u64 {
        self.roles.iter().filter(|((_, other), _)| *other == role).map(|(_, sizes)| sizes.count).sum()
    }
}

const MAX_EXACT: usize = 48;

/// Where each range but the first begins, in bytes.
pub(crate) const RANGES: [u64; 9] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    ranges: [u64; RANGES.len() + 1],
    exact: BTreeMap<u64, u64>,
    pub(crate) other: u64,
}

impl Sizes {
    pub(crate) fn add(&mut self, size: u64) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size);
        let range = RANGES.partition_point(|from| *from <= size);
        if let Some(count) = self.ranges.get_mut(range) {
            *count = count.saturating_add(1);
        }
        self.add_exact(size, 1);
    }

    fn add_exact(&mut self, size: u64, times: u64) {
        if self.exact.len() < MAX_EXACT || self.exact.contains_key(&size) {
            let count = self.exact.entry(size).or_default();
            *count = count.saturating_add(times);
        } else {
            self.other = self.other.saturating_add(times);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.other = self.other.saturating_add(other.other);
        for (count, more) in self.ranges.iter_mut().zip(other.ranges) {
            *count = count.saturating_add(more);
        }
        for (size, times) in &other.exact {
            self.add_exact(*size, *times);
        }
    }

    /// How many messages are smaller than a number of bytes, which is where a range begins.
    pub(crate) fn below(&self, bytes: u64) -> u64 {
        let ranges = RANGES.partition_point(|from| *from <= bytes);
        self.ranges.iter().take(ranges).sum()
    }

    /// The ranges with their first and last size, `None` for no last, and how many messages are in each.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, Option<u64>, u64)> {
        let firsts = std::iter::once(0).chain(RANGES);
        let lasts = RANGES.iter().map(|next| Some(next - 1)).chain([None]);
        firsts.zip(lasts).zip(self.ranges).map(|((first, last), count)| (first, last, count))
    }

    pub(crate) fn most_frequent(&self) -> Vec<(u64, u64)> {
        let mut sizes: Vec<(u64, u64)> = self.exact.iter().map(|(size, times)| (*size, *times)).collect();
        sizes.sort_by_key(|(size, times)| (std::cmp::Reverse(*times), *size));
        sizes
    }
}

/// Keeps the values with the most messages; of those with as many, the latest.
#[derive(Debug)]
pub(crate) struct BusiestTable<K, V> {
    values: BTreeMap<K, (u64, V)>,
    messages: fn(&V) -> u64,
    capacity: usize,
    added: u64,
    pub(crate) forgotten: u64,
}

impl<K: Ord + Copy, V> BusiestTable<K, V> {
    /// `messages` says how many a value has.
    pub(crate) fn new(capacity: usize, messages: fn(&V) -> u64) -> Self {
        Self { values: BTreeMap::new(), messages, capacity: capacity.max(2), added: 0, forgotten: 0 }
    }

    pub(crate) fn find(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }

    pub(crate) fn find_or_add(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        if self.values.len() >= self.capacity && !self.values.contains_key(&key) {
            self.forget_the_quietest();
        }
        let added = &mut self.added;
        let (_, value) = self.values.entry(key).or_insert_with(|| {
            *added += 1;
            (*added, value())
        });
        value
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.values.iter().map(|(key, (_, value))| (key, value))
    }

    fn forget_the_quietest(&mut self) {
        let mut ranks: Vec<(u64, u64)> =
            self.values.values().map(|(added, value)| ((self.messages)(value), *added)).collect();
        let half = ranks.len() / 2;
        let (_, &mut least, _) = ranks.select_nth_unstable(half);
        let before = self.values.len();
        self.values.retain(|_, (added, value)| ((self.messages)(value), *added) >= least);
        self.forgotten += (before - self.values.len()) as u64;
    }
}

/// The most services, clients and ports that are told apart for an address.
const MAX_ENDS: usize = 64;

pub(crate) const MANY_CLIENTS: usize = 4;

/// Records from this length on are parts of large transfers.
const LARGE: u32 = 8192;

#[derive(Debug, Default)]
pub(crate) struct AddressTally {
    /// Connections that it opened, with messages or without.
    pub(crate) opened: u64,
    pub(crate) messages: u64,
    /// Those that are parts of large transfers.
    pub(crate) large: u64,
    /// The services of connections that it opened and that carried messages.
    pub(crate) services: BTreeSet<SocketAddr>,
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

    pub(crate) fn messages(&self) -> u64 {
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_hold_what_is_between_their_ends() {
        let mut sizes = Sizes::default();
        for size in [0, 31, 32, 63, 64, 8191, 8192, u64::MAX] {
            sizes.add(size);
        }
        let filled: Vec<_> = sizes.ranges().filter(|(_, _, count)| *count > 0).collect();
        let expected = [(0, Some(31), 2), (32, Some(63), 2), (64, Some(127), 1), (4096, Some(8191), 1)];
        assert_eq!(filled, [&expected[..], &[(8192, None, 2)]].concat());
        assert_eq!((sizes.below(32), sizes.below(64), sizes.below(8192)), (2, 4, 6));
    }

    proptest! {
        #[test]
        fn all_messages_are_counted_however_many_sizes_there_are(
            one in prop::collection::vec(0_u64..20_000, 0..200), other in prop::collection::vec(0_u64..20_000, 0..200),
        ) {
            let counted = |list: &[u64]| {
                let mut sizes = Sizes::default();
                for size in list {
                    sizes.add(*size);
                }
                sizes
            };
            let mut merged = counted(&one);
            merged.merge(&counted(&other));
            let all = (one.len() + other.len()) as u64;
            prop_assert_eq!(merged.count, all);
            prop_assert_eq!(merged.ranges().map(|(_, _, count)| count).sum::<u64>(), all);
            let exact: Vec<(u64, u64)> = merged.most_frequent();
            prop_assert!(exact.len() <= MAX_EXACT);
            prop_assert_eq!(exact.iter().map(|(_, times)| times).sum::<u64>() + merged.other, all);
        }
    }

    #[test]
    fn a_flood_of_quiet_values_forgets_no_busy_one() {
        let mut table: BusiestTable<u64, u64> = BusiestTable::new(100, |messages| *messages);
        *table.find_or_add(7, || 0) = 50;
        for key in 1000..100_000 {
            table.find_or_add(key, || 1);
            assert!(table.iter().count() <= 100);
        }
        assert_eq!(table.find(&7), Some(&mut 50));
        assert!(table.find(&99_999).is_some() && table.find(&1000).is_none());
        assert_eq!(table.forgotten + table.iter().count() as u64, 99_001);
    }

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
