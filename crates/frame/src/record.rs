//! `record`: the size, time and direction of one message: a record of TLS with its content type (RFC 8446, section 5.1;
//! RFC 6520 for heartbeat; RFC 9147 for acknowledgements), or what another protocol has instead.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Direction;

/// One record of TLS, or message of another protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When its last byte was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// When its first byte was captured, in nanoseconds since the epoch.
    pub start_ns: i64,
    pub flow: u64,
    pub direction: Direction,
    /// The content type in its header, or what comes nearest to it.
    pub content_type: ContentType,
    /// Bytes on the wire behind its header, in TLS `TLSCiphertext.length`.
    pub length: u32,
    /// The least and the most bytes of plaintext it can hold, if what protects it is known.
    pub plaintext: Option<[u64; 2]>,
    /// Whether it belongs to the handshake, the encrypted part of TLS 1.3 included.
    pub handshake: bool,
    /// What it is a message of. Left out for TLS over TCP; streams of older programs lack it for DTLS too.
    #[serde(default, skip_serializing_if = "Protocol::is_tls")]
    pub protocol: Protocol,
}

/// What a `record` is a message of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A record of TLS over TCP.
    #[default]
    Tls,
    /// A record of DTLS up to 1.2 (RFC 6347, RFC 9146).
    Dtls,
    /// A record of DTLS 1.3 (RFC 9147).
    #[serde(rename = "dtls-1.3")]
    Dtls13,
    /// A packet of QUIC (RFC 9000).
    Quic,
    /// A message of Matter, over UDP or TCP (Matter core specification, section 4.4).
    Matter,
    /// A packet in a tunnel of WireGuard.
    #[serde(rename = "wireguard")]
    WireGuard,
    /// A packet in a tunnel of IPsec (RFC 4303).
    Esp,
    /// A burst of segments of a TCP connection that shows no records.
    Tcp,
    /// A message of a framing that was declared; the `session` of its flow has the framing's name.
    Framing,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Dtls => "dtls",
            Self::Dtls13 => "dtls-1.3",
            Self::Quic => "quic",
            Self::Matter => "matter",
            Self::WireGuard => "wireguard",
            Self::Esp => "esp",
            Self::Tcp => "tcp",
            Self::Framing => "framing",
        }
    }

    /// Whether the messages of a protocol of this name are protected as a handshake of TLS agrees, which may name a server.
    pub fn has_tls_handshake(name: &str) -> bool {
        [Self::Tls, Self::Dtls, Self::Dtls13, Self::Quic].iter().any(|protocol| protocol.name() == name)
    }

    /// Whether it is TLS over TCP, which frames do not say.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "it is called by reference")]
    pub(crate) fn is_tls(&self) -> bool {
        *self == Self::Tls
    }
}

/// The content type of a TLS record; a number on the wire and in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
#[repr(u8)]
pub enum ContentType {
    /// 20: the switch to encryption, and a dummy in TLS 1.3.
    ChangeCipherSpec = 20,
    Alert = 21,
    /// 22: handshake messages in the clear, or encrypted up to TLS 1.2.
    Handshake = 22,
    /// 23: application data; from TLS 1.3 on everything that is encrypted.
    ApplicationData = 23,
    /// 24: a heartbeat, or a message that only keeps a session alive.
    Heartbeat = 24,
    /// 26: an acknowledgement by itself (RFC 9147, section 7), also of other protocols than DTLS 1.3.
    Acknowledgement = 26,
}

impl From<ContentType> for u8 {
    #[inline]
    fn from(content_type: ContentType) -> Self {
        content_type as Self
    }
}

impl TryFrom<u8> for ContentType {
    type Error = UnknownContentType;

    #[inline]
    fn try_from(number: u8) -> Result<Self, UnknownContentType> {
        Ok(match number {
            20 => Self::ChangeCipherSpec,
            21 => Self::Alert,
            22 => Self::Handshake,
            23 => Self::ApplicationData,
            24 => Self::Heartbeat,
            26 => Self::Acknowledgement,
            _ => return Err(UnknownContentType(number)),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} is no content type (20 to 24, or 26)")]
pub struct UnknownContentType(pub u8);
