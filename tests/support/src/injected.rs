//! The bundled capture with packets inserted, and what a run answers to it.

use std::path::Path;
use std::process::Output;
use std::sync::LazyLock;
use std::time::Duration;

use etherparse::{EtherType, PacketBuilder};
use pcap_file::TsResolution;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};

use crate::programs::{GATEWAY, example, root, sizeleak, stderr, write};

/// The commands of the bundled capture.
pub const COMMANDS: usize = 307;
/// The gateway, its service and its resolver in that capture.
pub const HOME: [u8; 4] = [192, 168, 1, 20];
pub const SERVICE: [u8; 4] = [203, 0, 113, 10];
pub const RESOLVER: [u8; 4] = [192, 168, 1, 1];

/// Packets in order of time: since the epoch, and the bytes of an Ethernet frame.
#[derive(Clone)]
pub struct Traffic(pub Vec<(Duration, Vec<u8>)>);

impl Traffic {
    /// The bundled capture.
    pub fn bundled() -> Self {
        Self::of(&std::fs::read(root().join(example("test.pcap"))).unwrap())
    }

    /// The packets of a classic pcap.
    pub fn of(pcap: &[u8]) -> Self {
        let mut reader = PcapReader::new(pcap).unwrap();
        let mut packets = Vec::new();
        while let Some(packet) = reader.next_packet() {
            let packet = packet.unwrap();
            packets.push((packet.timestamp, packet.data.into_owned()));
        }
        Self(packets)
    }

    /// Inserts frames right behind a packet.
    pub fn insert_behind(&mut self, packet: usize, frames: impl IntoIterator<Item = Vec<u8>>) {
        let time = self.0[packet].0;
        let behind = packet + 1;
        self.0.splice(behind..behind, frames.into_iter().map(|frame| (time, frame)));
    }

    /// The gateway's segments with data to its service: their place, sequence number and ports.
    pub fn gateway_data(&self) -> Vec<(usize, u32, [u16; 2])> {
        let of = |(at, (_, frame)): (usize, &(Duration, Vec<u8>))| {
            let headers = etherparse::SlicedPacket::from_ethernet(frame).ok()?;
            let Some(etherparse::TransportSlice::Tcp(tcp)) = headers.transport else { return None };
            let is_gateways = frame.get(26..34) == Some(&[HOME, SERVICE].concat()[..]);
            (is_gateways && !tcp.payload().is_empty())
                .then(|| (at, tcp.sequence_number(), [tcp.source_port(), tcp.destination_port()]))
        };
        self.0.iter().enumerate().filter_map(of).collect()
    }

    pub fn to_pcap(&self) -> Vec<u8> {
        let header = PcapHeader { ts_resolution: TsResolution::NanoSecond, ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        for (time, frame) in &self.0 {
            writer.write_packet(&PcapPacket::new(*time, frame.len() as u32, frame)).unwrap();
        }
        writer.into_writer()
    }
}

/// A TCP segment in Ethernet and IPv4.
pub fn tcp(from: [u8; 4], to: [u8; 4], ports: [u16; 2], sequence: u32, syn: Syn, payload: &[u8]) -> Vec<u8> {
    let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64).tcp(ports[0], ports[1], sequence, 64_240);
    let step = if syn == Syn::Set { step.syn() } else { step.ack(1).psh() };
    let mut frame = Vec::new();
    step.write(&mut frame, payload).unwrap();
    frame
}

/// Whether a segment opens a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Syn {
    Set,
    Clear,
}

/// A UDP datagram in Ethernet and IPv4.
pub fn udp(from: [u8; 4], to: [u8; 4], ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64).udp(ports[0], ports[1]);
    step.write(&mut frame, payload).unwrap();
    frame
}

/// A frame inside VXLAN between two tunnel ends.
pub fn vxlan(ends: [[u8; 4]; 2], network: u8, frame: &[u8]) -> Vec<u8> {
    udp(ends[0], ends[1], [50_000, 4789], &[&[8, 0, 0, 0, 0, 0, network, 0], frame].concat())
}

