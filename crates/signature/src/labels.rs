//! Labels: when which actions were really commanded. CSV, a header `time,<action>,<action>…`, a row a command.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use jiff::Timestamp;
use thiserror::Error;

/// Labelled commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The actions, in the order of the columns.
    pub actions: Vec<String>,
    /// The commands, in the order of the rows.
    pub rows: Vec<Label>,
}

/// One labelled command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// When, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// How often each action occurs, in the order of [`Labels::actions`].
    pub counts: Vec<u32>,
    /// Its line in the file.
    pub line: u64,
}

/// Why labels cannot be read.
#[derive(Debug, Error)]
pub enum LabelError {
    /// The header is not that of labels.
    #[error("line 1: the header must be `time,<action>,<action>…`, it is `{0}`")]
    Header(String),
    /// An action has two columns.
    #[error("line 1: the action `{0}` has two columns")]
    DuplicateAction(String),
    /// A time that is none.
    #[error("line {line}: `{text}` is no time: epoch seconds (1767600000.25) or RFC 3339 (2026-01-05T08:00:00Z)")]
    Time {
        /// The line.
        line: u64,
        /// What stands there.
        text: String,
    },
    /// A count that is none.
    #[error("line {line}: `{text}` is no count of `{action}`: a whole number from 0")]
    Count {
        /// The line.
        line: u64,
        /// The action.
        action: String,
        /// What stands there.
        text: String,
    },
    /// The file is no CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
}

impl Labels {
    /// Reads labels.
    ///
    /// # Errors
    /// [`LabelError`], about the first line that cannot be read.
    pub fn read(input: impl Read) -> Result<Self, LabelError> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(input);
        let header = reader.headers()?;
        let mut columns = header.iter();
        if columns.next() != Some("time") || header.len() < 2 {
            return Err(LabelError::Header(header.iter().collect::<Vec<_>>().join(",")));
        }
        let actions: Vec<String> = columns.map(str::to_owned).collect();
        let mut seen = BTreeSet::new();
        if let Some(action) = actions.iter().find(|action| !seen.insert(*action)) {
            return Err(LabelError::DuplicateAction(action.clone()));
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record?;
            let line = record.position().map_or(0, csv::Position::line);
            let mut fields = record.iter();
            let time = fields.next().unwrap_or_default();
            let time_ns = time_ns(time).ok_or_else(|| LabelError::Time { line, text: time.to_owned() })?;
            let counts = fields.zip(&actions).map(|(text, action)| {
                text.parse().map_err(|_| LabelError::Count { line, action: action.clone(), text: text.to_owned() })
            });
            rows.push(Label { time_ns, counts: counts.collect::<Result<_, _>>()?, line });
        }
        Ok(Self { actions, rows })
    }

    /// Writes labels, times as epoch seconds with nanoseconds.
    ///
    /// # Errors
    /// [`LabelError::Csv`] where the output does not take them.
    pub fn write(&self, output: impl Write) -> Result<(), LabelError> {
        let mut writer = csv::Writer::from_writer(output);
        writer.write_record(std::iter::once("time").chain(self.actions.iter().map(String::as_str)))?;
        for row in &self.rows {
            let seconds = row.time_ns.div_euclid(NS);
            let time = format!("{seconds}.{:09}", row.time_ns.rem_euclid(NS));
            writer.write_record(std::iter::once(time).chain(row.counts.iter().map(u32::to_string)))?;
        }
        Ok(writer.flush().map_err(csv::Error::from)?)
    }
}

const NS: i64 = 1_000_000_000;

/// Epoch seconds with decimals, exactly (not through a float), or RFC 3339.
fn time_ns(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) {
        if !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let decimals: String = decimals.chars().chain("000000000".chars()).take(9).collect();
        return whole.parse::<i64>().ok()?.checked_mul(NS)?.checked_add(decimals.parse().ok()?);
    }
    i64::try_from(text.parse::<Timestamp>().ok()?.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_in_both_forms() {
        let labels = Labels::read(
            &b"time, on, off\n1767600000.123456789, 1, 0\n2026-01-05T08:00:00.5Z,0,2\n1767600000,0,1\n"[..],
        )
        .unwrap();
        let times: Vec<i64> = labels.rows.iter().map(|row| row.time_ns - 1_767_600_000 * NS).collect();
        assert_eq!(times, [123_456_789, 500_000_000, 0]);
        assert_eq!((labels.rows[1].line, &labels.rows[1].counts[..]), (3, &[0, 2][..]));
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| Labels::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error("when,on\n").contains("line 1"));
        assert!(error("").contains("line 1"));
        assert!(error("time,on,on\n").contains("two columns"));
        assert!(error("time,on\nyesterday,1\n").contains("line 2: `yesterday`"));
        assert!(error("time,on\n1,1\n2,-1\n").contains("line 3: `-1` is no count of `on`"));
        assert!(error("time,on\n1,1,1\n").contains("line: 2"));
        assert!(error("time,on\n99999999999999999999,1\n").contains("no time"));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(rows in prop::collection::vec((0i64..4_000_000_000_000_000_000, any::<[u32; 2]>()), 0..20)) {
            let rows = rows.into_iter().zip(2..).map(|((time_ns, counts), line)| Label { time_ns, counts: counts.into(), line });
            let labels = Labels { actions: vec!["on".into(), "a,b".into()], rows: rows.collect() };
            let mut text = Vec::new();
            labels.write(&mut text).unwrap();
            prop_assert_eq!(Labels::read(&text[..]).unwrap(), labels);
        }
    }
}
