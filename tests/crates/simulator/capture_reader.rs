//! Reads a capture independently of the simulator: packets by etherparse, streams by sequence number, records by
//! header.

use std::collections::BTreeMap;
use std::net::IpAddr;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;

/// A captured packet of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParsedPacket {
    pub(crate) time_ns: i64,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) ports: (u16, u16),
    pub(crate) tcp: Option<ParsedTcp>,
}

/// A TCP header and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParsedTcp {
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) ack: Option<u32>,
    pub(crate) sequence: u32,
    pub(crate) payload: Vec<u8>,
}

/// A TLS record: the capture time of its last byte, its content type and its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsRecord {
    pub(crate) time_ns: i64,
    pub(crate) content_type: u8,
    pub(crate) length: usize,
}

/// All packets; each must parse strictly and have correct checksums.
pub(crate) fn packets(pcap: &[u8]) -> Vec<ParsedPacket> {
    let mut reader = PcapReader::new(pcap).unwrap();
    let mut seen = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        assert_eq!(packet.orig_len as usize, packet.data.len());
        seen.push(read(i64::try_from(packet.timestamp.as_nanos()).unwrap(), &packet.data));
    }
    seen
}

fn read(time_ns: i64, data: &[u8]) -> ParsedPacket {
    let sliced = SlicedPacket::from_ethernet(data).unwrap();
    let net = sliced.net.unwrap();
    let (source, destination) = match &net {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            (IpAddr::from(header.source), IpAddr::from(header.destination))
        }
        NetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        NetSlice::Arp(_) => panic!("no ARP is simulated"),
    };
    match sliced.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let (header, payload) = (tcp.to_header(), tcp.payload());
            let checksum = match &net {
                NetSlice::Ipv4(ip) => header.calc_checksum_ipv4(&ip.header().to_header(), payload),
                NetSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), payload),
                NetSlice::Arp(_) => unreachable!(),
            };
            assert_eq!(checksum.unwrap(), header.checksum);
            let (syn, fin, sequence) = (header.syn, header.fin, header.sequence_number);
            let ack = header.ack.then_some(header.acknowledgment_number);
            let ports = (header.source_port, header.destination_port);
            let tcp = ParsedTcp { syn, fin, ack, sequence, payload: payload.to_vec() };
            ParsedPacket { time_ns, source, destination, ports, tcp: Some(tcp) }
        }
        TransportSlice::Udp(udp) => {
            let ports = (udp.source_port(), udp.destination_port());
            ParsedPacket { time_ns, source, destination, ports, tcp: None }
        }
        other => panic!("{other:?} is not simulated"),
    }
}

/// The TLS records of every connection from `source` to `destination`, by their ports. The beginning of a connection
/// may be missing.
pub(crate) fn records(
    packets: &[ParsedPacket],
    source: IpAddr,
    destination: IpAddr,
) -> BTreeMap<(u16, u16), Vec<TlsRecord>> {
    let mut streams: BTreeMap<(u16, u16), ReassembledStream> = BTreeMap::new();
    for packet in packets.iter().filter(|packet| packet.source == source && packet.destination == destination) {
        let Some(tcp) = packet.tcp.as_ref().filter(|tcp| !tcp.payload.is_empty()) else { continue };
        let stream = streams
            .entry(packet.ports)
            .or_insert_with(|| ReassembledStream { next: tcp.sequence, ..ReassembledStream::default() });
        if tcp.sequence.wrapping_sub(stream.next) > 1 << 31 {
            continue;
        }
        assert_eq!(tcp.sequence, stream.next, "a segment is missing");
        stream.next = stream.next.wrapping_add(u32::try_from(tcp.payload.len()).unwrap());
        stream.bytes.extend(&tcp.payload);
        stream.times.resize(stream.bytes.len(), packet.time_ns);
    }
    streams.into_iter().map(|(ports, stream)| (ports, cut(&stream.bytes, &stream.times))).collect()
}

/// The bytes of one direction of a connection, with their capture times.
#[derive(Default)]
struct ReassembledStream {
    next: u32,
    bytes: Vec<u8>,
    times: Vec<i64>,
}

fn cut(bytes: &[u8], times: &[i64]) -> Vec<TlsRecord> {
    let mut records = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = usize::from(u16::from_be_bytes([bytes[at + 3], bytes[at + 4]]));
        assert_eq!(bytes[at + 1], 3, "not a TLS record");
        let end = at + 5 + length;
        records.push(TlsRecord { time_ns: times[end - 1], content_type: bytes[at], length });
        at = end;
    }
    records
}
