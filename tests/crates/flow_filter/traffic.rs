//! Packets for the tests, and what a filter makes of them.

use std::collections::BTreeMap;

use etherparse::PacketBuilder;
use sizeleak_flow_filter::{FlowFilter, Options};
use sizeleak_frame::{Direction, Flow, Frame, Packet, Packets, Segments};
use sizeleak_platform::runtime::{Stage, StageError};
use support::injected::{self, Syn};

pub(crate) const GATEWAY: [u8; 4] = [192, 168, 1, 20];
pub(crate) const SERVICE: [u8; 4] = [203, 0, 113, 10];

/// A packet with its link type and its length on the wire.
pub(crate) struct TestPacket {
    pub(crate) link_type: u16,
    pub(crate) data: Vec<u8>,
    pub(crate) original_length: u32,
}

/// Numbers of the `LINKTYPE_` registry.
pub(crate) const ETHERNET: u16 = 1;
pub(crate) const RAW: u16 = 101;

pub(crate) fn captured(link_type: u16, data: Vec<u8>) -> TestPacket {
    let original_length = data.len() as u32;
    TestPacket { link_type, data, original_length }
}

pub(crate) fn ethernet(data: Vec<u8>) -> TestPacket {
    captured(ETHERNET, data)
}

/// A TCP segment in Ethernet.
pub(crate) fn tcp(source: [u8; 4], ports: (u16, u16), destination: [u8; 4], sequence: u32, payload: &[u8]) -> Vec<u8> {
    injected::tcp(source, destination, ports.into(), sequence, Syn::Clear, payload)
}

/// A UDP datagram in Ethernet.
pub(crate) fn udp(source: [u8; 4], ports: (u16, u16), destination: [u8; 4], payload: &[u8]) -> Vec<u8> {
    injected::udp(source, destination, ports.into(), payload)
}

/// A TCP segment in IPv6, without a link layer, from the gateway `2001:db8::20`.
pub(crate) fn tcp_over_ipv6(sequence: u32, payload: &[u8]) -> Vec<u8> {
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let builder =
        PacketBuilder::ipv6(address("2001:db8::20"), address("2001:db8:1::1"), 64).tcp(5000, 443, sequence, 9).ack(1);
    let mut packet = Vec::new();
    builder.write(&mut packet, payload).unwrap();
    packet
}

pub(crate) fn options(gateway: &str) -> Options {
    Options { gateway: vec![gateway.into()], ..Options::default() }
}

/// Runs packets through a filter that accepts an absent gateway.
pub(crate) fn filter(options: &Options, packets: &[TestPacket]) -> (Vec<Frame>, BTreeMap<&'static str, u64>) {
    let (result, frames, counts) = try_filter(&Options { allow_absent: true, ..options.clone() }, packets);
    result.unwrap();
    (frames, counts)
}

/// Runs packets through a filter, and returns how it ended.
pub(crate) fn try_filter(
    options: &Options,
    packets: &[TestPacket],
) -> (Result<(), StageError>, Vec<Frame>, BTreeMap<&'static str, u64>) {
    let mut batch = Packets::new();
    for (packet, number) in packets.iter().zip(1..) {
        let TestPacket { link_type, original_length, ref data } = *packet;
        batch.push(Packet { time_ns: 1_000, link_type, original_length, data, capture: 0, number });
    }
    let mut filter = FlowFilter::new(options).unwrap();
    let mut out = Vec::new();
    filter.process(batch, &mut out).unwrap();
    let result = filter.finish(&mut out);
    (result, out, filter.counters().into_iter().collect())
}

/// A segment without its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedSegment {
    pub(crate) direction: Direction,
    pub(crate) sequence: u32,
    pub(crate) flags: u8,
    pub(crate) length: u32,
    pub(crate) payload: Vec<u8>,
}

/// All segments.
pub(crate) fn segments(frames: &[Frame]) -> Vec<OwnedSegment> {
    let batches = frames.iter().filter_map(|frame| Segments::try_from(frame.clone()).ok());
    let rows = |batch: Segments| {
        let rows = batch.iter().map(|row| OwnedSegment {
            direction: row.direction,
            sequence: row.sequence,
            flags: row.flags,
            length: row.length,
            payload: row.payload.to_vec(),
        });
        rows.collect::<Vec<_>>()
    };
    batches.flat_map(rows).collect()
}

/// The payloads of all segments, one after another.
pub(crate) fn payloads(frames: &[Frame]) -> Vec<Vec<u8>> {
    segments(frames).into_iter().map(|row| row.payload).collect()
}

pub(crate) fn flows(frames: &[Frame]) -> Vec<Flow> {
    frames.iter().filter_map(|frame| Flow::try_from(frame.clone()).ok()).collect()
}

/// The details of all notices of one kind.
pub(crate) fn notices(frames: &[Frame], what: &str) -> Vec<String> {
    let notices = frames.iter().filter_map(|frame| match frame {
        Frame::Notice(notice) if notice.what == what => notice.detail.clone(),
        _ => None,
    });
    notices.collect()
}
