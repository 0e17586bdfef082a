//! tshark's JSON, packet by packet: a packet takes more room as JSON than it had, and only its records are kept.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    match serde_json::from_reader::<_, Vec<Packet>>(input) {
        Ok(packets) => Ok(packets.into_iter().flat_map(|packet| packet.0).collect()),
        // tshark prints nothing for a capture that it cannot open.
        Err(error) if error.is_eof() && error.line() == 1 && error.column() == 0 => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The records of a packet.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Packet(Vec<Seen>);

impl TryFrom<Value> for Packet {
    type Error = String;

    fn try_from(packet: Value) -> Result<Self, String> {
        let layers = &packet["_source"]["layers"];
        let mut seen = Vec::new();
        for protocol in ["tls", "dtls"] {
            let records =
                all(&layers[protocol]).into_iter().flat_map(|layer| all(&layer[format!("{protocol}.record")]));
            for record in records.filter(|record| record.is_object()) {
                let field = |name: &str| all(&record[format!("{protocol}.record.{name}")]).first().copied();
                let content_type = field("opaque_type").or_else(|| field("content_type"));
                // A record of SSL 2 has a length but no content type.
                let (Some(content_type), Some(length)) = (content_type, field("length")) else { continue };
                let is_dtls = protocol == "dtls";
                let (source, destination, sequence) = ends(layers, if is_dtls { "udp" } else { "tcp" })?;
                let (time_ns, frame) = (nanoseconds(layers)?, parsed(&layers["frame"]["frame.number"])?);
                let (content_type, length) = (parsed(content_type)?, parsed(length)?);
                seen.push(Seen { time_ns, frame, source, destination, sequence, is_dtls, content_type, length });
            }
        }
        Ok(Self(seen))
    }
}

/// A value that tshark prints alone where there is one, and as a list where there are several; none if it is absent.
fn all(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(several) => several.iter().collect(),
        one => vec![one],
    }
}

/// The innermost of a packet's layers of a protocol. Some layers are only a title.
fn innermost<'a>(layers: &'a Value, protocol: &str) -> Option<&'a Value> {
    all(&layers[protocol]).into_iter().rfind(|layer| layer.is_object())
}

/// The ends and the sequence number of what carries a packet's records: the innermost layers.
fn ends(layers: &Value, transport: &str) -> Result<(SocketAddr, SocketAddr, u32), String> {
    // Records of TLS may be carried by UDP, in QUIC.
    let carrier = innermost(layers, transport).map(|layer| (transport, layer));
    let carrier = carrier.or_else(|| innermost(layers, "udp").map(|layer| ("udp", layer)));
    let (transport, ports) = carrier.ok_or("a record without TCP or UDP")?;
    let protocols = layers["frame"]["frame.protocols"].as_str().unwrap_or_default();
    let network = protocols.split(':').rfind(|protocol| matches!(*protocol, "ip" | "ipv6")).unwrap_or("ip");
    let addresses = innermost(layers, network).ok_or("a record without IP")?;
    let end = |address: &str, port: &str| -> Result<SocketAddr, String> {
        let address: IpAddr = parsed(&addresses[format!("{network}.{address}")])?;
        Ok((address, parsed(&ports[format!("{transport}.{port}")])?).into())
    };
    let sequence = if transport == "tcp" { parsed(&ports["tcp.seq_raw"])? } else { 0 };
    Ok((end("src", "srcport")?, end("dst", "dstport")?, sequence))
}

/// What a text says.
fn parsed<T: FromStr>(text: &Value) -> Result<T, String> {
    text.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| format!("{text} cannot be read"))
}

/// A packet's time: seconds with nine decimals, exactly.
fn nanoseconds(layers: &Value) -> Result<i64, String> {
    let text = &layers["frame"]["frame.time_epoch"];
    let (seconds, decimals) = text.as_str().and_then(|text| text.split_once('.')).ok_or("a packet without a time")?;
    let nanoseconds: i64 = parsed(&format!("{decimals:0<9}").into())?;
    let whole = parsed::<i64>(&seconds.into())? * 1_000_000_000;
    Ok(if seconds.starts_with('-') { whole - nanoseconds } else { whole + nanoseconds })
}
