//! The values of ε that were seen anywhere, for commands whose own value none of their neighbours has.
//!
//! Of k neighbours' values the next command has another one with a probability of about 1 / (k + 2) (the rule of
//! succession). That share goes to the values that none of them has but some labelled command of another size has, and to
//! those a byte beside one, since a length or a number one digit longer is what makes a value that was never seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Neighbours, WeightedEpsilon};

/// The share of a value that goes to each of the two beside it.
const BESIDE: f64 = 0.1;

/// How often each value of ε occurs, over all sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Background {
    shares: BTreeMap<i64, f64>,
}

impl Background {
    /// The distribution over all labelled commands.
    pub fn of(neighbours: &Neighbours) -> Self {
        let commands: u64 = neighbours.tuples().iter().map(|tuple| tuple.times).sum();
        let mut shares: BTreeMap<i64, f64> = BTreeMap::new();
        for tuple in neighbours.tuples() {
            let share = tuple.times as f64 / commands as f64;
            let (below, above) = (tuple.epsilon.saturating_sub(1), tuple.epsilon.saturating_add(1));
            for (epsilon, part) in [(below, BESIDE), (tuple.epsilon, 1.0 - 2.0 * BESIDE), (above, BESIDE)] {
                *shares.entry(epsilon).or_default() += share * part;
            }
        }
        Self { shares }
    }

    /// What `k` neighbours estimate, with the share of what they may not have seen given to these values. Heaviest first,
    /// lower ones first among equals; the weights sum to 1.
    pub fn smooth(&self, estimate: &[WeightedEpsilon], k: usize) -> Vec<WeightedEpsilon> {
        let seen: BTreeSet<i64> = estimate.iter().map(|value| value.epsilon).collect();
        let others = || self.shares.iter().filter(|(epsilon, _)| !seen.contains(epsilon));
        let share_of_others: f64 = others().map(|(_, share)| share).sum();
        let unseen = if share_of_others > 0.0 { 1.0 / (k as f64 + 2.0) } else { 0.0 };
        let value = |(epsilon, share): (&i64, &f64)| WeightedEpsilon {
            epsilon: *epsilon,
            weight: unseen * share / share_of_others,
        };
        let mut smoothed: Vec<WeightedEpsilon> = others().map(value).collect();
        smoothed
            .extend(estimate.iter().map(|value| WeightedEpsilon { weight: (1.0 - unseen) * value.weight, ..*value }));
        smoothed.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.epsilon.cmp(&b.epsilon)));
        smoothed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tuple;

    #[test]
    fn values_seen_elsewhere_and_beside_them_get_the_share_of_the_unseen() {
        let tuples = [Tuple::new(100, 0), Tuple::new(101, 0), Tuple::new(900, -3)];
        let neighbours = Neighbours::new(tuples).unwrap();
        let background = Background::of(&neighbours);
        let smoothed = background.smooth(&neighbours.estimate(100, 2), 2);
        let epsilons: Vec<i64> = smoothed.iter().map(|value| value.epsilon).collect();
        assert_eq!(epsilons, [0, -3, -1, 1, -4, -2]);
        // Of the quarter that is unseen −3 has 0.8 · 1/3 of 1 − 0.8 · 2/3.
        assert!((smoothed[0].weight - 0.75).abs() < 1e-12, "{smoothed:?}");
        assert!((smoothed[1].weight - 0.25 * 0.8 / 1.4).abs() < 1e-12, "{smoothed:?}");
        assert!((smoothed.iter().map(|value| value.weight).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_the_neighbours_have_takes_no_share_of_the_unseen() {
        let tuples = [Tuple { size: 100, epsilon: 0, times: 90 }, Tuple { size: 900, epsilon: -3, times: 10 }];
        let neighbours = Neighbours::new(tuples).unwrap();
        let background = Background::of(&neighbours);
        let smoothed = background.smooth(&neighbours.estimate(100, 50), 50);
        let weight = |epsilon| smoothed.iter().find(|value| value.epsilon == epsilon).unwrap().weight;
        // Were the share spread over 0 too, −3 had a tenth of it.
        assert!(weight(-3) > 0.25 / 52.0 && weight(0) > 0.98, "{smoothed:?}");
        let all = background.smooth(&smoothed, 50);
        assert_eq!(all, smoothed, "where every value is seen there is nothing to share");
    }
}
