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

use std::collections::BTreeSet;

use super::remainders::Remainders;
use crate::sum_distribution::SumDistribution;
use crate::{Action, EpsilonTuple, Fit, LabelledCommand, Neighbours, Smoothing};
use expectation::{Group, OUTLIER_DENSITY, Parameters, Sums, groups, improve, log_likelihood};
use levels::Levels;

/// With more actions sizes stay single: their distributions would take too long to learn.
const MOST_ACTIONS: usize = 64;

/// From fewer commands no distribution is learned.
const LEAST_COMMANDS: usize = 30;

/// Commands of more actions say little about the sizes of one.
const MOST_IN_COMMAND: u64 = 64;

/// Distributions are learned from so many commands: half of them those of the fewest actions, which say most...
const MOST_COMMANDS: usize = 600;

/// ...and levels are fitted to so many.
const MOST_LEVELLED: usize = 4000;

/// With a greater mean deviation in bytes, distributions are tried in any case.
const GREAT_DEVIATION: f64 = 0.75;

/// By how much distributions must raise the log-likelihood, beyond half the logarithm of the number of commands for
/// each further size.
const LEAST_GAIN: f64 = 4.0;

/// Sizes differ by at most so many bytes from the single one at the start.
const MOST_DISTANCE: i64 = 48;

/// Values of ε that are looked at.
const EPSILONS: std::ops::RangeInclusive<i64> = -8..=8;

/// Where the start looks for the overhead: bytes from that of single sizes.
const OVERHEADS: [i64; 7] = [0, -2, 2, -4, 4, -6, 6];

/// It does so with this many commands.
const MOST_AT_START: usize = 200;

/// Levels under single sizes that rise more often follow what varies, and are no start.
const MOST_RISES: usize = 2;

/// The sizes of all actions are moved together by up to so many bytes.
const MOST_MOVES: usize = 4;

/// A rarer size is no parameter.
const COUNTED_SHARE: f64 = 1e-3;

/// An action that has its most frequent size with a greater share has it always: the others may be wrong labels.
const SINGLE_SHARE: f64 = 0.97;

/// Steps of the EM algorithm from each start, between changes of the levels, without one action's distribution, and at
/// the end.
const START_STEPS: usize = 15;
const LEVEL_STEPS: usize = 20;
const SINGLE_STEPS: usize = 12;
const LAST_STEPS: usize = 40;

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
        search.fit(self, parameters, &levels)
    }
}

/// Labelled commands of exact sizes, and what single sizes say of them.
struct Search<'a> {
    commands: &'a [LabelledCommand],
    sizes: Vec<i64>,
    single_sizes: Vec<i64>,
    overhead: i64,
    /// What remains of each command beyond single sizes and levels.
    deviations: Vec<i64>,
    /// The levels under single sizes.
    levels: Levels,
    /// The commands that distributions are learned from.
    groups: Vec<Group>,
    used: Vec<usize>,
}

impl<'a> Search<'a> {
    /// `None` if there is nothing to learn.
    fn new(fit: &Fit, commands: &'a [LabelledCommand]) -> Option<Self> {
        let is_exact = |command: &LabelledCommand| command.sizes[0] == command.sizes[1];
        if fit.actions.len() > MOST_ACTIONS || fit.actions.iter().any(Action::varies) || !commands.iter().all(is_exact)
        {
            return None;
        }
        let used = used(fit.actions.len(), commands);
        if used.len() < LEAST_COMMANDS {
            return None;
        }
        let single_sizes: Vec<i64> = fit.actions.iter().map(|action| action.size).collect();
        let fitted = Remainders::new(&single_sizes, commands).fitted();
        let deviations: Vec<i64> = fitted.iter().map(|at| at.value - at.level).collect();
        let sizes: Vec<i64> = commands.iter().map(|command| command.sizes[0]).collect();
        let levels = sizes.iter().zip(&fitted).map(|(size, at)| (*size, at.level - fit.overhead));
        let levels = Levels::of(levels);
        let groups = groups(commands, used.iter().copied());
        let search = Self { commands, sizes, single_sizes, overhead: fit.overhead, deviations, levels, groups, used };
        search.is_promising().then_some(search)
    }

    /// Whether commands deviate much, or become more likely if some action has another size now and then.
    fn is_promising(&self) -> bool {
        let deviations: Vec<i64> = self.used.iter().filter_map(|at| self.deviations.get(*at)).copied().collect();
        let mean = deviations.iter().map(|deviation| deviation.unsigned_abs() as f64).sum::<f64>();
        if mean > GREAT_DEVIATION * deviations.len() as f64 {
            return true;
        }
        let needed = self.price(1);
        (0..self.single_sizes.len()).any(|action| {
            let others = [-3, -2, -1, 1, 2, 3].into_iter();
            let gains = others.flat_map(|other| [0.03, 0.1, 0.3].map(|share| self.gain(action, other, share)));
            gains.into_iter().any(|gain| gain > needed)
        })
    }

