//! Which sizes of replies there are, and how many replies of each a command has.

use std::collections::BTreeMap;

use super::Observation;

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
            let counts = counted(replies);
            commands += 1;
            for (size, count) in counts {
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

    /// How many replies of foreign sizes a command has on average.
    pub(super) fn foreign(&self, observations: &[Observation]) -> f64 {
        let listed = || observations.iter().filter_map(|observation| observation.replies.as_ref());
        let foreign = |reply: &&i64| self.foreign.contains(*reply);
        let replies = listed().flat_map(|listed| listed.iter().take(MAX_REPLIES)).filter(foreign).count();
        replies as f64 / listed().count().max(1) as f64
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

fn counted(replies: &[i64]) -> BTreeMap<i64, usize> {
    let mut counts = BTreeMap::new();
    for reply in replies.iter().take(MAX_REPLIES) {
        *counts.entry(*reply).or_default() += 1;
    }
    counts
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
