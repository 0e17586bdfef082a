//! Labels: the times and actions of commands. CSV with the header `time,<action>,<action>…` and a row for each command.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};

use jiff::Timestamp;
use thiserror::Error;

/// The labels of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The actions, in the order of the columns.
    pub actions: Vec<String>,
    /// The commands, in the order of the rows.
    pub rows: Vec<Label>,
}

/// The label of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// How often each action occurs, in the order of [`Labels::actions`].
    pub counts: Vec<u32>,
    /// Its line in the file.
    pub line: u64,
}

/// Why labels cannot be read.
#[derive(Debug, Error)]
pub enum LabelError {
    /// The header is wrong.
    #[error("line 1: the header must be `time,<action>,<action>…`, it is `{0}`")]
    Header(String),
    /// An action has two columns.
    #[error("line 1: the action `{0}` has two columns")]
    DuplicateAction(String),
    /// A time is invalid.
    #[error("line {line}: `{text}` is not a time: epoch seconds (1767600000.25) or RFC 3339 (2026-01-05T08:00:00Z)")]
    Time {
        /// The line.
        line: u64,
        /// The text found.
        text: String,
    },
    /// A count is invalid.
    #[error("line {line}: `{text}` is not a count of `{action}`: a whole number from 0 to {MAX_COUNT}")]
    Count {
        /// The line.
        line: u64,
        /// The action.
        action: String,
        /// The text found.
        text: String,
    },
    /// The name of an action is empty.
    #[error("line 1: column {0} has no name: write `time,<action>,<action>…`")]
    EmptyAction(usize),
    /// A row is shorter or longer than the header.
    #[error("line {line}: {fields} fields, but the header has {columns}")]
    Fields {
        /// The line.
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
}

/// The largest count of an action.
const MAX_COUNT: u32 = 1 << 20;

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;

impl Labels {
    /// Reads labels of at most 256 MiB.
    ///
    /// # Errors
    /// [`LabelError`] for the first invalid line.
    pub fn read(input: impl Read) -> Result<Self, LabelError> {
        let mut text = Vec::new();
        input.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(LabelError::TooLarge);
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let mut lines = LineCounter { text, at: 0, line: 1 };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
        let actions = actions(reader.headers().map_err(|error| lines.locate(error))?)?;
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| lines.locate(error))?;
            let line = lines.line_of(record.position());
            let mut fields = record.iter();
            let time = fields.next().unwrap_or_default();
            let time_ns = time_ns(time).ok_or_else(|| LabelError::Time { line, text: time.to_owned() })?;
            let counts = fields.zip(&actions).map(|(text, action)| {
                let count = text.parse().ok().filter(|count| *count <= MAX_COUNT);
                count.ok_or_else(|| LabelError::Count { line, action: action.clone(), text: text.to_owned() })
            });
            rows.push(Label { time_ns, counts: counts.collect::<Result<_, _>>()?, line });
        }
        Ok(Self { actions, rows })
    }

    /// Writes labels, with times as epoch seconds to the nanosecond.
    ///
    /// # Errors
    /// [`LabelError::Io`] if writing fails.
    pub fn write(&self, output: impl Write) -> Result<(), LabelError> {
        let mut writer = csv::Writer::from_writer(output);
        let header = std::iter::once("time").chain(self.actions.iter().map(String::as_str));
        writer.write_record(header).map_err(io::Error::from)?;
        for row in &self.rows {
            let sign = if row.time_ns < 0 { "-" } else { "" };
            let since = row.time_ns.unsigned_abs();
            let time = format!("{sign}{}.{:09}", since / NS, since % NS);
            let fields = std::iter::once(time).chain(row.counts.iter().map(u32::to_string));
            writer.write_record(fields).map_err(io::Error::from)?;
        }
        Ok(writer.flush()?)
    }
}

/// The actions in a header.
fn actions(header: &csv::StringRecord) -> Result<Vec<String>, LabelError> {
    let mut columns = header.iter();
    if columns.next() != Some("time") || header.len() < 2 {
        return Err(LabelError::Header(header.iter().collect::<Vec<_>>().join(",")));
    }
    let actions: Vec<String> = columns.map(str::to_owned).collect();
    if let Some(at) = actions.iter().position(String::is_empty) {
        return Err(LabelError::EmptyAction(at + 2));
    }
    let mut seen = BTreeSet::new();
    match actions.iter().find(|action| !seen.insert(*action)) {
        Some(action) => Err(LabelError::DuplicateAction(action.clone())),
        None => Ok(actions),
    }
}

