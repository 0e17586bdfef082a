//! Which sums of sizes the rows need, and their distributions.

use std::collections::BTreeMap;

use super::rows::Rows;

/// The most sums that a fit tables.
const MAX_SUMS: usize = 2000;

/// What is less likely is left out at the ends of a distribution: outliers are far more likely.
const UNLIKELY: f64 = 1e-14;

/// A distribution over integers.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Distribution {
    /// The value of the first entry.
    pub(super) low: i64,
    pub(super) values: Vec<f64>,
}

impl Distribution {
    fn certain(value: i64) -> Self {
        Self { low: value, values: vec![1.0] }
    }

    pub(super) fn at(&self, value: i64) -> f64 {
        usize::try_from(value.wrapping_sub(self.low))
            .ok()
            .and_then(|index| self.values.get(index))
            .copied()
            .unwrap_or(0.0)
    }

    /// The distribution of the sum of this and of one with these values.
    fn plus(&self, values: &[(i64, f64)]) -> Self {
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return Self::default() };
        let mut sum = vec![0.0; self.values.len() + usize::try_from(last.0 - first.0).unwrap_or(0)];
        for (value, probability) in values {
            let offset = usize::try_from(value - first.0).unwrap_or(0);
            for (to, from) in sum.iter_mut().skip(offset).zip(&self.values) {
                *to += probability * from;
            }
        }
        let is_likely = |value: &f64| *value > UNLIKELY;
        let start = sum.iter().position(is_likely).unwrap_or(0);
        sum.truncate(sum.iter().rposition(is_likely).map_or(0, |end| end + 1));
        Self {
            low: self.low + first.0 + i64::try_from(start).unwrap_or(0),
            values: sum.split_off(start.min(sum.len())),
        }
    }
}

/// How many actions of each class are added; the last entry is for actions without a reply.
type Key = Vec<u8>;

/// A row's choices: the actions that may be in it.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    /// Actions without a reply, and the sum that they make with the others.
    pub(super) sums: Vec<(usize, usize)>,
    /// Replies of all classes.
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
    /// The most replies of a command.
    pub(super) most_replies: usize,
    /// The most actions without a reply in a command.
    pub(super) most_silent: usize,
    pub(super) commands: f64,
}

impl Plan {
    /// With up to so many actions without a reply, and so many in commands without replies. `None` if there are too
    /// many different sums.
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
        let key = self.keys.get(sum).map_or(&[][..], Vec::as_slice);
        let smaller = self.smaller.get(sum).map_or(&[][..], Vec::as_slice);
        key.iter()
            .zip(smaller)
            .enumerate()
            .filter_map(|(class, (count, smaller))| smaller.map(|smaller| (class, f64::from(*count), smaller)))
    }

    /// The distributions of all sums, without and with ε.
    pub(super) fn tables(
        &self,
        sizes: &[Vec<(i64, f64)>],
        epsilons: &[(i64, f64)],
    ) -> (Vec<Distribution>, Vec<Distribution>) {
        let mut sums: Vec<Distribution> = Vec::with_capacity(self.keys.len());
        for smaller in &self.smaller {
            // Of the ways to make a sum, the cheapest: by the class of the fewest sizes.
            let way = smaller
                .iter()
                .zip(sizes)
                .filter_map(|(smaller, sizes)| smaller.map(|smaller| (sizes.len(), smaller, sizes)))
                .min_by_key(|(length, _, _)| *length);
            let sum = match way {
                None => Distribution::certain(0),
                Some((_, smaller, sizes)) => {
                    sums.get(smaller).map_or_else(Distribution::default, |sum| sum.plus(sizes))
                }
            };
            sums.push(sum);
        }
        let varied = sums.iter().map(|sum| sum.plus(epsilons)).collect();
        (sums, varied)
    }
}
