//! Expectation maximisation: which distributions of sizes and of ε make labelled commands most likely.
//!
//! A command with nᵢ occurrences of action i has the size |ac| + level + Σ of nᵢ sizes of each action + ε, and its
//! probability is the convolution of their distributions; a small share of commands has any size (wrong labels). The
//! level is what length fields add: it rises in few steps with the command's size, the most likely one given sizes.

use std::collections::BTreeMap;

use sizeleak_model::step_function::STEP_NATS;
use sizeleak_model::{LabelledCommand, Multiples, Pmf};

/// One over the number of sizes that a command with a wrong label may have: those of about ten actions of forty bytes.
pub(crate) const OUTLIER_DENSITY: f64 = 1.0 / 400.0;

/// The least and the greatest share of wrong labels: never none, and never so many that the others do not decide.
const OUTLIER_SHARES: [f64; 2] = [0.001, 0.3];

/// Sizes rarer than this are given up.
const NEGLIGIBLE: f64 = 1e-5;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameters {
    /// Of the sizes of each action.
    pub(crate) sizes: Vec<Pmf>,
    pub(crate) epsilon: Pmf,
    /// The share of commands that are not explained.
    pub(crate) outliers: f64,
}

/// Commands with the same actions.
#[derive(Debug)]
pub(crate) struct Group {
    /// The actions that occur, and how often.
    pub(crate) counts: Vec<(usize, u32)>,
    pub(crate) commands: Vec<usize>,
}

pub(crate) fn groups(commands: &[LabelledCommand], indices: impl Iterator<Item = usize>) -> Vec<Group> {
    let mut by_counts: BTreeMap<&[u32], Vec<usize>> = BTreeMap::new();
    for at in indices {
        if let Some(command) = commands.get(at) {
            by_counts.entry(&command.counts).or_default().push(at);
        }
    }
    let occurring = |counts: &[u32]| counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    by_counts.into_iter().map(|(counts, commands)| Group { counts: occurring(counts), commands }).collect()
}

/// The distribution of the sum of both.
pub(crate) fn plus(one: &Pmf, other: &Pmf) -> Pmf {
    one.convolve(other).trimmed()
}

/// All numbers from the first to the last with their probabilities, those between them that do not occur, too.
pub(crate) fn cells(distribution: &Pmf) -> impl Iterator<Item = (i64, f64)> + Clone {
    (distribution.least()..distribution.end()).map(|bytes| (bytes, distribution.at(bytes)))
}

/// The distributions of sums of sizes, computed as they are needed.
pub(crate) struct Sums<'a> {
    multiples: Vec<Multiples>,
    epsilon: &'a Pmf,
}

impl<'a> Sums<'a> {
    pub(crate) fn of(parameters: &'a Parameters) -> Self {
        let multiples = parameters.sizes.iter().cloned().map(Multiples::new).collect();
        Self { multiples, epsilon: &parameters.epsilon }
    }

    /// The distribution of the sum of some actions, without ε.
    pub(crate) fn of_actions(&mut self, counts: &[(usize, u32)]) -> Pmf {
        counts.iter().fold(Pmf::certain(0), |sum, (action, count)| plus(&sum, self.multiples[*action].sum_of(*count)))
    }

    /// The same with ε.
    pub(crate) fn of_command(&mut self, counts: &[(usize, u32)]) -> Pmf {
        plus(&self.of_actions(counts), self.epsilon)
    }

    /// For each action whose size varies: the sum of all others, ε, and one occurrence less of its own.
    fn without_one(&mut self, counts: &[(usize, u32)]) -> Vec<(usize, u32, Pmf)> {
        let (mut varying, mut certain) = (Vec::new(), Vec::new());
        for part in counts {
            let has_certain_size = self.multiples[part.0].one().is_certain();
            if has_certain_size { certain.push(*part) } else { varying.push(*part) }
        }
        let certain = self.of_command(&certain);
        // Of the parts before each, and of those after it.
        let mut before = vec![certain];
        for part in &varying {
            let next = before.last().map(|sum| plus(sum, &self.of_actions(&[*part]))).unwrap_or_default();
            before.push(next);
        }
        let (mut after, mut found) = (Pmf::certain(0), Vec::new());
        for ((action, count), before) in varying.iter().zip(&before).rev() {
            let others = plus(&plus(before, &after), &self.of_actions(&[(*action, count - 1)]));
            found.push((*action, *count, others));
            after = plus(&after, &self.of_actions(&[(*action, *count)]));
        }
        found
    }
}

