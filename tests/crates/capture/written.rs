//! Writes captures for the tests, and reads them.

use std::path::PathBuf;
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};
use sizeleak_capture::Capture;
use sizeleak_frame::{Frame, Packets};
use sizeleak_platform::runtime::{Interrupt, Source};
use tempfile::TempDir;

/// Time in nanoseconds, data, and the length on the wire.
pub(crate) type Written = (u64, Vec<u8>, u32);

/// Time, data, length on the wire, capture and number.
pub(crate) type Read = (i64, Vec<u8>, u32, u32, u64);

pub(crate) fn some_packets(count: u64, from_ns: u64) -> Vec<Written> {
    (0..count).map(|at| (from_ns + at * 1_000_000, vec![at as u8; 20 + at as usize % 50], 100)).collect()
}

pub(crate) fn pcap(packets: &[Written], endianness: Endianness, resolution: TsResolution) -> Vec<u8> {
    let header =
        PcapHeader { endianness, ts_resolution: resolution, datalink: DataLink::ETHERNET, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for (time, data, original) in packets {
        writer.write_packet(&PcapPacket::new(Duration::from_nanos(*time), *original, data)).unwrap();
    }
    writer.into_writer()
}

/// A block of pcapng, in little-endian.
pub(crate) fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

pub(crate) fn little_endian(packets: &[Written]) -> Vec<u8> {
    pcap(packets, Endianness::Little, TsResolution::NanoSecond)
}

/// Reads captures; returns their packets and the error, if any.
pub(crate) fn read(files: &[PathBuf]) -> (Vec<Read>, Option<String>) {
    let mut out: Vec<Frame> = Vec::new();
    let error = Capture::new(files.to_vec()).run(&mut out, &Interrupt::new()).err().map(|error| error.to_string());
    (out.into_iter().flat_map(packets).collect(), error)
}

/// The packets of a frame, if it holds any.
pub(crate) fn packets(frame: Frame) -> Vec<Read> {
    let batch = Packets::try_from(frame).unwrap_or_default();
    let rows = batch
        .iter()
        .map(|packet| (packet.time_ns, packet.data.to_vec(), packet.original_length, packet.capture, packet.number));
    rows.collect()
}

pub(crate) fn file(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

pub(crate) fn read_one(content: &[u8]) -> (Vec<Read>, Option<String>) {
    let folder = TempDir::new().unwrap();
    read(&[file(&folder, "x.dat", content)])
}

pub(crate) fn assert_same(read: &[Read], written: &[Written]) {
    let read: Vec<Written> =
        read.iter().map(|(time, data, original, ..)| (*time as u64, data.clone(), *original)).collect();
    assert_eq!(read, written);
}
