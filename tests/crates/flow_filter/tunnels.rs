//! A gateway is found inside one tunnel, and at the end of one.

use super::traffic::{
    GATEWAY, SERVICE, TestPacket, captured, ethernet, filter, flows, notices, options, payloads, segments, tcp,
    try_filter, udp,
};
use etherparse::{IpNumber, PacketBuilder};
use proptest::prelude::*;
use sizeleak_flow_filter::Options;
use sizeleak_frame::Direction;

const ROUTERS: [[u8; 4]; 2] = [[198, 51, 100, 1], [198, 51, 100, 2]];

/// An IP packet of this protocol between the two routers, in Ethernet.
fn between_routers(protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4(ROUTERS[0], ROUTERS[1], 64)
        .write(&mut packet, IpNumber(protocol), content)
        .unwrap();
    packet
}

/// The same Ethernet frame inside every supported tunnel.
fn tunnels(frame: &[u8]) -> Vec<Vec<u8>> {
    let ip = &frame[14..];
    let gre = |header: &[u8], inside: &[u8]| between_routers(47, &[header, inside].concat());
    vec![
        between_routers(4, ip),
        gre(&[0, 0, 8, 0], ip),
        gre(&[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1], ip),
        gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7], frame),
        datagram(4789, &[8, 0, 0, 0, 0, 0, 7, 0], frame),
        // With group policy, on the port of old.
        datagram(8472, &[0x88, 0x08, 0, 9, 0, 0, 7, 0], frame),
        // With an option.
        datagram(6081, &[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0], frame),
        // With a tag, and padding before the end of tags.
        datagram(37008, &[1, 0, 0, 1, 41, 2, 5, 220, 0, 1], frame),
        gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 5, 0, 7, 0, 0, 0, 0], frame),
        gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 5, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0], frame),
    ]
}

/// The same packet in tunnels without a number: behind labels of MPLS, and in datagrams.
fn plain_tunnels(frame: &[u8]) -> Vec<Vec<u8>> {
    let ip = &frame[14..];
    vec![
        between_routers(137, &[&[0, 6, 0x41, 64][..], ip].concat()),
        datagram(6635, &[0, 6, 0x40, 64, 0, 6, 0x51, 64], ip),
        datagram(4754, &[0, 0, 8, 0], ip),
        datagram(6080, &[1, 4, 0, 0, 7, 7, 7, 7], ip),
        datagram(6080, &[], ip),
        datagram(5555, &[], ip),
    ]
}

/// A datagram from router to router.
fn datagram(port: u16, header: &[u8], inside: &[u8]) -> Vec<u8> {
    udp(ROUTERS[0], (50_000, port), ROUTERS[1], &[header, inside].concat())
}

#[test]
fn ip_behind_labels_and_in_datagrams_is_found() {
    let frame = tcp(GATEWAY, (5000, 443), SERVICE, 7, b"hello");
    // The last packets are read though the prefilter is active by then.
    let packets: Vec<TestPacket> = plain_tunnels(&frame).into_iter().map(ethernet).collect();
    let (frames, counts) = filter(&options("192.168.1.20"), &packets);
    assert_eq!(payloads(&frames), vec![b"hello".to_vec(); packets.len()]);
    assert_eq!((counts["tunnelled"], counts["flows"]), (6, 2), "IP in IP, and GRE");
    let mut other = plain_tunnels(&frame).pop().unwrap();
    *other.last_mut().unwrap() ^= 1;
    other.push(0);
    assert_eq!(filter(&options("192.168.1.20"), &[ethernet(other)]).1["gateway_packets"], 1, "padding of the frame");
}

