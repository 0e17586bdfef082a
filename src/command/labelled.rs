//! Labels of a file, and which command each of them is: what `learn` and `evaluate` share.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use sizeleak_model::{Labels, Matching, match_labels};

/// So many labels or commands are named, the others counted.
const SHOWN: usize = 5;

/// The labels of a file, one row at least.
#[derive(Debug)]
pub(super) struct LabelFile {
    path: PathBuf,
    labels: Labels,
}

impl LabelFile {
    /// Reads labels; errors name the file and the line.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = || path.display().to_string();
        let labels = Labels::read(File::open(path).with_context(name)?).with_context(name)?;
        if labels.rows.is_empty() {
            bail!("{}: there is no row below the header: label one command at least", path.display());
        }
        if let Some(row) = labels.rows.iter().find(|row| row.counts.iter().all(|count| *count == 0)) {
            bail!("{}: line {}: a command has one action at least, this row has none", path.display(), row.line);
        }
        Ok(Self { path: path.to_owned(), labels })
    }

    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// When each row says a command was given, in nanoseconds.
    pub(super) fn times(&self) -> Vec<i64> {
        self.labels.rows.iter().map(|row| row.time_ns).collect()
    }

    /// The rows' places in order of time.
    pub(super) fn in_time(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.labels.rows.len()).collect();
        rows.sort_by_key(|row| self.labels.rows.get(*row).map(|row| row.time_ns));
        rows
    }

    /// Some of the rows alone.
    pub(super) fn part(&self, rows: &[usize]) -> Self {
        let rows = rows.iter().filter_map(|row| self.labels.rows.get(*row)).cloned().collect();
        Self { path: self.path.clone(), labels: Labels { actions: self.labels.actions.clone(), rows } }
    }

    /// Gives the rows their commands.
    ///
    /// Fails where none is near: then clocks or files are wrong, and every figure would be.
    pub(super) fn matching(&self, command_times: &[i64], tolerance: Tolerance) -> anyhow::Result<Matching> {
        let matching = match_labels(&self.times(), command_times, tolerance.0);
        let file = self.path.display();
        match (matching.pairs.is_empty(), command_times.first()) {
            (true, None) => bail!("there is no command in the captures: is the gateway's address right?"),
            (true, Some(first)) => bail!(
                "{file}: none of its {} labels is within {tolerance} of a command: its first label is of {}, the first of \
                 {} commands of {}",
                self.labels.rows.len(),
                self.labels.rows.first().map_or(String::new(), |row| moment(row.time_ns)),
                command_times.len(),
                moment(*first),
            ),
            (false, _) => Ok(matching),
        }
    }

    /// One sentence for each kind of label or command that has no partner, with the first few of each.
    pub(super) fn unmatched(&self, matching: &Matching, command_times: &[i64], tolerance: Tolerance) -> Vec<String> {
        let (file, rows) = (self.path.display(), self.labels.rows.len());
        let mut told = Vec::new();
        if !matching.missed.is_empty() {
            let (count, lines) = (matching.missed.len(), self.lines(&matching.missed));
            told.push(format!("{file}: {count} of {rows} labels have no command within {tolerance}: {lines}"));
        }
        if !matching.ambiguous.is_empty() {
            let (count, lines) = (matching.ambiguous.len(), self.lines(&matching.ambiguous));
            told.push(format!("{file}: {count} of {rows} labels are near commands of other labels alone: {lines}"));
        }
        if !matching.spurious.is_empty() {
            let (count, all) = (matching.spurious.len(), command_times.len());
            let times = matching.spurious.iter().filter_map(|at| command_times.get(*at)).map(|time| moment(*time));
            told.push(format!("{count} of {all} commands have no label: {}", first_few(times, count)));
        }
        told
    }

    /// The first few of these rows, by line and time.
    pub(super) fn lines(&self, rows: &[usize]) -> String {
        let named = rows.iter().filter_map(|row| self.labels.rows.get(*row));
        let named = named.map(|row| format!("line {} ({})", row.line, moment(row.time_ns)));
        first_few(named, rows.len())
    }
}

