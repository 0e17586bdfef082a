//! Capture files: both byte orders and resolutions, and pcapng with several sections, interfaces and unknown blocks.

use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

pub(super) fn inputs(home: &[PcapPacket<'_>]) -> Vec<(&'static str, Vec<u8>)> {
    let some = &home[..home.len().min(6)];
    let pcapng = [section(some, &[], 1), section(some, &[9, 0, 1, 0, 9, 0, 0, 0], 113)].concat();
    vec![
        ("microseconds", pcap(some, Endianness::Little, TsResolution::MicroSecond, 262_144)),
        ("nanoseconds-big-endian", pcap(some, Endianness::Big, TsResolution::NanoSecond, 262_144)),
        ("snaplen", pcap(some, Endianness::Little, TsResolution::MicroSecond, 60)),
        ("pcapng", pcapng.clone()),
        ("pcapng-cut", pcapng[..pcapng.len() - 7].to_vec()),
        ("text", b"time,on,off\n1767600000,1,0\n".to_vec()),
    ]
}

fn pcap(packets: &[PcapPacket<'_>], endianness: Endianness, ts_resolution: TsResolution, snaplen: u32) -> Vec<u8> {
    let header =
        PcapHeader { datalink: DataLink::ETHERNET, endianness, ts_resolution, snaplen, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for packet in packets {
        let kept = &packet.data[..packet.data.len().min(snaplen as usize)];
        writer.write_packet(&PcapPacket::new(packet.timestamp, packet.data.len() as u32, kept)).unwrap();
    }
    writer.into_writer()
}

/// A section with one interface of this link type and these options, an unknown block, a simple packet and others.
fn section(packets: &[PcapPacket<'_>], options: &[u8], link_type: u16) -> Vec<u8> {
    let mut bytes = block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    bytes.extend(block(1, &[&link_type.to_le_bytes()[..], &[0, 0], &262_144_u32.to_le_bytes(), options].concat()));
    bytes.extend(block(0x0bad, b"unknown"));
    for (packet, index) in packets.iter().zip(0..) {
        let length = (packet.data.len() as u32).to_le_bytes();
        let ticks = Duration::as_micros(&packet.timestamp) as u64;
        let (high, low) = (((ticks >> 32) as u32).to_le_bytes(), (ticks as u32).to_le_bytes());
        if index == 0 {
            bytes.extend(block(3, &[&length[..], &packet.data].concat()));
        } else {
            bytes.extend(block(6, &[&[0; 4][..], &high, &low, &length, &length, &packet.data].concat()));
        }
    }
    bytes
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let length = ((12 + body.len() + padding.len()) as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &padding, &length].concat()
}
