//! Labels: the times and actions of commands, as CSV.
//!
//! The header says which of two forms the file has: `time,<action>,<action>…` with a row for each command, or
//! `time,action[,count]` with a row for each action, where rows with the same time that follow each other are one command.
//! Semicolons and tabs separate columns as well as commas do. A log of events is read by a [`LabelMap`].

mod written_time;

use std::collections::BTreeSet;
use std::io::{self, Read, Write};

use csv::StringRecord;
use sizeleak_text::{listed, stand_in};

use crate::labels::error::{LabelError, MAX_COUNT, MAX_FILE_BYTES, short};
use crate::labels::event_log::{Event, EventLog};
use crate::labels::label_map::LabelMap;
use crate::labels::table::{Columns, TableRows, decoded};
pub use written_time::{DateFormat, LabelZone};
use written_time::{RowOrder, TimeReader, has_own_format};

const NS: u64 = 1_000_000_000;

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

/// The most faults that a note repeats, and the most of the events that are no labels.
const MAX_FAULTS: usize = 3;

/// The most columns left aside that a note names.
const MAX_COLUMNS: usize = 16;

/// How files of spreadsheets begin, and what they are.
const ARCHIVES: [&[u8]; 2] = [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"];
const SPREADSHEET: &str = "a spreadsheet (.xlsx, .xls, .ods) or another archive: save the sheet as CSV";

#[derive(Debug, Clone, Default)]
pub struct LabelForm {
    /// The zone of times that name none.
    pub zone: Option<LabelZone>,
    /// The form of dates, as `strptime` writes it; `None` for the one that reads most of them.
    pub format: Option<DateFormat>,
    /// Which events of a log are actions; `None` for a table of labels.
    pub map: Option<LabelMap>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub time_ns: i64,
    /// How often each action occurs, in the order of [`Labels::actions`]; all 0 for a message that carries none.
    pub counts: Vec<u32>,
    pub line: u64,
}

/// Captures are of later years than the first since 1970.
const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

impl Labels {
    /// Whether the times count from a start of their own, such as the first packet: all are within a year of 1970.
    pub fn count_from_a_start(&self) -> bool {
        self.rows.iter().all(|row| row.time_ns.unsigned_abs() < YEAR_NS)
    }

    /// Reads labels of at most 256 MiB whose times name their zone.
    ///
    /// # Errors
    /// [`LabelError`] for the first invalid line.
    pub fn read(input: impl Read) -> Result<Self, LabelError> {
        Self::read_in(input, &LabelForm::default())
    }

    /// The same of another form.
    ///
    /// # Errors
    /// As [`Labels::read`], and if dates may be day first or month first, or the log has no event that is an action.
    pub fn read_in(input: impl Read, form: &LabelForm) -> Result<Self, LabelError> {
        let bytes = whole(input)?;
        let (text, encoding) = decoded(&bytes);
        let mut labels = match &form.map {
            Some(map) => Self::of_log(EventLog::read(&text)?, map, form)?,
            None if matches!(text.trim_ascii_start().first(), Some(b'[' | b'{')) => {
                return Err(LabelError::no_table(
                    "this is a log of events: `sizeleak labels FILE -o map.toml` writes a map of them to fill in, and \
                     `--label-map map.toml` reads them by it",
                ));
            }
            None => Self::of_table(TableRows::read(&text, 0)?, form)?,
        };
        labels.notes.extend(encoding.map(|encoding| format!("the text is read as {encoding}")));
        Ok(labels)
    }

    /// The map that reads a log of events, to be filled in.
    ///
    /// # Errors
    /// If it cannot be read, or is a table of labels or a log of unknown form: with an example.
    pub fn map_of_log(input: impl Read) -> Result<LabelMap, LabelError> {
        let bytes = whole(input)?;
        let log = EventLog::read(&decoded(&bytes).0)?;
        let Some(map) = LabelMap::proposed(&log) else { return Err(log.unknown()) };
        let events = map.events(&log).filter(|event| map.action(event).is_some());
        let records: Vec<(u64, StringRecord)> =
            events.map(|event| (event.line, StringRecord::from(vec![event.time]))).collect();
        let columns = Columns::list();
        let format = own_format(&columns, &records).unwrap_or_default();
        Ok(map.with_gaps(clock_times(&columns, &records, format)))
    }

    fn of_table(table: TableRows, form: &LabelForm) -> Result<Self, LabelError> {
        let columns = Columns::of(&table.header)?;
        let mut notes = Vec::new();
        if !columns.ignored.is_empty() {
            notes.push(format!(
                "columns that say nothing of actions are left aside: {}",
                listed(columns.ignored.iter().map(|name| short(name).into_owned()), MAX_COLUMNS)
            ));
        }
        let TableRows { separator, rows, faults, .. } = table;
        if rows.is_empty() && faults.is_empty() && columns.joins_rows() {
            // A list without a row names no action.
            return Ok(Self::default());
        }
        let (mut labels, format) = read_rows(columns, &rows, faults, form)?;
        if separator != b',' || format.is_some() {
            let separator = if separator == b'\t' { "tabs".to_owned() } else { format!("`{}`", separator as char) };
            let dates = format.map_or_else(String::new, |format| format!(", and times read as `{format}`"));
            notes.push(format!("columns are separated by {separator}{dates}"));
        }
        labels.notes.splice(0..0, notes);
        Ok(labels)
    }

    fn of_log(log: EventLog, map: &LabelMap, form: &LabelForm) -> Result<Self, LabelError> {
        let together_ns =
            map.together_ns().map_err(|fault| LabelError::new(format!("the label map is wrong: {fault}")))?;
        let (mut rows, mut others, mut all) = (Vec::new(), Vec::new(), 0);
        for event in map.events(&log) {
            all += 1;
            match map.action(&event) {
                Some(action) => rows.push((event.line, StringRecord::from(vec![&*event.time, action]))),
                None => others.push(event),
            }
        }
        if rows.is_empty() {
            let objects = log.objects.len();
            let none = format!(
                "none of {objects} rows is an action by the map ({all} have its keys of time, entity and state): correct its \
                 keys, or its `[actions.\"ENTITY\"]`"
            );
            return Err(log.faults.into_iter().next().unwrap_or(LabelError::new(none)));
        }
        let (mut labels, _) = read_rows(Columns::list(), &rows, log.faults, form)?;
        if !others.is_empty() {
            let count = others.len();
            let named = others.iter().map(|Event { entity, state, .. }| format!("`{entity}` {state}"));
            let named = listed(named.collect::<BTreeSet<_>>(), MAX_FAULTS);
            let are = if count == 1 { "is no action by the map, and is" } else { "are no actions by the map, and are" };
            let note = format!("{count} of {all} events {are} left aside: {named}");
            labels.notes.insert(0, note);
        }
        // Logs are sorted by entity, too.
        labels.rows.sort_by_key(|row| row.time_ns);
        labels.rows.dedup_by(|row, first| {
            let is_together = row.time_ns.saturating_sub(first.time_ns) <= together_ns;
            if is_together {
                first.add(row);
            }
            is_together
        });
        Ok(labels)
    }

    /// Writes labels, with times as epoch seconds to the nanosecond.
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

/// The bytes of a file, of at most 256 MiB.
fn whole(input: impl Read) -> Result<Vec<u8>, LabelError> {
    let mut bytes = Vec::new();
    input.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let fault = format!("the labels have more than {MAX_FILE_BYTES} bytes: split them by capture");
        return Err(LabelError::new(fault));
    }
    let is_archive = ARCHIVES.iter().any(|begin| bytes.starts_with(begin));
    match stand_in(&bytes).or(is_archive.then_some(SPREADSHEET)) {
        Some(what) => Err(LabelError::new(format!("is {what}"))),
        None if bytes.trim_ascii().is_empty() => Err(LabelError::new(
            "line 1: the file is empty: labels begin with the header `time,<action>,<action>…` or `time,action[,count]`",
        )),
        None => Ok(bytes),
    }
}

impl Label {
    fn add(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more).min(MAX_COUNT);
        }
    }
}

