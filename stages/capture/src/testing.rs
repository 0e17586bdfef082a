//! What the tests of several modules share: packets, captures, and runs of a driver.

use std::path::PathBuf;

use sizeleak_packet::{AddressPrefilter, AddressSet};
use sizeleak_platform::runtime::{Interrupt, Progress, SourceEmit};

use crate::capture_driver::CaptureDriver;
use crate::error::Failures;
use crate::merge::CaptureOrder;
use crate::merge::Merge;
use crate::packet_batcher::{PacketCounts, Selection};

/// The address that [`prefilter`] lets pass.
pub(crate) const GATEWAY: [u8; 4] = [192, 168, 1, 20];
/// One that it excludes.
pub(crate) const OTHER: [u8; 4] = [10, 0, 0, 1];

pub(crate) fn prefilter() -> AddressPrefilter {
    AddressPrefilter::new(AddressSet::parse(["192.168.1.20"]).unwrap())
}

/// A TCP packet in IPv4, at least as long as its headers.
pub(crate) fn tcp_packet(source: [u8; 4], length: usize, fill: u8) -> Vec<u8> {
    let mut data = vec![fill; length.max(54)];
    data[12..15].copy_from_slice(&[8, 0, 0x45]);
    data[23] = 6;
    data[26..30].copy_from_slice(&source);
    data[30..34].copy_from_slice(&[10, 0, 0, 2]);
    data
}

/// A pcap file of packets: times in microseconds, and data.
pub(crate) fn pcap_file(packets: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Vec<u8> {
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1].map(u32::to_le_bytes);
    let mut bytes = header.as_flattened().to_vec();
    for (time_us, data) in packets {
        let time = [time_us / 1_000_000, time_us % 1_000_000].map(|part| part as u32);
        let length = data.len() as u32;
        bytes.extend_from_slice([time[0], time[1], length, length].map(u32::to_le_bytes).as_flattened());
        bytes.extend(data);
    }
    bytes
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DriverCounts {
    pub(crate) packets: PacketCounts,
    bytes: u64,
    skipped_blocks: u64,
    skipped_bytes: u64,
    damaged_files: u64,
}

impl DriverCounts {
    pub(crate) fn of(driver: &CaptureDriver<'_>) -> Self {
        let CaptureDriver { merge, batcher, failures, .. } = driver;
        Self {
            packets: batcher.counts,
            bytes: merge.bytes,
            skipped_blocks: merge.skipped_blocks,
            skipped_bytes: merge.skipped_bytes,
            damaged_files: failures.count(),
        }
    }
}

/// Makes a driver for files and calls `drive`; returns what that returns, and what the driver has counted.
pub(crate) fn with_driver<T>(
    files: &[PathBuf],
    selection: &Selection,
    interrupt: &Interrupt,
    out: &mut dyn SourceEmit,
    drive: impl FnOnce(&mut CaptureDriver<'_>) -> T,
) -> (T, DriverCounts) {
    let mut failures = Failures::default();
    let (merge, errors) = Merge::new(files.to_vec(), CaptureOrder::Time, interrupt, &Progress::new());
    for error in errors {
        failures.report(error, None, out).unwrap();
    }
    let mut driver = CaptureDriver::new(merge, selection, &mut failures, out, interrupt);
    let result = drive(&mut driver);
    (result, DriverCounts::of(&driver))
}
