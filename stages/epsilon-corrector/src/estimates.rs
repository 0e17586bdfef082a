//! The likely values of ε at a size, or over a range of sizes. They are cached, since the same sizes recur.

use std::collections::BTreeMap;

use sizeleak_frame::{SharedList, WeightedEpsilon};
use sizeleak_model::{EpsilonDistribution, Neighbours, Smoothing, WeightedEpsilon as Estimate};
use sizeleak_platform::runtime::TwoGenerationCache;

/// In a range of sizes, as block ciphers leave one, ε is estimated at every size, up to this number of sizes; in a
/// wider range, which no cipher leaves, at equally spaced sizes.
const MAX_SIZES: i64 = 4096;

const MAX_CACHE_BYTES: usize = 8 << 20;

/// What a cached estimate takes besides its values, in bytes.
const ENTRY_BYTES: usize = 64;

#[derive(Debug)]
pub struct EpsilonEstimates {
    neighbours: Neighbours,
    /// `None` for the values of the nearest neighbours alone.
    variation: Option<EpsilonDistribution>,
    cache: TwoGenerationCache<[i64; 2], SharedList<WeightedEpsilon>>,
}

impl EpsilonEstimates {
    pub fn new(neighbours: Neighbours, smoothing: Smoothing) -> Self {
        let variation = (smoothing != Smoothing::NEAREST).then(|| EpsilonDistribution::new(&neighbours, smoothing));
        Self { neighbours, variation, cache: TwoGenerationCache::new(MAX_CACHE_BYTES) }
    }

    /// The values of ε over the sizes from the least to the greatest, which are taken to be equally likely; heaviest
    /// first, lower ones first among equals. The weights sum to 1. While it is cached, the same list is returned again.
    pub fn over(&mut self, sizes: [i64; 2]) -> SharedList<WeightedEpsilon> {
        if let Some(values) = self.cache.recall(&sizes) {
            return values.clone();
        }
        let values = self.compute(sizes);
        let values =
            values.iter().map(|Estimate { epsilon, weight }| WeightedEpsilon { epsilon: *epsilon, weight: *weight });
        let values: SharedList<WeightedEpsilon> = values.collect();
        self.cache.remember(sizes, values.clone(), ENTRY_BYTES + size_of_val(&*values));
        values
    }

    fn compute(&self, [least, most]: [i64; 2]) -> Vec<Estimate> {
        let width = most.saturating_sub(least).max(0);
        if width == 0 {
            return self.at(least);
        }
        let step = usize::try_from(width / MAX_SIZES + 1).unwrap_or(usize::MAX);
        let mut weights: BTreeMap<i64, f64> = BTreeMap::new();
        let mut asked = 0.0;
        for size in (least..=most).step_by(step) {
            asked += 1.0;
            for value in self.at(size) {
                *weights.entry(value.epsilon).or_default() += value.weight;
            }
        }
        let shares = weights.into_iter().map(|(epsilon, weight)| Estimate { epsilon, weight: weight / asked });
        let mut estimates: Vec<Estimate> = shares.collect();
        estimates.sort_by(Estimate::heaviest_first);
        estimates
    }

    /// The values of ε at a size: the single nearest command's if nothing else is known.
    fn at(&self, size: i64) -> Vec<Estimate> {
        let varied = self.variation.as_ref().map(|variation| variation.estimate(size));
        varied.filter(|values| !values.is_empty()).unwrap_or_else(|| self.neighbours.estimate(size, 1))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_model::EpsilonTuple;

    use super::*;

    fn estimates(smoothing: Smoothing) -> EpsilonEstimates {
        let tuples = [(100, 0), (102, 1), (200, 5)].map(|(size, epsilon)| EpsilonTuple::new(size, epsilon));
        EpsilonEstimates::new(Neighbours::new(tuples).unwrap(), smoothing)
    }

    #[test]
    fn every_size_of_a_range_has_the_same_share() {
        let mut nearest = estimates(Smoothing::NEAREST);
        let values = nearest.over([100, 149]);
        // The nearest is (100, 0) for 100, both for 101, (102, 1) from there on.
        assert_eq!(values.iter().map(|value| value.epsilon).collect::<Vec<_>>(), [1, 0]);
        assert!((values[1].weight - 1.5 / 50.0).abs() < 1e-12, "{values:?}");
    }

    #[test]
    fn weights_over_extreme_ranges_sum_to_one() {
        for range in [[0, i64::MAX], [i64::MAX, 0], [i64::MAX; 2], [i64::MIN, i64::MAX]] {
            let mut smooth = estimates(Smoothing { k: 2, strength: 3.0 });
            let sum: f64 = smooth.over(range).iter().map(|value| value.weight).sum();
            assert!((sum - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn cached_estimates_are_the_computed_ones() {
        let smoothing = Smoothing { k: 2, strength: 3.0 };
        let (mut estimates, fresh) = (estimates(smoothing), estimates(smoothing));
        for size in (0..200_000).chain(0..300) {
            let found = estimates.over([size; 2]);
            if size % 1000 < 5 {
                let computed = fresh.at(size);
                let pairs = computed.iter().map(|value| (value.epsilon, value.weight));
                assert!(pairs.eq(found.iter().map(|value| (value.epsilon, value.weight))));
                assert!(estimates.over([size; 2]).is_clone_of(&found), "the same list again");
            }
        }
    }
}
