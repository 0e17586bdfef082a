//! `command`: one message that makes devices act or reports what they did, seen by its sizes.

use serde::{Deserialize, Serialize};

use crate::Direction;

/// One command: the records that carry it, and what the other side sent in reply. A command from the gateway is a report
/// of what its devices did.
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
    /// How many records the other side sent in reply: the gateway to a command, the service to a report.
    pub replies: u32,
    /// The sum of those records' lengths, in bytes.
    pub reply_bytes: u64,
    /// Who sent it: the service a command, the gateway a report. Old streams lack it and hold commands alone.
    #[serde(default)]
    pub direction: Direction,
}
