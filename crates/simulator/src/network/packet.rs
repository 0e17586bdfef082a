//! Packets on the home's Ethernet, built by etherparse with correct lengths and checksums.

use std::net::IpAddr;

use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6FlowLabel, Ipv6Header,
    PacketBuilder, PacketBuilderStep, TcpHeader,
};

use super::Host;
use crate::SimulateError;

/// A captured packet.
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
            let mut header = header.map_err(failed)?;
            header.identification = identification;
            header.dont_fragment = true;
            header.fragment_offset = IpFragOffset::ZERO;
            IpHeaders::Ipv4(header, Ipv4Extensions::default())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = Ipv6Header {
                traffic_class: 0,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: 0,
                next_header: protocol,
                hop_limit: from.time_to_live,
                source: source.octets(),
                destination: destination.octets(),
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
