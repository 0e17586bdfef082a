//! Distributions of sizes, where single ones explain commands worse than varying ones (digits, names of rooms).
//!
//! The fit of single sizes is the start. All actions may then have several sizes, and expectation maximisation
//! ([`expectation`](crate::fit::expectation)) finds the most likely distributions of them and of ε, with the levels that length fields add
//! ([`Levels`]). Then each action goes back to a single size unless several make the commands more likely by more than
//! their number is worth (the Bayesian information criterion). What varies in all commands alike becomes part of ε by
//! that: deviations of an action grow with how often it occurs.

mod levels;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_model::{Action, EpsilonTuple, LabelledCommand, Neighbours, Pmf, Smoothing};

use super::fitted_sizes::median;
use crate::fit::Fit;
use crate::fit::expectation::{Parameters, Plan, alike};
use levels::{LABELLED, Levels};
use search::{Resample, Search, is_usable};

/// The most commands that levels are fitted to, a bound of the time.
const MAX_LEVELLED: usize = 4000;

/// How many commands' ε are computed at once, a bound of memory.
const AT_ONCE: usize = 2000;

/// A command whose label is wrong with a greater probability is an outlier.
const OUTLIER: f64 = 0.99;

/// Quantiles of ε are the fractional parts of multiples of this: evenly spread, in any order.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

impl Fit {
    /// The fit in which the sizes of some actions vary, if such distributions explain the commands that it was learned
    /// from significantly better; `None` if single sizes do, or if a block cipher or padding leaves ranges.
    ///
    /// Tuples hold ε without what varies in actions; `certainty` and `intervals` are of the most frequent sizes.
    pub fn with_varying_sizes(&self, commands: &[LabelledCommand]) -> Option<Self> {
        let search = Search::new(self, commands)?;
        let (parameters, levels) = search.distributions()?;
        search.fit(&parameters, &levels)
    }
}

impl Search<'_> {
    fn fit(&self, parameters: &Parameters, levels: &Levels) -> Option<Fit> {
        let start = self.with_unseen(parameters);
        let samples = self.resampled(&start, levels);
        let (intervals, certainty) = certainty(parameters, &samples);
        let parameters = &mean(&start, &samples);
        let evenly = (0..self.sizes.len()).step_by(self.sizes.len() / MAX_LEVELLED + 1);
        let may_be_used = |at: &usize| self.commands.get(*at).is_some_and(is_usable);
        let levelled = Plan::of_labelled(self.commands, evenly.filter(may_be_used));
        let levels = Levels::fit(&levelled, self.single.overhead, parameters);
        let all = || (0..self.commands.len()).filter(may_be_used);
        let mut epsilons = self.remaining(parameters, &levels, all());
        let outliers = epsilons.iter().filter(|(_, epsilon)| epsilon.is_none()).map(|(at, _)| *at).collect();
        // As of a new command: of those that a sample was learned from it explains more. So each is left to the first
        // sample, from its own number on, that does not hold it.
        let first_without = |at: usize| {
            let own = at % samples.len();
            (own..samples.len()).chain(0..own).find(|number| !samples[*number].commands.contains(&at))
        };
        for (number, sample) in samples.iter().enumerate() {
            let others = all().filter(|at| first_without(*at) == Some(number));
            for (at, epsilon) in self.remaining(&sample.parameters, &levels, others) {
                if let Some(known) = epsilons.get_mut(&at).filter(|known| known.is_some()) {
                    *known = epsilon.or(*known);
                }
            }
        }
        let with_level =
            |(at, epsilon): (usize, Option<i64>)| Some((self.sizes[at], levels.at(self.sizes[at]) + epsilon?));
        let epsilons: Vec<(i64, i64)> = epsilons.into_iter().filter_map(with_level).collect();
        let mut sorted: Vec<i64> = epsilons.iter().map(|(_, epsilon)| *epsilon).collect();
        let middle = median(&mut sorted);
        let tuples = epsilons.into_iter().map(|(size, epsilon)| EpsilonTuple::new(size, epsilon - middle));
        let neighbours = Neighbours::new(tuples)?;
        let action =
            |(single, sizes): (&Action, &Pmf)| Action::of_sizes(single.name.clone(), &cells(sizes).collect::<Vec<_>>());
        Some(Fit {
            overhead: self.single.overhead + middle,
            actions: self.single.actions.iter().zip(&parameters.sizes).map(action).collect::<Option<_>>()?,
            intervals,
            certainty,
            smoothing: Smoothing::choose(&neighbours),
            neighbours,
            outliers,
            ambiguous_shifts: self.single.ambiguous_shifts.clone(),
        })
    }

    /// The same with a share for sizes of actions that were not seen.
    fn with_unseen(&self, parameters: &Parameters) -> Parameters {
        let times = |action: usize| self.commands.iter().map(|command| f64::from(command.counts[action])).sum();
        let sizes = parameters.sizes.iter().zip(0..).map(|(sizes, action)| with_unseen(sizes, times(action)));
        Parameters { sizes: sizes.collect(), ..parameters.clone() }
    }

    /// The ε of some commands, by their indices; `None` of those that do not fit. What a command says of its ε is a
    /// distribution: of each a quantile is taken, and all of them together are distributed as they.
    fn remaining(
        &self,
        parameters: &Parameters,
        levels: &Levels,
        commands: impl Iterator<Item = usize>,
    ) -> BTreeMap<usize, Option<i64>> {
        let mut found = BTreeMap::new();
        let indices: Vec<usize> = commands.collect();
        for indices in indices.chunks(AT_ONCE) {
            let plan = Plan::of_labelled(self.commands, indices.iter().copied());
            let targets = self.targets(&plan, levels);
            let distributions = plan.distributions(parameters, targets.iter().map(|target| [*target; 2]));
            let alike = alike(self.commands, indices.iter().copied());
            for ((row, target), commands) in plan.rows.iter().zip(targets).zip(alike.into_values()) {
                let Some(of_actions) = plan.of_actions(row).and_then(|sum| distributions.get(sum)) else { continue };
                let of_command = row.explained(&distributions, target, parameters);
                let explained = (1.0 - parameters.outliers) * of_command;
                let is_outlier = explained < (1.0 - OUTLIER) * parameters.likelihood(of_command, LABELLED);
                for at in commands {
                    let quantile = (at as f64 * GOLDEN_RATIO).fract() * of_command;
                    let mut below = 0.0;
                    let epsilon = parameters.epsilon.iter().find_map(|(epsilon, probability)| {
                        below += probability * of_actions.at(target - epsilon);
                        (below > quantile).then_some(epsilon)
                    });
                    found.insert(at, epsilon.filter(|_| !is_outlier));
                }
            }
        }
        found
    }
}

