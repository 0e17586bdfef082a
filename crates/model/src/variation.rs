//! How ε varies: P(ε | x), where x = |s| − ε is what actions and overhead make of a command's size.
//!
//! The paper asks the neighbours of |s| for ε (IV). But what decides between candidates is how probable their actions make
//! the size, P(|s| | A) = P(ε | x); neighbours of |s| give P(ε | |s|) instead, which has the habits of the labelled commands in
//! it once more. So the labelled commands nearest in x are asked, whose ε stands for itself.
//!
//! k of them are few for a value that one command in a hundred has. What length fields add to ε follows from |s|, in few
//! steps; how a number's digits vary does not. So the distances of every labelled command's ε from the *level* at its size
//! (`steps`) are one distribution over all sizes, and
//!
//! ```text
//! P(ε | x) = (times ε occurs among the neighbours + strength · D(ε − level(x + ε))) / (neighbours + strength)
//! ```
//!
//! with D the distribution of the distances. A strength of 0 takes the neighbours at their word. Which number of
//! neighbours and which strength make the labelled commands likeliest, each left out in turn, is what is learned.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat_n;

use crate::epsilon::{EpsilonTuple, WeightedEpsilon, nearest};
use crate::{Neighbours, steps};

/// The numbers of neighbours that are tried.
const K_TRIED: [usize; 8] = [3, 5, 9, 15, 25, 40, 65, 100];

/// The strengths that are tried, in labelled commands.
const STRENGTHS_TRIED: [f64; 8] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];

/// How much likelier (in nats) a larger number of neighbours must make the labelled commands than a smaller one.
const GAIN: f64 = 1e-6;

/// No distance is less probable than this while what is learned is chosen, or one odd command would decide.
const LEAST: f64 = 1e-6;

/// More commands of the same size and ε than these make its level no surer.
const MOST_TIMES: u64 = 64;

/// So many values of ε that labelled commands have are offered at most, and as many distances from the level.
const MOST_VALUES: usize = 512;

/// The distribution of ε.
#[derive(Debug, Clone, PartialEq)]
pub struct EpsilonDistribution {
    known: Known,
    k: usize,
    strength: f64,
    distances: Distances,
    /// Values of ε that labelled commands have, in order.
    values: Vec<i64>,
}

/// How many neighbours to ask for ε, and how far to trust them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothing {
    /// The number of neighbours.
    pub k: usize,
    /// How much the distances of all labelled commands weigh beside the neighbours, in labelled commands.
    pub strength: f64,
}

impl Smoothing {
    /// The single nearest command, at its word: as the paper does.
    pub const NEAREST: Self = Self { k: 1, strength: 0.0 };

    /// What makes the labelled commands likeliest, each left out in turn; of equals the fewest neighbours, and of those
    /// the greatest strength.
    pub fn choose(neighbours: &Neighbours) -> Self {
        let known = Known::new(neighbours);
        let distances = Distances::of(&known);
        let mut best = (f64::NEG_INFINITY, Self::NEAREST);
        for k in K_TRIED {
            let left_out = LeftOut::new(&known, &distances, k);
            for strength in STRENGTHS_TRIED.into_iter().rev() {
                let likelihood = left_out.ln_likelihood(strength);
                if likelihood > best.0 + GAIN {
                    best = (likelihood, Self { k, strength });
                }
            }
        }
        best.1
    }
}

impl EpsilonDistribution {
    /// The distribution that so smoothed neighbours give.
    pub fn new(neighbours: &Neighbours, smoothing: Smoothing) -> Self {
        let known = Known::new(neighbours);
        let Smoothing { k, strength } = smoothing;
        let distances = Distances::of(&known);
        let values = most_frequent(&known.by_size);
        Self { known, k, strength, distances, values }
    }

    /// How probable each value of ε makes a command of this size, heaviest first, lower ones first among equals. They are
    /// scaled to sum to 1, which changes nothing between candidates.
    pub fn estimate(&self, size: i64) -> Vec<WeightedEpsilon> {
        let level = self.known.level(size);
        let distances = self.distances.possible().map(|distance| level.saturating_add(distance));
        let values: BTreeSet<i64> = self.values.iter().copied().chain(distances).collect();
        let weighted = values.into_iter().map(|epsilon| {
            let near = self.known.near(size.saturating_sub(epsilon), self.k, None);
            let share = self.distances.share(epsilon.saturating_sub(level));
            WeightedEpsilon { epsilon, weight: near.probability(epsilon, self.strength, share) }
        });
        let mut estimate: Vec<WeightedEpsilon> = weighted.filter(|value| value.weight > 0.0).collect();
        let total: f64 = estimate.iter().map(|value| value.weight).sum();
        for value in &mut estimate {
            value.weight /= total;
        }
        estimate.sort_by(WeightedEpsilon::heaviest_first);
        estimate
    }
}

