//! Counts the lines up to a record of a CSV file.

use super::error::LabelError;

/// Counts the lines up to a record. The CSV library's own line numbers are wrong after empty lines and Windows line
/// ends.
pub(crate) struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    /// A counter of the lines of a text.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The line of a record. Must be called in order of records.
    pub(crate) fn line_of(&mut self, position: Option<&csv::Position>) -> u64 {
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
    pub(crate) fn locate(&mut self, error: csv::Error) -> LabelError {
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
