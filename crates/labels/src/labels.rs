//! Labels: the times and actions of commands, as CSV.
//!
//! The header says which of two forms the file has: `time,<action>,<action>…` with a row for each command, or
//! `time,action[,count]` with a row for each action, where rows with the same time that follow each other are one command.
//! Semicolons and tabs separate columns as well as commas do.

mod columns;
mod date_format;
mod error;
mod table_form;
mod written_time;

use std::io::{self, Read, Write};

use sizeleak_text::stand_in;

use columns::Columns;
pub use date_format::DateFormat;
pub use error::LabelError;
use error::MAX_FILE_BYTES;
use table_form::{COMMENT, TableText, decoded};
pub use written_time::LabelZone;
use written_time::{TimeReader, has_own_format};

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
    /// How the file was read, where that is not plain, and which of its lines were not: a sentence each.
    pub notes: Vec<String>,
}

/// Labels are read without the lines that cannot be, if these are at most one in so many.
const MIN_READ_FOR_EACH_LEFT_OUT: usize = 20;

/// The most faults that a note repeats.
const MAX_FAULTS: usize = 3;

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
        Self::read_in(input, None, None)
    }

    /// The same; `zone` is that of times that name none, `format` the form of dates, which else is the one that reads most.
    ///
    /// # Errors
    /// As [`Labels::read`], and if dates may be day first or month first.
    pub fn read_in(
        input: impl Read,
        zone: Option<&LabelZone>,
        format: Option<&DateFormat>,
    ) -> Result<Self, LabelError> {
        let mut text = Vec::new();
        input.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(LabelError::TooLarge);
        }
        if let Some(what) = stand_in(&text) {
            return Err(LabelError::StandIn(what));
        }
        let text = decoded(&text);
        if text.trim_ascii().is_empty() {
            return Err(LabelError::Empty);
        }
        let table = TableText::new(&text);
        let mut lines = LineCounter::new(&table);
        let mut reader = csv::ReaderBuilder::new();
        let reader = reader.trim(csv::Trim::All).delimiter(table.separator).comment(Some(COMMENT));
        let mut reader = reader.from_reader(table.text);
        let mut columns = Columns::of(reader.headers().map_err(|error| lines.locate(error))?)?;
        let mut notes = Vec::new();
        if !columns.ignored.is_empty() {
            notes.push(format!("columns that say nothing of actions are left aside: {}", columns.ignored.join(", ")));
        }
        let mut records = Vec::new();
        let mut faults = Vec::new();
        for record in reader.records() {
            match record {
                Ok(record) => records.push((lines.line_of(record.position()), record)),
                Err(error) => faults.push(lines.locate(error)),
            }
        }
        let format = match format {
            Some(format) => Some(format.clone()),
            None => own_format(&columns, &records)?,
        };
        if table.separator != b',' || format.is_some() {
            let separator =
                if table.separator == b'\t' { "tabs".to_owned() } else { format!("`{}`", table.separator as char) };
            let dates = format.as_ref().map_or_else(String::new, |format| format!(", and times read as `{format}`"));
            notes.push(format!("columns are separated by {separator}{dates}"));
        }
        let (mut times, mut rows) = (TimeReader::new(zone, format), Vec::<Label>::new());
        for (line, record) in &records {
            if let Err(fault) = add_row(&mut rows, &mut columns, &mut times, record, *line) {
                if !fault.is_of_one_line() {
                    return Err(fault);
                }
                faults.push(fault);
            }
        }
        if faults.len() * MIN_READ_FOR_EACH_LEFT_OUT > records.len() {
            return Err(faults.swap_remove(0));
        }
        if !faults.is_empty() {
            let first: Vec<String> = faults.iter().take(MAX_FAULTS).map(ToString::to_string).collect();
            let more = if faults.len() > MAX_FAULTS { "; …" } else { "" };
            notes.push(format!(
                "{} of {} rows cannot be read and are left out: {}{more}",
                faults.len(),
                records.len(),
                first.join("; ")
            ));
        }
        if rows.is_empty() && columns.joins_rows() {
            return Ok(Self::default());
        }
        let actions = columns.into_actions()?;
        for row in &mut rows {
            row.counts.resize(actions.len(), 0);
        }
        Ok(Self { actions, rows, is_to_the_minute: times.is_to_the_minute(), notes })
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

/// The form of the dates that are not those of ISO 8601, if there are such.
fn own_format(columns: &Columns, records: &[(u64, csv::StringRecord)]) -> Result<Option<DateFormat>, LabelError> {
    let times = records.iter().map(|(line, record)| (columns.time(record), *line));
    let times: Vec<(&str, u64)> = times.filter(|(text, _)| has_own_format(text)).collect();
    if times.is_empty() { Ok(None) } else { DateFormat::of_times(&times) }
}