/// How far a command may be from its label.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tolerance(i64);

impl Tolerance {
    /// In nanoseconds.
    pub(super) fn nanoseconds(self) -> i64 {
        self.0
    }
}

impl std::str::FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration: SignedDuration = text.parse().map_err(|_| "write it like 2s or 500ms".to_owned())?;
        match i64::try_from(duration.as_nanos()) {
            Ok(nanoseconds @ 0..) => Ok(Self(nanoseconds)),
            _ => Err("it must be 0 s at least, and a time that a capture can have".to_owned()),
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", SignedDuration::from_nanos(self.0))
    }
}

/// A time as a person reads it.
pub(super) fn moment(time_ns: i64) -> String {
    Timestamp::from_nanosecond(time_ns.into()).map_or_else(|_| format!("{time_ns} ns"), |time| time.to_string())
}

fn first_few(named: impl Iterator<Item = String>, all: usize) -> String {
    let text = named.take(SHOWN).collect::<Vec<_>>().join(", ");
    if all > SHOWN { format!("{text} and {} more", all - SHOWN) } else { text }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(text: &str) -> anyhow::Result<LabelFile> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        LabelFile::read(file.path())
    }

    fn tolerance(text: &str) -> Result<Tolerance, String> {
        text.parse()
    }

    #[test]
    fn what_has_no_partner_is_named() {
        let second = 1_000_000_000;
        let labels = read("time,on\n10,1\n20,2\n30,1\n30.5,1\n").unwrap();
        let commands = [10 * second, 30 * second, 50 * second];
        let two = tolerance("2s").unwrap();
        let matching = labels.matching(&commands, two).unwrap();
        let told = labels.unmatched(&matching, &commands, two);
        assert!(told[0].contains("1 of 4 labels have no command within 2s: line 3 (1970-01-01T00:00:20Z)"), "{told:?}");
        assert!(told[1].contains("1 of 4 labels are near commands of other labels alone: line 5"), "{told:?}");
        assert_eq!(told[2], "1 of 3 commands have no label: 1970-01-01T00:00:50Z");
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn of_many_the_first_few_are_named() {
        let many: Vec<i64> = (0..9).map(|at| at * 10_000_000_000).collect();
        let labels = read("time,on\n0,1\n").unwrap();
        let matching = labels.matching(&many, tolerance("1s").unwrap()).unwrap();
        let told = labels.unmatched(&matching, &many, tolerance("1s").unwrap());
        assert!(told[0].starts_with("8 of 9 commands") && told[0].ends_with("and 3 more"), "{told:?}");
    }

    #[test]
    fn labels_that_match_nothing_are_an_error() {
        let labels = read("time,on\n10,1\n").unwrap();
        let two = tolerance("2s").unwrap();
        let error = labels.matching(&[90_000_000_000], two).unwrap_err().to_string();
        assert!(error.contains("00:00:10Z") && error.contains("00:01:30Z"), "{error}");
        assert!(labels.matching(&[], two).unwrap_err().to_string().contains("no command in the captures"));
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        assert!(format!("{:#}", read("time,on\n").unwrap_err()).contains("no row"));
        assert!(format!("{:#}", read("time,on\n1,1\n2,0\n").unwrap_err()).contains("line 3"));
        let missing = format!("{:#}", LabelFile::read(Path::new("no-such-folder/labels.csv")).unwrap_err());
        assert!(missing.starts_with("no-such-folder/labels.csv: "), "{missing}");
    }

    #[test]
    fn tolerances_have_units_and_no_sign() {
        assert_eq!(tolerance("500ms").unwrap().nanoseconds(), 500_000_000);
        assert!(tolerance("2").is_err() && tolerance("-1s").is_err() && tolerance("99999999999999h").is_err());
    }
}
