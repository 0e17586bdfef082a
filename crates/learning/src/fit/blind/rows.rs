//! Commands as the fit sees them: which sizes of replies there are, how many replies of each a command has, and equal
//! commands as one row.

use std::collections::BTreeMap;

use sizeleak_model::statistics::{at_place, times};

use super::Observation;
use crate::fit::expectation::Plan;

/// The most sums that a fit tables, a bound of memory and time.
const MAX_SUMS: usize = 4000;

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
    /// Adds it to a plan, with up to `most_silent` actions without a reply, or `most_alone` where it has no reply.
    pub(super) fn add_to(&self, plan: &mut Plan, most_silent: usize, most_alone: usize) {
        let least = usize::from(self.replies() == 0);
        let most = if least > 0 { most_alone } else { most_silent };
        let known = self.silent.map(usize::from);
        let numbers = known.filter(|known| *known <= most).map_or(least..=most, |known| known..=known);
        let counts = |silent: usize| {
            let replies = self.replies.iter().map(|count| u32::from(*count));
            (silent, replies.chain([silent as u32]).collect())
        };
        let weighed_by = known.is_none().then(|| self.replies());
        plan.add(self.size, self.commands as f64, weighed_by, numbers.filter(|silent| *silent >= least).map(counts));
    }

    pub(super) fn replies(&self) -> usize {
        self.replies.iter().map(|count| usize::from(*count)).sum()
    }
}

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
        let rows = observations.iter().filter_map(|one| row(one, classes, most_other));
        let alike = times(rows.map(|row| (row.replies(), row.size, row.replies, row.silent)));
        let row = |((_, size, replies, silent), commands)| Row { size, replies, silent, commands };
        Self::new(alike.into_iter().map(row).collect())
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

    /// The sums that may explain the rows, with up to `most_silent` actions without a reply, and `most_alone` in commands
    /// without any reply. `None` if there are too many different ones.
    pub(super) fn plan(&self, classes: usize, most_silent: usize, most_alone: usize) -> Option<Plan> {
        let mut plan = Plan::new(classes + 1);
        for row in &self.rows {
            row.add_to(&mut plan, most_silent, most_alone);
            if plan.sums() > MAX_SUMS {
                return None;
            }
        }
        Some(plan)
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

/// A command as a row; `None` if it cannot be used: with more than `most_other` replies of no class, or none listed.
pub(super) fn row(observation: &Observation, classes: &ReplyClasses, most_other: usize) -> Option<Row> {
    let size = Some(observation.size).filter(|size| (1..=MAX_COMMAND_BYTES).contains(size))?;
    let actions: Option<u64> = observation.counts.as_ref().map(|counts| counts.iter().map(|n| u64::from(*n)).sum());
    if actions == Some(0) {
        return None;
    }
    let (replies, other) =
        if classes.sizes.is_empty() { (Vec::new(), 0) } else { classes.counts(observation.replies.as_ref()?)? };
    let total: u64 = replies.iter().map(|count| u64::from(*count)).sum();
    if total > 200 || other > most_other {
        return None;
    }
    let most_silent = if classes.sizes.is_empty() { u8::MAX } else { 3 };
    let silent = actions.and_then(|actions| actions.checked_sub(total)).and_then(|n| u8::try_from(n).ok());
    Some(Row { size, replies, silent: silent.filter(|silent| *silent <= most_silent), commands: 1 })
}

/// The least share of a class among all replies: a rarer one is in one or two of the commands that a fit begins with.
const MIN_SHARE: f64 = 0.004;
/// The most classes that are told apart, a bound of the time: there is a sum for every combination of their numbers.
const MAX_CLASSES: usize = 10;
/// A class that the same number of replies has in a greater share of the commands says nothing about actions.
const CONSTANT_SHARE: f64 = 0.9;
/// Actions have own replies only if this share of commands has several: by far more commands have several actions.
const SEVERAL_SHARE: f64 = 0.1;
/// The most replies of a command that are looked at, a bound of the time.
const MAX_REPLIES: usize = 256;

/// The sizes of replies that occur often, and in which number they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplyClasses {
    /// Sizes in bytes, ascending.
    pub(super) sizes: Vec<i64>,
    /// Sizes of replies that say nothing about actions: every command has as many of them.
    constant: Vec<i64>,
    /// Sizes of replies that belong to something else than commands.
    foreign: Vec<i64>,
}