/// The labels of some rows, and the form of their dates if that is not ISO 8601.
fn read_rows(
    mut columns: Columns,
    records: &[(u64, StringRecord)],
    mut faults: Vec<LabelError>,
    form: &LabelForm,
) -> Result<(Labels, Option<DateFormat>), LabelError> {
    let format = match &form.format {
        Some(format) => Some(format.clone()),
        None => own_format(&columns, records)?,
    };
    let order = RowOrder::of_times(&clock_times(&columns, records, format.clone()));
    let (mut times, mut rows) = (TimeReader::new(form.zone.as_ref(), format.clone(), order), Vec::<Label>::new());
    let mut count = faults.len();
    for (line, record) in records {
        if let Err(fault) = add_row(&mut rows, &mut columns, &mut times, record, *line) {
            if !fault.is_of_one_line() {
                return Err(fault);
            }
            count += 1;
            if faults.len() < MAX_FAULTS {
                faults.push(fault);
            }
        }
    }
    if count * MIN_READ_FOR_EACH_LEFT_OUT > records.len() {
        return Err(faults.swap_remove(0));
    }
    if order == RowOrder::NewestFirst {
        // Commands were given in the order of the rows from the last one up, also those of one time.
        rows.reverse();
    }
    let notes = Vec::from_iter(times.doubts());
    let mut labels = Labels { rows, is_to_the_minute: times.is_to_the_minute(), notes, ..Labels::default() };
    if !faults.is_empty() {
        let first: Vec<String> = faults.iter().take(MAX_FAULTS).map(ToString::to_string).collect();
        let more = if count > MAX_FAULTS { "; …" } else { "" };
        let (all, first) = (records.len(), first.join("; "));
        let are = if count == 1 { "is" } else { "are" };
        labels.notes.push(format!("{count} of {all} rows cannot be read and {are} left out: {first}{more}"));
    }
    labels.actions = columns.into_actions()?;
    for row in &mut labels.rows {
        row.counts.resize(labels.actions.len(), 0);
    }
    Ok((labels, format))
}