/// The values of ε that most commands have, in order.
fn most_frequent(tuples: &[EpsilonTuple]) -> Vec<i64> {
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for tuple in tuples {
        let times = times.entry(tuple.epsilon).or_default();
        *times = times.saturating_add(tuple.times);
    }
    let mut seen: Vec<(i64, u64)> = times.into_iter().collect();
    seen.sort_by_key(|(epsilon, times)| (Reverse(*times), *epsilon));
    let mut values: Vec<i64> = seen.into_iter().take(MOST_VALUES).map(|(epsilon, _)| epsilon).collect();
    values.sort_unstable();
    values
}

/// The labelled commands.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    by_size: Vec<EpsilonTuple>,
    /// The level at each of them.
    levels: Vec<i64>,
    /// In order of x, which takes the place of the size.
    by_explained: Vec<EpsilonTuple>,
}

impl Known {
    fn new(neighbours: &Neighbours) -> Self {
        let explained =
            |tuple: &EpsilonTuple| EpsilonTuple { size: tuple.size.saturating_sub(tuple.epsilon), ..*tuple };
        let mut by_explained: Vec<EpsilonTuple> = neighbours.tuples().iter().map(explained).collect();
        by_explained.sort_unstable();
        Self { levels: levels(neighbours.tuples()), by_size: neighbours.tuples().to_vec(), by_explained }
    }

    /// The level at a size: that of the labelled command nearest in size, the smaller one of two.
    fn level(&self, size: i64) -> i64 {
        let above = self.by_size.partition_point(|tuple| tuple.size < size);
        let distance = |at: &usize| self.by_size.get(*at).map_or(u64::MAX, |tuple| tuple.size.abs_diff(size));
        let nearest = above.checked_sub(1).into_iter().chain([above]).min_by_key(distance);
        nearest.and_then(|at| self.levels.get(at)).copied().unwrap_or(0)
    }

    /// How far a labelled command's ε is from the level at its size.
    fn distance(&self, tuple: &EpsilonTuple) -> i64 {
        tuple.epsilon.saturating_sub(self.level(tuple.size))
    }

    /// The commands nearest to some x, of which `left_out` is the ε of one that does not count.
    fn near(&self, explained: i64, k: usize, left_out: Option<i64>) -> Near {
        let mut times: BTreeMap<i64, f64> = BTreeMap::new();
        for tuple in nearest(&self.by_explained, explained, k.saturating_add(usize::from(left_out.is_some()))) {
            *times.entry(tuple.epsilon).or_default() += tuple.times as f64;
        }
        if let Some(own) = left_out.and_then(|epsilon| times.get_mut(&epsilon)) {
            *own -= 1.0;
        }
        Near { all: times.values().sum(), times }
    }
}

/// The level of ε at each of these tuples, which are in order of size: it rises in few steps.
fn levels(tuples: &[EpsilonTuple]) -> Vec<i64> {
    let times = |tuple: &EpsilonTuple| tuple.times.min(MOST_TIMES) as usize;
    let each = || tuples.iter().flat_map(|tuple| repeat_n(tuple, times(tuple)));
    let (sizes, epsilons): (Vec<i64>, Vec<[i64; 2]>) = each().map(|tuple| (tuple.size, [tuple.epsilon; 2])).unzip();
    let mut levels = steps::fit(&sizes, &epsilons).levels.into_iter();
    // All commands of a tuple have the same size, and so the same level.
    tuples.iter().map(|tuple| levels.by_ref().take(times(tuple)).last().unwrap_or(0)).collect()
}

/// How many of the labelled commands nearest to some x have each ε.
struct Near {
    times: BTreeMap<i64, f64>,
    all: f64,
}

impl Near {
    /// P(ε | x), given the share of ε's distance from the level.
    fn probability(&self, epsilon: i64, strength: f64, share: f64) -> f64 {
        let smoothed = self.times.get(&epsilon).copied().unwrap_or(0.0) + strength * share;
        if smoothed > 0.0 { smoothed / (self.all + strength) } else { 0.0 }
    }
}

