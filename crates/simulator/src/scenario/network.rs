//! The tables of a scenario about the network, its background traffic, and the capture.

use std::net::{IpAddr, Ipv4Addr};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Addresses and TCP. With IPv6 addresses the whole network uses IPv6.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkSettings {
    pub gateway: IpAddr,
    pub service: IpAddr,
    pub port: u16,
    pub name: String,
    /// The round-trip time from the capture point to the service.
    pub round_trip: SignedDuration,
    /// The maximum segment size, in bytes.
    pub segment_size: u16,
    pub initial_sequence: InitialSequence,
    pub retransmission: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialSequence {
    Random,
    /// Just below 2³², so that they wrap within the first messages.
    NearWrap,
}

/// Background traffic. Periods are the mean time between two events; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NoiseSettings {
    /// The gateway fetches a firmware update from another service, over TLS.
    pub firmware_period: SignedDuration,
    pub firmware_bytes: usize,
    /// Another host of the home fetches from a website, over TLS.
    pub host_period: SignedDuration,
    pub host_bytes: usize,
    /// The gateway or another host looks up a name.
    pub dns_period: SignedDuration,
    /// The gateway queries the time.
    pub ntp_period: SignedDuration,
}

/// Resolution and disturbances of the capture. Probabilities are for each packet.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaptureSettings {
    pub resolution: Resolution,
    /// Whether it starts after the gateway's connection was opened.
    pub mid_stream: bool,
    /// The probability that a packet is missing from the capture, although it arrived.
    pub loss: f64,
    /// The probability that a packet is captured twice.
    pub duplication: f64,
    /// The probability that a packet is captured up to 5 ms late.
    pub reordering: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    #[default]
    Microsecond,
    Nanosecond,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            gateway: IpAddr::V4(Ipv4Addr::new(192, 168, 1, 20)),
            service: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 10)),
            port: 443,
            name: "hub.example".into(),
            round_trip: SignedDuration::from_millis(24),
            segment_size: 1460,
            initial_sequence: InitialSequence::Random,
            retransmission: 0.0,
        }
    }
}

impl Default for NoiseSettings {
    fn default() -> Self {
        Self {
            firmware_period: SignedDuration::from_mins(25),
            firmware_bytes: 3_000,
            host_period: SignedDuration::from_mins(10),
            host_bytes: 1_500,
            dns_period: SignedDuration::from_mins(4),
            ntp_period: SignedDuration::from_mins(15),
        }
    }
}
