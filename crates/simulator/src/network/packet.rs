//! Packets on the home's Ethernet, built by etherparse with correct lengths and checksums, and the hosts that send them.
//! Hosts' addresses are from documentation and private ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, PacketBuilder, PacketBuilderStep,
    TcpHeader,
};

use crate::SimulateError;
use crate::scenario::NetworkSettings;

#[derive(Debug, Clone)]
pub(crate) struct SimulatedPacket {
    pub(crate) time_ns: i64,
    pub(crate) data: Vec<u8>,
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

pub(super) fn failed(error: impl std::fmt::Display) -> SimulateError {
    SimulateError::encoding("a packet")(error)
}

/// A host as seen by the capture, on the home's side of the router.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    pub(crate) mac: [u8; 6],
    pub(crate) address: IpAddr,
    /// Remaining time to live of its packets in the capture.
    pub(crate) time_to_live: u8,
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
