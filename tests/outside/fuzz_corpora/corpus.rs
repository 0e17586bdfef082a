//! The binary inputs that fuzzing starts from, made from simulated homes and by hand; never from anyone's captures. Those of
//! targets for text are written by hand in their files.

mod attacks;
mod captures;
mod frames;
mod histograms;
mod packets;
mod segments;

use pcap_file::pcap::{PcapPacket, PcapReader};
use sizeleak_simulator::{Scenario, simulate};

/// An input of a target.
pub(crate) struct Input {
    pub(crate) target: &'static str,
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// All that are made here.
pub(crate) fn inputs() -> Vec<Input> {
    let homes = [home("1.2", "aes-128-gcm"), home("1.3", "chacha20-poly1305")];
    let all = [
        ("capture_reader", captures::inputs(&homes[0])),
        ("packet_parser", packets::inputs(&homes[0])),
        ("record_finder", segments::inputs(&homes)),
        ("frame_decoder", frames::inputs()),
        ("latency_histogram", histograms::inputs()),
    ];
    let named =
        |(target, inputs): (_, Vec<(_, _)>)| inputs.into_iter().map(move |(name, bytes)| Input { target, name, bytes });
    all.into_iter().flat_map(named).collect()
}

/// A home's first packets: a connection's handshake, two commands and their replies.
fn home(version: &str, suite: &str) -> Vec<PcapPacket<'static>> {
    let scenario = format!(
        "learn = {{ random = 1, repeats = 1 }}\ntest = {{ commands = 2 }}\n\
         tls = {{ version = \"{version}\", suite = \"{suite}\" }}\n"
    );
    let simulation = simulate(&Scenario::from_toml(&scenario).unwrap(), 1).unwrap();
    let mut reader = PcapReader::new(&simulation.test.bytes[..]).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        packets.push(packet.unwrap().into_owned());
    }
    // The connection to the service, recognised by the port.
    packets.retain(|packet| is_of_port(&packet.data, 443));
    packets.truncate(40);
    packets
}

/// Whether an Ethernet frame holds an IPv4 packet without options, of TCP from or to this port.
fn is_of_port(data: &[u8], port: u16) -> bool {
    let is_tcp = data.get(12..15) == Some(&[8, 0, 0x45]) && data.get(23) == Some(&6);
    is_tcp && [data.get(34..36), data.get(36..38)].contains(&Some(&port.to_be_bytes()))
}
