//! tshark's JSON, read packet by packet: a packet of a large capture takes more room as JSON than it had.

use std::fmt::Formatter;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A record as tshark sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The frame in which it was complete: its time, nanoseconds since the epoch.
    pub time_ns: i64,
    /// That frame's number.
    pub frame: u64,
    /// Where that frame came from.
    pub source: SocketAddr,
    /// Where it went to.
    pub destination: SocketAddr,
    /// Its raw TCP sequence number; 0 for UDP.
    pub sequence: u32,
    /// Whether the record is one of DTLS.
    pub is_dtls: bool,
    /// The content type on the wire.
    pub content_type: u8,
    /// The length on the wire, without the header.
    pub length: u32,
}

/// The records of all packets.
pub(super) fn records(input: impl Read) -> Result<Vec<Seen>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_reader(input);
    match deserializer.deserialize_seq(PacketVisitor) {
        // tshark prints nothing for a capture that it cannot open.
        Err(error) if error.is_eof() && error.line() == 1 && error.column() == 0 => Ok(Vec::new()),
        other => other,
    }
}

struct PacketVisitor;

impl<'de> Visitor<'de> for PacketVisitor {
    type Value = Vec<Seen>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of packets")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut packets: A) -> Result<Vec<Seen>, A::Error> {
        let mut records = Vec::new();
        while let Some(packet) = packets.next_element::<Packet>()? {
            packet.source.layers.add_to(&mut records).map_err(A::Error::custom)?;
        }
        Ok(records)
    }
}

#[derive(Deserialize)]
struct Packet {
    #[serde(rename = "_source")]
    source: Source,
}

#[derive(Deserialize)]
struct Source {
    layers: Layers,
}

#[derive(Deserialize)]
struct Layers {
    frame: FrameLayer,
    ip: Option<OneOrMany<Ip>>,
    ipv6: Option<OneOrMany<Ipv6>>,
    tcp: Option<OneOrMany<Tcp>>,
    udp: Option<OneOrMany<Udp>>,
    tls: Option<OneOrMany<Tls>>,
    dtls: Option<OneOrMany<Dtls>>,
}

#[derive(Deserialize)]
struct FrameLayer {
    #[serde(rename = "frame.number")]
    number: String,
    #[serde(rename = "frame.time_epoch")]
    time: String,
    #[serde(rename = "frame.protocols")]
    protocols: String,
}

#[derive(Deserialize)]
struct Ip {
    #[serde(rename = "ip.src")]
    source: IpAddr,
    #[serde(rename = "ip.dst")]
    destination: IpAddr,
}

#[derive(Deserialize)]
struct Ipv6 {
    #[serde(rename = "ipv6.src")]
    source: IpAddr,
    #[serde(rename = "ipv6.dst")]
    destination: IpAddr,
}

#[derive(Deserialize)]
struct Tcp {
    #[serde(rename = "tcp.srcport")]
    source: String,
    #[serde(rename = "tcp.dstport")]
    destination: String,
    #[serde(rename = "tcp.seq_raw")]
    sequence: String,
}

#[derive(Deserialize)]
struct Udp {
    #[serde(rename = "udp.srcport")]
    source: String,
    #[serde(rename = "udp.dstport")]
    destination: String,
}

#[derive(Deserialize)]
struct Tls {
    #[serde(rename = "tls.record")]
    record: Option<OneOrMany<TlsRecord>>,
}

#[derive(Deserialize)]
struct Dtls {
    #[serde(rename = "dtls.record")]
    record: Option<OneOrMany<DtlsRecord>>,
}

/// A record of SSL 2 has a length but no content type.
#[derive(Deserialize)]
struct TlsRecord {
    #[serde(rename = "tls.record.content_type")]
    content_type: Option<OneOrMany<String>>,
    #[serde(rename = "tls.record.opaque_type")]
    opaque_type: Option<OneOrMany<String>>,
    #[serde(rename = "tls.record.length")]
    length: Option<String>,
}

