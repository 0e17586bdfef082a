//! A segment is the same under every link layer, and under IPv4 options and IPv6 extension headers.

use super::traffic::{GATEWAY, RAW, SERVICE, TestPacket, captured, ethernet, filter, options, segments};
use etherparse::{
    IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6FlowLabel, Ipv6Header, Ipv6RawExtHeader,
    LinuxSllPacketType, PacketBuilder, PacketBuilderStep, VlanId,
};

fn tcp(step: PacketBuilderStep<IpHeaders>) -> Vec<u8> {
    let mut packet = Vec::new();
    step.tcp(5000, 443, 7, 9).ack(1).write(&mut packet, b"hello").unwrap();
    packet
}

fn assert_hello(gateway: &str, packets: &[TestPacket]) {
    let rows = segments(&filter(&options(gateway), packets).0);
    assert_eq!(rows.len(), packets.len());
    for row in rows {
        assert_eq!((row.sequence, row.length, row.payload.as_slice()), (7, 5, &b"hello"[..]));
    }
}

#[test]
fn a_segment_is_found_under_every_link_layer() {
    let vlan = |id| VlanId::try_new(id).unwrap();
    let plain = tcp(PacketBuilder::ipv4(GATEWAY, SERVICE, 64));
    let with = |header: &[u8]| [header, &plain].concat();
    let macs = || PacketBuilder::ethernet2([1; 6], [2; 6]);
    let pppoe = [&[1; 6][..], &[2; 6], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 47, 0, 0x21]].concat();
    let mpls = [&[1; 6][..], &[2; 6], &[0x88, 0x47, 0, 1, 0x10, 64, 0, 2, 0x21, 64]].concat();
    let packets = [
        ethernet(tcp(macs().ipv4(GATEWAY, SERVICE, 64))),
        ethernet(tcp(macs().single_vlan(vlan(7)).ipv4(GATEWAY, SERVICE, 64))),
        ethernet(tcp(macs().double_vlan(vlan(7), vlan(8)).ipv4(GATEWAY, SERVICE, 64))),
        ethernet(with(&pppoe)),
        ethernet(with(&mpls)),
        captured(
            113,
            tcp(PacketBuilder::linux_sll(LinuxSllPacketType::OUTGOING, 6, [1; 8]).ipv4(GATEWAY, SERVICE, 64)),
        ),
        captured(276, with(&[&[8, 0][..], &[0; 18]].concat())),
        captured(RAW, plain.clone()),
        captured(228, plain.clone()),
        captured(0, with(&[2, 0, 0, 0])),
        captured(0, with(&[0, 0, 0, 2])),
        captured(108, with(&[0, 0, 0, 2])),
    ];
    assert_hello("192.168.1.20", &packets);
}

#[test]
fn ipv4_options_and_wrong_checksums_do_not_matter() {
    let mut header = Ipv4Header::new(0, 64, IpNumber::TCP, GATEWAY, SERVICE).unwrap();
    header.options = [1_u8, 1, 1, 0].into();
    let headers = IpHeaders::Ipv4(header, Ipv4Extensions::default());
    let with_options = tcp(PacketBuilder::ethernet2([1; 6], [2; 6]).ip(headers));
    let mut offloaded = with_options.clone();
    offloaded[14 + 10] ^= 0xff;
    offloaded[14 + 24 + 16] ^= 0xff;
    assert_hello("192.168.1.20", &[ethernet(with_options), ethernet(offloaded)]);
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let options = || Ipv6RawExtHeader::new_raw(IpNumber::TCP, &[1, 4, 0, 0, 0, 0]).unwrap();
    let header = Ipv6Header {
        traffic_class: 0,
        flow_label: Ipv6FlowLabel::ZERO,
        payload_length: 0,
        next_header: IpNumber::TCP,
        hop_limit: 64,
        source: address("2001:db8::20"),
        destination: address("2001:db8:1::1"),
    };
    let extensions = Ipv6Extensions {
        hop_by_hop_options: Some(options()),
        destination_options: Some(options()),
        ..Ipv6Extensions::default()
    };
    let packet = tcp(PacketBuilder::ethernet2([1; 6], [2; 6]).ip(IpHeaders::Ipv6(header, extensions)));
    assert_eq!(packet[14 + 6], 0, "hop-by-hop options come first");
    let mut jumbo = packet.clone();
    jumbo[14 + 4..14 + 6].copy_from_slice(&[0, 0]);
    assert_hello("2001:db8::20", &[ethernet(packet), ethernet(jumbo)]);
}
