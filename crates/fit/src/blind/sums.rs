//! Which sums of sizes the rows need, and their distributions.

use std::collections::BTreeMap;

use sizeleak_model::Pmf;

use super::rows::Rows;

/// The most sums that a fit tables, a bound of memory and time.
const MAX_SUMS: usize = 2000;

/// How many actions of each class are added; the last entry is for actions without a reply.
type Key = Vec<u8>;

/// A row's choices: the actions that may be in it.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    /// Actions without a reply, and the sum that they make with the others.
    pub(super) sums: Vec<(usize, usize)>,
    pub(super) replies: usize,
    /// The number of actions without a reply is known.
    pub(super) is_known: bool,
    pub(super) commands: f64,
    /// The size of the commands in bytes.
    pub(super) size: i64,
}

/// The sums that rows need, each made of a smaller one.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    keys: Vec<Key>,
    /// For each key and class: the key with one action of it less.
    smaller: Vec<Vec<Option<usize>>>,
    pub(super) rows: Vec<Choices>,
    /// Classes of replies and, last, none.
    pub(super) classes: usize,
    pub(super) most_replies: usize,
    /// The most actions without a reply in a command.
    pub(super) most_silent: usize,
    pub(super) commands: f64,
}

impl Plan {
    /// With up to `most_silent` actions without a reply, `most_alone` in commands without any. `None` of too many sums.
    pub(super) fn of(rows: &Rows, classes: usize, most_silent: usize, most_alone: usize) -> Option<Self> {
        let mut plan = Self {
            keys: Vec::new(),
            smaller: Vec::new(),
            rows: Vec::new(),
            classes: classes + 1,
            most_replies: 0,
            most_silent: most_silent.max(most_alone),
            commands: 0.0,
        };
        let mut index = BTreeMap::new();
        plan.key(vec![0; classes + 1], &mut index);
        for row in &rows.rows {
            let is_mute = row.replies() == 0;
            plan.most_replies = plan.most_replies.max(row.replies());
            let most = if is_mute { most_alone } else { most_silent };
            let range = match row.silent {
                Some(known) if usize::from(known) <= most => usize::from(known)..=usize::from(known),
                _ => usize::from(is_mute)..=most,
            };
            let sums: Vec<(usize, usize)> = range
                .filter(|silent| !is_mute || *silent > 0)
                .map(|silent| {
                    let mut key = row.replies.clone();
                    key.push(silent as u8);
                    (silent, plan.key(key, &mut index))
                })
                .collect();
            let commands = row.commands as f64;
            plan.commands += commands;
            plan.rows.push(Choices {
                sums,
                replies: row.replies(),
                is_known: row.silent.is_some(),
                commands,
                size: row.size,
            });
            if plan.keys.len() > MAX_SUMS {
                return None;
            }
        }
        Some(plan)
    }

    /// The index of a key, which is after those of all smaller keys.
    fn key(&mut self, key: Key, index: &mut BTreeMap<Key, usize>) -> usize {
        if let Some(found) = index.get(&key) {
            return *found;
        }
        let smaller: Vec<Option<usize>> = (0..key.len())
            .map(|class| {
                let mut less = key.clone();
                let count = less.get_mut(class)?;
                *count = count.checked_sub(1)?;
                Some(self.key(less, index))
            })
            .collect();
        let found = self.keys.len();
        self.keys.push(key.clone());
        self.smaller.push(smaller);
        index.insert(key, found);
        found
    }

    /// How often a class is in a sum, and the sum without one of it.
    pub(super) fn parts(&self, sum: usize) -> impl Iterator<Item = (usize, f64, usize)> {
        let parts = self.keys[sum].iter().zip(&self.smaller[sum]).enumerate();
        parts.filter_map(|(class, (count, smaller))| smaller.map(|smaller| (class, f64::from(*count), smaller)))
    }

    /// The distributions of all sums up to `most` bytes, without and with ε.
    pub(super) fn tables(&self, sizes: &[Vec<(i64, f64)>], epsilons: &[(i64, f64)], most: i64) -> (Vec<Pmf>, Vec<Pmf>) {
        let distribution = |values: &[(i64, f64)]| Pmf::from_values(values.iter().copied());
        let each: Vec<Pmf> = sizes.iter().map(|sizes| distribution(sizes)).collect();
        let mut sums: Vec<Pmf> = Vec::with_capacity(self.keys.len());
        for smaller in &self.smaller {
            // Of the ways to make a sum, the cheapest: by the class of the fewest sizes.
            let ways = smaller.iter().zip(sizes).zip(&each);
            let ways = ways.filter_map(|((smaller, sizes), one)| Some((sizes.len(), (*smaller)?, one)));
            sums.push(match ways.min_by_key(|(length, ..)| *length) {
                None => Pmf::certain(0),
                Some((_, smaller, one)) => one.convolve_between(&sums[smaller], i64::MIN, most).trimmed(),
            });
        }
        let epsilon = distribution(epsilons);
        let varied = sums.iter().map(|sum| sum.convolve(&epsilon).trimmed()).collect();
        (sums, varied)
    }
}
