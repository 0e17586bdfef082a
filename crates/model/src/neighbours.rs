//! ε, the part of a command's size that its actions and the overhead do not explain, estimated from the labelled
//! commands nearest in size (paper, section IV: one-dimensional k-nearest neighbours).

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The most distinct tuples of a model: what they are learned into takes memory and time for each.
pub const MAX_TUPLES: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpsilonTuple {
    /// |s| in bytes.
    pub size: i64,
    pub epsilon: i64,
    /// The number of labelled commands with this size and ε, at least 1.
    pub times: u64,
}

impl EpsilonTuple {
    pub fn new(size: i64, epsilon: i64) -> Self {
        Self { size, epsilon, times: 1 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedEpsilon {
    pub epsilon: i64,
    /// Its share of all values, from 0 to 1.
    pub weight: f64,
}

impl WeightedEpsilon {
    /// The order of estimates: heaviest first, equal weights in ascending order of ε.
    pub fn heaviest_first(&self, other: &Self) -> Ordering {
        other.weight.total_cmp(&self.weight).then(self.epsilon.cmp(&other.epsilon))
    }

    /// Scales the weights to sum to 1 and sorts the values by [`Self::heaviest_first`].
    pub(crate) fn normalised(mut values: Vec<Self>) -> Vec<Self> {
        let total: f64 = values.iter().map(|value| value.weight).sum();
        for value in &mut values {
            value.weight /= total;
        }
        values.sort_by(Self::heaviest_first);
        values
    }
}

/// Labelled commands in order of size, for nearest-neighbour look-ups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// Distinct and in ascending order; at least one.
    tuples: Vec<EpsilonTuple>,
}

impl Neighbours {
    /// Sorts the tuples and merges equal ones; `None` without any tuple.
    pub fn new(tuples: impl IntoIterator<Item = EpsilonTuple>) -> Option<Self> {
        let mut times: BTreeMap<(i64, i64), u64> = BTreeMap::new();
        for tuple in tuples.into_iter().filter(|tuple| tuple.times > 0) {
            let times = times.entry((tuple.size, tuple.epsilon)).or_default();
            *times = times.saturating_add(tuple.times);
        }
        let tuples: Vec<EpsilonTuple> =
            times.into_iter().map(|((size, epsilon), times)| EpsilonTuple { size, epsilon, times }).collect();
        (!tuples.is_empty()).then_some(Self { tuples })
    }

    /// The distinct tuples in order of size, then of ε.
    pub fn tuples(&self) -> &[EpsilonTuple] {
        &self.tuples
    }

    /// The `k` labelled commands (at least 1) nearest in size, and all others at the same distance as the last of them:
    /// so the result does not depend on the order of equal distances. In order of size, then of ε; the running time is
    /// O(log n) plus the number of neighbours.
    pub fn nearest(&self, size: i64, k: usize) -> &[EpsilonTuple] {
        nearest(&self.tuples, size, k)
    }

    /// The values of ε of the nearest labelled commands, heaviest first, equal weights in ascending order. The weight
    /// of a command is 1 / (1 + its distance in bytes); the weights are scaled to sum to 1. `k` = 1 is the paper's
    /// method.
    pub fn estimate(&self, size: i64, k: usize) -> Vec<WeightedEpsilon> {
        let mut weights: BTreeMap<i64, f64> = BTreeMap::new();
        for tuple in nearest(&self.tuples, size, k) {
            let weight = tuple.times as f64 / (1.0 + tuple.size.abs_diff(size) as f64);
            *weights.entry(tuple.epsilon).or_default() += weight;
        }
        let weighted = weights.into_iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight });
        WeightedEpsilon::normalised(weighted.collect())
    }
}

/// [`Neighbours::nearest`] of any tuples in order of size.
pub(crate) fn nearest(tuples: &[EpsilonTuple], size: i64, k: usize) -> &[EpsilonTuple] {
    let mut start = tuples.partition_point(|tuple| tuple.size < size);
    let mut end = start;
    let mut missing = u64::try_from(k.max(1)).unwrap_or(u64::MAX);
    let mut farthest = 0;
    loop {
        let below = start.checked_sub(1).and_then(|at| tuples.get(at));
        let above = tuples.get(end);
        let distance = |tuple: &EpsilonTuple| tuple.size.abs_diff(size);
        let (nearer, is_below) = match (below, above) {
            (Some(below), Some(above)) if distance(above) < distance(below) => (above, false),
            (Some(below), _) => (below, true),
            (None, Some(above)) => (above, false),
            (None, None) => break,
        };
        if missing == 0 && distance(nearer) > farthest {
            break;
        }
        farthest = distance(nearer);
        missing = missing.saturating_sub(nearer.times);
        if is_below { start -= 1 } else { end += 1 }
    }
    tuples.get(start..end).unwrap_or_default()
}
