//! Packets of a gateway become segments of flows; all others are dropped, and what cannot be read is counted.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use etherparse::PacketBuilder;
use proptest::prelude::*;
use sizeleak_flow_filter::{FlowFilter, Options};
use sizeleak_frame::{Direction, Flow, Frame, Packet, Packets, Segments};
use sizeleak_stage::Stage;

const GATEWAY: [u8; 4] = [192, 168, 1, 20];
const SERVICE: [u8; 4] = [203, 0, 113, 10];

fn tcp(source: [u8; 4], ports: (u16, u16), destination: [u8; 4], sequence: u32, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4(source, destination, 64)
        .tcp(ports.0, ports.1, sequence, 9)
        .ack(5);
    let mut packet = Vec::new();
    builder.write(&mut packet, payload).unwrap();
    packet
}

fn options(gateway: &str) -> Options {
    Options { gateway: vec![gateway.into()], ..Options::default() }
}

/// Runs packets, each with its link type and length on the wire, through a filter.
fn filter(options: &Options, packets: &[(u16, Vec<u8>, u32)]) -> (Vec<Frame>, BTreeMap<&'static str, u64>) {
    let mut batch = Packets::new();
    for ((link_type, data, original_length), number) in packets.iter().zip(1..) {
        let (link_type, original_length) = (*link_type, *original_length);
        batch.push(Packet { time_ns: 1_000, link_type, original_length, data, capture: 0, number });
    }
    let mut filter = FlowFilter::new(options).unwrap();
    let mut out = Vec::new();
    filter.process(batch, &mut out).unwrap();
    filter.finish(&mut out).unwrap();
    (out, filter.counters().into_iter().collect())
}

fn ethernet(data: Vec<u8>) -> (u16, Vec<u8>, u32) {
    let length = data.len() as u32;
    (1, data, length)
}

/// The rows of all segments: direction, sequence, length, payload.
fn segments(frames: &[Frame]) -> Vec<(Direction, u32, u32, Vec<u8>)> {
    let batches = frames.iter().filter_map(|frame| Segments::try_from(frame.clone()).ok());
    let rows = |batch: Segments| {
        let rows = batch.iter().map(|row| (row.direction, row.sequence, row.length, row.payload.to_vec()));
        rows.collect::<Vec<_>>()
    };
    batches.flat_map(rows).collect()
}

fn flows(frames: &[Frame]) -> Vec<Flow> {
    frames.iter().filter_map(|frame| Flow::try_from(frame.clone()).ok()).collect()
}

#[test]
fn the_gateways_segments_and_no_others() {
    let packets = [
        ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 100, b"hello")),
        ethernet(tcp([192, 168, 1, 21], (5000, 443), SERVICE, 100, b"other")),
        ethernet(tcp(SERVICE, (443, 5000), GATEWAY, 700, b"")),
    ];
    let (frames, counts) = filter(&options("192.168.1.20"), &packets);
    assert_eq!(
        segments(&frames),
        [
            (Direction::FromGateway, 100, 5, b"hello".to_vec()),
            // Ethernet's padding is not payload: etherparse's builder adds none, a card does.
            (Direction::ToGateway, 700, 0, vec![]),
        ]
    );
    let flow = &flows(&frames)[0];
    assert_eq!(
        (flows(&frames).len(), flow.gateway.to_string(), flow.service.to_string()),
        (1, "192.168.1.20".into(), "203.0.113.10:443".into())
    );
    assert_eq!((counts["gateway_packets"], counts["flows"]), (2, 1));
}

#[test]
fn padding_snaplen_and_offloading() {
    let mut padded = tcp(GATEWAY, (5000, 443), SERVICE, 1, b"ab");
    padded.extend([0; 20]);
    let cut = tcp(GATEWAY, (5000, 443), SERVICE, 3, &[7; 500]);
    let wire = cut.len() as u32;
    let mut offloaded = tcp(GATEWAY, (5000, 443), SERVICE, 503, &[8; 3000]);
    offloaded[16..18].copy_from_slice(&[0, 0]);
    let packets =
        [ethernet(padded), (1, cut[..128].to_vec(), wire), ethernet(offloaded), (1, cut[..50].to_vec(), wire)];
    let (frames, counts) = filter(&options("192.168.1.20"), &packets);
    let lengths: Vec<(u32, usize)> = segments(&frames).iter().map(|row| (row.2, row.3.len())).collect();
    assert_eq!(lengths, [(2, 2), (500, 128 - 54), (3000, 3000)]);
    assert_eq!(counts["damaged"], 1, "a TCP header cut in the middle");
}