/// D: how far ε is from the level around it. What was never seen has the probability 1 / (n + 2) of n commands (the
/// rule of succession), and lies a byte beside what was: a number one digit longer is what makes it. One command more than
/// there are is taken to be at the level, so that few commands do not make a variation of their accidents.
#[derive(Debug, Clone, PartialEq)]
struct Distances {
    times: BTreeMap<i64, f64>,
    all: f64,
}

impl Distances {
    /// Those of all labelled commands.
    fn of(known: &Known) -> Self {
        let mut distances = Self { times: BTreeMap::from([(0, 1.0)]), all: 1.0 };
        for tuple in &known.by_size {
            *distances.times.entry(known.distance(tuple)).or_default() += tuple.times as f64;
            distances.all += tuple.times as f64;
        }
        distances
    }

    /// The distances that have a share, as far as they are looked at.
    fn possible(&self) -> impl Iterator<Item = i64> {
        let most = self.times.keys().take(MOST_VALUES);
        most.flat_map(|distance| (-1..=1).map(move |more: i64| distance.saturating_add(more)))
    }

    fn share(&self, distance: i64) -> f64 {
        self.share_without(distance, None)
    }

    /// The share of a distance where one command with this distance is left out.
    fn share_without(&self, distance: i64, left_out: Option<i64>) -> f64 {
        let all = self.all - f64::from(u8::from(left_out.is_some()));
        let times = |at: i64| {
            let own = f64::from(u8::from(left_out == Some(at)));
            self.times.get(&at).map_or(0.0, |times| times - own)
        };
        let beside = times(distance.saturating_sub(1)) + times(distance.saturating_add(1));
        let unseen = 1.0 / (all + 2.0);
        ((1.0 - unseen) * times(distance) + unseen * beside / 2.0) / all
    }
}

/// Every labelled command with its neighbours, itself left out.
struct LeftOut<'a> {
    commands: Vec<OneOut>,
    distances: &'a Distances,
}

/// One labelled command, or several alike.
struct OneOut {
    epsilon: i64,
    times: f64,
    near: Near,
    /// How far ε is from the level.
    distance: i64,
}

impl<'a> LeftOut<'a> {
    fn new(known: &Known, distances: &'a Distances, k: usize) -> Self {
        let one_out = |tuple: &EpsilonTuple| OneOut {
            epsilon: tuple.epsilon,
            times: tuple.times as f64,
            near: known.near(tuple.size.saturating_sub(tuple.epsilon), k, Some(tuple.epsilon)),
            distance: known.distance(tuple),
        };
        Self { commands: known.by_size.iter().map(one_out).collect(), distances }
    }

