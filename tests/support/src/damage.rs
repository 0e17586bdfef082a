//! Damages a pcap file as networks and captures do: packets are lost, late or duplicate, payloads cut.

use std::time::Duration;

use pcap_file::TsResolution;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// The longest delay of a late packet.
const LATEST: Duration = Duration::from_millis(50);

/// Drops this share of all packets.
pub fn drop_packets(pcap: &[u8], share: f64, seed: u64) -> Vec<u8> {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    rewrite(pcap, |packets| packets.retain(|_| !random.random_bool(share)))
}

/// Delays this share of all packets by up to 50 ms, so that others overtake them.
pub fn delay_packets(pcap: &[u8], share: f64, seed: u64) -> Vec<u8> {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    rewrite(pcap, |packets| {
        for packet in packets {
            if random.random_bool(share) {
                packet.timestamp += delay(&mut random);
            }
        }
    })
}

/// Duplicates this share of all packets, up to 50 ms later.
pub fn repeat_packets(pcap: &[u8], share: f64, seed: u64) -> Vec<u8> {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    rewrite(pcap, |packets| {
        let mut again: Vec<_> = packets.iter().filter(|_| random.random_bool(share)).cloned().collect();
        for packet in &mut again {
            packet.timestamp += delay(&mut random);
        }
        packets.extend(again);
    })
}

/// Keeps at most the first `snaplen` bytes of each packet.
pub fn cut_packets(pcap: &[u8], snaplen: usize) -> Vec<u8> {
    rewrite(pcap, |packets| {
        for packet in packets {
            packet.data.to_mut().truncate(snaplen);
        }
    })
}

fn delay(random: &mut impl Rng) -> Duration {
    random.random_range(Duration::ZERO..LATEST)
}

/// Changes the packets and writes them in order of time.
fn rewrite(pcap: &[u8], change: impl FnOnce(&mut Vec<PcapPacket<'static>>)) -> Vec<u8> {
    let mut reader = PcapReader::new(pcap).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        packets.push(packet.unwrap().into_owned());
    }
    change(&mut packets);
    packets.sort_by_key(|packet| packet.timestamp);
    let header = PcapHeader { ts_resolution: TsResolution::NanoSecond, ..reader.header() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for packet in &packets {
        writer.write_packet(packet).unwrap();
    }
    writer.into_writer()
}

/// Repeats each packet so much later, cut to `snaplen` bytes.
pub fn repeat_cut_packets(pcap: &[u8], snaplen: usize, later: Duration) -> Vec<u8> {
    rewrite(pcap, |packets| {
        let mut again = packets.clone();
        for packet in &mut again {
            packet.timestamp += later;
            packet.data.to_mut().truncate(snaplen);
        }
        packets.extend(again);
    })
}
