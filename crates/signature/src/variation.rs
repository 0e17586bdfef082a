//! How ε varies: P(ε | x), where x = |s| − ε is what actions and overhead make of a command's size.
//!
//! The paper asks the neighbours of |s| for ε (IV). But what decides between candidates is how probable their actions make
//! the size, P(|s| | A) = P(ε | x); neighbours of |s| give P(ε | |s|) instead, which has the habits of the labelled commands in
//! it once more. So the labelled commands nearest in x are asked, whose ε stands for itself.
//!
//! k of them are few for a value that one command in a hundred has. What length fields add to ε depends on x, in few
//! steps; how a number's digits vary does not. So the distances of every labelled command's ε from the *level* around it,
//! the value most of its neighbours have, are one distribution over all sizes, and
//!
//! ```text
//! P(ε | x) = (times ε occurs among the neighbours + strength · D(ε − level(x))) / (neighbours + strength)
//! ```
//!
//! with D the distribution of the distances. A strength of 0 takes the neighbours at their word. Which number of
//! neighbours and which strength make the labelled commands likeliest, each left out in turn, is what is learned.

use std::collections::BTreeMap;

use crate::Neighbours;
use crate::epsilon::{Tuple, WeightedEpsilon, nearest};

/// The numbers of neighbours that are tried.
const K_TRIED: [usize; 8] = [3, 5, 9, 15, 25, 40, 65, 100];

/// The strengths that are tried, in labelled commands.
const STRENGTHS_TRIED: [f64; 8] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];

/// How much likelier (in nats) a larger number of neighbours must make the labelled commands than a smaller one.
const GAIN: f64 = 1e-6;

/// No distance is less probable than this while what is learned is chosen, or one odd command would decide.
const LEAST: f64 = 1e-6;

/// Of all values of ε, so many are offered at most: those that most labelled commands have, and those beside them.
const MOST_VALUES: usize = 512;

/// The distribution of ε.
#[derive(Debug, Clone, PartialEq)]
pub struct Variation {
    /// In order of x, which takes the place of the size.
    tuples: Vec<Tuple>,
    k: usize,
    strength: f64,
    distances: Distances,
    /// The values of ε that may be, in order.
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
        let tuples = by_explained_size(neighbours);
        let mut best = (f64::NEG_INFINITY, Self::NEAREST);
        for k in K_TRIED {
            let left_out = LeftOut::new(&tuples, k);
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

impl Variation {
    /// The distribution that so smoothed neighbours give.
    pub fn new(neighbours: &Neighbours, smoothing: Smoothing) -> Self {
        let tuples = by_explained_size(neighbours);
        let Smoothing { k, strength } = smoothing;
        let distances = LeftOut::new(&tuples, k).distances;
        let values = values(&tuples, strength);
        Self { tuples, k, strength, distances, values }
    }

    /// How probable each value of ε makes a command of this size, heaviest first, lower ones first among equals. They are
    /// scaled to sum to 1, which changes nothing between candidates.
    pub fn estimate(&self, size: i64) -> Vec<WeightedEpsilon> {
        let weighted = self.values.iter().map(|epsilon| {
            let weight = self.probability(size.saturating_sub(*epsilon), *epsilon);
            WeightedEpsilon { epsilon: *epsilon, weight }
        });
        let mut estimate: Vec<WeightedEpsilon> = weighted.filter(|value| value.weight > 0.0).collect();
        let total: f64 = estimate.iter().map(|value| value.weight).sum();
        for value in &mut estimate {
            value.weight /= total;
        }
        estimate.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.epsilon.cmp(&b.epsilon)));
        estimate
    }

    /// P(ε | x).
    fn probability(&self, explained: i64, epsilon: i64) -> f64 {
        let near = Near::new(&self.tuples, explained, self.k, None);
        near.probability(epsilon, self.strength, |distance| self.distances.share(distance))
    }
}

/// Tuples by what actions and overhead make of the size, which takes the size's place.
fn by_explained_size(neighbours: &Neighbours) -> Vec<Tuple> {
    let explained = |tuple: &Tuple| Tuple { size: tuple.size.saturating_sub(tuple.epsilon), ..*tuple };
    let mut tuples: Vec<Tuple> = neighbours.tuples().iter().map(explained).collect();
    tuples.sort_unstable();
    tuples
}

