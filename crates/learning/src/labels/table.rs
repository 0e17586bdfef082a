//! Tables of labels: how spreadsheets, Python and people write CSV, its rows with their lines and those that cannot be
//! read, and the two forms of label files, by their header: a column for each action, or a list of actions.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use csv::StringRecord;

use crate::labels::error::{
    LabelError, MAX_COUNT, MAX_LISTED_ACTIONS, MAX_LISTED_COUNTS, MAX_ROW_BYTES, MAX_ROWS, MAX_VALUES, short,
};

pub(crate) struct Columns {
    time: usize,
    form: Form,
    /// The names of those that say nothing of actions.
    pub(crate) ignored: Vec<String>,
}

/// How the rows of a file name actions.
enum Form {
    /// `time,<action>,<action>…`: a row is a command, with a count for each action, in the column of this index.
    Wide(Vec<(usize, String)>),
    /// `time,action` or `time,action,count`: a row is an action; rows with the same time that follow each other are one
    /// command. A row without an action is a command that carries none.
    Long { action: usize, count: Option<usize>, listed: ListedActions },
}

#[derive(Debug, Default)]
struct ListedActions {
    /// In the order of their first mention.
    names: Vec<String>,
    indices: BTreeMap<String, usize>,
    commands: usize,
}

impl Columns {
    /// The columns that a header announces: in any order, and `time`, `action` and `count` in any case. A first column
    /// without a name is the index of a table.
    pub(crate) fn of(header: &StringRecord) -> Result<Self, LabelError> {
        let at = |name: &str| header.iter().position(|column| column.eq_ignore_ascii_case(name));
        let is_index = |column: usize, name: &str| column == 0 && name.is_empty();
        let named = || header.iter().enumerate().filter(|(column, name)| !is_index(*column, name));
        let Some(time) = at("time").filter(|_| named().count() > 1) else {
            return Err(LabelError::no_table(format!(
                "line 1: the header must be `time,<action>,<action>…` or `time,action[,count]`, it is `{}`; a log of events \
                 needs a `--label-map`, which `sizeleak labels FILE -o map.toml` writes",
                short(&header.iter().collect::<Vec<_>>().join(","))
            )));
        };
        if let Some(action) = at("action") {
            let count = at("count");
            let is_ignored = |column: usize| ![Some(time), Some(action), count].contains(&Some(column));
            let ignored = named().filter(|(column, _)| is_ignored(*column)).map(|(_, name)| name.to_owned()).collect();
            return Ok(Self { time, form: Form::Long { action, count, listed: ListedActions::default() }, ignored });
        }
        let actions: Vec<(usize, String)> =
            named().filter(|(column, _)| *column != time).map(|(column, name)| (column, name.to_owned())).collect();
        if let Some((column, _)) = actions.iter().find(|(_, name)| name.is_empty()) {
            let fault = format!("column {} has no name: write `time,<action>,<action>…`", column + 1);
            return Err(LabelError::at(1, fault));
        }
        let mut seen = BTreeSet::new();
        match actions.iter().find(|(_, name)| !seen.insert(name)) {
            Some((_, name)) => Err(LabelError::at(1, format_args!("the action `{}` has two columns", short(name)))),
            None => Ok(Self { time, form: Form::Wide(actions), ignored: Vec::new() }),
        }
    }

    pub(crate) fn list() -> Self {
        let form = Form::Long { action: 1, count: None, listed: ListedActions::default() };
        Self { time: 0, form, ignored: Vec::new() }
    }

    pub(crate) fn joins_rows(&self) -> bool {
        matches!(self.form, Form::Long { .. })
    }

