//! ε: what of a command's size its actions and the overhead do not explain, from the labelled commands nearest in size
//! (paper, section IV: one-dimensional k-nearest neighbours).

use std::collections::BTreeMap;

use thiserror::Error;

/// What was left of a labelled command's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuple {
    /// |s| in bytes.
    pub size: i64,
    /// ε in bytes.
    pub epsilon: i64,
}

/// A value of ε and how much speaks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedEpsilon {
    /// ε in bytes.
    pub epsilon: i64,
    /// Its share among all values offered, from 0 to 1.
    pub weight: f64,
}

/// Labelled commands in order of size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours {
    tuples: Vec<Tuple>,
}

/// There is no labelled command to learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there is no ⟨size, ε⟩ tuple: learn from one labelled command at least")]
pub struct NoTuples;

impl Neighbours {
    /// Sorts the tuples.
    ///
    /// # Errors
    /// [`NoTuples`] where there is none.
    pub fn new(mut tuples: Vec<Tuple>) -> Result<Self, NoTuples> {
        tuples.sort_unstable();
        if tuples.is_empty() { Err(NoTuples) } else { Ok(Self { tuples }) }
    }

    /// The tuples in order of size, then of ε.
    pub fn tuples(&self) -> &[Tuple] {
        &self.tuples
    }

    /// The `k` tuples nearest in size, and all others that are as near as the last of them: so the answer depends on
    /// distances alone, not on the order of equal ones. In order of size.
    pub fn nearest(&self, size: i64, k: usize) -> &[Tuple] {
        let mut start = self.tuples.partition_point(|tuple| tuple.size < size);
        let mut end = start;
        while end - start < k.max(1) {
            let below = start.checked_sub(1).and_then(|at| self.distance(at, size));
            let above = self.distance(end, size);
            match (below, above) {
                (None, None) => break,
                (Some(below), Some(above)) if below <= above => start -= 1,
                (Some(_), None) => start -= 1,
                (_, Some(_)) => end += 1,
            }
        }
        let farthest = self.distance(start, size).max(end.checked_sub(1).and_then(|at| self.distance(at, size)));
        while start > 0 && self.distance(start - 1, size) <= farthest {
            start -= 1;
        }
        while end < self.tuples.len() && self.distance(end, size) <= farthest {
            end += 1;
        }
        self.tuples.get(start..end).unwrap_or_default()
    }

    /// The values of ε among the nearest tuples, heaviest first, lower ones first among equals. A tuple weighs
    /// 1 / (1 + its distance in bytes); the weights are scaled to sum to 1.
    pub fn estimate(&self, size: i64, k: usize) -> Vec<WeightedEpsilon> {
        let mut weights: BTreeMap<i64, f64> = BTreeMap::new();
        for tuple in self.nearest(size, k) {
            *weights.entry(tuple.epsilon).or_default() += 1.0 / (1.0 + tuple.size.abs_diff(size) as f64);
        }
        let total: f64 = weights.values().sum();
        let weighted = weights.into_iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight: weight / total });
        let mut estimate: Vec<WeightedEpsilon> = weighted.collect();
        estimate.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.epsilon.cmp(&b.epsilon)));
        estimate
    }

    /// Whether a tuple's ε would be among those offered if that tuple itself were not known.
    pub(crate) fn covers_left_out(&self, at: usize, k: usize) -> bool {
        let Some(left_out) = self.tuples.get(at) else { return false };
        // One more neighbour, since the tuple itself is its own nearest.
        let near = self.nearest(left_out.size, k + 1);
        near.iter().filter(|tuple| tuple.epsilon == left_out.epsilon).count() > 1
    }

    fn distance(&self, at: usize, size: i64) -> Option<u64> {
        self.tuples.get(at).map(|tuple| tuple.size.abs_diff(size))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn neighbours(tuples: &[(i64, i64)]) -> Neighbours {
        Neighbours::new(tuples.iter().map(|(size, epsilon)| Tuple { size: *size, epsilon: *epsilon }).collect())
            .unwrap()
    }

    #[test]
    fn nearer_tuples_weigh_more() {
        let estimate = neighbours(&[(100, 0), (103, 1), (103, 1), (200, 5)]).estimate(100, 3);
        assert_eq!(estimate.iter().map(|value| value.epsilon).collect::<Vec<_>>(), [0, 1]);
        assert!((estimate[0].weight - 1.0 / 1.5).abs() < 1e-12);
        assert_eq!(neighbours(&[(1, 7)]).estimate(i64::MAX, 9)[0], WeightedEpsilon { epsilon: 7, weight: 1.0 });
        assert_eq!(Neighbours::new(vec![]), Err(NoTuples));
    }

    proptest! {
        #[test]
        fn agrees_with_looking_at_all(
            tuples in prop::collection::vec((-50i64..50, -3i64..4), 1..40),
            size in -60i64..60,
            k in 1usize..12,
        ) {
            let neighbours = neighbours(&tuples);
            let mut distances: Vec<u64> = tuples.iter().map(|(other, _)| other.abs_diff(size)).collect();
            distances.sort_unstable();
            let farthest = distances[k.min(distances.len()) - 1];
            let mut expected: Vec<(i64, i64)> =
                tuples.iter().filter(|(other, _)| other.abs_diff(size) <= farthest).copied().collect();
            expected.sort_unstable();
            let nearest: Vec<(i64, i64)> =
                neighbours.nearest(size, k).iter().map(|tuple| (tuple.size, tuple.epsilon)).collect();
            prop_assert_eq!(nearest, expected);
            let sum: f64 = neighbours.estimate(size, k).iter().map(|value| value.weight).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }
    }
}
