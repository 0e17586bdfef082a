//! The two forms of label files, by their header: a column for each action, or a list of actions.

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;

use super::error::{LabelError, MAX_COUNT, MAX_LISTED_ACTIONS, MAX_LISTED_COUNTS};

/// How the rows of a file name actions.
pub(crate) enum Columns {
    /// `time,<action>,<action>…`: a row is a command, with a count for each action.
    Wide(Vec<String>),
    /// `time,action` or `time,action,count`: a row is an action; rows with the same time that follow each other are one
    /// command. A row without an action is a command that carries none.
    Long(ListedActions),
}

/// The actions that a list named so far.
#[derive(Debug, Default)]
pub(crate) struct ListedActions {
    /// In the order of their first mention.
    names: Vec<String>,
    indices: BTreeMap<String, usize>,
    commands: usize,
}

impl Columns {
    /// The form that a header announces.
    ///
    /// # Errors
    /// If it announces none.
    pub(crate) fn of(header: &StringRecord) -> Result<Self, LabelError> {
        let mut columns = header.iter();
        if columns.next() != Some("time") || header.len() < 2 {
            return Err(LabelError::Header(header.iter().collect::<Vec<_>>().join(",")));
        }
        let actions: Vec<String> = columns.map(str::to_owned).collect();
        if are_columns_of_a_list(&actions) {
            return Ok(Self::Long(ListedActions::default()));
        }
        if let Some(at) = actions.iter().position(String::is_empty) {
            return Err(LabelError::EmptyAction(at + 2));
        }
        let mut seen = BTreeSet::new();
        match actions.iter().find(|action| !seen.insert(*action)) {
            Some(action) => Err(LabelError::DuplicateAction(action.clone())),
            None => Ok(Self::Wide(actions)),
        }
    }

    /// Whether rows with the same time that follow each other are one command.
    pub(crate) fn joins_rows(&self) -> bool {
        matches!(self, Self::Long(_))
    }

    /// Adds the counts of a row to those of its command; in a list, `counts` grows with the actions that are named.
    ///
    /// # Errors
    /// If a count is invalid, or there are too many actions.
    pub(crate) fn add(&mut self, row: &StringRecord, line: u64, counts: &mut Vec<u32>) -> Result<(), LabelError> {
        match self {
            Self::Wide(actions) => {
                for (text, action) in row.iter().skip(1).zip(actions) {
                    counts.push(count(text, action, line)?);
                }
            }
            Self::Long(listed) => {
                if counts.is_empty() {
                    listed.add_command(line)?;
                }
                let action = row.get(1).unwrap_or_default();
                let times = row.get(2).map_or(Ok(1), |text| count(text, action, line))?;
                if let Some(at) = listed.index(action, line)? {
                    counts.resize(counts.len().max(at + 1), 0);
                    let all = counts.get_mut(at).into_iter();
                    all.for_each(|all| *all = all.saturating_add(times).min(MAX_COUNT));
                }
            }
        }
        Ok(())
    }

    /// The actions.
    ///
    /// # Errors
    /// If a list names none, or only such as its columns are called.
    pub(crate) fn into_actions(self) -> Result<Vec<String>, LabelError> {
        match self {
            Self::Wide(actions) => Ok(actions),
            // Written with a column for each action, such a file would read as a list.
            Self::Long(listed) if listed.names.is_empty() || are_columns_of_a_list(&listed.names) => {
                Err(LabelError::NoListedAction)
            }
            Self::Long(listed) => Ok(listed.names),
        }
    }
}

impl ListedActions {
    fn add_command(&mut self, line: u64) -> Result<(), LabelError> {
        self.commands += 1;
        self.check_size(line)
    }

    /// Checks the size of the table that the list stands for.
    fn check_size(&self, line: u64) -> Result<(), LabelError> {
        let is_large = self.commands.saturating_mul(self.names.len()) > MAX_LISTED_COUNTS;
        if is_large || self.names.len() > MAX_LISTED_ACTIONS { Err(LabelError::TooManyListed(line)) } else { Ok(()) }
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

fn are_columns_of_a_list(names: &[String]) -> bool {
    matches!(names, [action] if action == "action")
        || matches!(names, [action, count] if action == "action" && count == "count")
}

fn count(text: &str, action: &str, line: u64) -> Result<u32, LabelError> {
    let count = text.parse().ok().filter(|count| *count <= MAX_COUNT);
    count.ok_or_else(|| LabelError::Count { line, action: action.to_owned(), text: text.to_owned() })
}
