//! What is seen of commands through a tunnel, such as WireGuard or IPsec ESP: their packets, padded and added up with
//! those that other flows send at the same time. Here are the packets that carry a message: how many there are, and how
//! long.
//!
//! The observer counts packets and adds up their bytes. He does not use which packet is which: whoever can tell those of
//! the command from the others sees what there is without background, so that these figures bound those of all observers
//! of sizes.

#![warn(clippy::indexing_slicing)]

mod tunnel_audit;

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::str::FromStr;

use serde::Serialize;
use sizeleak_model::policies::{PaddingPolicy, TLS_RECORD_BYTES};
use sizeleak_model::{Basis, Model};
use thiserror::Error;

pub use tunnel_audit::{
    Background, BackgroundError, Conversation, MAX_FLOWS, ObservedFlows, TunnelAudit, WINDOW_NS, flows_in_words,
};

/// The header of a TLS record (RFC 8446, section 5.1), in bytes.
const RECORD_HEADER: u64 = 5;

/// The IP headers without options, in bytes.
const IPV4_HEADER: u64 = 20;
const IPV6_HEADER: u64 = 40;

pub const UDP_HEADER: u64 = 8;

/// The TCP header with timestamps (RFC 7323, section 3.2), which servers send with every segment, in bytes.
pub const TCP_HEADER: u64 = 20 + 12;

/// What hides packets, by its name: `wireguard`, `esp-gcm`, `esp-cbc`, or a padding policy without chance, by which a
/// tunnel that is otherwise WireGuard pads each packet.
#[derive(Debug, Clone, PartialEq)]
pub enum TunnelKind {
    WireGuard,
    /// IPsec ESP in tunnel mode with AES-GCM.
    EspGcm,
    /// IPsec ESP in tunnel mode with AES-CBC and HMAC-SHA-256.
    EspCbc,
    /// A tunnel that pads packets by a policy.
    Padded(PaddingPolicy),
}

#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "`{0}` is no tunnel: give wireguard, esp-gcm, esp-cbc, or how packets are padded, by a policy without chance such as \
     multiple:128"
)]
pub struct TunnelError(String);

/// How a tunnel carries the messages of a model's gateway.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tunnel {
    #[serde(serialize_with = "as_text")]
    kind: TunnelKind,
    padding: PaddingPolicy,
    /// What is padded with each packet, in bytes.
    trailer: u64,
    /// What is added to each padded packet, in bytes.
    added: u64,
    /// The longest inner packet, in bytes.
    mtu: u64,
    /// What IP and TCP add to what a packet carries of a message, in bytes.
    headers: u64,
    /// What TLS adds to each record, in bytes.
    record_overhead: u64,
}

/// What an observer sees at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Burst {
    pub packets: u64,
    /// Their bytes together: what UDP or IP carries.
    pub bytes: u64,
}

impl Burst {
    /// Both at once.
    #[must_use]
    fn with(self, other: Self) -> Self {
        Self { packets: self.packets.saturating_add(other.packets), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl FromStr for TunnelKind {
    type Err = TunnelError;

    fn from_str(name: &str) -> Result<Self, TunnelError> {
        let padded = || name.parse().ok().filter(|policy: &PaddingPolicy| policy.draw().is_none()).map(Self::Padded);
        let standard = [Self::WireGuard, Self::EspGcm, Self::EspCbc].into_iter().find(|kind| kind.to_string() == name);
        standard.or_else(padded).ok_or_else(|| TunnelError(name.to_owned()))
    }
}

impl Display for TunnelKind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::WireGuard => formatter.write_str("wireguard"),
            Self::EspGcm => formatter.write_str("esp-gcm"),
            Self::EspCbc => formatter.write_str("esp-cbc"),
            Self::Padded(policy) => policy.fmt(formatter),
        }
    }
}

fn as_text<S: serde::Serializer>(kind: &TunnelKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}

