//! A shift of all sizes of a flow against those that its model was learned from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// By how much the messages of a flow may be longer than those that the model was learned from, because the service or
/// the gateway changed them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// By how many bytes commands are longer, or each occurrence of the one action that changed.
    pub bytes: i64,
    /// That action; `None`, and absent on the wire, where commands are longer whatever their actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Box<str>>,
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

    /// Whether the same messages are as much longer or shorter.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.bytes, self.reply_bytes, &self.action) == (other.bytes, other.reply_bytes, &other.action)
    }
}

/// What is longer or shorter: `commands and replies are 6 bytes longer`.
impl fmt::Display for Shift {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.action, self.bytes, self.reply_bytes) {
            (Some(action), bytes, _) => write!(out, "the action `{action}` is {}", longer(bytes)),
            (None, 0, 0) => out.write_str("nothing is longer or shorter"),
            (None, bytes, 0) => write!(out, "commands are {}", longer(bytes)),
            (None, 0, bytes) => write!(out, "replies are {}", longer(bytes)),
            (None, bytes, of_replies) if bytes == of_replies => {
                write!(out, "commands and replies are {}", longer(bytes))
            }
            (None, bytes, of_replies) => write!(out, "commands are {}, replies {}", longer(bytes), longer(of_replies)),
        }
    }
}

/// `6 bytes longer`.
fn longer(bytes: i64) -> String {
    let number = bytes.unsigned_abs();
    let unit = if number == 1 { "byte" } else { "bytes" };
    format!("{number} {unit} {}", if bytes > 0 { "longer" } else { "shorter" })
}
