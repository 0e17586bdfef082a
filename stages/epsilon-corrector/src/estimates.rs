//! The likely values of ε at a size, or over a range of sizes, worked out once: the same sizes come again and again.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use sizeleak_frame::{SharedList, WeightedEpsilon as Offered};
use sizeleak_model::{Neighbours, Smoothing, Variation, WeightedEpsilon};

/// Of a range of sizes, as block ciphers leave it, every size is asked for ε, up to so many; of a wider one, which no
/// cipher leaves, as many at equal distances.
const MAX_SIZES: i64 = 4096;

/// So many values of ε are remembered at most, of all sizes together: some megabytes. That a size is remembered at all
/// counts as [`OF_A_SIZE`] more.
const MAX_REMEMBERED: usize = 1 << 19;

/// What remembering a size takes beside the values, in places of values.
const OF_A_SIZE: usize = 4;

/// Estimates of ε, remembered by size.
#[derive(Debug)]
pub struct Estimates {
    neighbours: Neighbours,
    /// `None` takes the nearest neighbours at their word.
    variation: Option<Variation>,
    /// Each range's values. Only looked up: its order shows nowhere.
    known: HashMap<[i64; 2], SharedList<Offered>, FixedState>,
    remembered: usize,
}

impl Estimates {
    /// Estimates from these labelled commands, asked in this way.
    pub fn new(neighbours: Neighbours, smoothing: Smoothing) -> Self {
        let variation = (smoothing != Smoothing::NEAREST).then(|| Variation::new(&neighbours, smoothing));
        Self { neighbours, variation, known: HashMap::default(), remembered: 0 }
    }

    /// The values of ε over the sizes from the least to the most, which are taken to be equally likely; heaviest first,
    /// lower ones first among equals. The weights sum to 1. Asked again, it gives the same list once more.
    pub fn over(&mut self, sizes: [i64; 2]) -> SharedList<Offered> {
        match self.known.get(&sizes) {
            Some(values) => values.clone(),
            None => self.remember(sizes),
        }
    }

    fn remember(&mut self, sizes: [i64; 2]) -> SharedList<Offered> {
        let found = self.work_out(sizes);
        let offered =
            found.iter().map(|WeightedEpsilon { epsilon, weight }| Offered { epsilon: *epsilon, weight: *weight });
        let values: SharedList<Offered> = offered.collect();
        let room = values.len() + OF_A_SIZE;
        if self.remembered + room > MAX_REMEMBERED {
            self.known.clear();
            self.remembered = 0;
        }
        self.remembered += room;
        self.known.insert(sizes, values.clone());
        values
    }

    fn work_out(&self, [least, most]: [i64; 2]) -> Vec<WeightedEpsilon> {
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
        let shares = weights.into_iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight: weight / asked });
        let mut estimates: Vec<WeightedEpsilon> = shares.collect();
        estimates.sort_by(WeightedEpsilon::heaviest_first);
        estimates
    }

    /// The values of ε at a size: the single nearest command's where nothing else is known.
    fn at(&self, size: i64) -> Vec<WeightedEpsilon> {
        let varied = self.variation.as_ref().map(|variation| variation.estimate(size));
        varied.filter(|values| !values.is_empty()).unwrap_or_else(|| self.neighbours.estimate(size, 1))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_model::Tuple;

    use super::*;

    fn estimates(smoothing: Smoothing) -> Estimates {
        let tuples = [(100, 0), (102, 1), (200, 5)].map(|(size, epsilon)| Tuple::new(size, epsilon));
        Estimates::new(Neighbours::new(tuples).unwrap(), smoothing)
    }

    #[test]
    fn every_size_of_a_range_is_asked() {
        let mut nearest = estimates(Smoothing::NEAREST);
        let values = nearest.over([100, 149]);
        // The nearest is (100, 0) for 100, both for 101, (102, 1) from there on.
        assert_eq!(values.iter().map(|value| value.epsilon).collect::<Vec<_>>(), [1, 0]);
        assert!((values[1].weight - 1.5 / 50.0).abs() < 1e-12, "{values:?}");
    }

    #[test]
    fn hostile_ranges_end() {
        for range in [[0, i64::MAX], [i64::MAX, 0], [i64::MAX; 2], [i64::MIN, i64::MAX]] {
            let mut smooth = estimates(Smoothing { k: 2, strength: 3.0 });
            let sum: f64 = smooth.over(range).iter().map(|value| value.weight).sum();
            assert!((sum - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_remembered_is_what_was_found_and_bounded() {
        let smoothing = Smoothing { k: 2, strength: 3.0 };
        let (mut estimates, fresh) = (estimates(smoothing), estimates(smoothing));
        for size in (0..300_000).chain(0..300) {
            let found = estimates.over([size; 2]);
            if size % 1000 < 5 {
                let worked_out = fresh.at(size);
                let pairs = worked_out.iter().map(|value| (value.epsilon, value.weight));
                assert!(pairs.eq(found.iter().map(|value| (value.epsilon, value.weight))));
                assert!(estimates.over([size; 2]).is_clone_of(&found), "the same list again");
            }
            assert!(estimates.remembered <= MAX_REMEMBERED);
            if size % 10_000 == 0 {
                let remembered = estimates.known.values().map(|values| values.len() + OF_A_SIZE).sum::<usize>();
                assert_eq!(remembered, estimates.remembered);
            }
        }
    }
}
