//! A gateway's packets become segments of flows; all others are dropped, and unreadable ones are counted.

use super::traffic::{
    GATEWAY, SERVICE, TestPacket, captured, ethernet, filter, flows, notices, options, payloads, segments, tcp,
    try_filter, udp,
};
use etherparse::PacketBuilder;
use proptest::prelude::*;
use sizeleak_flow_filter::{FlowFilter, Options};
use sizeleak_frame::{Direction, Transport};

#[test]
fn only_the_gateways_segments_are_kept() {
    let packets = [
        ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 100, b"hello")),
        ethernet(tcp([192, 168, 1, 21], (5000, 443), SERVICE, 100, b"other")),
        ethernet(tcp(SERVICE, (443, 5000), GATEWAY, 700, b"")),
    ];
    let (frames, counts) = filter(&options("192.168.1.20"), &packets);
    let rows: Vec<_> =
        segments(&frames).into_iter().map(|row| (row.direction, row.sequence, row.length, row.payload)).collect();
    assert_eq!(rows, [(Direction::FromGateway, 100, 5, b"hello".to_vec()), (Direction::ToGateway, 700, 0, vec![])]);
    let flow = &flows(&frames)[0];
    assert_eq!(
        (flows(&frames).len(), flow.gateway.to_string(), flow.service.to_string()),
        (1, "192.168.1.20".into(), "203.0.113.10:443".into())
    );
    assert_eq!((counts["gateway_packets"], counts["flows"]), (2, 1));
}

#[test]
fn lengths_are_right_despite_padding_snaplen_and_offloading() {
    let mut padded = tcp(GATEWAY, (5000, 443), SERVICE, 1, b"ab");
    padded.extend([0; 20]);
    let cut = tcp(GATEWAY, (5000, 443), SERVICE, 3, &[7; 500]);
    let wire = cut.len() as u32;
    let mut offloaded = tcp(GATEWAY, (5000, 443), SERVICE, 503, &[8; 3000]);
    offloaded[16..18].copy_from_slice(&[0, 0]);
    let cut_at = |at: usize| TestPacket { original_length: wire, ..ethernet(cut[..at].to_vec()) };
    let packets = [ethernet(padded), cut_at(128), ethernet(offloaded), cut_at(54), cut_at(53)];
    let (frames, counts) = filter(&options("192.168.1.20"), &packets);
    let lengths: Vec<(u32, usize)> = segments(&frames).iter().map(|row| (row.length, row.payload.len())).collect();
    assert_eq!(lengths, [(2, 2), (500, 128 - 54), (3000, 3000), (500, 0)]);
    assert_eq!(counts["damaged"], 1, "a TCP header cut in the middle");
    assert_eq!(notices(&frames, "not_sized"), ["1 packet with a cut or damaged header of IP, TCP or UDP: not sized"]);
}

#[test]
fn segments_are_found_under_vlan_tags_in_raw_ip_and_in_ipv6() {
    let plain = tcp(GATEWAY, (5000, 443), SERVICE, 1, b"x");
    let tagged = [&plain[..12], &[0x81, 0, 0, 7], &plain[12..]].concat();
    let mut six = Vec::new();
    let gateway = "2001:db8::20".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let service = "2001:db8:1::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv6(service, gateway, 64)
        .tcp(443, 5000, 9, 9)
        .ack(1)
        .write(&mut six, b"six")
        .unwrap();
    let (frames, _) = filter(
        &Options { gateway: vec!["192.168.1.0/24".into(), "2001:db8::20".into()], ..Options::default() },
        &[ethernet(tagged), captured(super::traffic::RAW, plain[14..].to_vec()), ethernet(six)],
    );
    assert_eq!(payloads(&frames), [b"x".to_vec(), b"x".to_vec(), b"six".to_vec()]);
    assert_eq!(
        flows(&frames).iter().map(|flow| flow.service.to_string()).collect::<Vec<_>>(),
        ["203.0.113.10:443", "[2001:db8:1::1]:443"]
    );
}