/// Adds the label of a row, or its action to the label before.
fn add_row(
    rows: &mut Vec<Label>,
    columns: &mut Columns,
    times: &mut TimeReader<'_>,
    record: &csv::StringRecord,
    line: u64,
) -> Result<(), LabelError> {
    let time_ns = times.read(columns.time(record), line)?;
    if let Some(row) = rows.last_mut().filter(|row| columns.joins_rows() && row.time_ns == time_ns) {
        return columns.add(record, line, &mut row.counts);
    }
    let mut counts = Vec::new();
    columns.add(record, line, &mut counts)?;
    rows.push(Label { time_ns, counts, line });
    Ok(())
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
    fn new(table: &TableText<'a>) -> Self {
        Self { text: table.text, at: 0, line: 1 + table.lines_above }
    }

    /// The line of a record. Must be called in order of records.
    fn line_of(&mut self, position: Option<&csv::Position>) -> u64 {
        let start = position.map_or(0, |position| usize::try_from(position.byte()).unwrap_or(usize::MAX));
        let mut start = start.min(self.text.len());
        // The record is below empty lines and comments.
        while let Some(rest) =
            self.text.get(start..).filter(|rest| matches!(rest.first(), Some(b'\r' | b'\n' | &COMMENT)))
        {
            let is_comment = rest.first() == Some(&COMMENT);
            let length = rest.iter().take_while(|byte| is_comment && **byte != b'\n').count();
            start += length.max(1);
        }
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
    fn tables_of_spreadsheets_and_programs_are_read_alike() {
        let plain = Labels::read(&b"time,on,off\n1767600000.25,1,0\n1767600060.5,0,2\n"[..]).unwrap();
        assert_eq!(plain.notes, [""; 0]);
        for text in [
            "\u{feff}time;on;off\r\n1767600000,25;1;0\r\n1767600060,5;0;2\r\n",
            "sep=;\ntime;on;off\n1767600000.25;1;0\n1767600060.5;0;2\n",
            ",time,on,off\n0,1767600000.25,1.0,\n1,1767600060.5,,2.0\n",
            "# by hand\nTime\ton\toff\n1767600000.25\t1\t0\n\n# later\n1767600060.5\t0\t2\n",
            "on,off,TIME\n1,0,1767600000.25\n0,2,1767600060.5\n",
            "Action,Device,Time,Count\non,plug 1,1767600000.25,1\noff,plug 2,1767600060.5,2\n",
        ] {
            let read = Labels::read(text.as_bytes()).unwrap();
            let rows = |labels: &Labels| -> Vec<(i64, Vec<u32>)> {
                labels.rows.iter().map(|row| (row.time_ns, row.counts.clone())).collect()
            };
            assert_eq!((&read.actions, rows(&read)), (&plain.actions, rows(&plain)), "{text}");
            let line_of_last = text.lines().count() as u64;
            assert_eq!(read.rows[1].line, line_of_last, "{text}");
        }
        let utf_16: Vec<u8> = "\u{feff}time\ton\n1\t1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(Labels::read(&utf_16[..]).unwrap().actions, ["on"]);
    }

    #[test]
    fn columns_and_forms_that_are_not_plain_are_said() {
        let utc = "UTC".parse().unwrap();
        let text = "time;action;room\n25/06/2022 19:25;on;hall\n";
        let labels = Labels::read_in(text.as_bytes(), Some(&utc), None).unwrap();
        let said = labels.notes.join("\n");
        assert!(
            said.contains("left aside: room") && said.contains("`;`, and times read as `%d/%m/%Y %H:%M`"),
            "{said}"
        );
        assert_eq!(labels.rows[0].time_ns, 1_656_185_100_000_000_000);
        let error = |format: Option<&DateFormat>| {
            Labels::read_in(&b"time,action\n05/06/2022 19:25,on\n"[..], Some(&utc), format)
                .map(|labels| labels.rows[0].time_ns)
        };
        assert!(error(None).unwrap_err().to_string().contains("--label-format"));
        assert_eq!(error(Some(&"%m/%d/%Y %H:%M".parse().unwrap())).unwrap(), 1_651_865_100_000_000_000);
        assert!("%!".parse::<DateFormat>().is_err());
    }

    #[test]
    fn few_lines_that_cannot_be_read_are_left_out_and_many_are_an_error() {
        let rows = (0..40).map(|at| [at.to_string(), ",1\n".into()].concat()).collect::<String>();
        let read = |more: &str| Labels::read(format!("time,on\n{rows}{more}").as_bytes());
        let labels = read("yesterday,1\n41,many\n").unwrap();
        assert_eq!(labels.rows.len(), 40);
        let [note] = &labels.notes[..] else { panic!("{:?}", labels.notes) };
        assert!(
            note.contains("2 of 42 rows") && note.contains("line 42: `yesterday`") && note.contains("line 43"),
            "{note}"
        );
        assert!(read("a,1\nb,1\nc,1\n").unwrap_err().to_string().contains("line 42: `a`"));
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