#[test]
fn unread_packets_are_counted_where_the_gateway_is_not_found() {
    let wifi = |flags: u8, content: &[u8]| captured(105, [&[8, flags][..], &[0; 22], content].concat());
    let encrypted = || wifi(0x41, &[7; 90]);
    let beacon = || captured(105, [&[0x80, 0][..], &[0; 60]].concat());
    let plain =
        wifi(1, &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &tcp(ROUTERS[0], (1, 2), ROUTERS[1], 7, b"")[14..]].concat());
    let ended = |packets: &[TestPacket]| try_filter(&options("192.168.1.20"), packets).0.unwrap_err().to_string();
    assert!(ended(&[beacon(), encrypted(), beacon()]).contains("3 packets could be read: Wi-Fi's own encryption"));
    assert!(ended(&[beacon(), beacon()]).contains("2 packets could be read: a Wi-Fi frame without data"));
    let mixed = ended(&[beacon(), encrypted(), encrypted(), plain]);
    assert!(mixed.contains("198.51.100.1") && mixed.contains("2 packets could not be read: Wi-Fi's own"), "{mixed}");
}

#[test]
fn other_protocols_of_the_gateway_are_named() {
    let sctp = |protocol: u8| {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(GATEWAY, SERVICE, 64);
        builder.write(&mut packet, IpNumber(protocol), &[7; 40]).unwrap();
        ethernet(packet)
    };
    let (frames, _) = filter(&options("192.168.1.20"), &[sctp(132), sctp(1), sctp(132)]);
    assert_eq!(
        notices(&frames, "not_sized"),
        ["2 packets of IP protocol 132 between 192.168.1.20 and 203.0.113.10: not sized"]
    );
}

/// For each of [`tunnels`], bits that its standard reserves, or gives a meaning that does not matter: the offset of a
/// byte behind the IP header, and a mask.
const RESERVED: [&[(usize, u8)]; 10] = [
    &[(1, 0xff)],
    &[(0, 0x0f), (1, 0xf8)],
    &[(0, 0x0f), (1, 0xf8), (4, 0xff)],
    &[(0, 0x0f), (1, 0xf8)],
    &[(8, 0xf7), (9, 0xff), (10, 0xff), (11, 0xff), (15, 0xff)],
    &[(8, 0xf7), (9, 0xff), (10, 0xff), (11, 0xff), (15, 0xff)],
    &[(9, 0x7f), (15, 0xff), (18, 0xe0)],
    &[(15, 0xff)],
    &[(0, 0x0f), (8, 0x0f), (10, 0xfc), (12, 0xff), (15, 0xff)],
    &[(0, 0x0f), (8, 0x0f), (10, 0xfc), (18, 0x83), (19, 0xfe)],
];

#[test]
fn a_gateway_inside_a_tunnel_is_found() {
    let frame = tcp(GATEWAY, (5000, 443), SERVICE, 7, b"hello");
    let packets: Vec<TestPacket> = tunnels(&frame).into_iter().map(ethernet).collect();
    let (frames, counts) = filter(&options("192.168.1.20"), &packets);
    assert_eq!(payloads(&frames), vec![b"hello".to_vec(); packets.len()]);
    assert_eq!(
        (counts["tunnelled"], counts["gateway_packets"], counts["flows"]),
        (10, 10, 7),
        "a flow for each tunnel"
    );
    assert_eq!((counts["flows_apart"], notices(&frames, "encapsulated").len()), (6, 1));
    let named = Options { tunnel: vec!["198.51.100.1-198.51.100.2".into()], ..options("192.168.1.20") };
    let (frames, counts) = filter(&named, &packets);
    assert_eq!(payloads(&frames), vec![b"hello".to_vec(); packets.len()]);
    assert_eq!((counts["tunnelled"], counts["flows"], counts["flows_apart"]), (10, 1, 0));
    let none = Options { tunnel: vec!["none".into()], ..options("192.168.1.20") };
    let (frames, counts) = filter(&none, &packets);
    assert_eq!((segments(&frames).len(), counts["closed_tunnels"], counts["tunnelled"]), (0, 10, 0));
    let (_, counts) = filter(&options("192.168.1.21"), &packets);
    assert_eq!(counts["gateway_packets"], 0);
}

