//! `deviation`: something that a home does not usually do.

use serde::{Deserialize, Serialize};

/// Something that is not as usual, within the false alarms that a user allows; from `detector`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deviation {
    /// When it was beyond what is usual, in nanoseconds since the epoch. What is missing is said at the time it was due.
    pub time_ns: i64,
    /// The gateway's address; empty where no `flow` frame named it.
    pub gateway: String,
    /// What kind it is: `action`, `command`, `burst`, `slow-burst`, `shifted-routine`, `overdue`, `silence` or `stranger`.
    pub what: String,
    /// The share of usual days that are at least as strange, from 0 to 1.
    pub p_value: f64,
    /// What would have been usual, for a person.
    pub expected: String,
    /// What was seen, for a person.
    pub seen: String,
    /// The commands that it is about, in order of time.
    pub commands: Vec<CommandAt>,
}

/// A command, by its flow and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandAt {
    pub flow: u64,
    /// When it began, in nanoseconds since the epoch.
    pub time_ns: i64,
}
