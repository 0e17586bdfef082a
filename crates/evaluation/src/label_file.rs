//! Labels of a file and the commands they belong to.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use sizeleak_model::{Labels, Matching, Model, match_labels};

use crate::error::{EvaluationError, LabelFileError};

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

impl LabelFile {
    /// Reads labels.
    ///
    /// # Errors
    /// [`LabelFileError`], with the file and the line.
    pub fn read(path: &Path) -> Result<Self, LabelFileError> {
        let fault = |fault: String| LabelFileError { file: path.display().to_string(), fault };
        let file = File::open(path).map_err(|error| fault(error.to_string()))?;
        let labels = Labels::read(file).map_err(|error| fault(error.to_string()))?;
        if labels.rows.is_empty() {
            return Err(fault("there is no row below the header: label at least one command".to_owned()));
        }
        if let Some(row) = labels.rows.iter().find(|row| row.counts.iter().all(|count| *count == 0)) {
            return Err(fault(format!("line {}: a command has at least one action, this row has none", row.line)));
        }
        Ok(Self { path: path.to_owned(), labels })
    }

    /// Checks that some section of the model knows the actions; returns a sentence about those that none knows, whose
    /// commands cannot be recognised.
    ///
    /// # Errors
    /// If no action is known.
    pub fn check_actions(&self, models: &[Model]) -> Result<Option<String>, LabelFileError> {
        let known: BTreeSet<&str> = models.iter().flat_map(Model::action_names).collect();
        let unknown: Vec<String> = self
            .labels
            .actions
            .iter()
            .filter(|name| !known.contains(name.as_str()))
            .map(|name| format!("`{name}`"))
            .collect();
        let names = unknown.join(", ");
        if unknown.len() < self.labels.actions.len() {
            let file = self.path.display();
            return Ok((!unknown.is_empty()).then(|| {
                format!("{file}: the model does not know {names}: commands with them count as not found out")
            }));
        }
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        Err(self.fault(format!("the model knows none of the actions {names}, it has {known}: learn again with them")))
    }

    /// An error that names this file.
    fn fault(&self, fault: String) -> LabelFileError {
        LabelFileError { file: self.path.display().to_string(), fault }
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
        Self { path: self.path.clone(), labels: Labels { actions: self.labels.actions.clone(), rows, ..self.labels } }
    }

    /// Matches the rows with commands.
    ///
    /// # Errors
    /// If no row is near a command: the clocks or files are wrong, and every figure would be too.
    pub fn matching(&self, command_times: &[i64], tolerance: Tolerance) -> Result<Matching, EvaluationError> {
        let matching = match_labels(&self.times(), command_times, tolerance.0);
        if !matching.pairs.is_empty() {
            return Ok(matching);
        }
        let first = command_times.first().ok_or(EvaluationError::NoCommands)?;
        let fault = self.fault(format!(
            "none of its {} labels is within {tolerance} of a command: its first label is at {}, the first of {} \
            commands at {}",
            self.labels.rows.len(),
            self.labels.rows.first().map_or(String::new(), |row| timestamp(row.time_ns)),
            command_times.len(),
            timestamp(*first),
        ));
        Err(fault.into())
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