/// Counts the lines up to a record. The CSV library's own line numbers are wrong after empty lines and Windows line
/// ends.
struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl LineCounter<'_> {
    /// The line of a record. Must be called in order of records.
    fn line_of(&mut self, position: Option<&csv::Position>) -> u64 {
        let start = position.map_or(0, |position| usize::try_from(position.byte()).unwrap_or(usize::MAX));
        let ends = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let skipped = self.text.iter().skip(start).take_while(ends).count();
        let start = start.saturating_add(skipped).min(self.text.len());
        let passed = self.text.get(self.at..start).unwrap_or_default();
        self.line += passed.split(|byte| *byte == b'\n').skip(1).count() as u64;
        self.at = self.at.max(start);
        self.line
    }

    fn locate(&mut self, error: csv::Error) -> LabelError {
        let line = self.line_of(error.position());
        match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                LabelError::Fields { line, fields: *len, columns: *expected_len }
            }
            csv::ErrorKind::Utf8 { .. } => LabelError::Encoding(line),
            _ => LabelError::Io(error.into()),
        }
    }
}

const NS: u64 = 1_000_000_000;

/// Parses epoch seconds with decimals, without floating point and truncated to nanoseconds, or RFC 3339.
fn time_ns(text: &str) -> Option<i64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().chain(decimals.bytes()).all(|byte| byte.is_ascii_digit()) {
        return i64::try_from(text.parse::<Timestamp>().ok()?.as_nanosecond()).ok();
    }
    let decimals: String = decimals.chars().chain("000000000".chars()).take(9).collect();
    let since = i128::from(whole.parse::<u64>().ok()?) * i128::from(NS) + decimals.parse::<i128>().ok()?;
    i64::try_from(if is_negative { -since } else { since }).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_epoch_seconds_or_rfc_3339() {
        let labels = Labels::read(
            &b"time, on, off\n1767600000.123456789, 1, 0\n2026-01-05T08:00:00.5Z,0,2\n1767600000,0,1\n"[..],
        )
        .unwrap();
        let times: Vec<i64> = labels.rows.iter().map(|row| row.time_ns - 1_767_600_000_000_000_000).collect();
        assert_eq!(times, [123_456_789, 500_000_000, 0]);
        assert_eq!((labels.rows[1].line, &labels.rows[1].counts[..]), (3, &[0, 2][..]));
    }

    #[test]
    fn byte_order_marks_and_windows_line_ends_are_accepted() {
        let labels = Labels::read(&b"\xef\xbb\xbftime,on\r\n-0.5,1\r\n"[..]).unwrap();
        assert_eq!(labels.rows, [Label { time_ns: -500_000_000, counts: vec![1], line: 2 }]);
        let labels = Labels::read(&b"time,on\r\n\r\n1,1\r\n\n\n2,1"[..]).unwrap();
        assert_eq!(labels.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [3, 6]);
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| Labels::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error("when,on\n").contains("line 1"));
        assert!(error("").contains("line 1"));
        assert!(error("time,on,on\n").contains("two columns"));
        assert!(error("time,on\nyesterday,1\n").contains("line 2: `yesterday`"));
        assert!(error("time,on\n1,1\n2,-1\n").contains("line 3: `-1` is not a count of `on`"));
        assert!(error("time,on\n1,1,1\n").contains("line 2: 3 fields, but the header has 2"));
        assert!(error("time,on,\n").contains("column 3"));
        assert!(error("time,on\n1,9999999\n").contains("line 2: `9999999`"));
        assert!(Labels::read(&b"time,on\n1,\xff\n"[..]).unwrap_err().to_string().contains("line 2: this is not UTF-8"));
        assert!(error("time,on\n99999999999999999999,1\n").contains("not a time"));
    }

    proptest! {
        #[test]
        fn any_labels_read_back_from_csv(
            rows in prop::collection::vec((any::<i64>(), [0u32..=MAX_COUNT, 0..=3]), 0..20),
        ) {
            let rows = rows.into_iter().zip(2..);
            let rows = rows.map(|((time_ns, counts), line)| Label { time_ns, counts: counts.into(), line });
            let labels = Labels { actions: vec!["on".into(), "a,b".into()], rows: rows.collect() };
            let mut text = Vec::new();
            labels.write(&mut text).unwrap();
            prop_assert_eq!(Labels::read(&text[..]).unwrap(), labels);
        }
    }
}