#[derive(Deserialize)]
struct DtlsRecord {
    #[serde(rename = "dtls.record.content_type")]
    content_type: Option<OneOrMany<String>>,
    #[serde(rename = "dtls.record.length")]
    length: Option<String>,
}

/// A value that tshark prints alone where there is one, and as a list where there are several, some only as a title.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    List(Vec<Item<T>>),
    Title(#[allow(dead_code)] String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item<T> {
    Whole(T),
    Title(#[allow(dead_code)] String),
}

impl<T> OneOrMany<T> {
    fn all(&self) -> Vec<&T> {
        match self {
            Self::One(one) => vec![one],
            Self::List(list) => {
                list.iter().filter_map(|item| if let Item::Whole(whole) = item { Some(whole) } else { None }).collect()
            }
            Self::Title(_) => Vec::new(),
        }
    }
}

/// All of what may be absent, one or several.
fn all<T>(many: Option<&OneOrMany<T>>) -> Vec<&T> {
    many.map(OneOrMany::all).unwrap_or_default()
}

impl Layers {
    fn add_to(&self, records: &mut Vec<Seen>) -> Result<(), String> {
        let tls =
            all(self.tls.as_ref()).into_iter().flat_map(|layer| all(layer.record.as_ref())).filter_map(|record| {
                let outer = all(record.opaque_type.as_ref()).first().copied();
                let content_type = outer.or(all(record.content_type.as_ref()).first().copied())?;
                Some((false, content_type, record.length.as_ref()?))
            });
        let dtls =
            all(self.dtls.as_ref()).into_iter().flat_map(|layer| all(layer.record.as_ref())).filter_map(|record| {
                Some((true, all(record.content_type.as_ref()).first().copied()?, record.length.as_ref()?))
            });
        for (is_dtls, content_type, length) in tls.chain(dtls) {
            let (source, destination, sequence) = self.ends(is_dtls)?;
            records.push(Seen {
                time_ns: nanoseconds(&self.frame.time)?,
                frame: number(&self.frame.number)?,
                source,
                destination,
                sequence,
                is_dtls,
                content_type: number(content_type)?,
                length: number(length)?,
            });
        }
        Ok(())
    }

    /// The ends and the sequence number of what carries the records: the innermost layers.
    fn ends(&self, is_dtls: bool) -> Result<(SocketAddr, SocketAddr, u32), String> {
        let innermost = self.frame.protocols.split(':').rfind(|protocol| matches!(*protocol, "ip" | "ipv6"));
        let addresses = if innermost == Some("ipv6") {
            all(self.ipv6.as_ref()).last().map(|ip| (ip.source, ip.destination))
        } else {
            all(self.ip.as_ref()).last().map(|ip| (ip.source, ip.destination))
        };
        let (source, destination) = addresses.ok_or("a record without IP")?;
        let tcp = all(self.tcp.as_ref()).last().copied();
        let udp = all(self.udp.as_ref()).last().copied();
        let (ports, sequence) = match (tcp, udp) {
            (Some(tcp), _) if !is_dtls => ((&tcp.source, &tcp.destination), number(&tcp.sequence)?),
            (_, Some(udp)) => ((&udp.source, &udp.destination), 0),
            _ => return Err("a record without TCP or UDP".to_owned()),
        };
        Ok(((source, number(ports.0)?).into(), (destination, number(ports.1)?).into(), sequence))
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a valid number"))
}

/// Seconds with nine decimals, exactly.
fn nanoseconds(text: &str) -> Result<i64, String> {
    let (seconds, decimals) = text.split_once('.').ok_or_else(|| format!("`{text}` is not a time"))?;
    let nanoseconds: i64 = number(&format!("{decimals:0<9}"))?;
    let whole: i64 = number::<i64>(seconds)? * 1_000_000_000;
    Ok(if seconds.starts_with('-') { whole - nanoseconds } else { whole + nanoseconds })
}
