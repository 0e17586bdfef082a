//! The tables of a scenario about what gateway and service say to each other, and in which protocols.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::DurationRange;

/// The protocol that encrypts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsSettings {
    /// The version.
    pub version: Version,
    /// The cipher.
    pub suite: Suite,
    /// The most plaintext bytes of a record; 0 leaves it to TLS (16384).
    pub chunk: usize,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    Tls13,
}

/// A cipher and what authenticates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suite {
    /// AES-128-GCM with SHA-256.
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    /// AES-256-GCM with SHA-384.
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
    /// ChaCha20-Poly1305 with SHA-256.
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
    /// Whether messages are padded to whole blocks, so that their lengths show a range of sizes.
    pub fn is_padded(self) -> bool {
        matches!(self, Self::Aes128CbcSha | Self::Aes256CbcSha | Self::Aes128CbcSha256)
    }
}

/// How gateway and service talk inside TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SessionSettings {
    /// The protocol.
    pub framing: Framing,
    /// Time between the gateway's pings (WebSocket, MQTT); 0 for none.
    pub keep_alive: SignedDuration,
    /// How long the service holds a poll (HTTP).
    pub poll_timeout: SignedDuration,
    /// How surely messages are delivered (MQTT).
    pub quality_of_service: QualityOfService,
    /// The connection is closed and opened again after this time; 0 for never.
    pub reconnect_after: SignedDuration,
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

/// How surely MQTT messages are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QualityOfService {
    /// `QoS` 0: not acknowledged.
    AtMostOnce,
    /// `QoS` 1: acknowledged by PUBACK.
    AtLeastOnce,
}

/// What the gateway says after a command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReplySettings {
    /// How many messages.
    pub mode: ReplyMode,
    /// How long after the command.
    pub delay: DurationRange,
    /// The probability that one is never sent.
    pub loss: f64,
    /// The probability that one goes into the record of the one before.
    pub coalesce: f64,
}

/// How many status messages follow a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyMode {
    /// One an action.
    PerAction,
    /// One.
    PerCommand,
    /// None.
    None,
}

/// What the gateway says on its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TelemetrySettings {
    /// Mean time between two messages; 0 for none.
    pub period: SignedDuration,
    /// How long the service thinks before it acknowledges one, beyond the round trip.
    pub think: DurationRange,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self { version: Version::Tls12, suite: Suite::Aes128Gcm, chunk: 0 }
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            framing: Framing::Websocket,
            keep_alive: SignedDuration::from_secs(30),
            poll_timeout: SignedDuration::from_secs(25),
            quality_of_service: QualityOfService::AtLeastOnce,
            reconnect_after: SignedDuration::ZERO,
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