#[test]
fn at_the_end_of_a_tunnel_the_inner_end_on_its_side_is_the_gateway() {
    let frame = tcp([10, 8, 0, 2], (5000, 443), SERVICE, 7, b"hello");
    let packets: Vec<TestPacket> = tunnels(&frame).into_iter().map(ethernet).collect();
    for (gateway, direction, end) in
        [("198.51.100.1", Direction::FromGateway, "10.8.0.2"), ("198.51.100.2", Direction::ToGateway, "203.0.113.10")]
    {
        let (frames, _) = filter(&options(gateway), &packets);
        assert!(segments(&frames).iter().all(|row| row.direction == direction));
        let gateways: Vec<String> = flows(&frames).iter().map(|flow| flow.gateway.to_string()).collect();
        assert_eq!((segments(&frames).len(), gateways), (10, vec![end.to_owned(); 7]));
    }
}

#[test]
fn a_strangers_tunnel_never_meets_the_gateways_flow() {
    let honest = ethernet(tcp(GATEWAY, (5000, 443), SERVICE, 7, b"hello"));
    let honest_flow = flows(&filter(&options("192.168.1.20"), std::slice::from_ref(&honest)).0).remove(0);
    let forged = tcp(GATEWAY, (5000, 443), SERVICE, 12, b"forged");
    let mut packets: Vec<TestPacket> = tunnels(&forged).into_iter().map(ethernet).collect();
    packets.insert(2, honest);
    let (frames, counts) = filter(&options("192.168.1.20"), &packets);
    let flows = flows(&frames);
    let names: Vec<&str> = flows.iter().map(|flow| flow.encapsulation.as_deref().unwrap_or("none")).collect();
    let ends = "198.51.100.1-198.51.100.2";
    let expected =
        ["ip", "gre", "none", "gre 7", "vxlan 7", "geneve 7", "tzsp", "erspan 7"].map(|tunnel| match tunnel {
            "none" => tunnel.to_owned(),
            _ => format!("{tunnel} {ends}"),
        });
    // Both tunnels with key 7 are one, whatever protocol is inside.
    assert_eq!((names, counts["flows"]), (expected.iter().map(String::as_str).collect(), 8));
    assert!(flows.contains(&honest_flow), "the number of a flow outside tunnels stays");
}

#[test]
fn ipv6_in_ipv4_is_opened() {
    let packet = between_routers(41, &super::traffic::tcp_over_ipv6(1, b"six"));
    assert_eq!(payloads(&filter(&options("2001:db8::20"), &[ethernet(packet)]).0), [b"six".to_vec()]);
}

#[test]
fn nested_and_unsupported_tunnels_are_reported_once() {
    let frame = tcp(GATEWAY, (5000, 443), SERVICE, 7, b"hello");
    let nested = tunnels(&tunnels(&frame)[1]);
    let mut packets: Vec<TestPacket> = nested.into_iter().map(ethernet).collect();
    packets.push(ethernet(between_routers(47, &[0x30, 1, 0x88, 0x0b, 0, 0, 0, 0])));
    packets.push(ethernet(between_routers(47, &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x70, 0, 0, 0, 0, 0, 0, 0])));
    let (frames, counts) = filter(&options("198.51.100.0/24"), &packets);
    let reported = notices(&frames, "unsupported");
    assert_eq!((reported.len(), counts["no_ip"]), (3, 12), "{reported:?}");
    assert_eq!(notices(&frames, "absent").len(), 0, "unreadable packets were the gateway's");
}