    /// By how much it raises the log-likelihood of the commands with an action, in the light of all others, if a share
    /// of its occurrences is some bytes longer: one in a command, or none.
    fn gain(&self, action: usize, longer: i64, share: f64) -> f64 {
        let (with, without): (Vec<usize>, Vec<usize>) =
            self.used.iter().copied().partition(|at| count(self.commands, *at, action) > 0);
        let mut epsilon = start_epsilon();
        for deviation in without.iter().filter_map(|at| self.deviations.get(*at)) {
            let at = usize::try_from(deviation - epsilon.least).ok();
            if let Some(slot) = at.and_then(|at| epsilon.probabilities.get_mut(at)) {
                *slot += 1.0;
            }
        }
        let all: f64 = epsilon.probabilities.iter().sum();
        let likelihood = |deviation: i64| 0.98 * epsilon.at(deviation) / all + 0.02 * OUTLIER_DENSITY;
        let of_command = |at: &usize| {
            let (deviation, count) = (*self.deviations.get(*at)?, f64::from(count(self.commands, *at, action)));
            let ratio = likelihood(deviation - longer) / likelihood(deviation);
            let none = (1.0 - share).powf(count);
            Some((none + count * share * none / (1.0 - share) * ratio).ln())
        };
        with.iter().filter_map(of_command).sum()
    }

    /// By how much so many further sizes must raise the log-likelihood.
    fn price(&self, sizes: usize) -> f64 {
        LEAST_GAIN + 0.5 * sizes as f64 * (self.used.len() as f64).ln()
    }

    /// What the actions and ε of each command add up to.
    fn targets(&self, levels: &Levels) -> Vec<i64> {
        self.sizes.iter().map(|size| size - self.overhead - levels.at(*size)).collect()
    }

    /// The distributions, if any action needs one, with the levels.
    fn distributions(&self) -> Option<(Parameters, Levels)> {
        let start = self.start()?;
        // Length fields of WebSocket and of MQTT, or none: among much variation, steps are hard to see.
        let forms = [Levels::default(), Levels::rising_at(&[(128, 2)]), Levels::rising_at(&[(130, 1)])];
        let of_single = Some(self.levels.clone()).filter(|levels| levels.rises() <= MOST_RISES);
        let few = self.of_fewest_actions();
        let mut best: Option<(f64, Parameters, Levels)> = None;
        for levels in forms.into_iter().chain(of_single) {
            let targets = self.targets(&levels);
            // Larger sizes of all actions and a smaller overhead look alike at first.
            for by in OVERHEADS {
                let mut parameters = Parameters { epsilon: start.epsilon.clone().moved(by), ..start.clone() };
                let likelihood = improve(&few, &targets, &mut parameters, START_STEPS) - levels.price();
                if best.as_ref().is_none_or(|(most, ..)| likelihood > *most) {
                    best = Some((likelihood, parameters, levels.clone()));
                }
            }
        }
        let (_, parameters, levels) = best?;
        let mut best = self.settled(parameters, levels);
        if best.parameters.sizes.iter().all(SumDistribution::is_certain) {
            return None;
        }
        for by in [-1, 1] {
            for _ in 0..MOST_MOVES {
                let Some(other) = self.all_moved(&best, by).filter(|other| other.score > best.score) else { break };
                best = other;
            }
        }
        Some((best.parameters, best.levels))
    }

    /// The most likely explanation near this one, with as few sizes as it needs.
    fn settled(&self, mut parameters: Parameters, mut levels: Levels) -> Explanation {
        for _ in 0..3 {
            improve(&self.groups, &self.targets(&levels), &mut parameters, LEVEL_STEPS);
            let fitted = Levels::fit(&self.groups, &self.sizes, self.overhead, &parameters);
            if fitted == levels {
                break;
            }
            levels = fitted;
        }
        let targets = self.targets(&levels);
        self.make_single(&targets, &mut parameters);
        self.move_single(&targets, &mut parameters);
        improve(&self.groups, &targets, &mut parameters, LAST_STEPS);
        let further: usize = parameters.sizes.iter().map(further_sizes).sum();
        let likelihood = log_likelihood(&self.groups, &targets, &parameters);
        let score = likelihood - levels.price() - 0.5 * further as f64 * (self.used.len() as f64).ln();
        Explanation { parameters, levels, score }
    }