#[test]
fn vlans_raw_ip_and_ipv6() {
    let plain = tcp(GATEWAY, (5000, 443), SERVICE, 1, b"x");
    let tagged = [&plain[..12], &[0x81, 0, 0, 7], &plain[12..]].concat();
    let mut six = Vec::new();
    let gateway = "2001:db8::20".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let service = "2001:db8:1::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv6(service, gateway, 64)
        .tcp(443, 5000, 9, 9)
        .write(&mut six, b"six")
        .unwrap();
    let (frames, _) = filter(
        &Options { gateway: vec!["192.168.1.0/24".into(), "2001:db8::20".into()], ..Options::default() },
        &[ethernet(tagged), (101, plain[14..].to_vec(), plain.len() as u32 - 14), ethernet(six)],
    );
    let payloads: Vec<Vec<u8>> = segments(&frames).into_iter().map(|row| row.3).collect();
    assert_eq!(payloads, [b"x".to_vec(), b"x".to_vec(), b"six".to_vec()]);
    assert_eq!(
        flows(&frames).iter().map(|flow| flow.service.to_string()).collect::<Vec<_>>(),
        ["203.0.113.10:443", "[2001:db8:1::1]:443"]
    );
}

#[test]
fn services_by_address_port_and_name() {
    let other = [203, 0, 113, 99];
    let mut answer = simple_dns::Packet::new_reply(1);
    answer.answers.push(simple_dns::ResourceRecord::new(
        simple_dns::Name::new("hub.example").unwrap(),
        simple_dns::CLASS::IN,
        60,
        simple_dns::rdata::RData::A(simple_dns::rdata::A { address: u32::from_be_bytes(SERVICE) }),
    ));
    let mut dns = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([192, 168, 1, 1], [192, 168, 1, 77], 64)
        .udp(53, 4000)
        .write(&mut dns, &answer.build_bytes_vec().unwrap())
        .unwrap();
    let packets = [
        ethernet(dns),
        ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 1, b"a")),
        ethernet(tcp(GATEWAY, (5001, 443), other, 1, b"b")),
        ethernet(tcp(GATEWAY, (5002, 8883), other, 1, b"c")),
    ];
    let payloads = |options: &Options| -> Vec<u8> {
        segments(&filter(options, &packets).0).into_iter().flat_map(|row| row.3).collect()
    };
    let gateway = options("192.168.1.20");
    assert_eq!(payloads(&gateway), b"abc");
    assert_eq!(payloads(&Options { port: vec![8883], ..gateway.clone() }), b"c");
    assert_eq!(payloads(&Options { service: vec!["203.0.113.99/32".into()], ..gateway.clone() }), b"bc");
    assert_eq!(payloads(&Options { service: vec!["HUB.example".into()], ..gateway.clone() }), b"a");
    assert_eq!(payloads(&Options { service: vec!["nobody.example".into()], ..gateway }), b"");
}

#[test]
fn a_gateway_that_never_appears_is_told_with_who_was_there() {
    let packets = [ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 1, b"a"))];
    let (frames, _) = filter(&options("10.1.2.3"), &packets);
    let [Frame::Notice(notice)] = &frames[..] else { panic!("{frames:?}") };
    let detail = notice.detail.as_deref().unwrap();
    assert_eq!(notice.what, "absent");
    assert!(detail.contains("10.1.2.3") && detail.contains("192.168.1.20 (1 packets)"), "{detail}");
}

#[test]
fn link_layers_that_are_not_read_are_told_once() {
    let packet = |link_type| (link_type, vec![0; 60], 60);
    let (frames, counts) = filter(&options("10.1.2.3"), &[packet(105), packet(105), packet(1)]);
    let told = frames.iter().filter(|frame| matches!(frame, Frame::Notice(notice) if notice.what == "unsupported"));
    assert_eq!((told.count(), counts["no_ip"]), (1, 3));
}

#[test]
fn wrong_options_are_usage_errors() {
    assert!(FlowFilter::new(&Options::default()).unwrap_err().to_string().contains("--gateway"));
    assert!(FlowFilter::new(&options("192.168.1")).is_err());
}

proptest! {
    /// The quick test by addresses drops exactly what the full parse of a raw IP packet would.
    #[test]
    fn the_quick_test_agrees_with_the_full_parse(
        packets in prop::collection::vec((any::<[u8; 2]>(), any::<bool>(), 0usize..40, any::<Option<(prop::sample::Index, u8)>>()), 1..20),
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
        // A VLAN tag keeps the quick test from being used.
        let tagged: Vec<_> = made.iter().map(|packet| ethernet([&packet[..12], &[0x81, 0, 0, 7], &packet[12..]].concat())).collect();
        let gateway = options("192.168.1.0/28");
        prop_assert_eq!(segments(&filter(&gateway, &plain).0), segments(&filter(&gateway, &tagged).0));
    }

    #[test]
    fn any_packets_are_looked_at_safely(
        packets in prop::collection::vec((prop::sample::select(vec![0u16, 1, 101, 108, 113, 276]), prop::collection::vec(any::<u8>(), 0..120), any::<u32>()), 1..10),
    ) {
        filter(&options("0.0.0.0/0"), &packets);
    }
}