#[test]
fn services_are_selected_by_address_port_and_name() {
    let other = [203, 0, 113, 99];
    let name = || simple_dns::Name::new("hub.example").unwrap();
    let question = || {
        let (of_type, class) = (simple_dns::TYPE::A.into(), simple_dns::CLASS::IN.into());
        simple_dns::Question::new(name(), of_type, class, false)
    };
    let mut query = simple_dns::Packet::new_query(1);
    query.questions.push(question());
    let mut response = simple_dns::Packet::new_reply(1);
    response.questions.push(question());
    response.answers.push(simple_dns::ResourceRecord::new(
        name(),
        simple_dns::CLASS::IN,
        60,
        simple_dns::rdata::RData::A(simple_dns::rdata::A { address: u32::from_be_bytes(SERVICE) }),
    ));
    let resolver = [192, 168, 1, 1];
    let query = udp(GATEWAY, (4000, 53), resolver, &query.build_bytes_vec().unwrap());
    let answer = |client, port| udp(resolver, (53, port), client, &response.build_bytes_vec().unwrap());
    let packets = [
        ethernet(query),
        ethernet(answer(GATEWAY, 4000)),
        ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 1, b"a")),
        ethernet(tcp(GATEWAY, (5001, 443), other, 1, b"b")),
        ethernet(tcp(GATEWAY, (5002, 8883), other, 1, b"c")),
    ];
    let payloads = |options: &Options| -> Vec<u8> { payloads(&filter(options, &packets).0).concat() };
    let gateway = options("192.168.1.20");
    assert_eq!(payloads(&gateway), b"abc");
    assert_eq!(payloads(&Options { port: vec![8883], ..gateway.clone() }), b"c");
    assert_eq!(payloads(&Options { service: vec!["203.0.113.99/32".into()], ..gateway.clone() }), b"bc");
    assert_eq!(payloads(&Options { service: vec!["HUB.example".into()], ..gateway.clone() }), b"a");
    assert_eq!(payloads(&Options { service: vec!["nobody.example".into()], ..gateway.clone() }), b"");

    let unasked = [ethernet(answer([192, 168, 1, 77], 4000)), ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 1, b"a"))];
    let by_name = Options { service: vec!["hub.example".into()], ..gateway };
    let (frames, counts) = filter(&by_name, &unasked);
    assert_eq!((segments(&frames).len(), counts["unasked_answers"]), (0, 1));
    assert!(notices(&frames, "unasked")[0].contains("`--resolver 192.168.1.1`"));
    let (frames, counts) = filter(&Options { resolver: vec!["192.168.1.1".into()], ..by_name }, &unasked);
    assert_eq!((segments(&frames).len(), counts["unasked_answers"]), (1, 0));
}

#[test]
fn an_absent_gateway_is_an_error_that_names_the_addresses_seen() {
    let packets = [ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 1, b"a"))];
    let (result, frames, _) = try_filter(&options("10.1.2.3"), &packets);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("10.1.2.3") && error.contains("192.168.1.20 (1 packets)"), "{error}");
    assert_eq!(frames, []);
    let (frames, _) = filter(&options("10.1.2.3"), &packets);
    // Who accepts that needs no advice.
    let (seen, advice) = error.split_once("; `").unwrap();
    assert_eq!(notices(&frames, "absent"), [seen]);
    assert!(advice.starts_with("sizeleak survey CAPTURE`"), "{advice}");
}

#[test]
fn unsupported_link_types_are_reported_once() {
    let packet = |link_type| captured(link_type, vec![0; 60]);
    let (frames, counts) = filter(&options("10.1.2.3"), &[packet(195), packet(195), packet(1)]);
    assert_eq!((notices(&frames, "unsupported").len(), counts["no_ip"]), (1, 3));
}

#[test]
fn datagrams_have_no_flags_and_infrastructure_is_only_counted() {
    let packets = [
        ethernet(udp(GATEWAY, (50_000, 5684), SERVICE, b"dtls")),
        ethernet(udp(SERVICE, (5684, 50_000), GATEWAY, b"answer")),
        ethernet(udp(GATEWAY, (50_001, 123), SERVICE, b"time")),
        ethernet(udp(GATEWAY, (5353, 5353), [224, 0, 0, 251], b"who")),
        ethernet(udp(SERVICE, (53, 50_003), GATEWAY, b"no DNS response")),
        ethernet(udp([192, 168, 1, 9], (50_000, 5684), SERVICE, b"other")),
    ];
    let (frames, counts) = filter(&options("192.168.1.20"), &packets);
    let rows: Vec<_> = segments(&frames).into_iter().map(|row| (row.direction, row.flags, row.length)).collect();
    assert_eq!(rows, [(Direction::FromGateway, 0, 4), (Direction::ToGateway, 0, 6)]);
    assert_eq!(flows(&frames).iter().map(|flow| flow.transport).collect::<Vec<_>>(), [Transport::Udp]);
    assert_eq!((counts["gateway_packets"], counts["other_protocols"], counts["datagrams"]), (5, 3, 2));
    let asked_for = Options { port: vec![123], ..options("192.168.1.20") };
    assert_eq!(payloads(&filter(&asked_for, &packets).0), [b"time".to_vec()]);
}