/// What the commands say in the light of the parameters before.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) log_likelihood: f64,
    /// How often each size of each action occurs.
    sizes: Vec<Vec<f64>>,
    epsilon: Vec<f64>,
    outliers: f64,
    commands: f64,
}

/// `targets`: for each command what its actions and ε add up to, in bytes.
pub(crate) fn expect(groups: &[Group], targets: &[i64], parameters: &Parameters) -> Expected {
    let mut sums = Sums::of(parameters);
    let mut expected = Expected {
        log_likelihood: 0.0,
        sizes: parameters.sizes.iter().map(|sizes| vec![0.0; sizes.len()]).collect(),
        epsilon: vec![0.0; parameters.epsilon.len()],
        outliers: 0.0,
        commands: 0.0,
    };
    for group in groups {
        let of_actions = sums.of_actions(&group.counts);
        let of_command = plus(&of_actions, &parameters.epsilon);
        // For each target, how many commands have it, over its probability.
        let mut weights: BTreeMap<i64, f64> = BTreeMap::new();
        for target in group.commands.iter().filter_map(|at| targets.get(*at)) {
            let total = parameters.likelihood(&of_command, *target);
            expected.commands += 1.0;
            expected.log_likelihood += total.ln();
            expected.outliers += parameters.outliers * OUTLIER_DENSITY / total;
            *weights.entry(*target).or_default() += (1.0 - parameters.outliers) / total;
        }
        let weights: Vec<(i64, f64)> = weights.into_iter().collect();
        for (count, (epsilon, probability)) in expected.epsilon.iter_mut().zip(cells(&parameters.epsilon)) {
            let weighed = weights.iter().map(|(target, weight)| weight * of_actions.at(target - epsilon));
            *count += probability * weighed.sum::<f64>();
        }
        for (action, times, others) in sums.without_one(&group.counts) {
            for (count, (size, probability)) in expected.sizes[action].iter_mut().zip(cells(&parameters.sizes[action]))
            {
                let weighed = weights.iter().map(|(target, weight)| weight * others.at(target - size));
                *count += f64::from(times) * probability * weighed.sum::<f64>();
            }
        }
    }
    expected
}

impl Expected {
    fn maximise(&self, before: &Parameters) -> Parameters {
        let sizes = before.sizes.iter().zip(&self.sizes);
        let sizes = sizes.map(|(one, counts)| if one.is_certain() { one.clone() } else { renewed(one, counts, 0.0) });
        // As if one more command had any ε: none is impossible for want of commands.
        let prior = 1.0 / before.epsilon.len() as f64;
        let [least, most] = OUTLIER_SHARES;
        Parameters {
            sizes: sizes.collect(),
            epsilon: renewed(&before.epsilon, &self.epsilon, prior),
            outliers: (self.outliers / self.commands.max(1.0)).clamp(least, most),
        }
    }
}

/// Probabilities from counts, each with a prior count besides.
fn renewed(before: &Pmf, counts: &[f64], prior: f64) -> Pmf {
    let all: f64 = counts.iter().map(|count| count + prior).sum();
    if !(all.is_finite() && all > f64::MIN_POSITIVE) {
        return before.clone();
    }
    let share = |count: &f64| (count + prior) / all;
    let probabilities = counts.iter().map(share).map(|share| if share > NEGLIGIBLE { share } else { 0.0 }).collect();
    Pmf::from_least(before.least(), probabilities).without_ends(0.0)
}

/// Repeats both steps until the likelihood hardly grows; returns the log-likelihood of the parameters before the last.
pub(crate) fn improve(groups: &[Group], targets: &[i64], parameters: &mut Parameters, steps: usize) -> f64 {
    let mut log_likelihood = f64::NEG_INFINITY;
    for _ in 0..steps {
        let expected = expect(groups, targets, parameters);
        let gain = expected.log_likelihood - log_likelihood;
        log_likelihood = expected.log_likelihood;
        *parameters = expected.maximise(parameters);
        if gain.abs() < 0.02 {
            break;
        }
    }
    log_likelihood
}

