//! The rows of a table with their lines, and those that cannot be read.

use std::io;

use csv::StringRecord;

use super::error::{LabelError, MAX_ROW_BYTES, MAX_ROWS, MAX_VALUES};
use super::table_form::{COMMENT, separated};

/// The header of a table and its rows, with their lines.
pub(crate) struct TableRows {
    pub(crate) separator: u8,
    pub(crate) header: StringRecord,
    pub(crate) rows: Vec<(u64, StringRecord)>,
    pub(crate) faults: Vec<LabelError>,
}

impl TableRows {
    /// Reads a table in UTF-8, below so many lines of its file.
    pub(crate) fn read(text: &[u8], lines_above: u64) -> Result<Self, LabelError> {
        let (separator, text, own_lines_above) = separated(text);
        let first_line = 1 + lines_above + own_lines_above;
        check_numbers(text, b'\n', separator)?;
        let mut rows = (first_line..).zip(text.split(|byte| *byte == b'\n'));
        if let Some((line, _)) = rows.find(|(_, row)| row.len() > MAX_ROW_BYTES) {
            let fault = format!("it has more than {MAX_ROW_BYTES} bytes, which no label needs");
            return Err(LabelError::at(line, fault));
        }
        let mut lines = LineCounter { text, at: 0, line: first_line };
        let mut reader = csv::ReaderBuilder::new();
        let reader = reader.trim(csv::Trim::All).delimiter(separator).comment(Some(COMMENT));
        let mut reader = reader.from_reader(text);
        let header = reader.headers().map_err(|error| lines.locate(error))?.clone();
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        for record in reader.into_records() {
            match record {
                Ok(record) => rows.push((lines.line_of(record.position()), record)),
                Err(error) => faults.push(lines.locate(error)),
            }
        }
        Ok(Self { separator, header, rows, faults })
    }
}

/// Checks how many rows and fields a text has, by what each of them begins or ends with.
pub(crate) fn check_numbers(text: &[u8], of_rows: u8, of_fields: u8) -> Result<(), LabelError> {
    let count = |sign: u8| text.split(|byte| *byte == sign).count() - 1;
    if count(of_rows) <= MAX_ROWS && count(of_fields) <= MAX_VALUES {
        return Ok(());
    }
    let fault = format!("the labels have more than {MAX_ROWS} rows, or {MAX_VALUES} fields: split them by capture");
    Err(LabelError::new(fault))
}

/// Counts the lines up to a record: the CSV library's own are wrong after empty lines and Windows line ends.
struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl LineCounter<'_> {
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

    fn locate(&mut self, error: csv::Error) -> LabelError {
        let line = self.line_of(error.position());
        match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                LabelError::wrong_fields(line, *len, *expected_len)
            }
            csv::ErrorKind::Utf8 { .. } => LabelError::of_line(line, "this is not UTF-8 text"),
            _ => io::Error::from(error).into(),
        }
    }
}
