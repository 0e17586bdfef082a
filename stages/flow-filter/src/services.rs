//! Which services are selected: by address, by host name as DNS responses in the capture resolve it, and by port.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use simple_dns::Packet;
use simple_dns::rdata::RData;
use sizeleak_frame::Transport;
use sizeleak_packet::{AddressSet, DnsKind, DnsMessage, Encapsulation, TransportSegment};
use sizeleak_platform::runtime::ConfigureError;

use crate::flow_table::{GatewayEnds, TwoGenerations};

/// At most this many names and resolved addresses are remembered: more are an attack on memory, not a service.
pub(crate) const MAX_RESOLVED: usize = 10_000;

/// The services that are selected; all if none is named.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ServiceSelection {
    #[serde(skip)]
    addresses: AddressSet,
    /// Host names in lower case, and the aliases they lead to.
    pub(crate) names: BTreeSet<String>,
    resolved: BTreeSet<IpAddr>,
    /// Queries for them. They stay after an answer: a mirrored answer comes twice, and the first may be forged.
    queries: TwoGenerations<QueryKey, ()>,
    /// Whose answers count even if no query for them was seen.
    #[serde(skip)]
    resolvers: AddressSet,
    #[serde(skip)]
    ports: Vec<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    Quiet,
    /// It tells addresses of a selected name that the gateway was not seen to ask for: they were not taken.
    Unasked,
    /// Not all addresses were taken: there are too many.
    Full,
}

impl ServiceSelection {
    pub(crate) fn parse(services: &[String], ports: &[u16], resolvers: &[String]) -> Result<Self, ConfigureError> {
        let (mut addresses, mut names) = (AddressSet::default(), BTreeSet::new());
        for service in services {
            if addresses.insert(service).is_err() {
                names.insert(host_name(service)?);
            }
        }
        let resolvers = AddressSet::parse(resolvers).map_err(|error| ConfigureError::Usage(error.to_string()))?;
        let (resolved, queries) = (BTreeSet::new(), TwoGenerations::new(MAX_QUERIES));
        Ok(Self { addresses, names, resolved, queries, resolvers, ports: ports.to_vec() })
    }

    pub(crate) fn restored(&self, read: Self) -> Self {
        let (addresses, resolvers, ports) = (self.addresses.clone(), self.resolvers.clone(), self.ports.clone());
        Self { addresses, resolvers, ports, ..read }
    }

    pub(crate) fn contains(&self, service: SocketAddr) -> bool {
        let address = service.ip();
        let is_address_selected = self.addresses.is_empty() && self.names.is_empty()
            || self.addresses.contains(address)
            || self.resolved.contains(&address);
        is_address_selected && (self.ports.is_empty() || self.ports.contains(&service.port()))
    }

    pub(crate) fn excludes_as_infrastructure(&self, segment: &TransportSegment<'_>) -> bool {
        let is_selected = |end: SocketAddr| self.ports.contains(&end.port());
        is_infrastructure(segment) && !is_selected(segment.source) && !is_selected(segment.destination)
    }

