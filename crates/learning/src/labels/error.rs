//! Why labels cannot be read.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;

use sizeleak_text::shortened;
use thiserror::Error;

pub(crate) const MAX_COUNT: u32 = 1 << 20;

/// The largest file that is read, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;

/// The most rows of a table and events of a log: each takes some hundred bytes of memory, however short it is.
pub(crate) const MAX_ROWS: usize = 1 << 21;

pub(crate) const MAX_VALUES: usize = 1 << 24;

/// The longest row of a table, in bytes.
pub(crate) const MAX_ROW_BYTES: usize = 1 << 20;

/// The most actions that a list of `time,action` may name.
pub(crate) const MAX_LISTED_ACTIONS: usize = 4096;

/// The most counts (commands times actions) that a list of `time,action` may stand for.
pub(crate) const MAX_LISTED_COUNTS: usize = 1 << 26;

/// What an error repeats of a text from the file.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    shortened(text, 120)
}

#[derive(Debug, Error)]
#[error("{text}")]
pub struct LabelError {
    text: String,
    reach: Reach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    File,
    /// The whole file, which is perhaps a log of events.
    PerhapsLog,
    /// One line: others may be right.
    Line,
}

impl LabelError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), reach: Reach::File }
    }

    /// An error in a line that makes the whole file doubtful.
    pub(crate) fn at(line: u64, fault: impl Display) -> Self {
        Self::new(format!("line {line}: {fault}"))
    }

    pub(crate) fn of_line(line: u64, fault: impl Display) -> Self {
        Self { reach: Reach::Line, ..Self::at(line, fault) }
    }

    pub(crate) fn no_table(text: impl Into<String>) -> Self {
        Self { reach: Reach::PerhapsLog, ..Self::new(text) }
    }

    pub(crate) fn no_time(line: u64, text: &str) -> Self {
        let text = short(text);
        Self::of_line(
            line,
            format_args!(
                "`{text}` is not a time: write epoch seconds, ms, µs or ns (1767600000.25), RFC 3339 \
                 (2026-01-05T08:00:00Z), or date and time of day (2026-01-05 08:00:00) with `--label-zone`; \
                 `--label-format` says how other forms are read"
            ),
        )
    }

    /// A log whose form is not known, so that no map can be proposed.
    pub(crate) fn unknown_log(reason: &str) -> Self {
        Self::new(format!(
            "{reason}: write rows such as `2026-01-05T08:00:00Z,on` below `time,action`, or a map that names a time, an entity \
             and a state by their columns or keys, and give it as `--label-map`: `time = \"when\"`, `entity = [\"device\"]`, \
             `state = \"value\"`, `[actions.\"lamp\"]`, `on = \"on\"` (a line each)"
        ))
    }

    pub(crate) fn wrong_fields(line: u64, fields: u64, columns: u64) -> Self {
        let text = format!("line {line} has a different number of fields ({fields}) from the header ({columns})");
        Self { text, reach: Reach::Line }
    }

    pub(crate) fn is_of_one_line(&self) -> bool {
        self.reach == Reach::Line
    }

    /// Whether the file has no header of labels, and may be a log of events.
    pub fn is_perhaps_log(&self) -> bool {
        self.reach == Reach::PerhapsLog
    }
}

impl From<io::Error> for LabelError {
    fn from(error: io::Error) -> Self {
        Self::new(error.to_string())
    }
}
