//! `record`: the size, time and direction of one message: a record of TLS, or what another protocol has instead.

use serde::{Deserialize, Serialize};

use crate::{ContentType, Direction, Protocol};

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
