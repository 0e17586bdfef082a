//! Labels: the times and actions of commands, as CSV.
//!
//! The header says which of two forms the file has: `time,<action>,<action>…` with a row for each command, or
//! `time,action[,count]` with a row for each action, where rows with the same time that follow each other are one command.

mod columns;
mod error;
mod written_time;

use std::io::{self, Read, Write};

use sizeleak_text::stand_in;

use columns::Columns;
pub use error::LabelError;
use error::MAX_FILE_BYTES;
pub use written_time::LabelZone;
use written_time::TimeReader;

const NS: u64 = 1_000_000_000;

/// The labels of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The actions, in the order of the columns, or of their first mention in a list.
    pub actions: Vec<String>,
    /// The commands, in the order of the rows.
    pub rows: Vec<Label>,
    /// Whether the times have no seconds, so that a command may be a minute away.
    pub is_to_the_minute: bool,
}

/// The label of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// How often each action occurs, in the order of [`Labels::actions`]; all 0 for a message that carries none.
    pub counts: Vec<u32>,
    /// Its line in the file.
    pub line: u64,
}

impl Labels {
    /// Reads labels of at most 256 MiB whose times name their zone.
    ///
    /// # Errors
    /// [`LabelError`] for the first invalid line.
    pub fn read(input: impl Read) -> Result<Self, LabelError> {
        Self::read_in(input, None)
    }

    /// The same; `zone` is that of times that name none.
    ///
    /// # Errors
    /// As [`Labels::read`].
    pub fn read_in(input: impl Read, zone: Option<&LabelZone>) -> Result<Self, LabelError> {
        let mut text = Vec::new();
        input.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(LabelError::TooLarge);
        }
        if let Some(what) = stand_in(&text) {
            return Err(LabelError::StandIn(what));
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        if text.trim_ascii().is_empty() {
            return Err(LabelError::Empty);
        }
        let mut lines = LineCounter::new(text);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
        let mut columns = Columns::of(reader.headers().map_err(|error| lines.locate(error))?)?;
        let (mut times, mut rows) = (TimeReader::new(zone), Vec::<Label>::new());
        for record in reader.records() {
            let record = record.map_err(|error| lines.locate(error))?;
            let line = lines.line_of(record.position());
            let time_ns = times.read(record.get(0).unwrap_or_default(), line)?;
            if let Some(row) = rows.last_mut().filter(|row| columns.joins_rows() && row.time_ns == time_ns) {
                columns.add(&record, line, &mut row.counts)?;
            } else {
                let mut counts = Vec::new();
                columns.add(&record, line, &mut counts)?;
                rows.push(Label { time_ns, counts, line });
            }
        }
        if rows.is_empty() && columns.joins_rows() {
            return Ok(Self::default());
        }
        let actions = columns.into_actions()?;
        for row in &mut rows {
            row.counts.resize(actions.len(), 0);
        }
        Ok(Self { actions, rows, is_to_the_minute: times.is_to_the_minute() })
    }

    /// Writes labels, with times as epoch seconds to the nanosecond.
    ///
    /// # Errors
    /// [`LabelError::Io`] if writing fails.
    pub fn write(&self, output: impl Write) -> Result<(), LabelError> {
        let mut writer = csv::Writer::from_writer(output);
        let actions = self.actions.iter().map(String::as_str);
        // A header names a column at least: labels without an action are an empty list.
        let no_action = self.actions.is_empty().then_some("action");
        writer.write_record(std::iter::once("time").chain(actions).chain(no_action)).map_err(io::Error::from)?;
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

/// Counts the lines up to a record. The CSV library's own line numbers are wrong after empty lines and Windows line
/// ends.
struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    /// A counter of the lines of a text.
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

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

    /// An error of the CSV library with its line.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::error::MAX_COUNT;
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
        assert!(error("time,on\n1,1,1\n").contains("line 2 has a different number of fields (3) from the header (2)"));
        assert!(error("time,on,\n").contains("column 3"));
        assert!(error("time,on\n1,9999999\n").contains("line 2: `9999999`"));
        assert!(Labels::read(&b"time,on\n1,\xff\n"[..]).unwrap_err().to_string().contains("line 2: this is not UTF-8"));
        assert!(error("time,on\n99999999999999999999,1\n").contains("not a time"));
    }

    #[test]
    fn lists_of_actions_are_commands_by_their_times() {
        let text = "time,action\n1,on\n1,off\n1,on\n2,\n3,dim\n1,on\n";
        let labels = Labels::read(text.as_bytes()).unwrap();
        assert_eq!(labels.actions, ["on", "off", "dim"]);
        let rows: Vec<(u64, &[u32])> = labels.rows.iter().map(|row| (row.line, &row.counts[..])).collect();
        assert_eq!(rows, [(2, &[2, 1, 0][..]), (5, &[0, 0, 0]), (6, &[0, 0, 1]), (7, &[1, 0, 0])]);
        let counted = Labels::read(&b"time,action,count\n1,on,2\n1,off,0\n"[..]).unwrap();
        assert_eq!((counted.actions.len(), &counted.rows[0].counts), (2, &vec![2, 0]));
    }

    #[test]
    fn a_list_without_a_row_is_written_as_one() {
        let labels = Labels::read(&b"time,action"[..]).unwrap();
        let mut written = Vec::new();
        labels.write(&mut written).unwrap();
        assert_eq!(Labels::read(&written[..]).unwrap(), labels);
    }

    #[test]
    fn lists_are_refused_that_name_no_action_or_too_many() {
        let error = |text: &str| Labels::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error("time,action\n1,\n").contains("names no action"));
        assert!(error("time,action\n1,action\n").contains("names no action"));
        assert!(error("time,action,count\n1,on,many\n").contains("line 2: `many` is not a count of `on`"));
        let many: String =
            (0..5000).map(|at| [at.to_string(), ",a".into(), at.to_string(), "\n".into()].concat()).collect();
        assert!(error(&format!("time,action\n{many}")).contains("line 4098: more than 4096 actions"));
        assert_eq!(Labels::read(&b"time,action\n"[..]).unwrap().rows, []);
    }

    #[test]
    fn rows_of_zeros_are_commands_without_an_action() {
        let labels = Labels::read(&b"time,on\n1,0\n"[..]).unwrap();
        assert_eq!(labels.rows[0].counts, [0]);
    }

    proptest! {
        #[test]
        fn any_labels_read_back_from_csv(
            rows in prop::collection::vec((any::<i64>(), [0u32..=MAX_COUNT, 0..=3]), 0..20),
        ) {
            let rows = rows.into_iter().zip(2..);
            let rows = rows.map(|((time_ns, counts), line)| Label { time_ns, counts: counts.into(), line });
            let labels = Labels { actions: vec!["on".into(), "a,b".into()], rows: rows.collect(), ..Labels::default() };
            let mut text = Vec::new();
            labels.write(&mut text).unwrap();
            let read = Labels::read(&text[..]).unwrap();
            prop_assert_eq!((read.actions, read.rows), (labels.actions, labels.rows));
        }
    }
}
