//! What length fields add to commands: a level that rises in few steps with the size, the most likely one given the
//! distributions of the sizes of actions and of ε.

use std::collections::BTreeMap;

use sizeleak_model::step_function::{STEP_NATS, rise};

use crate::fit::expectation::{Beforehand, Parameters, Plan};

/// What is known of labelled commands: one with a wrong label may have any of 400 sizes, those of about ten actions of
/// forty bytes. As if one more command had any ε: none is impossible for want of commands.
pub(crate) const LABELLED: Beforehand =
    Beforehand { outlier_density: 1.0 / 400.0, least_evidence: 0.0, epsilon: Some(|_, _| 1.0 / 17.0) };

/// Levels that are looked at, in bytes: what several length fields add together, and an overhead too large by 3.
const LEVELS: [i64; 14] = [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// A level for each size of a command, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Levels {
    /// The sizes from which levels hold, in ascending order, with the levels; 0 before the first.
    steps: Vec<(i64, i64)>,
}

impl Levels {
    /// The level rises to these at these sizes, from 0.
    pub(crate) fn rising_at(steps: &[(i64, i64)]) -> Self {
        Self { steps: steps.to_vec() }
    }

    /// The levels of some commands, each given with its size; of several with one size that of the last.
    pub(crate) fn of(commands: impl Iterator<Item = (i64, i64)>) -> Self {
        let by_size: BTreeMap<i64, i64> = commands.collect();
        let mut steps: Vec<(i64, i64)> = by_size.into_iter().collect();
        steps.dedup_by_key(|(_, level)| *level);
        if let Some((from, _)) = steps.first_mut() {
            *from = i64::MIN;
        }
        Self { steps }
    }

    pub(crate) fn rises(&self) -> usize {
        self.steps.iter().filter(|(from, _)| *from > i64::MIN).count()
    }

    /// By how much these levels must raise the log-likelihood, compared with none.
    pub(crate) fn price(&self) -> f64 {
        STEP_NATS * self.rises() as f64
    }

    pub(crate) fn at(&self, size: i64) -> i64 {
        let above = self.steps.partition_point(|(from, _)| *from <= size);
        above.checked_sub(1).and_then(|at| self.steps.get(at)).map_or(0, |(_, level)| *level)
    }

    /// The most likely levels of commands, of whose sizes `overhead` is the least.
    pub(crate) fn fit(plan: &Plan, overhead: i64, parameters: &Parameters) -> Self {
        let mut by_size: BTreeMap<i64, [f64; LEVELS.len()]> = BTreeMap::new();
        let [lowest, .., highest] = LEVELS;
        let asked = plan.rows.iter().map(|row| [highest, lowest].map(|level| row.size - overhead - level));
        let found = plan.distributions(parameters, asked);
        for row in &plan.rows {
            let of_size = by_size.entry(row.size).or_default();
            for (slot, level) in of_size.iter_mut().zip(LEVELS) {
                let explained = row.explained(&found, row.size - overhead - level, parameters);
                *slot += row.commands * parameters.likelihood(explained, LABELLED).ln();
            }
        }
        Self::most_likely(&by_size)
    }

    /// Dynamic programming over the sizes: the likelihood of ending at each level, here as a cost.
    fn most_likely(by_size: &BTreeMap<i64, [f64; LEVELS.len()]>) -> Self {
        let mut costs = [0.0; LEVELS.len()];
        // For each size the level before it, by the level at it.
        let mut before: Vec<[usize; LEVELS.len()]> = Vec::with_capacity(by_size.len());
        for of_size in by_size.values() {
            let mut from = std::array::from_fn(|level| level);
            if !before.is_empty() {
                rise(&mut costs, STEP_NATS, |level, below| from[level] = below);
            }
            before.push(from);
            costs.iter_mut().zip(of_size).for_each(|(cost, likelihood)| *cost -= likelihood);
        }
        let mut level = (0..LEVELS.len()).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0);
        let mut of_sizes = Vec::with_capacity(before.len());
        for (size, before) in by_size.keys().zip(&before).rev() {
            of_sizes.push((*size, LEVELS[level]));
            level = before[level];
        }
        Self::of(of_sizes.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_model::Pmf;

    use super::*;
    use crate::fit::testing::command;

    #[test]
    fn steps_are_found_where_they_are() {
        let parameters = Parameters {
            sizes: vec![Pmf::from_values([(20, 0.5), (21, 0.5)])],
            epsilon: Pmf::from_values([(-1, 0.1), (0, 0.9)]),
            silent: Vec::new(),
            outliers: 0.01,
            lost: 0.0,
        };
        let grown = |size: i64| size + if size >= 128 { 2 } else { 0 };
        // One byte more or none for each action, as the bits of a number say.
        let more = |at: i64| i64::from(((at as u32).wrapping_mul(0x9E37_79B1) >> (31 - at % 7)).count_ones());
        let sizes: Vec<i64> = (0..120).map(|at| grown(60 + (1 + at % 7) * 20 + more(at))).collect();
        let commands: Vec<_> = sizes.iter().zip(0..).map(|(size, at)| command(*size, &[1 + at % 7])).collect();
        let levels = Levels::fit(&Plan::of_labelled(&commands, 0..120), 60, &parameters);
        let wrong = sizes.iter().filter(|size| levels.at(**size) != if **size >= 130 { 2 } else { 0 }).count();
        assert!(wrong <= 1, "{levels:?}");
    }

    #[test]
    fn levels_hold_from_their_sizes_on() {
        let levels = Levels::rising_at(&[(128, 2), (1000, 3)]);
        assert_eq!([0, 127, 128, 999, 1000].map(|size| levels.at(size)), [0, 0, 2, 2, 3]);
        assert_eq!(Levels::of([(10, 1), (20, 1), (30, 4)].into_iter()), Levels::rising_at(&[(i64::MIN, 1), (30, 4)]));
    }
}