#[test]
fn protocols_that_are_not_sized_are_named_once_with_their_number_and_ends() {
    let coap = |from, to| udp(from, (50_000, 5683), to, &[&[0x42, 1, 0, 1][..], &[7; 40]].concat());
    let gtp = datagram(2152, &[0x30, 0xff, 0, 60], &[0; 60]);
    let mut packets = vec![coap(GATEWAY, SERVICE); 5];
    packets.extend([coap(SERVICE, GATEWAY), coap(GATEWAY, ROUTERS[0]), gtp]);
    // Between others, these are no concern.
    packets.push(coap(ROUTERS[0], SERVICE));
    let packets: Vec<TestPacket> = packets.into_iter().map(ethernet).collect();
    let (frames, _) = filter(&options("192.168.1.20"), &packets);
    assert_eq!(
        notices(&frames, "not_sized"),
        [
            "1 packet of GTP-U between 198.51.100.1 and 198.51.100.2: not sized",
            "7 packets of CoAP between 192.168.1.20 and 198.51.100.1, 192.168.1.20 and 203.0.113.10: not sized",
        ]
    );
}

#[test]
fn captures_without_a_readable_packet_say_why_in_the_error() {
    let of = |link_type: u16, data: &[u8]| {
        let packets: Vec<TestPacket> = (0..13).map(|_| captured(link_type, data.to_vec())).collect();
        super::traffic::try_filter(&options("192.168.1.20"), &packets).0.unwrap_err().to_string()
    };
    assert_eq!(
        of(195, &[0; 60]),
        "none of the 13 packets could be read: link type 195 (IEEE 802.15.4: Zigbee, Thread) is not read"
    );
    let encrypted = [&[0x08, 0x41][..], &[0; 60]].concat();
    assert!(of(105, &encrypted).starts_with("none of the 13 packets could be read: Wi-Fi's own encryption"));
    let other = tcp([10, 0, 0, 1], (5000, 443), SERVICE, 7, b"hello");
    assert!(of(1, &other).contains("the most frequent addresses are: 10.0.0.1 (13 packets)"));
}

#[test]
fn lengths_in_a_tunnel_are_right_despite_padding_and_snaplen() {
    let mut frame = tcp(GATEWAY, (5000, 443), SERVICE, 7, &[9; 300]);
    frame.extend([0; 7]);
    let packets = tunnels(&frame).into_iter().map(|packet| {
        let original_length = packet.len() as u32;
        TestPacket { original_length, ..captured(super::traffic::ETHERNET, packet[..160].to_vec()) }
    });
    let rows = segments(&filter(&options("192.168.1.20"), &packets.collect::<Vec<_>>()).0);
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row.length == 300 && !row.payload.is_empty() && row.payload.len() < 160));
}

proptest! {
    #[test]
    fn bits_that_standards_reserve_change_nothing(bits: [u64; 2]) {
        let frame = tcp(GATEWAY, (5000, 443), SERVICE, 7, b"hello");
        let mut packets = tunnels(&frame);
        for (packet, reserved) in packets.iter_mut().zip(RESERVED) {
            for ((at, mask), noise) in reserved.iter().zip(bits.iter().flat_map(|bits| bits.to_ne_bytes())) {
                let byte = &mut packet[34 + at];
                *byte = *byte & !mask | noise & mask;
            }
            // The reserved flag of IP, the traffic class, and the reserved bits of TCP at the end.
            packet[20] |= (bits[0] as u8) & 0x80;
            packet[15] = bits[1] as u8;
            let tcp = packet.len() - 5 - 20;
            packet[tcp + 12] |= bits[0] as u8 & 0x0f;
        }
        let packets: Vec<TestPacket> = packets.into_iter().map(ethernet).collect();
        let (frames, counts) = filter(&options("192.168.1.20"), &packets);
        prop_assert_eq!(payloads(&frames), vec![b"hello".to_vec(); packets.len()]);
        prop_assert_eq!(counts["flows"], 7);
    }

    #[test]
    fn damaged_tunnels_yield_at_most_one_segment(
        which in 0usize..10,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut: prop::sample::Index,
    ) {
        let mut packet = tunnels(&tcp(GATEWAY, (5000, 443), SERVICE, 7, b"hello")).swap_remove(which);
        for (at, byte) in changes {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        packet.truncate(cut.index(packet.len()) + 1);
        let rows = segments(&filter(&options("0.0.0.0/0"), &[ethernet(packet)]).0);
        prop_assert!(rows.len() <= 1);
    }
}
