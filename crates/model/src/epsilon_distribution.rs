//! The distribution of ε: P(ε | x), where x = |s| − ε is the part of a command's size that actions and overhead
//! explain.
//!
//! The paper takes ε from the neighbours of |s| (section IV), which estimates P(ε | |s|). But candidates A are compared
//! by P(|s| | A) = P(ε | x); with P(ε | |s|) the frequencies of the labelled commands would count twice. So the
//! neighbours are searched in x.
//!
//! k neighbours are few for a value of ε that one command in a hundred has. The part of ε that length fields add
//! depends on |s| and rises in few steps; the number of digits of an id does not depend on it. So the distances of ε
//! from the *level* at each size ([`crate::step_function`]) form one distribution D for all sizes:
//!
//! ```text
//! P(ε | x) = (times ε occurs among the neighbours + strength · D(ε − level(x + ε))) / (neighbours + strength)
//! ```
//!
//! A strength of 0 uses the neighbours alone. The number of neighbours and the strength are chosen by leave-one-out
//! cross-validation over the labelled commands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat_n;

use crate::neighbours::nearest;
use crate::step_function::StepFunction;
use crate::{EpsilonTuple, Neighbours, WeightedEpsilon};

const K_TRIED: [usize; 8] = [3, 5, 9, 15, 25, 40, 65, 100];

/// The strengths to try, in labelled commands.
const STRENGTHS_TRIED: [f64; 8] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];

/// The gain in log-likelihood (in nats) that a choice must have over an earlier one: so much is by chance.
const MIN_GAIN: f64 = 2.0;

/// The smallest probability in cross-validation, so that a single odd command does not decide.
const MIN_PROBABILITY: f64 = 1e-6;

/// The largest number of commands of one tuple that the fit of the levels counts.
const MAX_TIMES: u64 = 64;

/// The largest number of learned values of ε in an estimate, and of learned distances from the level.
const MAX_VALUES: usize = 512;

/// How probable an unseen distance from the level is that is 1, 2… bytes away from a seen one, compared with others.
const UNSEEN_BY_DISTANCE: [f64; 2] = [1.0, 0.25];

#[derive(Debug, Clone, PartialEq)]
pub struct EpsilonDistribution {
    tuples: LevelledTuples,
    smoothing: Smoothing,
    /// D(distance from the level), where it is above 0.
    shares: BTreeMap<i64, f64>,
    /// The most frequent values of ε, in ascending order.
    values: Vec<i64>,
}

/// How many neighbours to use, and how much to trust them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothing {
    pub k: usize,
    /// The weight of the distances of all labelled commands, as a number of neighbours.
    pub strength: f64,
}

impl Smoothing {
    /// The single nearest command without smoothing, as in the paper.
    pub const NEAREST: Self = Self { k: 1, strength: 0.0 };

    /// The most likely choice in leave-one-out cross-validation; of those hardly less likely, the one with the fewest
    /// neighbours, then the greatest strength.
    pub fn choose(neighbours: &Neighbours) -> Self {
        let tuples = LevelledTuples::new(neighbours);
        let distances = Counts::of_distances(&tuples);
        let of_others = |distance: &i64| distances.without(*distance).shares().get(distance).copied().unwrap_or(0.0);
        let shares: BTreeMap<i64, f64> =
            distances.times.keys().map(|distance| (*distance, of_others(distance))).collect();
        let mut best = (f64::NEG_INFINITY, Self::NEAREST);
        for k in K_TRIED {
            // Each command with its neighbours and D of its ε, both without the command itself.
            let held_out = tuples.by_size.iter().map(|tuple| {
                let nearest = tuples.nearest_counts(tuple.size.saturating_sub(tuple.epsilon), k + 1);
                let share = shares.get(&tuples.distance(tuple)).copied().unwrap_or(0.0);
                (tuple, nearest.without(tuple.epsilon), share)
            });
            let held_out: Vec<(&EpsilonTuple, Counts, f64)> = held_out.collect();
            for strength in STRENGTHS_TRIED.into_iter().rev() {
                let ln_likelihood = |(tuple, neighbours, share): &(&EpsilonTuple, Counts, f64)| {
                    let probability = neighbours.probability(tuple.epsilon, strength, *share);
                    tuple.times as f64 * probability.max(MIN_PROBABILITY).ln()
                };
                let likelihood: f64 = held_out.iter().map(ln_likelihood).sum();
                if likelihood > best.0 + MIN_GAIN {
                    best = (likelihood, Self { k, strength });
                }
            }
        }
        best.1
    }
}

