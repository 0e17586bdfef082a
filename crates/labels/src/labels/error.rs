//! Why labels cannot be read.

use std::borrow::Cow;
use std::io;

use sizeleak_text::shortened;
use thiserror::Error;

/// The largest count of an action.
pub(crate) const MAX_COUNT: u32 = 1 << 20;

/// The largest file that is read, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;

/// The most rows of a table and events of a log: each takes some hundred bytes of memory, however short it is.
pub(crate) const MAX_ROWS: usize = 1 << 21;

/// The most fields of a table and values of a log.
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

/// Why labels cannot be read.
#[derive(Debug, Error)]
pub enum LabelError {
    /// The file stands in the place of the labels.
    #[error("is {0}")]
    StandIn(&'static str),
    /// The file has no bytes.
    #[error(
        "line 1: the file is empty: labels begin with the header `time,<action>,<action>…` or `time,action[,count]`"
    )]
    Empty,
    /// The header is wrong.
    #[error(
        "line 1: the header must be `time,<action>,<action>…` or `time,action[,count]`, it is `{}`; a log of events needs a \
         `--label-map`, which `sizeleak labels FILE -o map.toml` writes",
        short(.0)
    )]
    Header(String),
    /// A log of events, and no map.
    #[error(
        "this is a log of events: `sizeleak labels FILE -o map.toml` writes a map of them to fill in, and \
         `--label-map map.toml` reads them by it"
    )]
    Log,
    /// A log whose form is not known, so that no map can be proposed.
    #[error(
        "{reason}: write rows such as `2026-01-05T08:00:00Z,on` below `time,action`, or a map that names a time, an entity \
         and a state by their columns or keys, and give it as `--label-map`: `time = \"when\"`, `entity = [\"device\"]`, \
         `state = \"value\"`, `[actions.\"lamp\"]`, `on = \"on\"` (a line each)"
    )]
    UnknownLog {
        /// Why no map is proposed.
        reason: String,
    },
    /// A line of a log is no JSON.
    #[error("line {line}: this is not JSON: {error}")]
    Json {
        line: u64,
        /// What is wrong.
        error: String,
    },
    /// No event is an action.
    #[error(
        "none of {objects} rows is an action by the map ({all} have its keys of time, entity and state): correct its \
         keys, or its `[actions.\"ENTITY\"]`"
    )]
    NoEvent {
        /// The events that have the keys.
        all: usize,
        /// All objects or rows.
        objects: usize,
    },
    /// The map is wrong.
    #[error("the label map is wrong: {0}")]
    Map(String),
    /// An action has two columns.
    #[error("line 1: the action `{}` has two columns", short(.0))]
    DuplicateAction(String),
    /// A time is invalid.
    #[error(
        "line {line}: `{text}` is not a time: write epoch seconds, ms, µs or ns (1767600000.25), RFC 3339 \
         (2026-01-05T08:00:00Z), or date and time of day (2026-01-05 08:00:00) with `--label-zone`; \
         `--label-format` says how other forms are read",
        text = short(.text)
    )]
    Time {
        line: u64,
        /// The text found.
        text: String,
    },
    /// A date may be day first or month first.
    #[error(
        "line {line}: `{text}` may be {} or {}: say which with `--label-format '{}'` or `--label-format '{}'`",
        readings[0].0, readings[1].0, readings[0].1, readings[1].1, text = short(.text)
    )]
    AmbiguousDate {
        line: u64,
        /// The text found.
        text: String,
        /// What it may mean, each with the form of that.
        readings: [(String, String); 2],
    },
    /// A time has no zone, and none is given for the file.
    #[error(
        "line {line}: `{text}` has no time zone: name that of the labels' clock with `--label-zone` (such as \
         Europe/Berlin, +01:00 or UTC)",
        text = short(.text)
    )]
    NoZone {
        line: u64,
        /// The text found.
        text: String,
    },
    /// A time that clocks of the zone skipped.
    #[error(
        "line {line}: `{text}` did not exist in the zone of the labels: clocks were put forward over it",
        text = short(.text)
    )]
    SkippedTime {
        line: u64,
        /// The text found.
        text: String,
    },
    /// An epoch time in another unit than those before it.
    #[error(
        "line {line}: `{text}` has the magnitude of {unit}, but the times above it are in {expected}",
        text = short(.text)
    )]
    Unit {
        line: u64,
        /// The text found.
        text: String,
        /// The unit of its magnitude.
        unit: &'static str,
        /// The unit of the file.
        expected: &'static str,
    },
    /// A count is invalid.
    #[error(
        "line {line}: `{text}` is not a count of `{action}`: a whole number from 0 to {MAX_COUNT}",
        text = short(.text), action = short(.action)
    )]
    Count {
        line: u64,
        action: String,
        /// The text found.
        text: String,
    },
    /// The name of an action is empty.
    #[error("line 1: column {0} has no name: write `time,<action>,<action>…`")]
    EmptyAction(usize),
    /// A list names no action, or only one that is called like a column.
    #[error("the list names no action: write one into the column `action` (other than `action` and `count`)")]
    NoListedAction,
    /// A row is shorter or longer than the header.
    #[error("line {line} has a different number of fields ({fields}) from the header ({columns})")]
    Fields {
        line: u64,
        /// The number of fields found.
        fields: u64,
        /// The number of columns in the header.
        columns: u64,
    },
    /// A line is not text.
    #[error("line {0}: this is not UTF-8 text")]
    Encoding(u64),
    /// Reading or writing fails.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is too large.
    #[error("the labels have more than {MAX_FILE_BYTES} bytes: split them by capture")]
    TooLarge,
    /// There are too many rows, or fields in them.
    #[error("the labels have more than {MAX_ROWS} rows, or {MAX_VALUES} fields: split them by capture")]
    TooManyRows,
    /// A row is too long.
    #[error("line {0}: it has more than {MAX_ROW_BYTES} bytes, which no label needs")]
    LongRow(u64),
    /// A list has too many actions or commands.
    #[error("line {0}: more than {MAX_LISTED_ACTIONS} actions or too many commands with them: split the labels")]
    TooManyListed(u64),
}

impl LabelError {
    /// Whether other lines may be right.
    pub(crate) fn is_of_one_line(&self) -> bool {
        matches!(
            self,
            Self::Time { .. }
                | Self::SkippedTime { .. }
                | Self::Count { .. }
                | Self::Fields { .. }
                | Self::Encoding(_)
                | Self::Json { .. }
        )
    }
}
