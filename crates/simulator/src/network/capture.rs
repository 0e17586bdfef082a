//! Packets as a pcap file, with the loss, duplication and reordering of real captures.

use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{Endianness, PcapError, TsResolution};
use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::SimulatedPacket;
use crate::SimulateError;
use crate::scenario::{CaptureSettings, Resolution};

const MAX_DELAY_NS: i64 = 5_000_000;

/// The packets from `start_ns` on in the order in which they are captured.
pub(crate) fn captured(
    mut packets: Vec<SimulatedPacket>,
    capture: CaptureSettings,
    start_ns: i64,
    mut random: ChaCha20Rng,
) -> Vec<SimulatedPacket> {
    packets.sort_by_key(|packet| packet.time_ns);
    packets.retain(|packet| packet.time_ns >= start_ns);
    let mut captured = Vec::with_capacity(packets.len());
    for mut packet in packets {
        let (loss, duplication, reordering) = (random.random(), random.random(), random.random());
        let delay_ns = random.random_range(0..MAX_DELAY_NS);
        let happens = |draw: f64, probability: f64| draw < probability;
        if happens(loss, capture.loss) {
            continue;
        }
        if happens(reordering, capture.reordering) {
            packet.time_ns += delay_ns;
        }
        if happens(duplication, capture.duplication) {
            captured.push(packet.clone());
        }
        captured.push(packet);
    }
    captured.sort_by_key(|packet| packet.time_ns);
    captured
}

/// The pcap file of packets in order of time.
pub(crate) fn pcap_file(packets: &[SimulatedPacket], resolution: Resolution) -> Result<Vec<u8>, SimulateError> {
    let ts_resolution = match resolution {
        Resolution::Microsecond => TsResolution::MicroSecond,
        Resolution::Nanosecond => TsResolution::NanoSecond,
    };
    let endianness = Endianness::Little;
    let header = PcapHeader { snaplen: 262_144, ts_resolution, endianness, ..PcapHeader::default() };
    let encode = || {
        let mut writer = PcapWriter::with_header(Vec::new(), header)?;
        for packet in packets {
            let time = Duration::from_nanos(packet.time_ns.unsigned_abs());
            writer.write_packet(&PcapPacket::new(time, packet.data.len() as u32, &packet.data))?;
        }
        Ok::<_, PcapError>(writer.into_writer())
    };
    encode().map_err(SimulateError::encoding("the capture"))
}