/// Intervals of the most frequent sizes, and how probable it is that all are right: how often samples have no action that
/// is longer or shorter in the mean. Which of several sizes is the most frequent does not matter.
fn certainty(best: &Parameters, samples: &[Resample]) -> (Vec<[i64; 2]>, f64) {
    let farther = |action: usize, sample: &Resample| {
        (sample.parameters.sizes[action].mean() - best.sizes[action].mean()).round() as i64
    };
    let interval = |action: usize| {
        let mut moves: Vec<i64> = samples.iter().map(|sample| farther(action, sample)).collect();
        moves.sort_unstable();
        let (outside, mode) = (moves.len() / 40, best.sizes[action].mode());
        [mode + moves[outside].min(0), mode + moves[moves.len() - 1 - outside].max(0)]
    };
    let actions = 0..best.sizes.len();
    let equal = samples.iter().filter(|sample| actions.clone().all(|action| farther(action, sample) == 0)).count();
    (actions.clone().map(interval).collect(), equal as f64 / samples.len() as f64)
}

/// The mean distributions of samples; single sizes stay as they are.
fn mean(best: &Parameters, samples: &[Resample]) -> Parameters {
    let all = || samples.iter().map(|sample| &sample.parameters).chain([best]);
    let mut mean = best.clone();
    for (action, sizes) in mean.sizes.iter_mut().enumerate().filter(|(_, sizes)| !sizes.is_certain()) {
        *sizes = averaged(all().map(|parameters| &parameters.sizes[action]));
    }
    mean.epsilon = averaged(all().map(|parameters| &parameters.epsilon));
    mean
}

/// All numbers from the first to the last with their probabilities, those between them that do not occur, too.
fn cells(distribution: &Pmf) -> impl Iterator<Item = (i64, f64)> + Clone {
    (distribution.least()..distribution.end()).map(|bytes| (bytes, distribution.at(bytes)))
}

fn averaged<'a>(distributions: impl Iterator<Item = &'a Pmf> + Clone) -> Pmf {
    let share = 1.0 / distributions.clone().count() as f64;
    Pmf::from_values(distributions.flat_map(|one| cells(one).map(move |(bytes, own)| (bytes, share * own))))
}

/// Sizes with their shares among `times` occurrences, and a share for those that were not seen but lie between others
/// or next to them: 1 / (n + 2), by the rule of succession.
fn with_unseen(sizes: &Pmf, times: f64) -> Pmf {
    if sizes.is_certain() {
        return sizes.clone();
    }
    let ends = [sizes.least() - 1, sizes.end()];
    let between = cells(sizes).filter(|(_, probability)| *probability <= 0.0).map(|(size, _)| size);
    let unseen: BTreeSet<i64> = ends.into_iter().chain(between).filter(|size| *size > 0).collect();
    let share = 1.0 / (times + 2.0);
    let seen = sizes.iter().map(|(size, probability)| (size, probability * (1.0 - share)));
    let each = share / unseen.len().max(1) as f64;
    Pmf::from_values(seen.chain(unseen.iter().map(|size| (*size, each))))
}

#[cfg(test)]
mod tests;
