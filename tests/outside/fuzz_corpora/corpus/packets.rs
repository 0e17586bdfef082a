//! Packets of every link type and tunnel, as the packet parser's target takes them.

use pcap_file::pcap::PcapPacket;

const ETHERNET: u16 = 1;
const RAW: u16 = 101;

pub(super) fn inputs(home: &[PcapPacket<'_>]) -> Vec<(&'static str, Vec<u8>)> {
    let frames: Vec<&[u8]> = home.iter().take(6).map(|packet| &*packet.data).collect();
    let ip: Vec<&[u8]> = frames.iter().map(|frame| &frame[14..]).collect();
    let (first, addresses) = (ip[0], &frames[0][..12]);
    let ethernet = |header: &[u8], ip: &[u8]| (ETHERNET, 0, [addresses, header, ip].concat());
    let plain: Vec<_> = frames.iter().map(|frame| (ETHERNET, 0, frame.to_vec())).collect();
    let cut = frames.iter().map(|frame| (ETHERNET, 40, frame[..frame.len().min(80)].to_vec())).collect::<Vec<_>>();
    let tagged = [
        ethernet(&[0x81, 0, 0, 5, 8, 0], first),
        ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0], first),
        ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 42, 0, 0x21], first),
    ];
    let other_links = [
        (RAW, 0, first.to_vec()),
        (0, 0, [&[2, 0, 0, 0], first].concat()),
        (108, 0, [&[0, 0, 0, 2], first].concat()),
        (113, 0, [&[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0][..], first].concat()),
        (276, 0, [&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0][..], first].concat()),
        (147, 0, first.to_vec()),
    ];
    let vxlan = [&[0x08, 0, 0, 0, 0, 0, 1, 0], frames[0]].concat();
    let tunnels = [
        (RAW, 0, ipv4(4, 0, first)),
        (RAW, 0, ipv4(47, 0, &[&[0, 0, 8, 0], first].concat())),
        (RAW, 0, ipv4(17, 0, &udp(40_000, 4_789, &vxlan))),
        (RAW, 0, ipv6(41, &ipv6(4, first))),
    ];
    let transport = &first[20..];
    let (front, back) = transport.split_at(transport.len().min(16));
    let fragments = [
        (RAW, 0, ipv4(6, 0x2000, front)),
        (RAW, 0, ipv4(6, 2, back)),
        (RAW, 0, ipv6(44, &[&[6, 0, 0, 1, 0, 0, 0, 9], front].concat())),
        (RAW, 0, ipv6(44, &[&[6, 0, 0, 16, 0, 0, 0, 9], back].concat())),
    ];
    let extended = [(RAW, 0, ipv6(0, &[&[6, 0, 1, 4, 0, 0, 0, 0], transport].concat())), (RAW, 0, ipv6(6, transport))];
    let datagrams = [(RAW, 0, ipv4(17, 0, &udp(50_000, 5_684, b"\x17\xfe\xfd\0\x01\0\0\0\0\0\x01\0\x05hello")))];
    vec![
        ("ethernet", encode(&plain)),
        ("snaplen", encode(&cut)),
        ("tags", encode(&tagged)),
        ("links", encode(&other_links)),
        ("tunnels", encode(&tunnels)),
        ("fragments", encode(&fragments)),
        ("extensions", encode(&extended)),
        ("datagrams", encode(&datagrams)),
    ]
}

fn ipv4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let [offset_high, offset_low] = fragment.to_be_bytes();
    let header = [0x45, 0, high, low, 0, 9, offset_high, offset_low, 64, protocol, 0, 0];
    [&header[..], &[192, 0, 2, 20, 192, 0, 2, 10], payload].concat()
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let address = |last| [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    [&[0x60, 0, 0, 0, high, low, next_header, 64][..], &address(1), &address(2), payload].concat()
}

fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    [&source.to_be_bytes()[..], &destination.to_be_bytes(), &length, &[0, 0], payload].concat()
}

/// Link type, bytes cut off and length, each of two bytes, then the data.
fn encode(packets: &[(u16, u16, Vec<u8>)]) -> Vec<u8> {
    let encode = |(link_type, cut, data): &(u16, u16, Vec<u8>)| {
        let numbers = [*link_type, *cut, data.len() as u16].map(u16::to_be_bytes);
        [numbers.as_flattened(), data].concat()
    };
    packets.iter().flat_map(encode).collect()
}
