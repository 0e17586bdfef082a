//! The filter's prefilter, when the capture before it applies it, changes no output: frames, batches, counters, errors.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use sizeleak::pipeline::Pipeline;
use sizeleak::registry;
use sizeleak_frame::Frame;
use sizeleak_platform::runtime::{Interrupt, Outcome, Output, Runnable, run_fused};
use toml::{Table, Value};

const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 20);
const OTHERS: [Ipv4Addr; 3] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What a packet is, in Ethernet.
#[derive(Debug, Clone)]
enum Kind {
    Tcp,
    Udp {
        source_port: u16,
        destination_port: u16,
    },
    Icmp,
    /// IPv6 of these last bytes of its addresses; 20 is the gateway's.
    Six(u8, u8),
    /// A part of a datagram, at this offset of 8 bytes.
    Fragment {
        identification: u16,
        offset: u16,
        more: bool,
    },
    /// IP in IP, with the ends inside.
    Tunnel(Ipv4Addr, Ipv4Addr),
    /// VXLAN, with the ends inside.
    Vxlan(Ipv4Addr, Ipv4Addr),
    Arp,
    /// Neither IP nor common.
    Other(u16),
    /// Anything.
    Noise(Vec<u8>),
}

#[derive(Debug, Clone)]
struct GeneratedPacket {
    kind: Kind,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    tag: bool,
    /// The snaplen.
    cut: usize,
    sequence: u32,
    payload: usize,
}

fn address() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![6 => prop::sample::select(&OTHERS[..]), 1 => Just(GATEWAY)]
}

fn captured() -> impl Strategy<Value = GeneratedPacket> {
    let port = || prop::sample::select(&[53_u16, 443, 4789, 5684, 40_000][..]);
    let kind = prop_oneof![
        12 => Just(Kind::Tcp),
        3 => (port(), port()).prop_map(|(source_port, destination_port)| Kind::Udp { source_port, destination_port }),
        1 => Just(Kind::Icmp),
        3 => (prop::sample::select(&[1u8, 2, 20][..]), 1u8..3)
            .prop_map(|(source, destination)| Kind::Six(source, destination)),
        3 => (0u16..3, 0u16..3, any::<bool>())
            .prop_map(|(identification, offset, more)| Kind::Fragment { identification, offset, more }),
        1 => (address(), address()).prop_map(|(source, destination)| Kind::Tunnel(source, destination)),
        1 => (address(), address()).prop_map(|(source, destination)| Kind::Vxlan(source, destination)),
        1 => Just(Kind::Arp),
        1 => (0x1200u16..0x1208).prop_map(Kind::Other),
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Kind::Noise),
    ];
    let cut = prop_oneof![6 => Just(2000usize), 1 => 10usize..70];
    (kind, address(), address(), prop::bool::weighted(0.1), cut, any::<u32>(), 0usize..700).prop_map(
        |(kind, source, destination, tag, cut, sequence, payload)| GeneratedPacket {
            kind,
            source,
            destination,
            tag,
            cut,
            sequence,
            payload,
        },
    )
}

fn ipv4(protocol: u8, ends: [Ipv4Addr; 2], fragment: [u16; 2], content: &[u8]) -> Vec<u8> {
    let length = (20 + content.len() as u16).to_be_bytes();
    let [identification, offset] = fragment.map(u16::to_be_bytes);
    let [source, destination] = ends.map(|end| end.octets());
    let start = [0x45, 0, length[0], length[1], identification[0], identification[1], offset[0], offset[1]];
    [&start[..], &[64, protocol, 0, 0], &source, &destination, content].concat()
}

/// A segment that holds a TLS record, or a part of its header.
fn tcp(sequence: u32, payload: usize) -> Vec<u8> {
    let [high, low] = (payload.saturating_sub(5) as u16).to_be_bytes();
    let record = [&[23, 3, 3, high, low][..], &vec![7; payload]].concat();
    let ports = [40_000_u16.to_be_bytes(), 443_u16.to_be_bytes()].concat();
    [&ports[..], &sequence.to_be_bytes(), &[0, 0, 0, 0, 0x50, 24, 1, 1, 0, 0, 0, 0], &record[..payload]].concat()
}

fn udp(ports: [u16; 2], content: &[u8]) -> Vec<u8> {
    let length = (8 + content.len() as u16).to_be_bytes();
    [&ports.map(u16::to_be_bytes).concat(), &length[..], &[0, 0], content].concat()
}