pub(crate) fn log_likelihood(groups: &[Group], targets: &[i64], parameters: &Parameters) -> f64 {
    let mut sums = Sums::of(parameters);
    let of_group = |group: &Group| {
        let of_command = sums.of_command(&group.counts);
        let targets = group.commands.iter().filter_map(|at| targets.get(*at));
        targets.map(|target| parameters.likelihood(&of_command, *target).ln()).sum::<f64>()
    };
    groups.iter().map(of_group).sum()
}

impl Parameters {
    /// The probability of a target, given the distribution of those that are explained.
    pub(crate) fn likelihood(&self, of_command: &Pmf, target: i64) -> f64 {
        (1.0 - self.outliers) * of_command.at(target) + self.outliers * OUTLIER_DENSITY
    }
}

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

    /// The most likely levels of commands of these sizes, of which `overhead` is no part.
    pub(crate) fn fit(groups: &[Group], sizes: &[i64], overhead: i64, parameters: &Parameters) -> Self {
        let mut by_size: BTreeMap<i64, [f64; LEVELS.len()]> = BTreeMap::new();
        let mut sums = Sums::of(parameters);
        for group in groups {
            let of_command = sums.of_command(&group.counts);
            for size in group.commands.iter().filter_map(|at| sizes.get(*at)) {
                let of_size = by_size.entry(*size).or_default();
                for (slot, level) in of_size.iter_mut().zip(LEVELS) {
                    *slot += parameters.likelihood(&of_command, size - overhead - level).ln();
                }
            }
        }
        Self::most_likely(&by_size)
    }

    /// Dynamic programming over the sizes: the likelihood of ending at each level.
    fn most_likely(by_size: &BTreeMap<i64, [f64; LEVELS.len()]>) -> Self {
        let mut likelihoods = [0.0; LEVELS.len()];
        // For each size the level before it, by the level at it.
        let mut before: Vec<[usize; LEVELS.len()]> = Vec::with_capacity(by_size.len());
        for (number, of_size) in by_size.values().enumerate() {
            let mut from = std::array::from_fn(|level| level);
            let mut best_below: Option<(usize, f64)> = None;
            for (level, ((likelihood, own), from)) in likelihoods.iter_mut().zip(of_size).zip(&mut from).enumerate() {
                let stayed = *likelihood;
                if let Some((below, rises)) = best_below.filter(|(_, rises)| number > 0 && rises - STEP_NATS > stayed) {
                    (*likelihood, *from) = (rises - STEP_NATS, below);
                }
                if best_below.is_none_or(|(_, best)| stayed > best) {
                    best_below = Some((level, stayed));
                }
                *likelihood += own;
            }
            before.push(from);
        }
        let mut level = (0..LEVELS.len()).max_by(|a, b| likelihoods[*a].total_cmp(&likelihoods[*b])).unwrap_or(0);
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

    #[test]
    fn steps_are_found_where_they_are() {
        let parameters = Parameters {
            sizes: vec![Pmf::from_values([(20, 0.5), (21, 0.5)])],
            epsilon: Pmf::from_values([(-1, 0.1), (0, 0.9)]),
            outliers: 0.01,
        };
        let grown = |size: i64| size + if size >= 128 { 2 } else { 0 };
        // One byte more or none for each action, as the bits of a number say.
        let more = |at: i64| i64::from(((at as u32).wrapping_mul(0x9E37_79B1) >> (31 - at % 7)).count_ones());
        let sizes: Vec<i64> = (0..120).map(|at| grown(60 + (1 + at % 7) * 20 + more(at))).collect();
        let groups: Vec<Group> = (0..7)
            .map(|n| Group { counts: vec![(0, n + 1)], commands: (n as usize..120).step_by(7).collect() })
            .collect();
        let levels = Levels::fit(&groups, &sizes, 60, &parameters);
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
