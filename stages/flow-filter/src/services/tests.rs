//! Tests of `services`.

use proptest::prelude::*;
use simple_dns::rdata::{A, CNAME};
use simple_dns::{CLASS, Name, QCLASS, QTYPE, Question, ResourceRecord, TYPE};
use sizeleak_packet::CapturedBytes;

use super::*;

fn selection(service: &str) -> ServiceSelection {
    ServiceSelection::parse(&[service.to_owned()], &[], &[]).unwrap()
}

#[test]
fn services_are_addresses_networks_or_host_names() {
    assert!(selection("Hub.Example.").names.contains("hub.example"));
    assert!(selection("203.0.113.0/24").contains("203.0.113.9:443".parse().unwrap()));
    for wrong in ["", "a b", "203.0.113.400", "..", "203.0.113.0/99"] {
        assert!(ServiceSelection::parse(&[wrong.to_owned()], &[], &[]).is_err(), "{wrong}");
    }
}

fn name(text: &str) -> Name<'_> {
    Name::new(text).unwrap()
}

fn question() -> Question<'static> {
    Question::new(name("Hub.example"), QTYPE::TYPE(TYPE::A), QCLASS::CLASS(CLASS::IN), false)
}

fn query() -> Vec<u8> {
    let mut packet = Packet::new_query(7);
    packet.questions.push(question());
    packet.build_bytes_vec().unwrap()
}

/// An alias of the name, this many addresses of that, and one of another name.
fn response(addresses: u32) -> Vec<u8> {
    let record = |owner, rdata| ResourceRecord::new(name(owner), CLASS::IN, 60, rdata);
    let address = |last: u32| RData::A(A { address: 0x0a00_0000 + last });
    let mut packet = Packet::new_reply(7);
    packet.questions.push(question());
    packet.answers.push(record("Hub.example", RData::CNAME(CNAME(name("cdn.example")))));
    packet.answers.extend((1..=addresses).map(|last| record("cdn.example", address(last))));
    packet.answers.push(record("other.example", address(0xff_ffff)));
    packet.build_bytes_vec().unwrap()
}

fn message(kind: DnsKind, bytes: &[u8]) -> DnsMessage<'_> {
    let (client, resolver) = ("192.168.1.20:4000".parse().unwrap(), "192.168.1.1".parse().unwrap());
    DnsMessage { kind, client, resolver, bytes }
}

fn ask(services: &mut ServiceSelection, gateways: Option<GatewayEnds>) {
    services.resolve(&message(DnsKind::Query, &query()), gateways, None);
}

#[test]
fn aliases_of_selected_names_are_followed_and_other_names_are_not() {
    let mut services = selection("hub.example");
    ask(&mut services, Some(GatewayEnds::Source));
    let resolution = services.resolve(&message(DnsKind::Response, &response(1)), Some(GatewayEnds::Destination), None);
    assert_eq!(resolution, Resolution::Quiet);
    assert!(services.contains("10.0.0.1:443".parse().unwrap()));
    assert!(!services.contains("10.255.255.255:443".parse().unwrap()));
}

#[test]
fn only_answers_that_the_gateway_asked_for_or_of_named_resolvers_are_taken() {
    let bytes = response(1);
    let answer = message(DnsKind::Response, &bytes);
    let tunnel = Encapsulation {
        kind: sizeleak_packet::TunnelKind::Gre,
        id: None,
        ends: ["10.9.9.1".parse().unwrap(), "10.9.9.2".parse().unwrap()],
    };
    let mut other_id = bytes.clone();
    other_id[1] ^= 1;
    for (forged, encapsulation) in [
        (DnsMessage { client: "192.168.1.20:4001".parse().unwrap(), ..answer }, None),
        (DnsMessage { client: "192.168.1.77:4000".parse().unwrap(), ..answer }, None),
        (DnsMessage { resolver: "203.0.113.66".parse().unwrap(), ..answer }, None),
        (DnsMessage { bytes: &other_id, ..answer }, None),
        (answer, Some(tunnel)),
    ] {
        let mut services = selection("hub.example");
        ask(&mut services, Some(GatewayEnds::Source));
        assert_eq!(
            services.resolve(&forged, Some(GatewayEnds::Destination), encapsulation),
            Resolution::Unasked,
            "{forged:?}"
        );
        assert!(!services.contains("10.0.0.1:443".parse().unwrap()));
    }
    let mut services = selection("hub.example");
    ask(&mut services, Some(GatewayEnds::Destination));
    assert_eq!(services.resolve(&answer, Some(GatewayEnds::Destination), None), Resolution::Unasked);
    let resolvers = ["192.168.1.0/24".to_owned()];
    let mut services = ServiceSelection::parse(&["hub.example".to_owned()], &[], &resolvers).unwrap();
    assert_eq!(services.resolve(&answer, Some(GatewayEnds::Destination), None), Resolution::Quiet);
    assert!(services.contains("10.0.0.1:443".parse().unwrap()));
}

#[test]
fn addresses_beyond_the_limit_are_reported() {
    let mut services = selection("hub.example");
    ask(&mut services, Some(GatewayEnds::Source));
    let bytes = response(MAX_RESOLVED as u32 - 2);
    assert_eq!(
        services.resolve(&message(DnsKind::Response, &bytes), Some(GatewayEnds::Destination), None),
        Resolution::Quiet
    );
    let bytes = response(MAX_RESOLVED as u32 - 1);
    assert_eq!(
        services.resolve(&message(DnsKind::Response, &bytes), Some(GatewayEnds::Destination), None),
        Resolution::Full
    );
    assert_eq!(services.resolved.len() + services.names.len(), MAX_RESOLVED);
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
        let mut response = response(1);
        let at = at.index(response.len());
        response[at] = byte;
        let mut services = selection("hub.example");
        ask(&mut services, Some(GatewayEnds::Source));
        services.resolve(&message(DnsKind::Response, &response), Some(GatewayEnds::Destination), None);
    }
}
