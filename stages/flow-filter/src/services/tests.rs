//! Tests of `services`.

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
        is_infrastructure(&TransportSegment {
            transport,
            source,
            destination,
            sequence: 0,
            flags: 0,
            acknowledgement: None,
            payload,
        })
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