impl EpsilonDistribution {
    pub fn new(neighbours: &Neighbours, smoothing: Smoothing) -> Self {
        let tuples = LevelledTuples::new(neighbours);
        let shares = Counts::of_distances(&tuples).shares();
        let values = most_frequent(&tuples.by_size);
        Self { tuples, smoothing, shares, values }
    }

    /// P(ε | |s| − ε) for each value of ε of a command of this size, heaviest first, equal weights in ascending order.
    /// The weights are scaled to sum to 1, which does not change the ratios between candidates.
    pub fn estimate(&self, size: i64) -> Vec<WeightedEpsilon> {
        let Smoothing { k, strength } = self.smoothing;
        let level = self.tuples.level(size);
        let distances = self.shares.keys().map(|distance| level.saturating_add(*distance));
        let values: BTreeSet<i64> = self.values.iter().copied().chain(distances).collect();
        let weighted = values.into_iter().map(|epsilon| {
            let counts = self.tuples.nearest_counts(size.saturating_sub(epsilon), k);
            let share = self.shares.get(&epsilon.saturating_sub(level)).copied().unwrap_or(0.0);
            WeightedEpsilon { epsilon, weight: counts.probability(epsilon, strength, share) }
        });
        WeightedEpsilon::normalised(weighted.filter(|value| value.weight > 0.0).collect())
    }

    /// The level of ε at a size, which length fields raise.
    pub fn level(&self, size: i64) -> i64 {
        self.tuples.level(size)
    }

    /// P(ε | x) of commands of which actions and overhead explain x bytes: each value above 0, in ascending order,
    /// scaled to sum to 1.
    pub fn given_explained(&self, explained: i64) -> Vec<WeightedEpsilon> {
        let Smoothing { k, strength } = self.smoothing;
        let counts = self.tuples.nearest_counts(explained, k);
        let levels: BTreeSet<i64> = self.tuples.levels.iter().copied().collect();
        let near = levels.iter().flat_map(|level| self.shares.keys().map(|distance| level.saturating_add(*distance)));
        let values: BTreeSet<i64> = self.values.iter().copied().chain(near).collect();
        let weighted = values.into_iter().map(|epsilon| {
            let level = self.tuples.level(explained.saturating_add(epsilon));
            let share = self.shares.get(&epsilon.saturating_sub(level)).copied().unwrap_or(0.0);
            WeightedEpsilon { epsilon, weight: counts.probability(epsilon, strength, share) }
        });
        let mut values = WeightedEpsilon::normalised(weighted.filter(|value| value.weight > 0.0).collect());
        values.sort_by_key(|value| value.epsilon);
        values
    }
}

fn most_frequent(tuples: &[EpsilonTuple]) -> Vec<i64> {
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for tuple in tuples {
        let times = times.entry(tuple.epsilon).or_default();
        *times = times.saturating_add(tuple.times);
    }
    let mut seen: Vec<(i64, u64)> = times.into_iter().collect();
    seen.sort_by_key(|(epsilon, times)| (Reverse(*times), *epsilon));
    let mut values: Vec<i64> = seen.into_iter().take(MAX_VALUES).map(|(epsilon, _)| epsilon).collect();
    values.sort_unstable();
    values
}

/// The tuples of the labelled commands, with the level of ε at each of them.
#[derive(Debug, Clone, PartialEq)]
struct LevelledTuples {
    by_size: Vec<EpsilonTuple>,
    /// The levels, in the order of `by_size`.
    levels: Vec<i64>,
    /// The tuples in order of x, which replaces their size.
    by_explained: Vec<EpsilonTuple>,
}

impl LevelledTuples {
    fn new(neighbours: &Neighbours) -> Self {
        let explained =
            |tuple: &EpsilonTuple| EpsilonTuple { size: tuple.size.saturating_sub(tuple.epsilon), ..*tuple };
        let mut by_explained: Vec<EpsilonTuple> = neighbours.tuples().iter().map(explained).collect();
        by_explained.sort_unstable();
        Self { levels: levels(neighbours.tuples()), by_size: neighbours.tuples().to_vec(), by_explained }
    }