    fn ln_likelihood(&self, strength: f64) -> f64 {
        let of_command = |command: &OneOut| {
            let share = self.distances.share_without(command.distance, Some(command.distance));
            command.times * command.near.probability(command.epsilon, strength, share).max(LEAST).ln()
        };
        self.commands.iter().map(of_command).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::TestRandom;

    /// Commands of a gateway whose length field takes two bytes more from 150 bytes on, and whose id is a digit shorter in
    /// one of ten.
    fn stepped(commands: usize) -> Neighbours {
        let mut random = TestRandom(11);
        let tuples = (0..commands).map(|_| {
            let explained = 60 + random.below(300).cast_signed();
            let shorter = i64::from(random.below(10) == 0);
            let epsilon = if explained - shorter < 150 { -2 } else { 0 } - shorter;
            EpsilonTuple::new(explained + epsilon, epsilon)
        });
        Neighbours::new(tuples).unwrap()
    }

    fn weight(estimate: &[WeightedEpsilon], epsilon: i64) -> f64 {
        estimate.iter().find(|value| value.epsilon == epsilon).map_or(0.0, |value| value.weight)
    }

    #[test]
    fn what_is_rare_is_as_probable_as_it_is_everywhere() {
        let neighbours = stepped(1000);
        let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
        for (size, level) in [(100, -2), (220, 0), (330, 0)] {
            let estimate = variation.estimate(size);
            assert_eq!(estimate[0].epsilon, level);
            assert!((weight(&estimate, level - 1) - 0.1).abs() < 0.03, "{size}: {estimate:?}");
            assert!(weight(&estimate, level + 1) < 0.01, "{size}: {estimate:?}");
        }
    }

    #[test]
    fn at_a_step_the_size_says_on_which_side_of_it_a_command_is() {
        let neighbours = stepped(1000);
        let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
        // x = 150 with an id a digit shorter stays below the step.
        let estimate = variation.estimate(147);
        assert!((weight(&estimate, -3) - 0.1).abs() < 0.03 && weight(&estimate, -1) < 0.01, "{estimate:?}");
    }

    #[test]
    fn habits_are_not_counted_twice() {
        // Of x = 120 there are twenty times as many commands as of any other; ε is −1 or 0 in all, equally often.
        let times = |explained: i64| if explained == 120 { 200 } else { 10 };
        let tuples = (100..140).flat_map(|explained| {
            [0, -1].map(|epsilon| EpsilonTuple { size: explained + epsilon, epsilon, times: times(explained) })
        });
        let neighbours = Neighbours::new(tuples).unwrap();
        let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
        let estimate = variation.estimate(120);
        assert!((weight(&estimate, 0) - weight(&estimate, -1)).abs() < 0.05, "{estimate:?}");
    }

    #[test]
    fn few_commands_are_enough() {
        for tuples in [vec![EpsilonTuple::new(100, 0)], vec![EpsilonTuple::new(100, 0), EpsilonTuple::new(140, 1)]] {
            let neighbours = Neighbours::new(tuples).unwrap();
            let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
            let estimate = variation.estimate(100);
            assert_eq!(estimate[0].epsilon, 0, "{estimate:?}");
            assert!(weight(&estimate, 1) > 0.0 && weight(&estimate, -1) > 0.0, "{estimate:?}");
        }
    }

    #[test]
    fn without_strength_the_neighbours_are_taken_at_their_word() {
        let neighbours = stepped(40);
        let variation = EpsilonDistribution::new(&neighbours, Smoothing { k: 5, strength: 0.0 });
        let seen: Vec<i64> = neighbours.tuples().iter().map(|tuple| tuple.epsilon).collect();
        assert!(variation.estimate(200).iter().all(|value| seen.contains(&value.epsilon)));
    }

    proptest! {
        #[test]
        fn any_tuples_give_a_distribution(
            tuples in prop::collection::vec((-1i64 << 40..1 << 40, -1i64 << 40..1 << 40, 1u64..1 << 40), 1..12),
            size: i64,
            k in 1usize..9,
            strength in prop::sample::select(vec![0.0, 1.0, 1e9]),
        ) {
            let tuples = tuples.into_iter().map(|(size, epsilon, times)| EpsilonTuple { size, epsilon, times });
            let neighbours = Neighbours::new(tuples).unwrap();
            let estimate = EpsilonDistribution::new(&neighbours, Smoothing { k, strength }).estimate(size);
            let sum: f64 = estimate.iter().map(|value| value.weight).sum();
            prop_assert!(estimate.is_empty() || (sum - 1.0).abs() < 1e-9, "{estimate:?}");
            prop_assert!(estimate.is_sorted_by(|a, b| a.weight >= b.weight));
            prop_assert!(Smoothing::choose(&neighbours).k > 0);
        }

        /// Leaving a command out is the same as never having had it.
        #[test]
        fn left_out_is_absent(tuples in prop::collection::vec((0i64..30, 0i64..3), 2..20), k in 1usize..6) {
            let tuples: Vec<EpsilonTuple> = tuples.iter().map(|(size, epsilon)| EpsilonTuple::new(*size, *epsilon)).collect();
            for at in 0..tuples.len() {
                let own = tuples[at];
                let mut others = tuples.clone();
                others.remove(at);
                let all = Known::new(&Neighbours::new(tuples.clone()).unwrap());
                let rest = Known::new(&Neighbours::new(others).unwrap());
                let explained = own.size - own.epsilon;
                let left_out = all.near(explained, k, Some(own.epsilon));
                let absent = rest.near(explained, k, None);
                prop_assert!((left_out.all - absent.all).abs() < 1e-9);
                for epsilon in 0..3 {
                    let times = |near: &Near| near.times.get(&epsilon).copied().unwrap_or(0.0);
                    prop_assert!((times(&left_out) - times(&absent)).abs() < 1e-9);
                }
            }
        }
    }
}
