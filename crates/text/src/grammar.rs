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

/// A share in percent. Only 1 is shown as 100 %.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let shown = if share < 1.0 { percent.min(99.9) } else { percent };
    format!("{shown:.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_all_is_never_100_percent() {
        assert_eq!([1.0, 0.9999, 0.9123, 0.0].map(percent), ["100.0 %", "99.9 %", "91.2 %", "0.0 %"]);
    }
}
