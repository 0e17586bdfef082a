//! The connections of an address by service, and their messages added up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use sizeleak_command_segmenter::RecordRole;
use sizeleak_frame::{Direction, Transport};

use crate::survey::connection::{Connection, MessageSums, Messages, Sizes};
use crate::survey::report::{MessageKind, SizeBin, SurveyedConnection, SurveyedService, TimesOfSize, Traffic};

#[derive(Debug)]
pub(crate) struct Service<'a> {
    pub(crate) server_name: Option<String>,
    pub(crate) transport: Transport,
    pub(crate) protocol: Option<&'a str>,
    pub(crate) connections: Vec<(u64, &'a Connection)>,
    pub(crate) messages: MessageSums,
}

impl MessageSums {
    fn traffic(&self) -> Traffic {
        let [to_gateway, from_gateway] = self.sizes.both();
        let ranges = to_gateway.ranges().zip(from_gateway.ranges());
        let histogram = ranges
            .map(|((from, to, to_gateway), (_, _, from_gateway))| SizeBin { from, to, to_gateway, from_gateway })
            .filter(|bin| bin.to_gateway + bin.from_gateway > 0);
        let unprompted = [(Direction::ToGateway, "commands"), (Direction::FromGateway, "reports")];
        let messages = unprompted.map(|(direction, name)| {
            let Messages { sizes, replied } = self.unprompted.of(direction);
            MessageKind { replied: Some(*replied), ..kind(direction.word(), name, sizes) }
        });
        let roles = self.roles.iter();
        let roles = roles.map(|((direction, role), sizes)| kind(direction.word(), role_name(*direction, *role), sizes));
        let mut kinds: Vec<MessageKind> = messages.into_iter().chain(roles).filter(|kind| kind.count > 0).collect();
        // To the gateway first, and commands and reports before all others of their direction.
        kinds.sort_by_key(|kind| (Reverse(kind.direction), kind.replied.is_none()));
        Traffic {
            to_gateway: to_gateway.count,
            from_gateway: from_gateway.count,
            bytes_to_gateway: to_gateway.bytes,
            bytes_from_gateway: from_gateway.bytes,
            histogram: histogram.collect(),
            kinds,
        }
    }
}

fn kind(direction: &'static str, kind: &'static str, sizes: &Sizes) -> MessageKind {
    let exact = sizes.most_frequent().into_iter().map(|(size, times)| TimesOfSize { size, times });
    MessageKind { direction, kind, count: sizes.count, replied: None, sizes: exact.collect(), other_sizes: sizes.other }
}

fn role_name(direction: Direction, role: RecordRole) -> &'static str {
    match (role, direction) {
        (RecordRole::Message, _) => "messages",
        (RecordRole::Reply, _) => "replies",
        (RecordRole::Answer, _) => "answers",
        (RecordRole::Periodic, Direction::ToGateway) => "keep-alives",
        (RecordRole::Periodic, Direction::FromGateway) => "polls",
        (RecordRole::Small, _) => "small",
        (RecordRole::Other, _) => "other",
    }
}

/// The services of connections, those with the most messages first. A connection without a server name belongs to the
/// name that another one to the same address and port asked for, if all of them asked for the same.
pub(crate) fn services<'a>(connections: impl Iterator<Item = (u64, &'a Connection)> + Clone) -> Vec<Service<'a>> {
    let mut names: BTreeMap<SocketAddr, BTreeSet<&str>> = BTreeMap::new();
    for (_, connection) in connections.clone() {
        names.entry(connection.service).or_default().extend(connection.server_name());
    }
    let name = |connection: &'a Connection| match names.get(&connection.service) {
        Some(names) if connection.server_name().is_none() && names.len() == 1 => names.first().copied(),
        _ => connection.server_name(),
    };
    let mut groups = BTreeMap::new();
    for (flow, connection) in connections {
        let name = name(connection);
        let end = if name.is_none() { Some(connection.service.ip()) } else { None };
        let key = (name, end, connection.service_port(), connection.transport, connection.carried.as_deref());
        let group = groups.entry(key).or_insert_with(|| Service {
            server_name: name.map(str::to_owned),
            transport: connection.transport,
            protocol: connection.carried.as_deref(),
            connections: Vec::new(),
            messages: MessageSums::default(),
        });
        group.messages.add(&connection.messages);
        group.connections.push((flow, connection));
    }
    let mut services: Vec<Service<'a>> = groups.into_values().collect();
    for service in &mut services {
        let order =
            |(flow, connection): &(_, &Connection)| (Reverse(connection.messages.count()), connection.span_ns, *flow);
        service.connections.sort_by_key(order);
    }
    // By the order of names and addresses where as many messages were seen.
    services.sort_by_key(|service| Reverse(service.messages.count()));
    services
}

impl Service<'_> {
    pub(crate) fn name(&self) -> String {
        match (&self.server_name, self.connections.first()) {
            (Some(name), _) => name.clone(),
            (None, Some((_, connection))) => connection.service.to_string(),
            (None, None) => String::new(),
        }
    }

    pub(crate) fn surveyed(&self) -> SurveyedService {
        let distinct = |text: fn(&Connection) -> Option<&String>| {
            let texts: BTreeSet<&String> = self.connections.iter().filter_map(|(_, other)| text(other)).collect();
            texts.into_iter().cloned().collect::<Vec<String>>()
        };
        let count = |is: fn(&Connection) -> bool| {
            self.connections.iter().filter(|(_, connection)| is(connection)).count() as u64
        };
        let ends: BTreeSet<SocketAddr> = self.connections.iter().map(|(_, connection)| connection.service).collect();
        SurveyedService {
            server_name: self.server_name.clone(),
            ends: ends.into_iter().collect(),
            transport: Transport::name(self.transport),
            protocol: self.protocol.map(str::to_owned),
            tls_versions: distinct(|connection| connection.tls_version.as_ref()),
            cipher_suites: distinct(|connection| connection.cipher_suite.as_ref()),
            joined_mid_stream: count(|connection| connection.joined_mid_stream() == Some(true)),
            opened_by_service: count(|connection| connection.is_opened_by_service),
            sized_by_segments: count(|connection| connection.is_sized_by_segments),
            traffic: self.messages.traffic(),
            connections: self.connections.iter().map(|(flow, connection)| surveyed(*flow, connection)).collect(),
        }
    }
}

fn surveyed(flow: u64, connection: &Connection) -> SurveyedConnection {
    SurveyedConnection {
        flow: flow.to_string(),
        service: connection.service,
        tunnel: connection.tunnel.clone(),
        span_ns: connection.span_ns,
        tls_version: connection.tls_version.clone(),
        cipher_suite: connection.cipher_suite.clone(),
        joined_mid_stream: connection.joined_mid_stream(),
        traffic: connection.messages.traffic(),
    }
}
