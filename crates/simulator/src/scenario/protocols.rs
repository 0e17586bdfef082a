//! The tables of a scenario about the network and its background traffic, the capture, TLS, the protocol inside it,
//! replies, telemetry and padding.

use std::net::{IpAddr, Ipv4Addr};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use sizeleak_model::policies::PaddingPolicy;

use super::commands::{Compression, DurationRange};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsSettings {
    pub version: Version,
    pub suite: Suite,
    /// The largest plaintext of a record, in bytes; 0 for the limit of TLS (16384).
    pub chunk: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Version {
    /// RFC 5246.
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    Tls13,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suite {
    #[default]
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
    #[serde(rename = "chacha20-poly1305")]
    ChaCha20Poly1305,
    /// AES-128-CBC with a MAC of SHA-1 (TLS 1.2).
    #[serde(rename = "aes-128-cbc-sha")]
    Aes128CbcSha,
    /// AES-256-CBC with a MAC of SHA-1 (TLS 1.2).
    #[serde(rename = "aes-256-cbc-sha")]
    Aes256CbcSha,
    /// AES-128-CBC with a MAC of SHA-256 (TLS 1.2).
    #[serde(rename = "aes-128-cbc-sha256")]
    Aes128CbcSha256,
}

impl Suite {
    /// Whether messages are padded to whole blocks, so that their length reveals only a range of sizes.
    pub fn is_padded(self) -> bool {
        matches!(self, Self::Aes128CbcSha | Self::Aes256CbcSha | Self::Aes128CbcSha256)
    }
}

settings! {
    #[derive(Copy, Eq)]
    pub struct SessionSettings {
        pub framing: Framing = Framing::Websocket,
        /// The time between the gateway's pings (WebSocket, MQTT); 0 for none.
        pub keep_alive: SignedDuration = SignedDuration::from_secs(30),
        /// How long the service delays the response to a poll (HTTP).
        pub poll_timeout: SignedDuration = SignedDuration::from_secs(25),
        /// The delivery guarantee (MQTT).
        pub quality_of_service: QualityOfService = QualityOfService::AtLeastOnce,
        /// The time after which the gateway reconnects; 0 for never.
        pub reconnect_after: SignedDuration = SignedDuration::ZERO,
        pub compression: Compression = Compression::None,
    }
}

/// The protocol that carries the JSON messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// WebSocket (RFC 6455) after an HTTP upgrade.
    Websocket,
    /// MQTT 3.1.1.
    Mqtt,
    /// HTTP/1.1 long polling on one connection.
    Http,
}

/// The delivery guarantee of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QualityOfService {
    /// `QoS` 0: not acknowledged.
    AtMostOnce,
    /// `QoS` 1: acknowledged by PUBACK.
    AtLeastOnce,
}

settings! {
    #[derive(Copy)]
    pub struct ReplySettings {
        pub mode: ReplyMode = ReplyMode::PerAction,
        /// The time since the command.
        pub delay: DurationRange = DurationRange::from_millis(20, 400),
        /// The probability that a reply is never sent.
        pub loss: f64 = 0.01,
        /// The probability that a reply is sent in the record of the previous one.
        pub coalesce: f64 = 0.02,
    }
}

/// The number of replies to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyMode {
    PerAction,
    /// One for the whole command.
    PerCommand,
    None,
}

settings! {
    /// The gateway's unsolicited messages.
    #[derive(Copy, Eq)]
    pub struct TelemetrySettings {
        /// The mean time between two messages; 0 for none.
        pub period: SignedDuration = SignedDuration::from_secs(45),
        /// The time that the service takes to acknowledge one, in addition to the round trip.
        pub think: DurationRange = DurationRange::from_millis(1, 8),
    }

    /// Addresses and TCP. With IPv6 addresses the whole network uses IPv6.
    pub struct NetworkSettings {
        pub gateway: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 20)),
        pub service: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 10)),
        pub port: u16 = 443,
        pub name: String = "hub.example".into(),
        /// The round-trip time from the capture point to the service.
        pub round_trip: SignedDuration = SignedDuration::from_millis(24),
        /// The maximum segment size, in bytes.
        pub segment_size: u16 = 1460,
        pub initial_sequence: InitialSequence = InitialSequence::Random,
        pub retransmission: f64 = 0.0,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialSequence {
    Random,
    /// Just below 2³², so that they wrap within the first messages.
    NearWrap,
}

settings! {
    /// Background traffic. Periods are the mean time between two events; 0 for none.
    #[derive(Copy, Eq)]
    pub struct NoiseSettings {
        /// The gateway fetches a firmware update from another service, over TLS.
        pub firmware_period: SignedDuration = SignedDuration::from_mins(25),
        pub firmware_bytes: usize = 3_000,
        /// Another host of the home fetches from a website, over TLS.
        pub host_period: SignedDuration = SignedDuration::from_mins(10),
        pub host_bytes: usize = 1_500,
        /// The gateway or another host looks up a name.
        pub dns_period: SignedDuration = SignedDuration::from_mins(4),
        /// The gateway queries the time.
        pub ntp_period: SignedDuration = SignedDuration::from_mins(15),
    }
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

/// To which sizes commands and replies are padded. All other messages stay as they are: they say nothing of a command.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PaddingSettings {
    /// The service's padding of commands.
    #[serde(with = "name_or_table")]
    pub policy: PaddingPolicy,
    /// The gateway's padding of each reply.
    #[serde(with = "name_or_table")]
    pub replies: PaddingPolicy,
    /// Where the padding is.
    pub layer: PaddingLayer,
}

/// Where padding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaddingLayer {
    /// Blanks after the JSON: the message with its framing has the policy's size. Where the framing has no message of
    /// that size, it is padded as one that is larger.
    #[default]
    Body,
    /// TLS record padding (RFC 8446 section 5.4): the plaintext of each record has the policy's size, at most 16384
    /// bytes.
    Record,
}

/// A policy as a name, `"multiple:16"`, or as a table like that of a policy's file, `{ kind = "multiple", bytes = 16
/// }`.
mod name_or_table {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sizeleak_model::policies::PaddingPolicy;

    pub(super) fn serialize<S: Serializer>(policy: &PaddingPolicy, serializer: S) -> Result<S::Ok, S::Error> {
        let name = policy.to_string();
        if name.parse().as_ref() == Ok(policy) { serializer.serialize_str(&name) } else { policy.serialize(serializer) }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PaddingPolicy, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(name) => name.parse().map_err(D::Error::custom),
            table => PaddingPolicy::deserialize(table).map_err(|error| D::Error::custom(error.message())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_names_or_tables() {
        let settings: PaddingSettings =
            toml::from_str("policy = { kind = \"table\", buckets = [104, 160] }\nreplies = \"constant:64\"").unwrap();
        let policy = PaddingPolicy::Table { buckets: vec![104, 160] };
        let replies = PaddingPolicy::Constant { bytes: 64 };
        assert_eq!(settings, PaddingSettings { policy, replies, layer: PaddingLayer::Body });
        let text = toml::to_string(&settings).unwrap();
        assert_eq!(toml::from_str::<PaddingSettings>(&text).unwrap(), settings);
    }

    #[test]
    fn errors_name_the_fault() {
        let error = |text| toml::from_str::<PaddingSettings>(text).unwrap_err().to_string();
        assert!(error("policy = \"pad\"").contains("there is no padding policy `pad`"));
        assert!(error("policy = { kind = \"table\", sizes = [1] }").contains("unknown field `sizes`"));
        assert!(error("policy = 16").contains("invalid type: integer `16`"), "{}", error("policy = 16"));
    }
}
