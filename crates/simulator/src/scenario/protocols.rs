//! The tables of a scenario about TLS, the protocol inside it, replies and telemetry.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::variation::{Compression, DurationRange};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SessionSettings {
    pub framing: Framing,
    /// The time between the gateway's pings (WebSocket, MQTT); 0 for none.
    pub keep_alive: SignedDuration,
    /// How long the service delays the response to a poll (HTTP).
    pub poll_timeout: SignedDuration,
    /// The delivery guarantee (MQTT).
    pub quality_of_service: QualityOfService,
    /// The time after which the gateway reconnects; 0 for never.
    pub reconnect_after: SignedDuration,
    pub compression: Compression,
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

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReplySettings {
    pub mode: ReplyMode,
    /// The time since the command.
    pub delay: DurationRange,
    /// The probability that a reply is never sent.
    pub loss: f64,
    /// The probability that a reply is sent in the record of the previous one.
    pub coalesce: f64,
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

/// The gateway's unsolicited messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TelemetrySettings {
    /// The mean time between two messages; 0 for none.
    pub period: SignedDuration,
    /// The time that the service takes to acknowledge one, in addition to the round trip.
    pub think: DurationRange,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            framing: Framing::Websocket,
            keep_alive: SignedDuration::from_secs(30),
            poll_timeout: SignedDuration::from_secs(25),
            quality_of_service: QualityOfService::AtLeastOnce,
            reconnect_after: SignedDuration::ZERO,
            compression: Compression::None,
        }
    }
}

impl Default for ReplySettings {
    fn default() -> Self {
        Self { mode: ReplyMode::PerAction, delay: DurationRange::from_millis(20, 400), loss: 0.01, coalesce: 0.02 }
    }
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self { period: SignedDuration::from_secs(45), think: DurationRange::from_millis(1, 8) }
    }
}