    /// Remembers the gateway's queries for the selected names, and takes addresses and aliases from the answers to
    /// them. A message that cannot be read is ignored. `gateways` are those at its ends.
    pub(crate) fn resolve(
        &mut self,
        message: &DnsMessage<'_>,
        gateways: Option<GatewayEnds>,
        encapsulation: Option<Encapsulation>,
    ) -> Resolution {
        let Ok(packet) = Packet::parse(message.bytes) else { return Resolution::Quiet };
        let query = QueryKey::new(message, encapsulation, &packet);
        if message.kind == DnsKind::Query {
            let is_gateways = matches!(gateways, Some(GatewayEnds::Source | GatewayEnds::Both));
            if let Some(query) = query.filter(|query| is_gateways && self.names.contains(&query.name))
                && self.queries.get(&query).is_none()
            {
                self.queries.insert(query, ());
            }
            return Resolution::Quiet;
        }
        let owner = |record: &simple_dns::ResourceRecord<'_>| record.name.to_string().to_ascii_lowercase();
        if !packet.answers.iter().any(|record| self.names.contains(&owner(record))) {
            return Resolution::Quiet;
        }
        let is_asked = query.is_some_and(|query| self.queries.get(&query).is_some());
        if !is_asked && !self.resolvers.contains(message.resolver) {
            return Resolution::Unasked;
        }
        let mut resolution = Resolution::Quiet;
        for record in &packet.answers {
            if !self.names.contains(&owner(record)) {
                continue;
            }
            let is_kept = match &record.rdata {
                RData::A(address) => self.add_address(Ipv4Addr::from(address.address).into()),
                RData::AAAA(address) => self.add_address(Ipv6Addr::from(address.address).into()),
                RData::CNAME(alias) => self.add_name(alias.0.to_string().to_ascii_lowercase()),
                _ => true,
            };
            if !is_kept {
                resolution = Resolution::Full;
            }
        }
        resolution
    }

    fn add_address(&mut self, address: IpAddr) -> bool {
        self.resolved.contains(&address) || self.has_room() && self.resolved.insert(address)
    }

    fn add_name(&mut self, name: String) -> bool {
        self.names.contains(&name) || self.has_room() && self.names.insert(name)
    }

    fn has_room(&self) -> bool {
        self.resolved.len() + self.names.len() < MAX_RESOLVED
    }
}

fn host_name(text: &str) -> Result<String, ConfigureError> {
    let name = text.trim_end_matches('.').to_ascii_lowercase();
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    // A last label of digits alone is a mistyped address, not a name.
    let ends_in_word = name.rsplit('.').next().is_some_and(|last| !last.bytes().all(|b| b.is_ascii_digit()));
    if name.split('.').all(is_label) && ends_in_word {
        Ok(name)
    } else {
        Err(ConfigureError::Usage(format!("`{text}` is not an IP address, a network or a host name")))
    }
}

/// Matter sends messages to groups of devices (Matter core specification, section 4.16).
const MATTER_PORT: u16 = 5540;

/// Whether this is the UDP port of a protocol that keeps a network running and never carries TLS. Gateways use them all
/// day; without them streams stay small.
fn is_infrastructure_port(port: u16) -> bool {
    // DNS, DHCP, TFTP, NTP, NetBIOS, SNMP, DHCPv6, SSDP, WS-Discovery, NAT-PMP, mDNS, LLMNR.
    matches!(port, 53 | 67..=69 | 123 | 137 | 138 | 161 | 162 | 546 | 547 | 1900 | 3702 | 5351 | 5353 | 5355)
}

/// Whether a datagram is of no protocol with messages that act: it is multicast or broadcast, or of a protocol that neither runs under.
fn is_infrastructure(segment: &TransportSegment<'_>) -> bool {
    let destination = segment.destination.ip();
    segment.transport == Transport::Udp
        && (is_infrastructure_port(segment.source.port())
            || is_infrastructure_port(segment.destination.port())
            || destination.is_multicast() && segment.destination.port() != MATTER_PORT
            || destination == Ipv4Addr::BROADCAST)
}

/// At most this many queries are remembered, those asked last in any case.
const MAX_QUERIES: usize = 8192;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct QueryKey {
    client: SocketAddr,
    resolver: IpAddr,
    encapsulation: Option<Encapsulation>,
    id: u16,
    /// In lower case.
    name: String,
}

impl QueryKey {
    fn new(
        message: &DnsMessage<'_>,
        encapsulation: Option<Encapsulation>,
        packet: &simple_dns::Packet<'_>,
    ) -> Option<Self> {
        let name = packet.questions.first()?.qname.to_string().to_ascii_lowercase();
        Some(Self { client: message.client, resolver: message.resolver, encapsulation, id: packet.id(), name })
    }
}

#[cfg(test)]
mod tests;