/// The times of rows as their clock shows them, of which only the differences say something; without those that cannot
/// be read.
fn clock_times(columns: &Columns, records: &[(u64, StringRecord)], format: Option<DateFormat>) -> Vec<i64> {
    let zone = LabelZone::utc();
    let mut reader = TimeReader::new(Some(&zone), format, RowOrder::OldestFirst);
    records.iter().filter_map(|(line, record)| reader.read(columns.time(record), *line).ok()).collect()
}

/// The form of the dates that are not those of ISO 8601, if there are such.
fn own_format(columns: &Columns, records: &[(u64, StringRecord)]) -> Result<Option<DateFormat>, LabelError> {
    let times = records.iter().map(|(line, record)| (columns.time(record), *line));
    let times: Vec<(&str, u64)> = times.filter(|(text, _)| has_own_format(text)).collect();
    if times.is_empty() { Ok(None) } else { DateFormat::of_times(&times) }
}

/// Adds the label of a row, or its action to the label before.
fn add_row(
    rows: &mut Vec<Label>,
    columns: &mut Columns,
    times: &mut TimeReader<'_>,
    record: &StringRecord,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::labels::error;

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

    /// As logs are shown: the last thing that happened stands at the top.
    #[test]
    fn rows_are_those_of_the_other_order_where_the_newest_comes_first() {
        let zone = || Some("Europe/Berlin".parse().unwrap());
        let read = |lines: &[&str]| {
            let text = format!("time,on,off\n{}\n", lines.join("\n"));
            Labels::read_in(text.as_bytes(), &LabelForm { zone: zone(), ..LabelForm::default() }).unwrap()
        };
        for lines in [
            // Several in a second, of which the order alone tells which was the first.
            &[
                "2026-01-05 08:00:07,1,0",
                "2026-01-05 08:00:07,0,1",
                "2026-01-05 08:00:07,2,0",
                "2026-01-05 08:00:09,0,2",
            ][..],
            // Clocks were put back at 03:00.
            &[
                "2026-10-25 01:50:00,1,0",
                "2026-10-25 02:10:00,0,1",
                "2026-10-25 02:50:00,2,0",
                "2026-10-25 02:20:00,0,2",
            ],
            &[
                "2026-01-05 08:00:07,1,0",
                "2026-01-05 08:00:06,0,1",
                "2026-01-05 08:01:07,2,0",
                "2026-01-05 08:02:00,0,2",
            ],
        ] {
            let mut newest_first = lines.to_vec();
            newest_first.reverse();
            let rows =
                |labels: Labels| labels.rows.into_iter().map(|row| (row.time_ns, row.counts)).collect::<Vec<_>>();
            assert_eq!(rows(read(&newest_first)), rows(read(lines)), "{lines:?}");
        }
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
        let in_utc = |format: Option<&DateFormat>| LabelForm {
            zone: Some("UTC".parse().unwrap()),
            format: format.cloned(),
            map: None,
        };
        let text = "time;action;room\n25/06/2022 19:25;on;hall\n";
        let labels = Labels::read_in(text.as_bytes(), &in_utc(None)).unwrap();
        let said = labels.notes.join("\n");
        assert!(
            said.contains("left aside: room") && said.contains("`;`, and times read as `%d/%m/%Y %H:%M`"),
            "{said}"
        );
        assert_eq!(labels.rows[0].time_ns, 1_656_185_100_000_000_000);
        let error = |format: Option<&DateFormat>| {
            Labels::read_in(&b"time,action\n05/06/2022 19:25,on\n"[..], &in_utc(format))
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
        assert!(
            Labels::read(&b"time,on\n1,\xff\0\n"[..]).unwrap_err().to_string().contains("line 2: this is not UTF-8")
        );
        assert!(error("time,on\n99999999999999999999,1\n").contains("not a time"));
        for long in ["\0".repeat(1 << 20), "x".repeat(1 << 19), "\u{301}".repeat(1 << 18)] {
            for text in [long.clone(), format!("time,on\n{long},1\n"), format!("time,on\n1,{long}\n")] {
                assert!(error(&text).len() < 5_000, "{}", error(&text).len());
            }
        }
        let columns: Vec<String> = (0..100).map(|at| format!(",{at}{}", "x".repeat(1 << 12))).collect();
        let columns = columns.concat();
        let labels = Labels::read(format!("time,action{columns}\n1,on{}\n", ",".repeat(100)).as_bytes()).unwrap();
        assert!(labels.notes[0].len() < 5_000 && labels.notes[0].ends_with(" and 84 more"), "{}", labels.notes[0]);
    }

    #[test]
    fn more_rows_and_longer_ones_than_labels_have_are_refused() {
        let error = |text: &[u8]| Labels::read(text).unwrap_err().to_string();
        let rows = "1,1\n".repeat(error::MAX_ROWS);
        assert!(error(format!("time,on\n{rows}").as_bytes()).contains("more than 2097152 rows"));
        assert!(
            error(&[&b"time,on\n1,1\n2,"[..], &vec![0; 1 << 20]].concat())
                .starts_with("line 3: it has more than 1048576")
        );
        for log in ["[{},", "{}\n"] {
            let log = log.repeat(error::MAX_ROWS + 1);
            let map = "time = \"t\"\nentity = [\"e\"]\nstate = \"s\"\n[actions.lamp]\non = \"on\"\n".parse().unwrap();
            let form = LabelForm { map: Some(map), ..LabelForm::default() };
            let fault = Labels::read_in(log.as_bytes(), &form).unwrap_err().to_string();
            assert!(fault.contains("more than 2097152 rows"), "{fault}");
        }
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
            let mut rows = labels.rows;
            let times: Vec<i64> = rows.iter().map(|row| row.time_ns).collect();
            if RowOrder::of_times(&times) == RowOrder::NewestFirst {
                rows.reverse();
            }
            prop_assert_eq!((read.actions, read.rows), (labels.actions, rows));
        }
    }
}
