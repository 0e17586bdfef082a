//! The tables of a scenario about the network, the other traffic on it, and the capture.

use std::net::{IpAddr, Ipv4Addr};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Addresses and TCP. IPv6 addresses make an IPv6 network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkSettings {
    /// The gateway's address.
    pub gateway: IpAddr,
    /// The service's address.
    pub service: IpAddr,
    /// The service's TCP port.
    pub port: u16,
    /// The service's name.
    pub name: String,
    /// From the capture to the service and back.
    pub round_trip: SignedDuration,
    /// The most bytes of a TCP segment.
    pub segment_size: u16,
    /// Where sequence numbers start.
    pub initial_sequence: InitialSequence,
    /// The probability that a segment is sent a second time.
    pub retransmission: f64,
}

/// Where sequence numbers start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialSequence {
    /// Anywhere.
    Random,
    /// So shortly before 2³² that they wrap within the first messages.
    NearWrap,
}

/// Other traffic: mean time between two of each kind; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NoiseSettings {
    /// The gateway asks another service for new firmware, over TLS.
    pub firmware_period: SignedDuration,
    /// Bytes of that service's answer.
    pub firmware_bytes: usize,
    /// Another host of the home talks to the world, over TLS.
    pub host_period: SignedDuration,
    /// Bytes of the answer it gets.
    pub host_bytes: usize,
    /// The gateway or another host asks for a name.
    pub dns_period: SignedDuration,
    /// The gateway asks for the time.
    pub ntp_period: SignedDuration,
}

/// What the capture is like. Probabilities are a packet's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaptureSettings {
    /// How exact its times are.
    pub resolution: Resolution,
    /// It starts when the connection has long been open.
    pub mid_stream: bool,
    /// A packet is missing from the capture (it did arrive).
    pub loss: f64,
    /// A packet is in the capture twice.
    pub duplication: f64,
    /// A packet comes up to 5 ms late.
    pub reordering: f64,
}

/// How exact a capture's times are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    /// 1 µs.
    Microsecond,
    /// 1 ns.
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

impl Default for CaptureSettings {
    fn default() -> Self {
        Self { resolution: Resolution::Microsecond, mid_stream: false, loss: 0.0, duplication: 0.0, reordering: 0.0 }
    }
}