    /// The level at a size: that of the nearest labelled command, the smaller one of two.
    fn level(&self, size: i64) -> i64 {
        let above = self.by_size.partition_point(|tuple| tuple.size < size);
        let distance = |at: &usize| self.by_size.get(*at).map_or(u64::MAX, |tuple| tuple.size.abs_diff(size));
        let nearest = above.checked_sub(1).into_iter().chain([above]).min_by_key(distance);
        nearest.and_then(|at| self.levels.get(at)).copied().unwrap_or(0)
    }

    fn distance(&self, tuple: &EpsilonTuple) -> i64 {
        tuple.epsilon.saturating_sub(self.level(tuple.size))
    }

    fn nearest_counts(&self, explained: i64, k: usize) -> Counts {
        let mut times: BTreeMap<i64, f64> = BTreeMap::new();
        for tuple in nearest(&self.by_explained, explained, k) {
            *times.entry(tuple.epsilon).or_default() += tuple.times as f64;
        }
        Counts { all: times.values().sum(), times }
    }
}

/// The level of ε at each of these tuples, which are in order of size.
fn levels(tuples: &[EpsilonTuple]) -> Vec<i64> {
    let times = |tuple: &EpsilonTuple| tuple.times.min(MAX_TIMES) as usize;
    let each = || tuples.iter().flat_map(|tuple| repeat_n(tuple, times(tuple)));
    let (sizes, epsilons): (Vec<i64>, Vec<[i64; 2]>) = each().map(|tuple| (tuple.size, [tuple.epsilon; 2])).unzip();
    let mut levels = StepFunction::fit(&sizes, &epsilons).levels.into_iter();
    // All commands of a tuple have the same size and therefore the same level.
    tuples.iter().map(|tuple| levels.by_ref().take(times(tuple)).last().unwrap_or(0)).collect()
}

/// How many of some labelled commands have each ε, or each distance of it from the level.
#[derive(Debug, Clone, PartialEq)]
struct Counts {
    times: BTreeMap<i64, f64>,
    all: f64,
}

impl Counts {
    /// P(ε | x) by the counts of the neighbours' ε, given D of the distance of ε from the level.
    fn probability(&self, epsilon: i64, strength: f64, share: f64) -> f64 {
        let smoothed = self.times.get(&epsilon).copied().unwrap_or(0.0) + strength * share;
        if smoothed > 0.0 { smoothed / (self.all + strength) } else { 0.0 }
    }

    /// The distances of all labelled commands, and of one at the level, so that a few commands do not determine D.
    fn of_distances(tuples: &LevelledTuples) -> Self {
        let mut distances = Self { times: BTreeMap::from([(0, 1.0)]), all: 1.0 };
        for tuple in &tuples.by_size {
            *distances.times.entry(tuples.distance(tuple)).or_default() += tuple.times as f64;
            distances.all += tuple.times as f64;
        }
        distances
    }

    fn without(&self, value: i64) -> Self {
        let mut others = self.clone();
        others.all -= 1.0;
        if let Some(times) = others.times.get_mut(&value) {
            *times -= 1.0;
            if *times <= 0.0 {
                others.times.remove(&value);
            }
        }
        others
    }

    /// D, of each distance with a probability above 0, near the first seen ones. Unseen distances have the probability
    /// (o + 1) / (n + 2) of n commands together, at most a half, where o distances were seen once (Good and Turing, and the
    /// rule of succession). They are near a seen one: a number with a digit more or less, more rarely with two.
    fn shares(&self) -> BTreeMap<i64, f64> {
        let seen = || self.times.iter().take(MAX_VALUES);
        let mut near: BTreeMap<i64, f64> = BTreeMap::new();
        for (distance, _) in seen() {
            for (away, weight) in (1..).zip(UNSEEN_BY_DISTANCE) {
                for unseen in [distance.saturating_sub(away), distance.saturating_add(away)] {
                    if !self.times.contains_key(&unseen) {
                        let nearest = near.entry(unseen).or_default();
                        *nearest = weight.max(*nearest);
                    }
                }
            }
        }
        let once = self.times.values().filter(|times| **times <= 1.0).count() as f64;
        let (unseen, weights) = (((once + 1.0) / (self.all + 2.0)).min(0.5), near.values().sum::<f64>());
        let mut shares: BTreeMap<i64, f64> =
            near.into_iter().map(|(distance, weight)| (distance, unseen * weight / weights)).collect();
        shares.extend(seen().map(|(distance, times)| (*distance, (1.0 - unseen) * times / self.all)));
        shares
    }
}
