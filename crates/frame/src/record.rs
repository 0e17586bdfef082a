//! `record`: the size, time and direction of one TLS record.

use serde::{Deserialize, Serialize};

use crate::{ContentType, Direction};

/// One TLS record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When its last byte was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// When its first byte was captured, in nanoseconds since the epoch.
    pub start_ns: i64,
    /// The flow that carries it.
    pub flow: u64,
    /// Which way it travels.
    pub direction: Direction,
    /// The content type in its header.
    pub content_type: ContentType,
    /// `TLSCiphertext.length`: bytes on the wire after the 5-byte header.
    pub length: u32,
    /// The least and the most bytes of plaintext it can hold, if the cipher suite is known.
    pub plaintext: Option<[u64; 2]>,
    /// Whether it belongs to the handshake, the encrypted part of TLS 1.3 included.
    pub handshake: bool,
}