impl Tunnel {
    /// A tunnel to the gateway of a model. Packets are IPv6 if its address is.
    ///
    /// The longest inner packet is WireGuard's default, which leaves room for IPv6 in 1500 bytes; for ESP it is what fills
    /// 1500 bytes of IPv4.
    pub fn new(kind: TunnelKind, model: &Model) -> Self {
        // WireGuard: type, receiver, counter, and the tag (section 5.4.6 of its paper). ESP: SPI and sequence number, IV, tag
        // (RFC 4303, section 2; RFC 4106, section 3; RFC 3602, section 2; RFC 4868, section 2.3); the trailer is the length of
        // the padding and the next header, which end at a multiple of 4 bytes or of the cipher's block.
        let (block, trailer, added, mtu) = match &kind {
            TunnelKind::WireGuard | TunnelKind::Padded(_) => (16, 0, 16 + 16, 1420),
            TunnelKind::EspGcm => (4, 2, 8 + 8 + 16, 1446),
            TunnelKind::EspCbc => (16, 2, 8 + 16 + 16, 1438),
        };
        let padding = match &kind {
            TunnelKind::Padded(policy) => policy.clone(),
            _ => PaddingPolicy::Multiple { bytes: block },
        };
        let cipher = match model.learned.basis {
            Basis::Plaintext { record_overhead: [least, _], .. } => u64::from(least),
            Basis::Wire => 0,
        };
        let headers = ip_header(model.scope.gateway) + TCP_HEADER;
        Self { kind, padding, trailer, added, mtu, headers, record_overhead: cipher + RECORD_HEADER }
    }

    pub fn title(&self) -> String {
        match &self.kind {
            TunnelKind::WireGuard => "WireGuard".to_owned(),
            TunnelKind::EspGcm => "IPsec ESP, AES-GCM".to_owned(),
            TunnelKind::EspCbc => "IPsec ESP, AES-CBC".to_owned(),
            TunnelKind::Padded(policy) => format!("padding {policy}"),
        }
    }

    pub fn in_words(&self) -> String {
        let Self { padding, trailer, added, mtu, headers, record_overhead, .. } = self;
        let trailer = if *trailer > 0 { format!(", with {trailer} bytes of trailer,") } else { String::new() };
        let padded = match padding {
            PaddingPolicy::Multiple { bytes } => format!("to a multiple of {bytes} bytes"),
            policy => format!("as `{policy}`"),
        };
        format!(
            "each packet{trailer} is padded {padded} and gets {added} more; a command is one TLS record, {record_overhead} \
             bytes longer, in packets of up to {mtu} bytes, of which IP and TCP take {headers}"
        )
    }

    /// The packets with a message, whose bytes are those of its plaintext, or those of its records where the model knows no
    /// others.
    pub fn message(&self, bytes: u64) -> Burst {
        let records = bytes.div_ceil(TLS_RECORD_BYTES).max(1);
        self.sent(bytes.saturating_add(records.saturating_mul(self.record_overhead)), self.headers)
    }

    /// The longest message whose packets have at most so many bytes.
    pub fn greatest_message(&self, bytes: u64) -> u64 {
        // The packets are at least as long as the message.
        let (mut fits, mut too_long) = (0, bytes.saturating_add(1));
        while too_long - fits > 1 {
            let middle = fits + (too_long - fits) / 2;
            if self.message(middle).bytes <= bytes { fits = middle } else { too_long = middle }
        }
        fits
    }

    /// The packets with so many bytes, each with headers of so many; one packet if there are none.
    fn sent(&self, bytes: u64, headers: u64) -> Burst {
        let payload = self.mtu - headers;
        let packets = bytes.div_ceil(payload).max(1);
        let full = self.outer(self.mtu).saturating_mul(packets - 1);
        let last = self.outer(bytes - payload.saturating_mul(packets - 1) + headers);
        Burst { packets, bytes: full.saturating_add(last) }
    }

    /// The packets with what a datagram or a segment carries to an address under a header of UDP or TCP; more than one where
    /// a capture shows segments that the network card cuts.
    pub fn packets(&self, bytes: u64, to: IpAddr, transport_header: u64) -> Burst {
        self.sent(bytes, ip_header(Some(to)) + transport_header)
    }

    /// The bytes of a packet outside, which padding makes no longer than the longest one.
    fn outer(&self, packet: u64) -> u64 {
        let inner = packet + self.trailer;
        let padded = self.padding.padded(inner).unwrap_or(inner);
        padded.min(self.mtu + self.trailer).max(inner) + self.added
    }
}

fn ip_header(address: Option<IpAddr>) -> u64 {
    if address.is_some_and(|address| address.is_ipv6()) { IPV6_HEADER } else { IPV4_HEADER }
}
