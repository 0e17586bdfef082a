//! Packets as a pcap file in order of time, with the loss, duplication and reordering of real captures.

use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};
use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::SimulatedPacket;
use crate::SimulateError;
use crate::scenario::{CaptureSettings, Resolution};

const MAX_DELAY_NS: i64 = 5_000_000;

/// The pcap file of the packets from `start_ns` on.
pub(crate) fn write_pcap(
    mut packets: Vec<SimulatedPacket>,
    capture: CaptureSettings,
    start_ns: i64,
    mut random: ChaCha20Rng,
) -> Result<Vec<u8>, SimulateError> {
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
    encode(&captured, capture.resolution).map_err(SimulateError::encoding("the capture"))
}

/// The header of a pcap file with times in nanoseconds.
pub(crate) const PCAP_HEADER: PcapHeader = PcapHeader {
    version_major: 2,
    version_minor: 4,
    ts_correction: 0,
    ts_accuracy: 0,
    snaplen: 262_144,
    datalink: DataLink::ETHERNET,
    ts_resolution: TsResolution::NanoSecond,
    endianness: Endianness::Little,
};

fn encode(packets: &[SimulatedPacket], resolution: Resolution) -> Result<Vec<u8>, pcap_file::PcapError> {
    let ts_resolution = match resolution {
        Resolution::Microsecond => TsResolution::MicroSecond,
        Resolution::Nanosecond => TsResolution::NanoSecond,
    };
    let mut writer = PcapWriter::with_header(Vec::new(), PcapHeader { ts_resolution, ..PCAP_HEADER })?;
    for packet in packets {
        let time = Duration::from_nanos(packet.time_ns.unsigned_abs());
        writer.write_packet(&PcapPacket::new(time, packet.data.len() as u32, &packet.data))?;
    }
    Ok(writer.into_writer())
}