impl GeneratedPacket {
    fn ethernet(&self) -> Vec<u8> {
        let ends = [self.source, self.destination];
        let segment = tcp(self.sequence, self.payload);
        let (ether_type, content) = match &self.kind {
            Kind::Tcp => (0x0800, ipv4(TCP, ends, [0, 0x4000], &segment)),
            Kind::Udp { source_port, destination_port } => {
                (0x0800, ipv4(UDP, ends, [0, 0], &udp([*source_port, *destination_port], &vec![1; self.payload])))
            }
            Kind::Icmp => (0x0800, ipv4(1, ends, [0, 0], &[8, 0, 0, 0])),
            Kind::Six(source, destination) => {
                let address = |last: u8| [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[last]].concat();
                let length = (segment.len() as u16).to_be_bytes();
                let start = [0x60, 0, 0, 0, length[0], length[1], TCP, 64];
                (0x86dd, [&start[..], &address(*source), &address(*destination), &segment].concat())
            }
            Kind::Fragment { identification, offset, more } => {
                let fragment = offset | u16::from(*more) << 13;
                (0x0800, ipv4(UDP, ends, [*identification, fragment], &[9, 9, 1, 187, 0, 24, 0, 0]))
            }
            Kind::Tunnel(source, destination) => {
                let inside = ipv4(TCP, [*source, *destination], [0, 0], &segment);
                (0x0800, ipv4(4, ends, [0, 0], &inside))
            }
            Kind::Vxlan(source, destination) => {
                let inside = ipv4(TCP, [*source, *destination], [0, 0], &segment);
                let inside = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &[2; 12], &[8, 0], &inside].concat();
                (0x0800, ipv4(UDP, ends, [0, 0], &udp([5, 4789], &inside)))
            }
            Kind::Arp => (0x0806, vec![0; 28]),
            Kind::Other(ether_type) => (*ether_type, vec![0; 28]),
            Kind::Noise(bytes) => (0x0800, bytes.clone()),
        };
        let tag: &[u8] = if self.tag { &[0x81, 0, 0, 7] } else { &[] };
        [&[2; 12][..], tag, &u16::to_be_bytes(ether_type), &content].concat()
    }
}

/// A capture of these packets, again and again.
fn pcap(packets: &[GeneratedPacket], times: usize) -> Vec<u8> {
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    let built: Vec<_> = packets.iter().map(|packet| (packet.ethernet(), packet.cut)).collect();
    for ((data, cut), time) in built.iter().cycle().take(built.len() * times).zip(0u32..) {
        let there = data.len().min(*cut);
        for number in [time / 100, time % 100, there as u32, data.len() as u32] {
            capture.extend(number.to_le_bytes());
        }
        capture.extend(&data[..there]);
    }
    capture
}

/// Takes what comes out.
struct CollectedFrames(Vec<Frame>);

impl Output for CollectedFrames {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        self.0.append(frames);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}

/// The options of the filter.
fn filter_options() -> Table {
    let gateways = vec![GATEWAY.to_string(), "2001:db8::14".to_owned()];
    Table::from_iter([("gateway".to_owned(), Value::from(gateways))])
}

fn stage(name: &str, options: Table) -> Box<dyn Runnable> {
    (registry::find(name).unwrap().configure)(options).unwrap().build().unwrap()
}

/// The stages from `capture` to this one, one after the other, each doing all its own work.
fn separate(capture: &Path, last: &str) -> (Vec<Frame>, Option<String>) {
    let files = Value::from(vec![capture.to_str().unwrap()]);
    let first = stage("capture", Table::from_iter([("files".to_owned(), files)]));
    let mut stages = vec![first, stage("flow-filter", filter_options())];
    if last == "record-sizer" {
        stages.push(stage(last, Table::new()));
    }
    let (mut out, mut error) = (CollectedFrames(Vec::new()), None);
    let mut ended = |_, outcome| {
        if let Outcome::Failed(cause) = outcome {
            error.get_or_insert(cause);
        }
    };
    run_fused(stages, None, &mut out, &Interrupt::new(), &mut ended);
    (out.0, error)
}

/// As the runner runs them.
fn fused(capture: &Path, last: &str) -> (Vec<Frame>, Option<String>) {
    let mut pipeline = Pipeline::standard().until(last).unwrap();
    pipeline.read_captures(&[capture.to_owned()]).unwrap();
    for (key, value) in filter_options() {
        pipeline.set("flow-filter", &key, value).unwrap();
    }
    let mut frames = Vec::new();
    let mut take = |frame| {
        frames.push(frame);
        Ok(())
    };
    let run = pipeline.prepare().unwrap().run(&Interrupt::new(), &mut take);
    (frames, run.err().map(|error| error.cause))
}

fn timeless(frames: Vec<Frame>) -> Vec<Frame> {
    let without = |mut frame| {
        if let Frame::Summary(summary) = &mut frame {
            for row in &mut summary.stages {
                row.latency.clear();
                row.queue.clear();
            }
        }
        frame
    };
    frames.into_iter().map(without).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_comes_out_changes(mut packets in prop::collection::vec(captured(), 1..900), absent in 0usize..400) {
        // The gateway appears late, or never.
        for packet in packets.iter_mut().take(absent) {
            packet.source = OTHERS[0];
            packet.destination = OTHERS[1];
            if matches!(packet.kind, Kind::Six(..) | Kind::Tunnel(..) | Kind::Vxlan(..)) {
                packet.kind = Kind::Tcp;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.pcap");
        // Enough that some come after the filter, on a thread of its own, has seen the gateway.
        std::fs::write(&file, pcap(&packets, 20)).unwrap();
        for last in ["flow-filter", "record-sizer"] {
            let ((separate, separate_error), (fused, fused_error)) = (separate(&file, last), fused(&file, last));
            prop_assert_eq!(timeless(separate), timeless(fused), "up to {}", last);
            prop_assert_eq!(separate_error, fused_error);
        }
    }
}