    /// The best explanation near one with the sizes of all actions some bytes larger, and ε as much smaller. No change
    /// of one size leads there. `None` if a size would be 0 or less.
    fn all_moved(&self, from: &Explanation, by: i64) -> Option<Explanation> {
        let sizes = from.parameters.sizes.iter().map(|sizes| sizes.clone().moved(by));
        let sizes: Vec<SumDistribution> = sizes.collect();
        let epsilon = from.parameters.epsilon.clone().moved(-by);
        let is_possible = sizes.iter().all(|sizes| sizes.least > 0);
        is_possible.then(|| self.settled(Parameters { sizes, epsilon, ..from.parameters }, from.levels.clone()))
    }

    /// The groups of the commands with the fewest actions.
    fn of_fewest_actions(&self) -> Vec<Group> {
        let mut by_total: Vec<(u64, usize)> =
            self.used.iter().filter_map(|at| Some((self.commands.get(*at)?.total(), *at))).collect();
        by_total.sort_unstable();
        groups(self.commands, by_total.into_iter().take(MOST_AT_START).map(|(_, at)| at))
    }

    /// Any size that small commands allow, for every action.
    fn start(&self) -> Option<Parameters> {
        let sizes = self.single_sizes.iter().enumerate().map(|(action, size)| {
            let occurs = |at: &&usize| count(self.commands, **at, action) > 0;
            let mut with: Vec<(u64, i64)> = self
                .used
                .iter()
                .filter(occurs)
                .filter_map(|at| Some((self.commands.get(*at)?.total(), *self.deviations.get(*at)?)))
                .collect();
            with.sort_unstable();
            let few = with.get(..with.len().div_ceil(3).max(20).min(with.len()))?;
            let [least, most] = [few.iter().map(|one| one.1).min()?, few.iter().map(|one| one.1).max()?];
            // Wrong labels would make it tiny.
            let least = (least.clamp(-MOST_DISTANCE, 0) - 1).max(-size / 2);
            let most = most.clamp(0, MOST_DISTANCE) + 1;
            let each = 1.0 / (most - least + 1) as f64;
            Some(SumDistribution::of((least..=most).map(|distance| (size + distance, each))))
        });
        Some(Parameters { sizes: sizes.collect::<Option<_>>()?, epsilon: start_epsilon(), outliers: 0.02 })
    }

