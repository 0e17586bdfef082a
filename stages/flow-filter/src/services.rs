//! Which services are selected: by address, by host name as DNS responses in the capture resolve it, and by port.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use simple_dns::Packet;
use simple_dns::rdata::RData;
use sizeleak_frame::Transport;
use sizeleak_packet::{AddressSet, TransportSegment};
use sizeleak_runtime::ConfigureError;

/// At most this many names and resolved addresses are remembered: more are an attack on memory, not a service.
const MOST_RESOLVED: usize = 10_000;

/// The services that are selected; all if none is named.
#[derive(Debug)]
pub(crate) struct ServiceSelection {
    addresses: AddressSet,
    /// Host names in lower case, and the aliases they lead to.
    names: BTreeSet<String>,
    resolved: BTreeSet<IpAddr>,
    /// All ports if empty.
    ports: Vec<u16>,
}

impl ServiceSelection {
    /// Reads addresses, networks and host names.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] for the first text that is not one of these.
    pub(crate) fn parse(services: &[String], ports: &[u16]) -> Result<Self, ConfigureError> {
        let (mut addresses, mut names) = (AddressSet::default(), BTreeSet::new());
        for service in services {
            if addresses.insert(service).is_err() {
                names.insert(host_name(service)?);
            }
        }
        Ok(Self { addresses, names, resolved: BTreeSet::new(), ports: ports.to_vec() })
    }

    /// Whether a service is selected.
    pub(crate) fn contains(&self, service: SocketAddr) -> bool {
        let address = service.ip();
        let is_address_selected = self.addresses.is_empty() && self.names.is_empty()
            || self.addresses.contains(address)
            || self.resolved.contains(&address);
        is_address_selected && (self.ports.is_empty() || self.ports.contains(&service.port()))
    }

    /// Whether a segment only keeps the network running, and neither of its ports is selected explicitly.
    pub(crate) fn excludes_as_infrastructure(&self, segment: &TransportSegment<'_>) -> bool {
        let is_selected = |end: SocketAddr| self.ports.contains(&end.port());
        is_infrastructure(segment) && !is_selected(segment.source) && !is_selected(segment.destination)
    }

    /// Whether DNS responses need to be looked at.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Takes addresses and aliases of the selected names from a DNS response. A response that cannot be read is
    /// ignored.
    pub(crate) fn resolve(&mut self, response: &[u8]) {
        let Ok(packet) = Packet::parse(response) else { return };
        for record in &packet.answers {
            let name = record.name.to_string().to_ascii_lowercase();
            if !self.names.contains(&name) || self.resolved.len() + self.names.len() >= MOST_RESOLVED {
                continue;
            }
            match &record.rdata {
                RData::A(address) => {
                    self.resolved.insert(Ipv4Addr::from(address.address).into());
                }
                RData::AAAA(address) => {
                    self.resolved.insert(Ipv6Addr::from(address.address).into());
                }
                RData::CNAME(alias) => {
                    self.names.insert(alias.0.to_string().to_ascii_lowercase());
                }
                _ => {}
            }
        }
    }
}

/// A host name in lower case.
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

/// Whether this is the UDP port of a protocol that keeps a network running and never carries TLS. Gateways use them all
/// day; without them streams stay small.
fn is_infrastructure_port(port: u16) -> bool {
    // DNS, DHCP, TFTP, NTP, NetBIOS, SNMP, DHCPv6, SSDP, WS-Discovery, NAT-PMP, mDNS, LLMNR.
    matches!(port, 53 | 67..=69 | 123 | 137 | 138 | 161 | 162 | 546 | 547 | 1900 | 3702 | 5351 | 5353 | 5355)
}

/// Whether a datagram cannot be DTLS or QUIC: it is multicast or broadcast, or of a protocol that neither runs under.
fn is_infrastructure(segment: &TransportSegment<'_>) -> bool {
    let destination = segment.destination.ip();
    segment.transport == Transport::Udp
        && (is_infrastructure_port(segment.source.port())
            || is_infrastructure_port(segment.destination.port())
            || destination.is_multicast()
            || destination == Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests;
