//! Candidates by other habits than those that the model was learned from.

use sizeleak_frame::{Actions, Candidate, HabitFactors, RecurringClass};
use sizeleak_inference::HabitTable;
use sizeleak_model::Rank;

use crate::decomposition::FoundCandidates;

/// The weight of the learned habits beside others.
pub(crate) fn learned_share(habits: &[HabitFactors]) -> f64 {
    (1.0 - habits.iter().map(|own| own.weight).sum::<f64>()).max(0.0)
}

/// The candidates of a size by habits, which are factors on the learned prior without commands that recur; what these leave
/// of the learned habits is `not_recurring`. What is not listed is taken to have the mean factor of what is.
pub(crate) fn by_habits(found: &FoundCandidates, habits: &[HabitFactors], not_recurring: f64) -> FoundCandidates {
    let learned = not_recurring * learned_share(habits);
    let table = HabitTable::new(habits.iter().map(|own| (own.weight, &*own.actions, &*own.numbers)));
    let factor = |one: &Candidate| learned + table.factor(one.actions.indexed_counts());
    weighed(found, &found.listed.iter().map(factor).collect::<Vec<f64>>())
}

/// The candidates of a size with those that came before. What is not listed is taken to have the mean factor of what is.
/// `heaviest` is the weight that likelihoods of sizes are multiples of.
pub(crate) fn with_recurring_classes(
    found: &FoundCandidates,
    recurring: &[RecurringClass],
    heaviest: f64,
    sum_of: impl Fn(&Actions) -> i64,
    replies_of: impl Fn(&Actions) -> Vec<u32>,
) -> FoundCandidates {
    let Some(of_size) = found.probability.filter(|_| !recurring.is_empty()) else { return found.clone() };
    let class_of = |Candidate { actions, .. }: &Candidate| {
        let sum = sum_of(actions);
        let with_sum = |class: &RecurringClass| class.bytes == sum && class.share > 0.0;
        let replies = recurring.iter().any(with_sum).then(|| replies_of(actions))?;
        recurring.iter().position(|class| with_sum(class) && *class.replies == *replies)
    };
    let classes: Vec<Option<usize>> = found.listed.iter().map(class_of).collect();
    // P(A) of all candidates of each class.
    let mut by_habit = vec![0.0; recurring.len()];
    for (candidate, class) in found.listed.iter().zip(&classes) {
        let of_epsilon = candidate.likelihood.unwrap_or(1.0) * heaviest;
        if let Some(class) = class {
            by_habit[*class] += candidate.probability * of_size / of_epsilon;
        }
    }
    let factor = |class: &Option<usize>| match class {
        Some(class) if by_habit[*class] > 0.0 => 1.0 + recurring[*class].share / by_habit[*class],
        _ => 1.0,
    };
    FoundCandidates {
        probability: found.probability,
        ..weighed(found, &classes.iter().map(factor).collect::<Vec<f64>>())
    }
}

/// The candidates with a factor for each that is listed.
fn weighed(found: &FoundCandidates, factors: &[f64]) -> FoundCandidates {
    // Where the replies chose the list, it has nearly all that matters with them, and next to nothing without.
    let weights = |(at, candidate): (usize, &Candidate)| {
        found.with_replies.as_ref().map_or(candidate.probability, |joint| joint.get(at).copied().unwrap_or(0.0))
    };
    let weights: Vec<f64> = found.listed.iter().enumerate().map(weights).collect();
    let all: f64 = weights.iter().sum();
    let of_joint = weights.iter().zip(factors).map(|(weight, factor)| weight * factor).sum::<f64>() / all;
    // Where the replies chose the list, it may have nearly all of the size by these habits: no more than that.
    let of_listed: f64 = found.listed.iter().zip(factors).map(|(one, factor)| one.probability * factor).sum();
    let mean = of_joint.max(of_listed);
    if !(mean.is_finite() && of_joint > 0.0) {
        return found.clone();
    }
    let probability = |at: usize| (found.listed[at].probability * factors[at] / mean).min(1.0);
    let mut order: Vec<Rank> = (0..factors.len()).map(|at| Rank::new(probability(at), at)).collect();
    order.sort_unstable();
    let order = || order.iter().map(|rank| rank.index());
    let joint = |at: usize| weights[at] * factors[at] / of_joint;
    FoundCandidates {
        with_replies: found.with_replies.as_ref().map(|_| order().map(joint).collect()),
        reply_probability: found.reply_probability.map(|own| own * of_joint / mean),
        listed: order().map(|at| Candidate { probability: probability(at), ..found.listed[at].clone() }).collect(),
        probability: found.probability.map(|own| (own * mean).min(1.0)),
        count: found.count,
    }
}
