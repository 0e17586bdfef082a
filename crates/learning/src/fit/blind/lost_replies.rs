//! Actions without a reply: how many a command has, and which of them had a reply that was lost.

use sizeleak_model::Pmf;

use crate::fit::expectation::{Beforehand, Expected, Parameters, Plan, shares};

/// For each number of replies: how many actions have none, if each of a command has none with this probability.
pub(super) fn silent_start(plan: &Plan, probability: f64) -> Vec<Vec<f64>> {
    let list = |(replies, most): (usize, usize)| {
        let mut weights = vec![1.0];
        for silent in 1..=most {
            weights.push(weights[silent - 1] * (probability * (replies + silent) as f64 / silent as f64));
        }
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    };
    plan.most_silent().into_iter().enumerate().map(list).collect()
}

pub(super) fn mixed(one: &Pmf, of_one: f64, other: &Pmf, of_other: f64) -> Pmf {
    let weighed = |distribution: &Pmf, weight: f64| {
        let values = distribution.iter().map(|(size, probability)| (size, weight * probability));
        values.collect::<Vec<_>>()
    };
    shares(weighed(one, of_one).into_iter().chain(weighed(other, of_other)))
}

/// Tells lost replies from actions without one: those come in the proportions of the actions that have replies. Gives
/// the last class of sizes both parts, and the share of the lost.
pub(super) fn split_lost(before: &Parameters, expected: &Expected, after: &mut Parameters, beforehand: Beforehand) {
    let (Some(old), Some(counts)) = (before.sizes.last(), expected.sizes.last()) else { return };
    let old_lost = all_replying(&before.sizes, expected);
    let of_lost = |size: i64, probability: f64| (before.lost * old_lost.at(size) / probability).min(1.0);
    let lost: f64 = old.iter().map(|(size, probability)| counts.at(size) * of_lost(size, *probability)).sum();
    let left = |(size, probability): (i64, &f64)| {
        (size, counts.at(size) * (1.0 - of_lost(size, *probability)) - beforehand.least_evidence)
    };
    let own = Pmf::from_values(old.iter().map(left).filter(|(_, count)| *count > 1e-9));
    after.lost = (lost + 0.5) / (lost + own.total() + 0.5);
    let replying = all_replying(&after.sizes, expected);
    let together = mixed(&replying, after.lost, &own, (1.0 - after.lost) / own.total().max(f64::MIN_POSITIVE));
    if let Some(last) = after.sizes.last_mut().filter(|_| !together.is_empty()) {
        *last = together;
    }
}

/// The sizes of all actions that have replies, in their proportions.
pub(super) fn all_replying(sizes: &[Pmf], expected: &Expected) -> Pmf {
    let replying = sizes.iter().zip(&expected.sizes).take(sizes.len().saturating_sub(1));
    shares(replying.flat_map(|(sizes, counts)| {
        let total = counts.total();
        sizes.iter().filter(|(size, _)| *size > 0).map(move |(size, probability)| (size, total * probability))
    }))
}
