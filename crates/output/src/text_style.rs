//! The style of text output.

use std::fmt::Write;

use crate::{Colours, TimeFormat};

/// How many bytes of a binary field are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HexLength {
    /// At most this many bytes, followed by `…` if there are more.
    AtMost(usize),
    /// All bytes.
    Whole,
}

impl Default for HexLength {
    fn default() -> Self {
        Self::AtMost(16)
    }
}

/// The style of human-readable text. Machine-readable formats use only `binary`.
#[derive(Debug, Clone, Default)]
pub struct TextStyle {
    /// How many bytes of binary fields are shown.
    pub binary: HexLength,
    /// The format of times.
    pub times: TimeFormat,
    /// Whether text is coloured.
    pub colours: Colours,
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8], length: HexLength) -> String {
    let shown = match length {
        HexLength::AtMost(most) => bytes.get(..most).unwrap_or(bytes),
        HexLength::Whole => bytes,
    };
    let mut text = String::with_capacity(2 * shown.len() + 3);
    for byte in shown {
        let _never_fails = write!(text, "{byte:02x}");
    }
    if shown.len() < bytes.len() {
        text.push('…');
    }
    text
}
