//! Commands as the fit sees them: equal ones are one row.

use std::collections::BTreeMap;

use super::Observation;
use super::reply_classes::ReplyClasses;
use crate::evidence::at_place;

/// The largest size of a command that is used, in bytes.
const MAX_COMMAND_BYTES: i64 = 1 << 20;
/// The most rows that a fit uses, a bound of the time.
pub(super) const MAX_ROWS: usize = 3000;

/// From lengths alone, commands that are larger than the smallest by up to this are used, in bytes.
const LARGER_BY: i64 = 250;

/// Commands of one size with the same replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// In bytes.
    pub(super) size: i64,
    /// Replies per class.
    pub(super) replies: Vec<u8>,
    /// Actions without a reply, where a label gives the number of actions.
    pub(super) silent: Option<u8>,
    pub(super) commands: usize,
}

impl Row {
    pub(super) fn replies(&self) -> usize {
        self.replies.iter().map(|count| usize::from(*count)).sum()
    }
}

/// The commands that can be used.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    pub(super) commands: usize,
}

impl Rows {
    fn new(rows: Vec<Row>) -> Self {
        Self { commands: rows.iter().map(|row| row.commands).sum(), rows }
    }

    /// Without classes, replies are ignored. Commands with replies of no class are left out if they are few.
    pub(super) fn of(observations: &[Observation], classes: &ReplyClasses) -> Self {
        let clear = Self::with_others(observations, classes, 0);
        let all = Self::with_others(observations, classes, 2);
        if 4 * clear.commands >= 3 * all.commands { clear } else { all }
    }

    fn with_others(observations: &[Observation], classes: &ReplyClasses, most_other: usize) -> Self {
        let mut found: BTreeMap<(usize, i64, Vec<u8>, Option<u8>), usize> = BTreeMap::new();
        for observation in observations {
            if let Some((replies, silent)) = usable(observation, classes, most_other) {
                let total = replies.iter().map(|count| usize::from(*count)).sum();
                *found.entry((total, observation.size, replies, silent)).or_default() += 1;
            }
        }
        let rows = found.into_iter();
        let row = |((_, size, replies, silent), commands)| Row { size, replies, silent, commands };
        Self::new(rows.map(row).collect())
    }

    /// Those of commands so small that they have few actions; for rows without replies.
    pub(super) fn of_small_sizes(&self) -> Self {
        let Some(smallest) = self.smallest() else { return self.clone() };
        let median = self.quantile(0.5).unwrap_or(smallest);
        let limit = smallest + (median - smallest).max(LARGER_BY);
        Self::new(self.rows.iter().filter(|row| row.size <= limit).cloned().collect())
    }

    /// The smallest size that is no oddity, in bytes.
    pub(super) fn smallest(&self) -> Option<i64> {
        self.quantile(0.01)
    }

    /// The size that this share of the commands does not exceed, in bytes.
    fn quantile(&self, share: f64) -> Option<i64> {
        let sizes = self.rows.iter().map(|row| (row.size, row.commands as u64)).collect();
        at_place(sizes, (share * self.commands as f64) as u64)
    }

    /// Those of few replies, which show most, and of them the frequent ones; the others are dropped.
    pub(super) fn of_at_most(&self, replies: usize, most: usize) -> Self {
        let mut rows: Vec<Row> = self.rows.iter().filter(|row| row.replies() <= replies).cloned().collect();
        if rows.len() > most {
            rows.sort_by_key(|row| std::cmp::Reverse(row.commands));
            rows.truncate(most);
            rows.sort_by(|a, b| (a.replies(), a.size, &a.replies).cmp(&(b.replies(), b.size, &b.replies)));
        }
        Self::new(rows)
    }
}

fn usable(observation: &Observation, classes: &ReplyClasses, most_other: usize) -> Option<(Vec<u8>, Option<u8>)> {
    if !(1..=MAX_COMMAND_BYTES).contains(&observation.size) {
        return None;
    }
    let actions: Option<u64> = observation.counts.as_ref().map(|counts| counts.iter().map(|n| u64::from(*n)).sum());
    if actions == Some(0) {
        return None;
    }
    if classes.sizes.is_empty() {
        return Some((Vec::new(), actions.and_then(|actions| u8::try_from(actions).ok())));
    }
    let (replies, other) = classes.counts(observation.replies.as_ref()?)?;
    let total: u64 = replies.iter().map(|count| u64::from(*count)).sum();
    if total > 200 || other > most_other {
        return None;
    }
    let silent = actions.and_then(|actions| actions.checked_sub(total)).and_then(|n| u8::try_from(n).ok());
    Some((replies, silent.filter(|silent| *silent <= 3)))
}