#[test]
fn between_two_gateways_the_client_is_the_gateway_in_both_directions() {
    let packets = [
        ethernet(tcp(SERVICE, (443, 5000), GATEWAY, 1, b"down")),
        ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 1, b"up")),
        ethernet(udp(SERVICE, (5684, 50_000), GATEWAY, b"down")),
    ];
    let (frames, _) = filter(&options("0.0.0.0/0"), &packets);
    let directions: Vec<Direction> = segments(&frames).iter().map(|row| row.direction).collect();
    assert_eq!(directions, [Direction::ToGateway, Direction::FromGateway, Direction::ToGateway]);
    assert!(flows(&frames).iter().all(|flow| flow.gateway.to_string() == "192.168.1.20"));
}

#[test]
fn evicted_flows_are_reported_once_and_announced_again() {
    let packets: Vec<TestPacket> =
        (0..100).chain(0..100).map(|port| ethernet(tcp(GATEWAY, (5000 + port, 443), SERVICE, 1, b"a"))).collect();
    let (frames, counts) = filter(&Options { max_flows: 20, ..options("192.168.1.20") }, &packets);
    assert_eq!((flows(&frames).len(), segments(&frames).len(), notices(&frames, "evicted").len()), (200, 200, 1));
    assert_eq!((counts["flows"], counts["forgotten_flows"]), (200, 180));
}

#[test]
fn invalid_options_are_usage_errors() {
    assert!(FlowFilter::new(&Options::default()).unwrap_err().to_string().contains("--gateway"));
    assert!(FlowFilter::new(&options("192.168.1")).is_err());
    assert!(FlowFilter::new(&Options { max_flows: 1, ..options("192.168.1.20") }).is_err());
}

proptest! {
    #[test]
    fn prefilter_and_fast_path_change_nothing(
        packets in prop::collection::vec(
            (any::<[u8; 2]>(), any::<bool>(), 0usize..40, any::<Option<(prop::sample::Index, u8)>>()), 1..20,
        ),
    ) {
        let made = packets.iter().map(|(last, reversed, length, change)| {
            let (a, b) = ([192, 168, 1, last[0] % 24], [203, 0, 113, last[1] % 4]);
            let (source, destination) = if *reversed { (b, a) } else { (a, b) };
            let mut packet = tcp(source, (5000, 443), destination, 1, &vec![1; *length]);
            if let Some((at, byte)) = change {
                let at = 14 + at.index(packet.len() - 14);
                packet[at] = *byte;
            }
            packet
        });
        let made: Vec<Vec<u8>> = made.collect();
        let plain: Vec<_> = made.iter().cloned().map(ethernet).collect();
        // Neither is used for packets with a VLAN tag.
        let tag = |packet: &Vec<u8>| ethernet([&packet[..12], &[0x81, 0, 0, 7], &packet[12..]].concat());
        let tagged: Vec<_> = made.iter().map(tag).collect();
        let gateway = options("192.168.1.0/28");
        prop_assert_eq!(segments(&filter(&gateway, &plain).0), segments(&filter(&gateway, &tagged).0));
    }

    #[test]
    fn arbitrary_packets_never_panic(
        packets in prop::collection::vec(
            (
                prop::sample::select(vec![0u16, 1, 9, 51, 101, 108, 113, 276]),
                prop::collection::vec(any::<u8>(), 0..120),
                any::<u32>(),
            ),
            1..10,
        ),
    ) {
        let packets: Vec<TestPacket> = packets
            .into_iter()
            .map(|(link_type, data, original_length)| TestPacket { link_type, data, original_length })
            .collect();
        filter(&options("0.0.0.0/0"), &packets);
    }
}
