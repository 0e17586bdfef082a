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
    /// [`ConfigureError::Usage`] for the first text that is none of them.
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
        Err(ConfigureError::Usage(format!("`{text}` is neither an IP address nor a network nor a host name")))
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
mod tests {
    use proptest::prelude::*;
    use simple_dns::rdata::{A, CNAME};
    use simple_dns::{CLASS, Name, ResourceRecord};
    use sizeleak_packet::CapturedBytes;

    use super::*;

    fn selection(service: &str) -> ServiceSelection {
        ServiceSelection::parse(&[service.to_owned()], &[]).unwrap()
    }

    #[test]
    fn services_are_addresses_networks_or_host_names() {
        assert!(selection("Hub.Example.").names.contains("hub.example"));
        assert!(selection("203.0.113.0/24").contains("203.0.113.9:443".parse().unwrap()));
        for wrong in ["", "a b", "203.0.113.400", "..", "203.0.113.0/99"] {
            assert!(ServiceSelection::parse(&[wrong.to_owned()], &[]).is_err(), "{wrong}");
        }
    }

    fn response() -> Vec<u8> {
        let name = |text: &'static str| Name::new(text).unwrap();
        let record = |owner, rdata| ResourceRecord::new(name(owner), CLASS::IN, 60, rdata);
        let address = |last: u32| RData::A(A { address: 0x0a00_0000 + last });
        let mut packet = Packet::new_reply(1);
        packet.answers.push(record("Hub.example", RData::CNAME(CNAME(name("cdn.example")))));
        packet.answers.push(record("cdn.example", address(1)));
        packet.answers.push(record("other.example", address(2)));
        packet.build_bytes_vec().unwrap()
    }

    #[test]
    fn aliases_of_selected_names_are_followed_and_other_names_are_not() {
        let mut services = selection("hub.example");
        services.resolve(&response());
        assert!(services.contains("10.0.0.1:443".parse().unwrap()));
        assert!(!services.contains("10.0.0.2:443".parse().unwrap()));
    }

    #[test]
    fn infrastructure_is_recognised_by_port_and_by_destination() {
        let to = |port: u16, destination: &str| {
            let destination = SocketAddr::new(destination.parse().unwrap(), port);
            let (transport, source) = (Transport::Udp, "10.0.0.2:50000".parse().unwrap());
            let payload = CapturedBytes::default();
            is_infrastructure(&TransportSegment { transport, source, destination, sequence: 0, flags: 0, payload })
        };
        assert!(to(53, "203.0.113.1") && to(5353, "203.0.113.1"));
        assert!(to(9999, "239.1.2.3") && to(9999, "255.255.255.255") && to(9999, "ff02::fb"));
        assert!(!to(5684, "203.0.113.1") && !to(443, "203.0.113.1"));
    }

    proptest! {
        #[test]
        fn damaged_responses_never_panic(at: prop::sample::Index, byte: u8) {
            let mut response = response();
            let at = at.index(response.len());
            response[at] = byte;
            selection("hub.example").resolve(&response);
        }
    }
}
