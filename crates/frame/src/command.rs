//! `command`: one message from the service that makes devices act, seen by its sizes.

use serde::{Deserialize, Serialize};

/// One command: the records that carry it, and what the gateway sent in reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// When its first record began, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// When its last record ended, in nanoseconds since the epoch.
    pub end_ns: i64,
    /// The flow that carries it.
    pub flow: u64,
    /// The sum of its records' lengths on the wire in bytes, |s| in the paper.
    pub size: u64,
    /// The least and the most bytes of plaintext in its records, if every cipher suite is known.
    pub plaintext: Option<[u64; 2]>,
    /// How many TLS records carry it.
    pub records: u32,
    /// How many records the gateway sent in reply.
    pub replies: u32,
    /// The sum of those records' lengths, in bytes.
    pub reply_bytes: u64,
}
