//! `flow`: the two ends of a gateway's connection, once before its first use, and its number as people and exports
//! write it; the direction of data, seen from the gateway; and `session`: what a handshake, or the first message,
//! revealed of the flow.

use std::fmt::{Display, Formatter};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The direction of a segment or record. In `segments` rows it is 0 or 1, elsewhere a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the service to the gateway, like commands. 0 in rows.
    #[default]
    ToGateway,
    /// From the gateway to the service, like replies. 1 in rows.
    FromGateway,
}

impl Direction {
    /// Both directions, in the order of their numbers.
    pub const BOTH: [Self; 2] = [Self::ToGateway, Self::FromGateway];

    pub fn number(self) -> u8 {
        match self {
            Self::ToGateway => 0,
            Self::FromGateway => 1,
        }
    }

    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::ToGateway),
            1 => Some(Self::FromGateway),
            _ => None,
        }
    }

    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::ToGateway => Self::FromGateway,
            Self::FromGateway => Self::ToGateway,
        }
    }

    /// Its name in frames other than `segments`.
    pub fn word(self) -> &'static str {
        match self {
            Self::ToGateway => "to_gateway",
            Self::FromGateway => "from_gateway",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerDirection<T> {
    pub to_gateway: T,
    pub from_gateway: T,
}

impl<T> PerDirection<T> {
    #[inline]
    pub fn of(&self, direction: Direction) -> &T {
        if direction == Direction::ToGateway { &self.to_gateway } else { &self.from_gateway }
    }

    #[inline]
    pub fn of_mut(&mut self, direction: Direction) -> &mut T {
        if direction == Direction::ToGateway { &mut self.to_gateway } else { &mut self.from_gateway }
    }

    #[inline]
    pub fn both(&self) -> [&T; 2] {
        [&self.to_gateway, &self.from_gateway]
    }

    pub fn map<U>(self, each: impl Fn(T) -> U) -> PerDirection<U> {
        PerDirection { to_gateway: each(self.to_gateway), from_gateway: each(self.from_gateway) }
    }

    pub fn all(&self, holds: impl Fn(&T) -> bool) -> bool {
        holds(&self.to_gateway) && holds(&self.from_gateway)
    }
}

impl<T: Clone> PerDirection<T> {
    pub fn same(value: T) -> Self {
        Self { to_gateway: value.clone(), from_gateway: value }
    }
}

/// A connection of a gateway, named once before the first segment that refers to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The flow's identifier: the same for the same five-tuple in the same tunnel in any run.
    pub flow: u64,
    #[serde(with = "address")]
    pub gateway: IpAddr,
    /// The gateway's port; streams of older programs lack it, and ESP has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_port: Option<u16>,
    /// The other end, as `ip:port`.
    #[serde(with = "address")]
    pub service: SocketAddr,
    pub transport: Transport,
    /// The tunnel that the connection was seen in; `None` outside tunnels, and in one that the user has named. Old
    /// streams lack it.
    #[serde(default)]
    pub encapsulation: Option<String>,
    /// Whether the filter was asked for several gateways, so that this one need not be that of a model of another address.
    /// It is left out where it is false, as in old streams.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub among_several: bool,
}

impl Flow {
    pub fn new(flow: u64, gateway: IpAddr, service: SocketAddr, transport: Transport) -> Self {
        let (gateway_port, encapsulation, among_several) = (None, None, false);
        Self { flow, gateway, gateway_port, service, transport, encapsulation, among_several }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Tcp,
    Udp,
    /// ESP of IPsec, directly over IP: its port is 0.
    Esp,
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Esp => "esp",
        }
    }
}

/// A flow's number in its text form: `F` and 16 hexadecimal digits, as `F50bc1f2e0000a3f8`. A number of 64 bits loses
/// digits where numbers are floats (JavaScript, jq, spreadsheets); nothing takes the text for a number, whatever its
/// digits are. In frames a flow is the number itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write a flow as exports name it (F and 16 hexadecimal digits), or by its number in frames")]
pub struct NoFlowId;

const DIGITS: usize = 16;

impl Display for FlowId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        // As one text, so that a width applies to it.
        formatter.pad(&format!("F{:0DIGITS$x}", self.0))
    }
}

impl FromStr for FlowId {
    type Err = NoFlowId;

    fn from_str(text: &str) -> Result<Self, NoFlowId> {
        let is_plain = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = match text.strip_prefix('F') {
            Some(digits) if digits.len() == DIGITS && is_plain(digits) => u64::from_str_radix(digits, 16),
            None if is_plain(text) => text.parse(),
            _ => return Err(NoFlowId),
        };
        number.map(Self).map_err(|_| NoFlowId)
    }
}

/// The observed parts of a handshake; a part that was not observed is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// When its last part was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    pub flow: u64,
    /// The server name the client asked for (RFC 6066, section 3).
    pub server_name: Option<String>,
    /// The negotiated version, such as `TLS 1.2`.
    pub tls_version: Option<String>,
    /// The negotiated cipher suite by its IANA name, such as `TLS_AES_128_GCM_SHA256`; an unassigned one as `0x1a2b`.
    pub cipher_suite: Option<String>,
    /// The protocol of its messages: that of its records, or the name of a declared framing. Streams of older programs
    /// lack it.
    #[serde(default)]
    pub protocol: Option<String>,
}

/// Addresses as text: by default `serde` writes binary formats an enum of byte lists, which other languages do not
/// expect.
mod address {
    use std::fmt::{Display, Formatter};
    use std::marker::PhantomData;
    use std::str::FromStr;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<T: Display, S: Serializer>(address: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(address)
    }

    pub(crate) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(AddressVisitor(PhantomData))
    }

    struct AddressVisitor<T>(PhantomData<T>);

    impl<T: FromStr> Visitor<'_> for AddressVisitor<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("an address as text")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
    }
}
