//! A shift of all sizes of a flow against those that its model was learned from.

use serde::{Deserialize, Serialize};

/// By how much the messages of a flow may be longer than those that the model was learned from, because the service or
/// the gateway changed them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// By how many bytes commands are longer.
    pub bytes: i64,
    /// By how many bytes each single reply is longer.
    pub reply_bytes: i64,
    /// How probable that is before the command is seen, from 0 to 1.
    pub probability: f64,
    /// When the first command of the most probable beginning began, in nanoseconds since the epoch; `None` where sizes
    /// are those that the model was learned from.
    pub since_ns: Option<i64>,
}

impl Shift {
    /// Whether neither commands nor replies are longer or shorter.
    pub fn is_none(&self) -> bool {
        self.bytes == 0 && self.reply_bytes == 0
    }
}