    pub(crate) fn time<'a>(&self, row: &'a StringRecord) -> &'a str {
        row.get(self.time).unwrap_or_default()
    }

    /// Adds the counts of a row to those of its command; in a list, `counts` grows with the actions that are named.
    pub(crate) fn add(&mut self, row: &StringRecord, line: u64, counts: &mut Vec<u32>) -> Result<(), LabelError> {
        match &mut self.form {
            Form::Wide(actions) => {
                for (column, action) in actions {
                    counts.push(count(row.get(*column).unwrap_or_default(), action, line)?);
                }
            }
            Form::Long { action, count: count_at, listed } => {
                if counts.is_empty() {
                    listed.commands += 1;
                    listed.check_size(line)?;
                }
                let action = row.get(*action).unwrap_or_default();
                let text = count_at.and_then(|at| row.get(at));
                let times = text.map_or(Ok(1), |text| count(text, action, line))?;
                if let Some(at) = listed.index(action, line)? {
                    counts.resize(counts.len().max(at + 1), 0);
                    counts[at] = counts[at].saturating_add(times).min(MAX_COUNT);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn into_actions(self) -> Result<Vec<String>, LabelError> {
        let names = match self.form {
            Form::Wide(actions) => return Ok(actions.into_iter().map(|(_, name)| name).collect()),
            Form::Long { listed, .. } => listed.names,
        };
        // Written with a column for each action, such a file would read as a list, or as one with two times.
        let is_column = |name: &String| ["time", "action"].iter().any(|column| name.eq_ignore_ascii_case(column));
        if names.is_empty() || names.iter().any(is_column) {
            return Err(LabelError::new(
                "the list names no action: write one into the column `action` (other than `action` and `count`)",
            ));
        }
        Ok(names)
    }
}

impl ListedActions {
    /// Checks the size of the table that the list stands for.
    fn check_size(&self, line: u64) -> Result<(), LabelError> {
        let is_large = self.commands.saturating_mul(self.names.len()) > MAX_LISTED_COUNTS;
        if !is_large && self.names.len() <= MAX_LISTED_ACTIONS {
            return Ok(());
        }
        let fault = format!("more than {MAX_LISTED_ACTIONS} actions or too many commands with them: split the labels");
        Err(LabelError::at(line, fault))
    }

    /// The index of an action; `None` for a row that names none.
    fn index(&mut self, action: &str, line: u64) -> Result<Option<usize>, LabelError> {
        if action.is_empty() {
            return Ok(None);
        }
        if let Some(at) = self.indices.get(action) {
            return Ok(Some(*at));
        }
        let at = self.names.len();
        self.names.push(action.to_owned());
        self.indices.insert(action.to_owned(), at);
        self.check_size(line)?;
        Ok(Some(at))
    }
}

/// A count, also as a fraction without one (`2.0`, `2,0`); nothing is 0.
fn count(text: &str, action: &str, line: u64) -> Result<u32, LabelError> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    let count = if text.is_empty() { Some(0) } else { whole.parse().ok() };
    let count = count.filter(|count| is_whole && *count <= MAX_COUNT);
    count.ok_or_else(|| {
        let (text, action) = (short(text), short(action));
        let fault = format!("`{text}` is not a count of `{action}`: a whole number from 0 to {MAX_COUNT}");
        LabelError::of_line(line, fault)
    })
}

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

/// The separators of columns; the first one where none occurs.
const SEPARATORS: [u8; 3] = *b",;\t";

const COMMENT: u8 = b'#';

/// The characters of the bytes from 0x80 to 0x9f in Windows-1252, where Latin-1 has control characters. Five are open, and
/// stay those (<https://encoding.spec.whatwg.org/index-windows-1252.txt>).
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text in UTF-8, and the name of its encoding if that was another one: what a byte order mark says, or, of text that
/// is no UTF-8, what Windows writes in the West. Bytes that are no text are found with their line later.
pub(crate) fn decoded(bytes: &[u8]) -> (Cow<'_, [u8]>, Option<&'static str>) {
    let (text, encoding) = match bytes {
        [0xef, 0xbb, 0xbf, text @ ..] => return (text.into(), None),
        [0xff, 0xfe, text @ ..] => (utf_16(text, u16::from_le_bytes), "UTF-16LE"),
        [0xfe, 0xff, text @ ..] => (utf_16(text, u16::from_be_bytes), "UTF-16BE"),
        _ if bytes.contains(&0) || std::str::from_utf8(bytes).is_ok() => return (bytes.into(), None),
        _ => (bytes.iter().map(|byte| western(*byte)).collect(), "windows-1252"),
    };
    (text.into_bytes().into(), Some(encoding))
}

/// What is no UTF-16 becomes U+FFFD.
fn utf_16(text: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, rest) = text.as_chunks();
    let characters = char::decode_utf16(pairs.iter().map(|pair| unit(*pair)));
    let text = characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER));
    text.chain(rest.iter().map(|_| char::REPLACEMENT_CHARACTER)).collect()
}

fn western(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|at| WINDOWS_1252.get(usize::from(at)));
    special.copied().unwrap_or(char::from(byte))
}

/// The separator of a table's columns: that which a first line `sep=;` names, else that which the header has most of.
/// With the text, and how many lines there are above it.
pub(crate) fn separated(text: &[u8]) -> (u8, &[u8], u64) {
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', separator] = first.trim_ascii_end()
        && SEPARATORS.contains(separator)
    {
        return (*separator, text.get(first.len() + 1..).unwrap_or_default(), 1);
    }
    let is_header = |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(&[COMMENT]);
    let header = text.split(|byte| *byte == b'\n').find(is_header).unwrap_or_default();
    let times = |separator: u8| header.split(|byte| *byte == separator).count();
    let [usual, others @ ..] = SEPARATORS;
    let most = |best, other| if times(other) > times(best) { other } else { best };
    (others.into_iter().fold(usual, most), text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_those_of_the_header() {
        let separator = |text: &str| char::from(separated(text.as_bytes()).0);
        assert_eq!(separator("time,action\n1;5,on\n"), ',');
        assert_eq!(separator("# times, of my clock\n\ntime;on;off\n1,5;1;0\n"), ';');
        assert_eq!(separator("time\taction\n"), '\t');
        assert_eq!(separator("time"), ',');
        assert_eq!(separated(b"sep=;\r\ntime;on\n"), (b';', &b"time;on\n"[..], 1));
    }

    #[test]
    fn bytes_are_what_their_mark_says_or_what_windows_writes() {
        let decoded = |bytes| decoded(bytes).0.into_owned();
        assert_eq!(decoded(b"\xef\xbb\xbftime"), b"time");
        assert_eq!(decoded(b"\xff\xfet\0i\0\xfc\0"), "tiü".as_bytes());
        assert_eq!(decoded(b"\xfe\xff\0t\0i"), b"ti");
        assert_eq!(decoded(b"\xff\xfe=\xd8\0\xdex\0\xd8\xd8i"), "😀x\u{fffd}\u{fffd}".as_bytes());
        assert_eq!(decoded(b"time"), b"time");
        assert_eq!(decoded(b"K\xfcche \x80"), "Küche €".as_bytes());
        assert_eq!(decoded(b"\xff\0"), b"\xff\0");
    }
}