/// The IP packet of a frame inside GRE between two tunnel ends.
pub fn gre(ends: [[u8; 4]; 2], frame: &[u8]) -> Vec<u8> {
    let mut outer = Vec::new();
    let content = [&[0, 0, 8, 0], &frame[14..]].concat();
    let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(ends[0], ends[1], 64);
    step.write(&mut outer, etherparse::IpNumber::GRE, &content).unwrap();
    outer
}

/// A frame with a VLAN tag.
pub fn tagged(vlan: u16, frame: &[u8]) -> Vec<u8> {
    let tag = [EtherType::VLAN_TAGGED_FRAME.0.to_be_bytes(), vlan.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

/// Runs the bundled model over captures; `more` are further arguments.
pub fn run(inputs: &[&Path], more: &[&str]) -> Output {
    let mut command = sizeleak("run");
    command.args(inputs).args(["--gateway", GATEWAY, "--model", &example("model.toml")]);
    // Each command is answered for itself: what differs is what packets say, not what earlier commands did.
    command.args(["--format", "ndjson", "--set", "epsilon-corrector.fixed=true"]).args(more).output().unwrap()
}

/// Writes this traffic to a file and runs the bundled model over it.
pub fn answers(traffic: &Traffic, more: &[&str]) -> Answers {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "traffic.pcap", traffic.to_pcap());
    Answers::of(&run(&[&file], &[&["--kind", "flow,identification,notice,summary"], more].concat()))
}

/// The answers to the bundled capture as it is.
pub fn honest() -> &'static Answers {
    static HONEST: LazyLock<Answers> = LazyLock::new(|| {
        let honest = answers(&Traffic::bundled(), &[]);
        assert_eq!(honest.untunnelled().len(), COMMANDS);
        honest
    });
    &HONEST
}

/// What a run printed, as JSON lines.
#[derive(Debug)]
pub struct Answers {
    lines: String,
    pub code: Option<i32>,
    pub stderr: String,
}

impl Answers {
    pub fn of(output: &Output) -> Self {
        let lines = String::from_utf8(output.stdout.clone()).unwrap();
        Self { lines, code: output.status.code(), stderr: stderr(output) }
    }

    /// The bodies of the frames of a kind.
    pub fn kind(&self, kind: &str) -> Vec<serde_json::Value> {
        self.texts(kind).map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    /// The same as they were printed: to read answers with all their candidates takes longer than the run.
    fn texts(&self, kind: &str) -> impl Iterator<Item = &str> {
        let head = format!("{{\"{kind}\":");
        self.lines.lines().filter_map(move |line| line.strip_prefix(&head)?.strip_suffix('}'))
    }

    /// The identifications, without those of flows in a tunnel.
    pub fn untunnelled(&self) -> Vec<&str> {
        let tunnelled = self.kind("flow").into_iter().filter(|flow| flow["encapsulation"].is_string());
        let tunnelled: Vec<String> = tunnelled.map(|flow| format!("\"flow\":{},", flow["flow"])).collect();
        self.texts("identification").filter(|answer| !tunnelled.iter().any(|flow| answer.contains(flow))).collect()
    }

    /// The same without a field.
    pub fn untunnelled_without(&self, field: &str) -> Vec<String> {
        let head = format!("\"{field}\":");
        let without = |answer: &str| {
            let (before, behind) = answer.split_once(&head).unwrap();
            // Up to the name of the next one.
            before.to_owned() + behind.split_once(",\"").unwrap().1
        };
        self.untunnelled().into_iter().map(without).collect()
    }

    /// The notices with this word, as text.
    pub fn notices(&self, what: &str) -> Vec<String> {
        let notices = self.kind("notice").into_iter().filter(|notice| notice["what"] == what);
        notices.map(|notice| notice["detail"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// A counter of a stage.
    pub fn counter(&self, stage: &str, name: &str) -> u64 {
        let summary = self.kind("summary");
        let rows = summary.iter().flat_map(|summary| summary["stages"].as_array().unwrap());
        rows.into_iter().find(|row| row["stage"] == stage).and_then(|row| row[name].as_u64()).unwrap_or_default()
    }
}
