//! The network below TLS, independent of its content: packets on the home's Ethernet, built by etherparse with correct
//! lengths and checksums, the hosts that send them, and their capture: a pcap file, with the loss, duplication and
//! reordering of real ones. Hosts' addresses are from documentation and private ranges. TCP connections are in `tcp`.

mod tcp;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use etherparse::{
    IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, PacketBuilder, PacketBuilderStep,
    TcpHeader,
};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{Endianness, PcapError, TsResolution};
use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use crate::SimulateError;
use crate::scenario::{CaptureSettings, NetworkSettings, Resolution};

pub(crate) use tcp::{TcpConnection, TcpRoute};

#[derive(Debug, Clone)]
pub(crate) struct SimulatedPacket {
    pub(crate) time_ns: i64,
    data: Vec<u8>,
}

impl SimulatedPacket {
    pub(crate) fn tcp(
        time_ns: i64,
        [from, to]: [Host; 2],
        header: TcpHeader,
        identification: u16,
        payload: &[u8],
    ) -> Result<Self, SimulateError> {
        let step = ip_headers(from, to, IpNumber::TCP, identification)?.tcp_header(header);
        let mut data = Vec::with_capacity(step.size(payload.len()));
        step.write_to_vec(&mut data, payload).map_err(failed)?;
        Ok(Self { time_ns, data })
    }

    pub(crate) fn udp(
        time_ns: i64,
        [from, to]: [Host; 2],
        [source, destination]: [u16; 2],
        identification: u16,
        payload: &[u8],
    ) -> Result<Self, SimulateError> {
        let step = ip_headers(from, to, IpNumber::UDP, identification)?.udp(source, destination);
        let mut data = Vec::with_capacity(step.size(payload.len()));
        step.write_to_vec(&mut data, payload).map_err(failed)?;
        Ok(Self { time_ns, data })
    }
}

fn ip_headers(
    from: Host,
    to: Host,
    protocol: IpNumber,
    identification: u16,
) -> Result<PacketBuilderStep<IpHeaders>, SimulateError> {
    let headers = match (from.address, to.address) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = Ipv4Header::new(0, from.time_to_live, protocol, source.octets(), destination.octets());
            let header = Ipv4Header { identification, ..header.map_err(failed)? };
            IpHeaders::Ipv4(header, Ipv4Extensions::default())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = Ipv6Header {
                next_header: protocol,
                hop_limit: from.time_to_live,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            IpHeaders::Ipv6(header, Ipv6Extensions::default())
        }
        (source, destination) => {
            return Err(failed(format_args!("{source} and {destination} have different IP versions")));
        }
    };
    Ok(PacketBuilder::ethernet2(from.mac, to.mac).ip(headers))
}

fn failed(error: impl std::fmt::Display) -> SimulateError {
    SimulateError::encoding("a packet")(error)
}

/// A host as seen by the capture, on the home's side of the router.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    pub(crate) mac: [u8; 6],
    pub(crate) address: IpAddr,
    /// Remaining time to live of its packets in the capture.
    time_to_live: u8,
}

const ROUTER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Hosts {
    pub(crate) gateway: Host,
    pub(crate) service: Host,
    /// The home's router, which resolves names.
    pub(crate) router: Host,
    /// Another host of the home.
    pub(crate) laptop: Host,
    /// The gateway's update service.
    pub(crate) firmware: Host,
    /// The service of the laptop.
    pub(crate) website: Host,
    /// The gateway's NTP server.
    pub(crate) clock: Host,
}

impl Hosts {
    pub(crate) fn new(network: &NetworkSettings) -> Self {
        let near = |mac: u8, address| Host { mac: [0x02, 0, 0, 0, 0, mac], address, time_to_live: 64 };
        let far = |address| Host { mac: ROUTER_MAC, address, time_to_live: 53 };
        let (router, laptop, firmware, website, clock) = if network.gateway.is_ipv4() {
            let home = |last| IpAddr::from(Ipv4Addr::new(192, 168, 1, last));
            let world = |last| IpAddr::from(Ipv4Addr::new(198, 51, 100, last));
            (home(1), home(50), world(20), world(80), world(123))
        } else {
            let home = |last| IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, last));
            let world = |last| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, last));
            (home(1), home(0x50), world(0x20), world(0x80), world(0x123))
        };
        Self {
            gateway: near(0x14, network.gateway),
            service: far(network.service),
            router: near(0x01, router),
            laptop: near(0x32, laptop),
            firmware: far(firmware),
            website: far(website),
            clock: far(clock),
        }
    }
}

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
