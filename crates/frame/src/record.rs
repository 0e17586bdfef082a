//! `record`: the size, time and direction of one TLS record.

use serde::{Deserialize, Serialize};

use crate::{ContentType, Direction};

/// One TLS record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When its last byte was seen, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// When its first byte was seen, in nanoseconds since the epoch.
    pub start_ns: i64,
    /// The flow that carries it.
    pub flow: u64,
    /// Which way it travels.
    pub direction: Direction,
    /// What its header says it carries.
    pub content_type: ContentType,
    /// `TLSCiphertext.length`: bytes on the wire after the 5-byte header.
    pub length: u32,
    /// The least and the most bytes of plaintext it can hold, where the cipher suite is known.
    pub plaintext: Option<[u64; 2]>,
    /// True while keys are still being agreed, TLS 1.3's encrypted flight included.
    pub handshake: bool,
}
