//! The fast parsers against the general ones.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::ip::IpPacket;
use crate::link::ip_bytes;
use crate::transport::{DnsKind, TransportSegment, dns_message};
use crate::tunnel::open_tunnel;

fn read_packet(link_type: u16, frame: &[u8], original_length: u32) -> Option<IpPacket<'_>> {
    IpPacket::read(ip_bytes(link_type, CapturedBytes::frame(frame, original_length)).ok()?)
}

fn endpoints(segment: &TransportSegment<'_>) -> Option<Endpoints> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (segment.source.ip(), segment.destination.ip()) else {
        return None;
    };
    let addresses = u64::from(u32::from(source)) << 32 | u64::from(u32::from(destination));
    let ports = u32::from(segment.source.port()) << 16 | u32::from(segment.destination.port());
    Some(Endpoints { addresses, ports })
}

proptest! {
    #[test]
    fn fast_equals_general(
        link_type in prop::sample::select(vec![1u16, 1, 1, 1, 0, 101]),
        mut frame in prop::collection::vec(any::<u8>(), 0..110), six: bool,
        protocol in prop::sample::select(vec![TCP, TCP, TCP, UDP, 1, 4, 44]),
        is_plain in prop::bool::weighted(0.8), length in 40u8..90, original in 0u32..130,
    ) {
        let header: &[(usize, u8)] = if six {
            &[(12, 0x86), (13, 0xdd), (14, 0x60), (18, 0), (19, length), (20, protocol)]
        } else {
            &[(12, 8), (13, 0), (14, 0x45), (16, 0), (17, length), (20, 0x40), (21, 0), (23, protocol), (46, 0x50)]
        };
        for (at, value) in header.iter().filter(|(at, _)| is_plain || at % 3 > 0) {
            if let Some(byte) = frame.get_mut(*at) {
                *byte = *value;
            }
        }
        let general = read_packet(link_type, &frame, original);
        if let (Some(fast), Some(packet)) = (addresses(link_type, &frame), &general) {
            prop_assert_eq!(<[IpAddr; 2]>::from(fast), [packet.source, packet.destination]);
            prop_assert_eq!(open_tunnel(packet), Ok(None));
            prop_assert!(dns_message(packet).is_none_or(|message| message.kind == DnsKind::Query));
        }
        if let Some(fast) = TcpSegment::read(link_type, &frame, original) {
            prop_assert!(addresses(link_type, &frame).is_some());
            let segment = TransportSegment::read(&general.unwrap()).unwrap();
            prop_assert_eq!(Some(fast.endpoints), endpoints(&segment));
            let fast = (fast.sequence, fast.flags, fast.payload);
            prop_assert_eq!(fast, (segment.sequence, segment.flags, segment.payload));
        }
    }
}

fn ipv4(protocol: u8, source_port: u16, destination_port: u16) -> Vec<u8> {
    let ends = [10, 0, 0, 1, 10, 0, 0, 2];
    let ports = [source_port.to_be_bytes(), destination_port.to_be_bytes()];
    let ip = [0x45, 0, 0, 44, 0, 0, 0, 0, 64, protocol, 0, 0];
    let tcp = [0, 0, 0, 7, 0, 0, 0, 0, 0x50, 16, 0, 0, 0, 0, 0, 0];
    [&[0; 12][..], &[8, 0], &ip, &ends, ports.as_flattened(), &tcp, b"data"].concat()
}

#[test]
fn addresses_decide_only_packets_that_cannot_carry_others() {
    let ends = Some(AddressPair::V4([[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]));
    assert_eq!(addresses(ETHERNET, &ipv4(TCP, 1, 2)), ends);
    assert_eq!(addresses(ETHERNET, &ipv4(UDP, 5353, 443)), ends);
    assert_eq!(addresses(ETHERNET, &ipv4(1, 0, 0)), ends, "ICMP");
    assert_eq!(addresses(ETHERNET, &ipv4(UDP, 53, 4000)), None, "a DNS response");
    for port in [4789, 8472, 6081, 37008, 4754, 6080, 6635] {
        assert_eq!(addresses(ETHERNET, &ipv4(UDP, 4000, port)), None, "{port}");
    }
    assert_eq!(addresses(ETHERNET, &ipv4(137, 0, 0)), None, "MPLS");
    for inside in [[0x45, 0, 0, 32, 0, 0, 0, 0], [0x60, 0, 0, 0, 0, 0, 0, 0]] {
        let length = if inside[0] == 0x45 { 40 } else { 48 };
        let mut datagram = ipv4(UDP, 4000, 5555);
        datagram[38..40].copy_from_slice(&[0, length]);
        datagram.splice(42..50, inside);
        assert_eq!(addresses(ETHERNET, &datagram), None, "IP of this length in UDP");
        datagram[39] += 1;
        assert_eq!(addresses(ETHERNET, &datagram), ends, "of another length");
    }
    assert_eq!(addresses(ETHERNET, &ipv4(47, 0, 0)), None, "GRE");
    assert_eq!(addresses(101, &ipv4(TCP, 1, 2)), None, "another link type");
    assert_eq!(addresses(ETHERNET, &ipv4(TCP, 1, 2)[..33]), None, "cut");
    let mut fragment = ipv4(UDP, 5353, 443);
    fragment[20] = 0x20;
    assert_eq!(addresses(ETHERNET, &fragment), None, "the first fragment of a datagram");
    let mut tagged = ipv4(TCP, 1, 2);
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    assert_eq!(addresses(ETHERNET, &tagged), None, "VLAN");
}

#[test]
fn plain_segments_are_read_and_all_others_are_left_to_the_general_parsers() {
    let plain = ipv4(TCP, 1, 2);
    let segment = TcpSegment::read(ETHERNET, &plain, 58).unwrap();
    assert_eq!((segment.sequence, segment.flags, segment.payload.data()), (7, 16, &b"data"[..]));
    assert_eq!(TcpSegment::read(ETHERNET, &plain[..56], 58).unwrap().payload, CapturedBytes::new(b"da", 4));
    assert_eq!(TcpSegment::read(ETHERNET, &plain[..53], 58), None, "cut in its headers");
    assert_eq!(TcpSegment::read(ETHERNET, &plain[..56], 57), None, "longer than its frame");
    for (at, byte) in [(14, 0x46), (20, 0x20), (21, 1), (23, UDP), (46, 0x40), (46, 0xf0), (47, 0)] {
        let mut other = plain.clone();
        other[at] = byte;
        assert_eq!(TcpSegment::read(ETHERNET, &other, 58), None, "{at}");
    }
}
