//! Distributions of sizes: where single sizes explain labelled commands worse than actions whose sizes vary (digits of
//! a brightness, names of rooms).
//!
//! The fit of single sizes is the start. All actions may then have several sizes, and expectation maximisation
//! ([`expectation`]) finds the most likely distributions of them and of ε, with the levels that length fields add
//! ([`levels`]). Then each action goes back to a single size unless several make the commands more likely by more than
//! their number is worth (the Bayesian information criterion). What varies in all commands alike becomes part of ε by
//! that: deviations of an action grow with how often it occurs.

mod expectation;
mod levels;
mod search;

use std::collections::BTreeSet;

use sizeleak_model::{Action, EpsilonTuple, LabelledCommand, Neighbours, Pmf, Smoothing};

use super::fitted_sizes::median;
use crate::Fit;
use expectation::{Parameters, Sums, cells, groups, log_likelihood, plus};
use levels::Levels;
use search::{Search, is_usable, moved};

/// The most commands that levels are fitted to, a bound of the time.
const MAX_LEVELLED: usize = 4000;

/// A command whose label is wrong with a greater probability is an outlier.
const OUTLIER: f64 = 0.99;

/// Quantiles of ε are the fractional parts of multiples of this: evenly spread, in any order.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

impl Fit {
    /// The fit in which the sizes of some actions vary, if such distributions explain the commands that it was learned
    /// from significantly better; `None` if single sizes do, or if a block cipher or padding leaves ranges.
    ///
    /// ε is told apart from what varies in the actions, so the tuples hold ε alone. `certainty` and `intervals` are
    /// about the most frequent size of each action.
    pub fn with_varying_sizes(&self, commands: &[LabelledCommand]) -> Option<Self> {
        let search = Search::new(self, commands)?;
        let (parameters, levels) = search.distributions()?;
        search.fit(self, &parameters, &levels)
    }
}

impl Search<'_> {
    /// The fit of these distributions.
    fn fit(&self, single: &Fit, parameters: &Parameters, levels: &Levels) -> Option<Fit> {
        let (intervals, certainty) = self.certainty(parameters, levels);
        let evenly = (0..self.sizes.len()).step_by(self.sizes.len() / MAX_LEVELLED + 1);
        let may_be_used = |at: &usize| self.commands.get(*at).is_some_and(is_usable);
        let levelled = groups(self.commands, evenly.filter(may_be_used));
        let levels = Levels::fit(&levelled, &self.sizes, self.overhead, parameters);
        let Remaining { epsilons, outliers } = self.remaining(parameters, &levels);
        let mut sorted: Vec<i64> = epsilons.iter().map(|(_, epsilon)| *epsilon).collect();
        let middle = median(&mut sorted);
        let tuples = epsilons.into_iter().map(|(size, epsilon)| EpsilonTuple::new(size, epsilon - middle));
        let neighbours = Neighbours::new(tuples)?;
        let actions = single.actions.iter().enumerate().zip(&parameters.sizes).map(|((at, action), sizes)| {
            let times: f64 =
                self.commands.iter().map(|command| f64::from(command.counts.get(at).copied().unwrap_or(0))).sum();
            Action::of_sizes(action.name.clone(), &with_unseen(sizes, times))
        });
        Some(Fit {
            overhead: self.overhead + middle,
            actions: actions.collect::<Option<_>>()?,
            intervals,
            certainty,
            smoothing: Smoothing::choose(&neighbours),
            neighbours,
            outliers,
            ambiguous_shifts: single.ambiguous_shifts.clone(),
        })
    }

    /// Intervals of the most frequent sizes, and how probable it is that all are right: against each being a byte off,
    /// alone or with ε.
    fn certainty(&self, parameters: &Parameters, levels: &Levels) -> (Vec<[i64; 2]>, f64) {
        let targets = self.targets(levels);
        let best = log_likelihood(&self.groups, &targets, parameters);
        let (mut intervals, mut others) = (Vec::new(), 0.0);
        for (action, sizes) in parameters.sizes.iter().enumerate() {
            let mut interval = [sizes.mode(); 2];
            for (end, by) in interval.iter_mut().zip([-1, 1]) {
                let alone = moved(parameters, action, by);
                let mut with_epsilon = alone.clone();
                with_epsilon.epsilon = with_epsilon.epsilon.moved(-by);
                let likelihoods = [&alone, &with_epsilon].map(|other| log_likelihood(&self.groups, &targets, other));
                let weight: f64 = likelihoods.iter().map(|likelihood| (likelihood - best).exp()).sum();
                others += weight;
                if weight > 0.05 {
                    *end += by;
                }
            }
            intervals.push(interval);
        }
        (intervals, 1.0 / (1.0 + others))
    }

    /// The level and ε of each command that fits, and the commands that do not. What a command says of its ε is a
    /// distribution: of each a quantile is taken, and all of them together are distributed as they.
    fn remaining(&self, parameters: &Parameters, levels: &Levels) -> Remaining {
        let mut sums = Sums::of(parameters);
        let mut found: Vec<(usize, Option<i64>)> = Vec::new();
        let all = (0..self.commands.len()).filter(|at| self.commands.get(*at).is_some_and(is_usable));
        for group in groups(self.commands, all) {
            let of_actions = sums.of_actions(&group.counts);
            let of_command = plus(&of_actions, &parameters.epsilon);
            for at in group.commands {
                let Some(size) = self.sizes.get(at) else { continue };
                let target = size - self.overhead - levels.at(*size);
                let explained = (1.0 - parameters.outliers) * of_command.at(target);
                let is_outlier = explained < (1.0 - OUTLIER) * parameters.likelihood(&of_command, target);
                let quantile = (at as f64 * GOLDEN_RATIO).fract() * of_command.at(target);
                let mut below = 0.0;
                let epsilon = cells(&parameters.epsilon).find_map(|(epsilon, probability)| {
                    below += probability * of_actions.at(target - epsilon);
                    (below > quantile).then_some(epsilon)
                });
                found.push((at, epsilon.filter(|_| !is_outlier)));
            }
        }
        found.sort_unstable();
        let epsilon = |(at, epsilon): &(usize, Option<i64>)| {
            let size = *self.sizes.get(*at)?;
            Some((size, levels.at(size) + (*epsilon)?))
        };
        Remaining {
            epsilons: found.iter().filter_map(epsilon).collect(),
            outliers: found.iter().filter(|(_, epsilon)| epsilon.is_none()).map(|(at, _)| *at).collect(),
        }
    }
}

/// What remains of commands without their actions.
struct Remaining {
    /// Sizes with level and ε, in bytes.
    epsilons: Vec<(i64, i64)>,
    /// Indices in ascending order.
    outliers: Vec<usize>,
}

/// Sizes with their shares among `times` occurrences, and a share for those that were not seen but lie between others
/// or next to them: 1 / (n + 2), by the rule of succession.
fn with_unseen(sizes: &Pmf, times: f64) -> Vec<(i64, f64)> {
    if sizes.is_certain() {
        return cells(sizes).collect();
    }
    let ends = [sizes.least() - 1, sizes.end()];
    let between = cells(sizes).filter(|(_, probability)| *probability <= 0.0).map(|(size, _)| size);
    let unseen: BTreeSet<i64> = ends.into_iter().chain(between).filter(|size| *size > 0).collect();
    let share = 1.0 / (times + 2.0);
    let seen = sizes.iter();
    let seen = seen.map(|(size, probability)| (size, probability * (1.0 - share)));
    let each = share / unseen.len().max(1) as f64;
    seen.chain(unseen.iter().map(|size| (*size, each))).collect()
}

#[cfg(test)]
mod tests;