    /// Gives each action a single size again unless it needs several; those that need them least first.
    fn make_single(&self, targets: &[i64], parameters: &mut Parameters) {
        let mut likelihood = log_likelihood(&self.groups, targets, parameters);
        let mut ranked: Vec<(f64, usize)> = (0..parameters.sizes.len())
            .filter_map(|action| {
                let (single, _) = self.with_single(targets, parameters, action)?;
                Some((likelihood - single, action))
            })
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, action) in ranked {
            let Some((_, mut single)) = self.with_single(targets, parameters, action) else { continue };
            improve(&self.groups, targets, &mut single, SINGLE_STEPS);
            let without = log_likelihood(&self.groups, targets, &single);
            let counted = parameters.sizes.get(action).map_or(0, further_sizes);
            let greatest = parameters.sizes.get(action).map_or(1.0, |sizes| sizes.at(sizes.mode()));
            if greatest > SINGLE_SHARE || likelihood - without < self.price(counted.max(1)) {
                (*parameters, likelihood) = (single, without);
            }
        }
    }

    /// The parameters with the best single size of an action, and their log-likelihood; `None` if it has one already.
    fn with_single(&self, targets: &[i64], parameters: &Parameters, action: usize) -> Option<(f64, Parameters)> {
        let sizes = parameters.sizes.get(action).filter(|sizes| !sizes.is_certain())?;
        let candidates: BTreeSet<i64> = [sizes.mode(), sizes.mean().round() as i64].into();
        let with = candidates.into_iter().map(|size| {
            let mut single = parameters.clone();
            if let Some(slot) = single.sizes.get_mut(action) {
                *slot = SumDistribution::certain(size);
            }
            (log_likelihood(&self.groups, targets, &single), single)
        });
        with.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Moves single sizes by a byte where that is more likely.
    fn move_single(&self, targets: &[i64], parameters: &mut Parameters) {
        let mut likelihood = log_likelihood(&self.groups, targets, parameters);
        for action in 0..parameters.sizes.len() {
            for by in [-1, 1] {
                let moved = moved(parameters, action, by);
                let other = log_likelihood(&self.groups, targets, &moved);
                let is_single = parameters.sizes.get(action).is_some_and(SumDistribution::is_certain);
                if is_single && other > likelihood {
                    (*parameters, likelihood) = (moved, other);
                }
            }
        }
    }

    /// The fit of these distributions.
    fn fit(&self, single: &Fit, parameters: Parameters, levels: &Levels) -> Option<Fit> {
        let (intervals, certainty) = self.certainty(&parameters, levels);
        let evenly = (0..self.sizes.len()).step_by(self.sizes.len() / MOST_LEVELLED + 1);
        let may_be_used = |at: &usize| self.commands.get(*at).is_some_and(is_usable);
        let levelled = groups(self.commands, evenly.filter(may_be_used));
        let levels = Levels::fit(&levelled, &self.sizes, self.overhead, &parameters);
        let Remaining { epsilons, outliers } = self.remaining(&parameters, &levels);
        let mut sorted: Vec<i64> = epsilons.iter().map(|(_, epsilon)| *epsilon).collect();
        let middle = super::fitted_sizes::median(&mut sorted);
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
            let of_command = of_actions.plus(&parameters.epsilon);
            for at in group.commands {
                let Some(size) = self.sizes.get(at) else { continue };
                let target = size - self.overhead - levels.at(*size);
                let explained = (1.0 - parameters.outliers) * of_command.at(target);
                let is_outlier = explained < (1.0 - OUTLIER) * parameters.likelihood(&of_command, target);
                let quantile = (at as f64 * GOLDEN_RATIO).fract() * of_command.at(target);
                let mut below = 0.0;
                let epsilon = parameters.epsilon.values().find_map(|(epsilon, probability)| {
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

/// Distributions and levels that explain the commands.
struct Explanation {
    parameters: Parameters,
    levels: Levels,
    /// The log-likelihood, less what the number of sizes and of steps is worth.
    score: f64,
}

/// What remains of commands without their actions.
struct Remaining {
    /// Sizes with level and ε, in bytes.
    epsilons: Vec<(i64, i64)>,
    /// Indices in ascending order.
    outliers: Vec<usize>,
}

/// How many sizes there are beyond one.
fn further_sizes(sizes: &SumDistribution) -> usize {
    sizes.probabilities.iter().filter(|share| **share > COUNTED_SHARE).count().saturating_sub(1)
}

fn start_epsilon() -> SumDistribution {
    let weight = |epsilon: i64| 0.5_f64.powf(epsilon.abs() as f64);
    let all: f64 = EPSILONS.map(weight).sum();
    SumDistribution::of(EPSILONS.map(|epsilon| (epsilon, weight(epsilon) / all)))
}

/// The parameters with an action's sizes moved by some bytes.
fn moved(parameters: &Parameters, action: usize, by: i64) -> Parameters {
    let mut moved = parameters.clone();
    if let Some(sizes) = moved.sizes.get_mut(action) {
        *sizes = std::mem::take(sizes).moved(by);
    }
    moved
}

/// Sizes with how often they occur among so many, and a share for those that were not seen but lie between others or
/// next to them: 1 / (n + 2), by the rule of succession.
fn with_unseen(sizes: &SumDistribution, times: f64) -> Vec<(i64, f64)> {
    if sizes.is_certain() {
        return sizes.values().collect();
    }
    let ends = [sizes.least - 1, sizes.least + i64::try_from(sizes.probabilities.len()).unwrap_or(i64::MAX)];
    let between = sizes.values().filter(|(_, probability)| *probability <= 0.0).map(|(size, _)| size);
    let unseen: BTreeSet<i64> = ends.into_iter().chain(between).filter(|size| *size > 0).collect();
    let share = 1.0 / (times + 2.0);
    let seen = sizes.values().filter(|(_, probability)| *probability > 0.0);
    let seen = seen.map(|(size, probability)| (size, probability * (1.0 - share)));
    let each = share / unseen.len().max(1) as f64;
    seen.chain(unseen.iter().map(|size| (*size, each))).collect()
}

fn count(commands: &[LabelledCommand], at: usize, action: usize) -> u32 {
    commands.get(at).and_then(|command| command.counts.get(action)).copied().unwrap_or(0)
}

/// Whether a command says something about the sizes of its actions.
fn is_usable(command: &LabelledCommand) -> bool {
    (1..=MOST_IN_COMMAND).contains(&command.total())
}

/// The commands that distributions are learned from, in ascending order: those with the fewest actions for each
/// action, and others evenly.
fn used(actions: usize, commands: &[LabelledCommand]) -> Vec<usize> {
    let usable = || commands.iter().enumerate().filter(|(_, command)| is_usable(command));
    let mut by_total: Vec<(u64, usize)> = usable().map(|(at, command)| (command.total(), at)).collect();
    if by_total.len() <= MOST_COMMANDS {
        return usable().map(|(at, _)| at).collect();
    }
    let others = by_total.iter().map(|(_, at)| *at).step_by(by_total.len() / (MOST_COMMANDS / 2) + 1);
    let mut chosen: BTreeSet<usize> = others.collect();
    by_total.sort_unstable();
    let of_each = (MOST_COMMANDS / 2 / actions.max(1)).max(4);
    for action in 0..actions {
        let with = by_total.iter().map(|(_, at)| *at).filter(|at| count(commands, *at, action) > 0);
        chosen.extend(with.take(of_each));
    }
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests;