impl ReplyClasses {
    pub(super) fn of(observations: &[Observation]) -> Self {
        let mut occurrences: BTreeMap<i64, usize> = BTreeMap::new();
        let mut per_command: BTreeMap<(i64, usize), usize> = BTreeMap::new();
        let (mut total, mut commands) = (0_usize, 0_usize);
        for replies in observations.iter().filter_map(|observation| observation.replies.as_ref()) {
            commands += 1;
            for (size, count) in times::<i64, usize>(replies.iter().copied().take(MAX_REPLIES)) {
                total += count;
                *occurrences.entry(size).or_default() += count;
                *per_command.entry((size, count)).or_default() += 1;
            }
        }
        let is_constant = |size: i64| {
            let most = per_command.range((size, 0)..=(size, usize::MAX)).map(|(_, commands)| *commands).max();
            most.is_some_and(|most| most as f64 > CONSTANT_SHARE * commands as f64)
        };
        let least = (MIN_SHARE * total as f64).max(1.5);
        let is_frequent = |(size, count): &(&i64, &usize)| **count as f64 > least && !is_constant(**size);
        let frequent = occurrences.iter().filter(is_frequent).map(|(size, count)| (*count, *size));
        let mut frequent: Vec<(usize, i64)> = frequent.collect();
        frequent.sort_by(|a, b| b.cmp(a));
        let mut sizes: Vec<i64> = frequent.into_iter().take(MAX_CLASSES).map(|(_, size)| size).collect();
        sizes.sort_unstable();
        // Two replies in one record look like a reply of their joint size.
        let occurs = |size: i64| occurrences.get(&size).copied().unwrap_or(0);
        let joint = |size: i64| {
            sizes.iter().any(|a| {
                sizes.binary_search(&size.saturating_sub(*a)).is_ok()
                    && occurs(size) * 10 < occurs(*a).min(occurs(size.saturating_sub(*a)))
            })
        };
        let mut sizes: Vec<i64> = sizes.iter().copied().filter(|size| !joint(*size)).collect();
        // One reply a command says nothing of the number of actions.
        let is_several = |replies: &[i64]| replies.iter().filter(|reply| sizes.contains(reply)).nth(1).is_some();
        let listed = observations.iter().filter_map(|observation| observation.replies.as_ref());
        if (listed.filter(|replies| is_several(replies)).count() as f64) < SEVERAL_SHARE * commands as f64 {
            sizes.clear();
        }
        let constant = occurrences.keys().copied().filter(|size| is_constant(*size)).collect();
        Self { sizes, constant, foreign: Vec::new() }
    }

    /// Without this class, whose replies belong to something else.
    pub(super) fn without(mut self, class: usize) -> Self {
        if class < self.sizes.len() {
            self.foreign.push(self.sizes.remove(class));
        }
        self
    }

    /// How many replies each class has, and how many no class. A sum of two counts as both; `None` if it is ambiguous.
    pub(super) fn counts(&self, replies: &[i64]) -> Option<(Vec<u8>, usize)> {
        let mut counts = vec![0_u8; self.sizes.len()];
        let mut other = 0;
        let mut add = |class: usize| counts[class] = counts[class].saturating_add(1);
        let tells = |reply: &&i64| !self.constant.contains(*reply) && !self.foreign.contains(*reply);
        for reply in replies.iter().take(MAX_REPLIES).filter(tells) {
            match self.sizes.binary_search(reply) {
                Ok(class) => add(class),
                Err(_) => match self.parts(*reply)[..] {
                    [] => other += 1,
                    [(first, second)] => {
                        add(first);
                        add(second);
                    }
                    _ => return None,
                },
            }
        }
        Some((counts, other))
    }

    /// The pairs of classes whose sizes add up to this one.
    fn parts(&self, size: i64) -> Vec<(usize, usize)> {
        let other = |a: &i64| self.sizes.binary_search(&size.saturating_sub(*a)).ok();
        let pairs = self.sizes.iter().enumerate().filter_map(|(first, a)| other(a).map(|second| (first, second)));
        pairs.filter(|(first, second)| first <= second).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(replies: &[i64]) -> Observation {
        Observation { size: 100, replies: Some(replies.to_vec()), counts: None }
    }

    #[test]
    fn frequent_sizes_that_vary_in_number_are_classes() {
        let mut observations = vec![observation(&[70, 30]), observation(&[70, 30, 30]), observation(&[70, 35])];
        observations.extend(vec![observation(&[70, 35, 30]); 20]);
        observations.extend(vec![observation(&[70, 35, 35]); 20]);
        observations.push(observation(&[70, 999]));
        let classes = ReplyClasses::of(&observations);
        assert_eq!(classes.sizes, [30, 35]);
        assert_eq!(classes.counts(&[70, 30, 65, 35]), Some((vec![2, 2], 0)));
        assert_eq!(classes.counts(&[70, 999]), Some((vec![0, 0], 1)));
    }
}
