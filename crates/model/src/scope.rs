//! What a model is for: the gateway and the services that it was learned on.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

const MAX_SERVICES: usize = 256;

/// The longest name in the DNS, in characters of its text (RFC 1035, section 2.3.4).
const MAX_NAME_CHARS: usize = 253;

/// The protocols whose records are of the same sizes: a model of one holds for the others.
pub const TLS: [&str; 3] = ["tls", "dtls", "tcp"];

/// The gateway and the services that a model was learned on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The gateway's address; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The services: server names, addresses with ports, or both of the same service; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceName>,
    /// The protocol of the messages, by its name in frames; `None` for records of TLS or of DTLS up to 1.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Whether it is about the gateway's reports, instead of the commands to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reports: bool,
}

/// A service by its server name, or by its address and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ServiceName {
    /// The name that a client asks for (RFC 6066, section 3), in lower case and without a final dot.
    Server(String),
    Address(SocketAddr),
}

#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "`{0}` is no service: give a server name such as `cloud.example.com`, or an address and port such as `192.0.2.7:443`"
)]
pub struct ServiceNameError(String);

impl Scope {
    /// Whether it is the commands of any service to any gateway.
    pub fn is_empty(&self) -> bool {
        self.gateway.is_none() && self.services.is_empty() && self.protocol.is_none() && !self.reports
    }

    /// Whether a server name is among its services; names are compared without regard to case.
    pub fn has_server(&self, name: &str) -> bool {
        let name = normal(name);
        self.services.iter().any(|service| matches!(service, ServiceName::Server(server) if *server == name))
    }

    pub fn has_address(&self, address: SocketAddr) -> bool {
        self.addresses().any(|own| own == address)
    }

    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.services.iter().filter_map(|service| match service {
            ServiceName::Address(address) => Some(*address),
            ServiceName::Server(_) => None,
        })
    }

    /// Whether a flow could be in both scopes by the same words: the same gateway, and a service in common or any service
    /// in both, and both about commands or both about reports.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let both_any = self.services.is_empty() && other.services.is_empty();
        (self.gateway, self.reports, &self.protocol) == (other.gateway, other.reports, &other.protocol)
            && (both_any || self.services.iter().any(|service| other.services.contains(service)))
    }

    /// Whether messages of this protocol are in it. Those of which no protocol is known are taken for records of TLS.
    pub(crate) fn is_of(&self, protocol: Option<&str>) -> bool {
        protocol.filter(|name| !TLS.contains(name)) == self.protocol.as_deref()
    }

    pub(crate) fn fault(&self) -> Option<String> {
        let services = self.services.len();
        (services > MAX_SERVICES)
            .then(|| format!("a [scope] has at most {MAX_SERVICES} services, this one has {services}"))
    }
}

/// For people: `gateway 192.168.1.2, cloud.example.com, 192.0.2.7:443`.
impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reports {
            formatter.write_str("reports of ")?;
        }
        match self.gateway {
            Some(gateway) => write!(formatter, "gateway {gateway}")?,
            None => formatter.write_str("any gateway")?,
        }
        if let Some(protocol) = &self.protocol {
            write!(formatter, ", {protocol}")?;
        }
        if self.services.is_empty() {
            return formatter.write_str(", any service");
        }
        self.services.iter().take(4).try_for_each(|service| write!(formatter, ", {service}"))?;
        match self.services.len().saturating_sub(4) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(name) => formatter.write_str(name),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

impl std::str::FromStr for ServiceName {
    type Err = ServiceNameError;

    fn from_str(text: &str) -> Result<Self, ServiceNameError> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let name = normal(text);
        let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.');
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || !name.chars().all(is_plain) {
            return Err(ServiceNameError(text.chars().take(MAX_NAME_CHARS).collect()));
        }
        Ok(Self::Server(name))
    }
}

impl TryFrom<String> for ServiceName {
    type Error = ServiceNameError;

    fn try_from(text: String) -> Result<Self, ServiceNameError> {
        text.parse()
    }
}

impl From<ServiceName> for String {
    fn from(service: ServiceName) -> Self {
        service.to_string()
    }
}

fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_lowercase()
}
