//! The likely values of ε at a size, or over a range of sizes. They are cached, since the same sizes recur. Where a
//! size is far from those of all labelled commands, its ε is a guess, and is reported as one.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{SharedList, WeightedEpsilon};
use sizeleak_model::{EpsilonDistribution, EpsilonTuple, Model, Neighbours, Smoothing, WeightedEpsilon as Estimate};
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

/// Counts commands of unseen sizes, and remembers what was reported.
#[derive(Debug)]
pub(crate) struct UnseenSizes {
    /// The size of the largest action. Without a label within this distance, there are numbers of actions that no
    /// labelled command near the size has.
    max_distance: u64,
    /// The gaps between labelled sizes that were reported, each by the index of the tuple after it.
    reported: BTreeSet<usize>,
    /// How many commands had unseen sizes.
    pub(crate) commands: u64,
}

impl UnseenSizes {
    pub(crate) fn new(model: &Model) -> Self {
        let largest = model.actions.iter().map(|action| action.size_range()[1].unsigned_abs()).max();
        Self { max_distance: largest.unwrap_or(0), reported: BTreeSet::new(), commands: 0 }
    }

    /// Counts a command if its sizes are far from those of the labels, which are in order of size. If it is the first one
    /// between its neighbours, returns how far it is from the nearest label in bytes, and the detail of a notice.
    pub(crate) fn check(&mut self, labels: &[EpsilonTuple], [least, most]: [i64; 2]) -> Option<(u64, String)> {
        let next = labels.partition_point(|tuple| tuple.size < least);
        let (below, above) = (next.checked_sub(1).and_then(|at| labels.get(at)), labels.get(next));
        let distance =
            |tuple: Option<&EpsilonTuple>, size: i64| tuple.map_or(u64::MAX, |tuple| tuple.size.abs_diff(size));
        let is_within = above.is_some_and(|tuple| tuple.size <= most);
        let distance = distance(below, least).min(distance(above, most));
        if is_within || distance <= self.max_distance {
            return None;
        }
        self.commands += 1;
        if !self.reported.insert(next) {
            return None;
        }
        let range = match (below, above) {
            (Some(below), Some(above)) => format!("between {} and {} bytes", below.size, above.size),
            (Some(below), None) => format!("of more than {} bytes", below.size),
            (None, above) => format!("of less than {} bytes", above.map_or(0, |above| above.size)),
        };
        let detail = format!(
            "no labelled command {range} was learned from: their ε is taken from the nearest sizes that were; record \
             commands of such sizes, and learn again"
        );
        Some((distance, detail))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn a_size_is_unseen_if_it_is_far_from_every_label(
            labels in prop::collection::btree_set(0i64..400, 1..8),
            action in 1u64..60,
            least in 0i64..500,
            width in 0i64..80,
        ) {
            let tuples: Vec<EpsilonTuple> = labels.iter().map(|size| EpsilonTuple::new(*size, 0)).collect();
            let mut unseen = UnseenSizes { max_distance: action, reported: BTreeSet::new(), commands: 0 };
            let near = least.saturating_sub_unsigned(action)..=(least + width).saturating_add_unsigned(action);
            let is_near = labels.iter().any(|label| near.contains(label));
            prop_assert_eq!(unseen.check(&tuples, [least, least + width]).is_none(), is_near);
            prop_assert_eq!(unseen.commands, u64::from(!is_near));
        }
    }
}
