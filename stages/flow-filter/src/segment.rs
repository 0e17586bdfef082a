//! From an IP header to a TCP segment, by etherparse.

use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice};
use sizeleak_frame::Segment;

/// A TCP segment with its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpSegment<'a> {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) sequence: u32,
    pub(crate) flags: u8,
    /// Bytes of payload on the wire.
    pub(crate) length: u32,
    pub(crate) payload: &'a [u8],
}

/// A packet that holds no TCP segment to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTcp<'a> {
    /// An answer of a name server: its payload.
    Dns(&'a [u8]),
    /// A part of a fragmented packet.
    Fragment,
    /// Another protocol.
    OtherProtocol,
    /// The TCP header is cut, or no header at all.
    Damaged,
}

/// The addresses of an IP packet.
pub(crate) fn addresses(packet: &LaxSlicedPacket<'_>) -> Option<(IpAddr, IpAddr)> {
    match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => Some((ip.header().source_addr().into(), ip.header().destination_addr().into())),
        LaxNetSlice::Ipv6(ip) => Some((ip.header().source_addr().into(), ip.header().destination_addr().into())),
        LaxNetSlice::Arp(_) => None,
    }
}

/// The TCP segment of an IP packet. `ip` is what was captured of it, `on_wire` what there was.
pub(crate) fn segment<'a>(
    packet: &LaxSlicedPacket<'a>,
    ip: &'a [u8],
    on_wire: u64,
) -> Result<TcpSegment<'a>, NoTcp<'a>> {
    let (source, destination) = addresses(packet).ok_or(NoTcp::Damaged)?;
    match packet.transport.as_ref() {
        Some(TransportSlice::Tcp(tcp)) => {
            let length = payload_length(packet, tcp, ip, on_wire);
            let payload = tcp.payload();
            Ok(TcpSegment {
                source: (source, tcp.source_port()).into(),
                destination: (destination, tcp.destination_port()).into(),
                sequence: tcp.sequence_number(),
                flags: flags(tcp),
                length,
                // Short frames are padded behind the packet.
                payload: payload.get(..length as usize).unwrap_or(payload),
            })
        }
        Some(TransportSlice::Udp(udp)) if udp.source_port() == 53 => Err(NoTcp::Dns(udp.payload())),
        None if is_fragment(packet) => Err(NoTcp::Fragment),
        None if packet.stop_err.is_some() => Err(NoTcp::Damaged),
        _ => Err(NoTcp::OtherProtocol),
    }
}

/// The payload's length by the IP header; by what was on the wire where offloading left that at 0.
fn payload_length(packet: &LaxSlicedPacket<'_>, tcp: &TcpSlice<'_>, ip: &[u8], on_wire: u64) -> u32 {
    // Both slices are of the same captured packet.
    let before_tcp = (tcp.slice().as_ptr() as usize).saturating_sub(ip.as_ptr() as usize) as u64;
    let claimed = match packet.net.as_ref() {
        Some(LaxNetSlice::Ipv4(ip)) => u64::from(ip.header().total_len()),
        Some(LaxNetSlice::Ipv6(ip)) if ip.header().payload_length() > 0 => 40 + u64::from(ip.header().payload_length()),
        _ => 0,
    };
    let headers = before_tcp + tcp.header_len() as u64;
    let total = if claimed == 0 { on_wire } else { claimed };
    u32::try_from(total.saturating_sub(headers)).unwrap_or(u32::MAX)
}

fn flags(tcp: &TcpSlice<'_>) -> u8 {
    let all = [
        (tcp.fin(), Segment::FIN),
        (tcp.syn(), Segment::SYN),
        (tcp.rst(), Segment::RST),
        (tcp.psh(), 8),
        (tcp.ack(), Segment::ACK),
        (tcp.urg(), 32),
        (tcp.ece(), 64),
        (tcp.cwr(), 128),
    ];
    all.iter().filter(|(set, _)| *set).fold(0, |flags, (_, bit)| flags | bit)
}

fn is_fragment(packet: &LaxSlicedPacket<'_>) -> bool {
    match packet.net.as_ref() {
        Some(LaxNetSlice::Ipv4(ip)) => ip.payload().fragmented,
        Some(LaxNetSlice::Ipv6(ip)) => ip.payload().fragmented,
        _ => false,
    }
}
