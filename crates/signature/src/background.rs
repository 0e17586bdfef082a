//! The values of ε that were seen anywhere, for commands whose own value none of their neighbours has.
//!
//! Of k neighbours' values the next command has another one with a probability of about 1 / (k + 2) (the rule of
//! succession). That share goes to the values of all labelled commands, whatever their size, and to those a byte beside
//! them, since a length or a number one digit longer is what makes a value that was never seen.

use std::collections::BTreeMap;

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
        let unseen = 1.0 / (k as f64 + 2.0);
        let mut weights: BTreeMap<i64, f64> =
            self.shares.iter().map(|(epsilon, share)| (*epsilon, unseen * share)).collect();
        for value in estimate {
            *weights.entry(value.epsilon).or_default() += (1.0 - unseen) * value.weight;
        }
        let mut smoothed: Vec<WeightedEpsilon> =
            weights.into_iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight }).collect();
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
        assert!(smoothed[0].weight > 0.75 && smoothed[1].weight > 0.05, "{smoothed:?}");
        assert!((smoothed.iter().map(|value| value.weight).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
