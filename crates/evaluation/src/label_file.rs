//! Labels of a file and the commands they belong to.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use sizeleak_model::{LabelError, Labels, Matching, Model, match_labels};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// How many labels or commands a remark names; the others are counted.
const SHOWN: usize = 5;

/// The labels of a file, at least one.
#[derive(Debug)]
pub struct LabelFile {
    path: PathBuf,
    labels: Labels,
}

/// Why labels cannot be used.
#[derive(Debug, Error)]
pub enum LabelFileError {
    /// The file cannot be opened.
    #[error("{0}: {1}")]
    Unreadable(String, io::Error),
    /// A line of the file is invalid.
    #[error("{0}: {1}")]
    Invalid(String, LabelError),
    /// The file has a header only.
    #[error("{0}: there is no row below the header: label at least one command")]
    Empty(String),
    /// A row without any action.
    #[error("{file}: line {line}: a command has at least one action, this row has none")]
    NoAction {
        /// The file.
        file: String,
        /// The line.
        line: u64,
    },
    /// A column that the model has no size for.
    #[error("{file}: the model does not know the action `{action}`, it has {known}: learn again with it")]
    UnknownAction {
        /// The file.
        file: String,
        /// The action.
        action: String,
        /// The actions of the model.
        known: String,
    },
    /// The captures hold no command.
    #[error("there is no command in the captures: is the gateway's address right?")]
    NoCommands,
    /// No label is near a command, so clocks or files must be wrong.
    #[error(
        "{file}: none of its {labels} labels is within {tolerance} of a command: its first label is of {first_label}, \
         the first of {commands} commands of {first_command}"
    )]
    NoMatch {
        /// The file.
        file: String,
        /// How many labels it has.
        labels: usize,
        /// How far a command may be from its label.
        tolerance: Tolerance,
        /// The time of the first label.
        first_label: String,
        /// How many commands there are.
        commands: usize,
        /// The time of the first command.
        first_command: String,
    },
}

impl LabelFile {
    /// Reads labels.
    ///
    /// # Errors
    /// [`LabelFileError`], with the file and the line.
    pub fn read(path: &Path) -> Result<Self, LabelFileError> {
        let name = || path.display().to_string();
        let file = File::open(path).map_err(|error| LabelFileError::Unreadable(name(), error))?;
        let labels = Labels::read(file).map_err(|error| LabelFileError::Invalid(name(), error))?;
        if labels.rows.is_empty() {
            return Err(LabelFileError::Empty(name()));
        }
        if let Some(row) = labels.rows.iter().find(|row| row.counts.iter().all(|count| *count == 0)) {
            return Err(LabelFileError::NoAction { file: name(), line: row.line });
        }
        Ok(Self { path: path.to_owned(), labels })
    }

    /// Checks that the model has a size for every action.
    ///
    /// # Errors
    /// [`LabelFileError::UnknownAction`].
    pub fn check_actions(&self, model: &Model) -> Result<(), LabelFileError> {
        let is_unknown = |name: &&String| model.actions.iter().all(|action| action.name != **name);
        self.labels.actions.iter().find(is_unknown).map_or(Ok(()), |action| {
            let known = model.actions.iter().map(|action| &*action.name).collect::<Vec<_>>().join(", ");
            Err(LabelFileError::UnknownAction { file: self.path.display().to_string(), action: action.clone(), known })
        })
    }

    /// The content of the file.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The time of each row, in nanoseconds since 1970.
    pub fn times(&self) -> Vec<i64> {
        self.labels.rows.iter().map(|row| row.time_ns).collect()
    }

    /// The indices of the rows, ordered by time.
    pub fn order_by_time(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.labels.rows.len()).collect();
        rows.sort_by_key(|row| self.labels.rows.get(*row).map(|row| row.time_ns));
        rows
    }

    /// Some of the rows alone.
    #[must_use]
    pub fn subset(&self, rows: &[usize]) -> Self {
        let rows = rows.iter().filter_map(|row| self.labels.rows.get(*row)).cloned().collect();
        Self { path: self.path.clone(), labels: Labels { actions: self.labels.actions.clone(), rows } }
    }

    /// Matches the rows with commands.
    ///
    /// # Errors
    /// If no row is near a command: then clocks or files are wrong, and so would be every figure.
    pub fn matching(&self, command_times: &[i64], tolerance: Tolerance) -> Result<Matching, LabelFileError> {
        let matching = match_labels(&self.times(), command_times, tolerance.0);
        match (matching.pairs.is_empty(), command_times.first()) {
            (true, None) => Err(LabelFileError::NoCommands),
            (true, Some(first)) => Err(LabelFileError::NoMatch {
                file: self.path.display().to_string(),
                labels: self.labels.rows.len(),
                tolerance,
                first_label: self.labels.rows.first().map_or(String::new(), |row| timestamp(row.time_ns)),
                commands: command_times.len(),
                first_command: timestamp(*first),
            }),
            (false, _) => Ok(matching),
        }
    }

    /// A sentence for each kind of label or command without a partner, with the first few of each.
    pub fn unmatched(&self, matching: &Matching, command_times: &[i64], tolerance: Tolerance) -> Vec<String> {
        let (file, rows) = (self.path.display(), self.labels.rows.len());
        let mut remarks = Vec::new();
        if !matching.missed.is_empty() {
            let (count, lines) = (matching.missed.len(), self.lines(&matching.missed));
            remarks.push(format!("{file}: {count} of {rows} labels have no command within {tolerance}: {lines}"));
        }
        if !matching.ambiguous.is_empty() {
            let (count, lines) = (matching.ambiguous.len(), self.lines(&matching.ambiguous));
            remarks.push(format!("{file}: {count} of {rows} labels are only near commands of other labels: {lines}"));
        }
        if !matching.spurious.is_empty() {
            let (count, all) = (matching.spurious.len(), command_times.len());
            let times = matching.spurious.iter().filter_map(|at| command_times.get(*at)).map(|time| timestamp(*time));
            remarks.push(format!("{count} of {all} commands have no label: {}", first_few(times, count)));
        }
        remarks
    }

    /// The first few of these rows, by line and time.
    pub fn lines(&self, rows: &[usize]) -> String {
        let named = rows.iter().filter_map(|row| self.labels.rows.get(*row));
        let named = named.map(|row| format!("line {} ({})", row.line, timestamp(row.time_ns)));
        first_few(named, rows.len())
    }
}

/// How far a command may be from its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance(i64);

impl Tolerance {
    /// In nanoseconds.
    pub fn nanoseconds(self) -> i64 {
        self.0
    }
}

impl std::str::FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration: SignedDuration = text.parse().map_err(|_| "write it like 2s or 500ms".to_owned())?;
        match i64::try_from(duration.as_nanos()) {
            Ok(nanoseconds @ 0..) => Ok(Self(nanoseconds)),
            _ => Err("it must be from 0 s to 292 years".to_owned()),
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", SignedDuration::from_nanos(self.0))
    }
}

/// A time in RFC 3339.
fn timestamp(time_ns: i64) -> String {
    Timestamp::from_nanosecond(time_ns.into()).map_or_else(|_| format!("{time_ns} ns"), |time| time.to_string())
}

fn first_few(named: impl Iterator<Item = String>, all: usize) -> String {
    let text = named.take(SHOWN).collect::<Vec<_>>().join(", ");
    if all > SHOWN { format!("{text} and {} more", all - SHOWN) } else { text }
}
