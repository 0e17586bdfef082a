//! Text from outside (names in frames, labels and files, messages of foreign programs) made safe for what shows it:
//! terminals and logs, spreadsheets, and columns of limited width. And the text of a file up to a limit, what a file is
//! that only stands in the place of another, and the one way to write a time, a share, or a number in a sentence.
//!
//! ```
//! use sizeleak_text::{cell, escaped, fitted};
//!
//! assert_eq!(escaped("\u{1b}[2J evil\u{202e}\n"), r"\u{1b}[2J evil\u{202e}\n");
//! assert_eq!(cell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
//! assert_eq!(fitted("kitchen lamp", 8), "kitchen…");
//! ```

mod file;
mod shown;
mod time;

pub use file::{MAX_WRITTEN_BYTES, may_be_stand_in, read_text, stand_in};
pub use shown::{
    cell, counted, escaped, escaped_json, escaped_lines, fitted, listed, needs_escape, percent, range_in_words,
    rough_percent, shortened, width, wrapped,
};
pub use time::{TimeRange, parse_time, rfc_3339, utc};
