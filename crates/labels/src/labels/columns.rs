//! The two forms of label files, by their header: a column for each action, or a list of actions.

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;

use super::error::{LabelError, MAX_COUNT, MAX_LISTED_ACTIONS, MAX_LISTED_COUNTS, short};

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
pub(crate) struct ListedActions {
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
