//! Numbers in sentences.

use std::fmt::Display;

/// A number with the word for so many: `1 label`, `7 labels`.
///
/// ```
/// use sizeleak_text::counted;
///
/// assert_eq!(counted(1, "label is", "labels are"), "1 label is");
/// assert_eq!(counted(0, "label is", "labels are"), "0 labels are");
/// ```
pub fn counted(count: impl Copy + Display + PartialEq + From<bool>, one: &str, many: &str) -> String {
    let word = if count == true.into() { one } else { many };
    format!("{count} {word}")
}