/// The values of ε that most commands have; with those beside them if they have a share.
fn values(tuples: &[Tuple], strength: f64) -> Vec<i64> {
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for tuple in tuples {
        let times = times.entry(tuple.epsilon).or_default();
        *times = times.saturating_add(tuple.times);
    }
    let mut seen: Vec<(i64, u64)> = times.into_iter().collect();
    seen.sort_by_key(|(epsilon, times)| (std::cmp::Reverse(*times), *epsilon));
    let beside = if strength > 0.0 { -1..=1 } else { 0..=0 };
    let most = seen.into_iter().take(MOST_VALUES);
    let mut values: Vec<i64> =
        most.flat_map(|(epsilon, _)| beside.clone().map(move |more: i64| epsilon.saturating_add(more))).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// The labelled commands nearest to some x.
struct Near {
    /// How many of them have each ε.
    times: BTreeMap<i64, f64>,
    all: f64,
    /// The ε that most of them have, the nearest counting most.
    level: i64,
}

impl Near {
    /// The nearest, of which `left_out` is one that does not count.
    fn new(tuples: &[Tuple], explained: i64, k: usize, left_out: Option<i64>) -> Self {
        let (mut times, mut weights): (BTreeMap<i64, f64>, BTreeMap<i64, f64>) = (BTreeMap::new(), BTreeMap::new());
        // One more neighbour, since the command left out is its own nearest.
        let k = k.saturating_add(usize::from(left_out.is_some()));
        for tuple in nearest(tuples, explained, k) {
            let number = tuple.times as f64;
            *times.entry(tuple.epsilon).or_default() += number;
            *weights.entry(tuple.epsilon).or_default() += number / (1.0 + tuple.size.abs_diff(explained) as f64);
        }
        for known in [&mut times, &mut weights] {
            if let Some(own) = left_out.and_then(|epsilon| known.get_mut(&epsilon)) {
                *own -= 1.0;
            }
        }
        // The first of the greatest, which is the lowest.
        let level = weights.iter().rev().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(epsilon, _)| *epsilon);
        Self { all: times.values().sum(), times, level }
    }

    fn probability(&self, epsilon: i64, strength: f64, share: impl Fn(i64) -> f64) -> f64 {
        let times = self.times.get(&epsilon).copied().unwrap_or(0.0);
        let smoothed = times + strength * share(epsilon.saturating_sub(self.level));
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
    commands: Vec<(&'a Tuple, Near)>,
    distances: Distances,
}

impl<'a> LeftOut<'a> {
    fn new(tuples: &'a [Tuple], k: usize) -> Self {
        let near = |tuple: &'a Tuple| (tuple, Near::new(tuples, tuple.size, k, Some(tuple.epsilon)));
        let commands: Vec<(&Tuple, Near)> = tuples.iter().map(near).collect();
        let mut distances = Distances { times: BTreeMap::from([(0, 1.0)]), all: 1.0 };
        for (tuple, near) in &commands {
            let number = tuple.times as f64;
            *distances.times.entry(tuple.epsilon.saturating_sub(near.level)).or_default() += number;
            distances.all += number;
        }
        Self { commands, distances }
    }

    fn ln_likelihood(&self, strength: f64) -> f64 {
        let of_command = |(tuple, near): &(&Tuple, Near)| {
            let own = tuple.epsilon.saturating_sub(near.level);
            let share = |distance| self.distances.share_without(distance, Some(own));
            tuple.times as f64 * near.probability(tuple.epsilon, strength, share).max(LEAST).ln()
        };
        self.commands.iter().map(of_command).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::Noise;

    /// Commands of a gateway whose length field takes two bytes more from x = 150 on, and whose id is a digit shorter in
    /// one of ten.
    fn stepped(commands: usize) -> Neighbours {
        let mut noise = Noise(11);
        let tuples = (0..commands).map(|_| {
            let explained = 60 + noise.below(300).cast_signed();
            let epsilon = if explained < 150 { -2 } else { 0 } - i64::from(noise.below(10) == 0);
            Tuple::new(explained + epsilon, epsilon)
        });
        Neighbours::new(tuples).unwrap()
    }

    fn weight(estimate: &[WeightedEpsilon], epsilon: i64) -> f64 {
        estimate.iter().find(|value| value.epsilon == epsilon).map_or(0.0, |value| value.weight)
    }

    #[test]
    fn what_is_rare_is_as_probable_as_it_is_everywhere() {
        let neighbours = stepped(1000);
        let variation = Variation::new(&neighbours, Smoothing::choose(&neighbours));
        for (size, level) in [(100, -2), (220, 0), (330, 0)] {
            let estimate = variation.estimate(size);
            assert_eq!(estimate[0].epsilon, level);
            assert!((weight(&estimate, level - 1) - 0.1).abs() < 0.03, "{size}: {estimate:?}");
            assert!(weight(&estimate, level + 1) < 0.01, "{size}: {estimate:?}");
        }
    }

    #[test]
    fn habits_are_not_counted_twice() {
        // Of x = 100 there are twenty times as many commands as of x = 101; ε is −1 or 0 in both, equally often.
        let tuples = [(100, 0, 200), (99, -1, 200), (101, 0, 10), (100, -1, 10)];
        let tuples = tuples.map(|(size, epsilon, times)| Tuple { size, epsilon, times });
        let neighbours = Neighbours::new(tuples).unwrap();
        let variation = Variation::new(&neighbours, Smoothing::choose(&neighbours));
        let estimate = variation.estimate(100);
        assert!((weight(&estimate, 0) - weight(&estimate, -1)).abs() < 0.05, "{estimate:?}");
    }

    #[test]
    fn few_commands_are_enough() {
        for tuples in [vec![Tuple::new(100, 0)], vec![Tuple::new(100, 0), Tuple::new(140, 1)]] {
            let neighbours = Neighbours::new(tuples).unwrap();
            let variation = Variation::new(&neighbours, Smoothing::choose(&neighbours));
            let estimate = variation.estimate(100);
            assert_eq!(estimate[0].epsilon, 0, "{estimate:?}");
            assert!(weight(&estimate, 1) > 0.0 && weight(&estimate, -1) > 0.0, "{estimate:?}");
        }
    }

    #[test]
    fn without_strength_the_neighbours_are_taken_at_their_word() {
        let neighbours = stepped(40);
        let variation = Variation::new(&neighbours, Smoothing { k: 5, strength: 0.0 });
        let seen: Vec<i64> = neighbours.tuples().iter().map(|tuple| tuple.epsilon).collect();
        assert!(variation.estimate(200).iter().all(|value| seen.contains(&value.epsilon)));
    }

    proptest! {
        #[test]
        fn any_tuples_give_a_distribution(
            tuples in prop::collection::vec((any::<i64>(), any::<i64>(), 1u64..1 << 40), 1..12),
            size: i64,
            k in 1usize..9,
            strength in prop::sample::select(vec![0.0, 1.0, 1e9]),
        ) {
            let tuples = tuples.into_iter().map(|(size, epsilon, times)| Tuple { size, epsilon, times });
            let neighbours = Neighbours::new(tuples).unwrap();
            let estimate = Variation::new(&neighbours, Smoothing { k, strength }).estimate(size);
            let sum: f64 = estimate.iter().map(|value| value.weight).sum();
            prop_assert!(estimate.is_empty() || (sum - 1.0).abs() < 1e-9, "{estimate:?}");
            prop_assert!(estimate.is_sorted_by(|a, b| a.weight >= b.weight));
            prop_assert!(Smoothing::choose(&neighbours).k > 0);
        }

        /// Leaving a command out is the same as never having had it.
        #[test]
        fn left_out_is_absent(tuples in prop::collection::vec((0i64..30, 0i64..3), 2..20), k in 1usize..6) {
            let tuples: Vec<Tuple> = tuples.iter().map(|(size, epsilon)| Tuple::new(*size, *epsilon)).collect();
            for at in 0..tuples.len() {
                let own = tuples[at];
                let mut others = tuples.clone();
                others.remove(at);
                let all = by_explained_size(&Neighbours::new(tuples.clone()).unwrap());
                let rest = by_explained_size(&Neighbours::new(others).unwrap());
                let explained = own.size - own.epsilon;
                let left_out = Near::new(&all, explained, k, Some(own.epsilon));
                let absent = Near::new(&rest, explained, k, None);
                prop_assert!((left_out.all - absent.all).abs() < 1e-9);
                for epsilon in 0..3 {
                    let times = |near: &Near| near.times.get(&epsilon).copied().unwrap_or(0.0);
                    prop_assert!((times(&left_out) - times(&absent)).abs() < 1e-9);
                }
            }
        }
    }
}
