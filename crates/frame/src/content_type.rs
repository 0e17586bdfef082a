//! The content type of a TLS record (RFC 8446, section 5.1; RFC 6520 for heartbeat; RFC 9147 for acknowledgements).

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The content type of a TLS record; a number on the wire and in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
#[repr(u8)]
pub enum ContentType {
    /// 20: the switch to encryption, and a dummy in TLS 1.3.
    ChangeCipherSpec = 20,
    /// 21: an alert.
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

/// A number that is not a TLS content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} is no content type (20 to 24, or 26)")]
pub struct UnknownContentType(pub u8);
