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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::SharedList;

    use super::*;

    fn found(with_replies: Option<[f64; 2]>) -> FoundCandidates {
        let names: SharedList<Arc<str>> = ["on".into(), "off".into()].into();
        let actions = Actions::of_many(names, vec![(0, 2), (1, 1)], vec![1, 2]);
        let candidates = actions.zip([0.6, 0.2]).map(|(actions, probability)| Candidate {
            actions,
            epsilon: 0,
            probability,
            likelihood: None,
        });
        let probability = Some(0.1);
        let with_replies = with_replies.map(SharedList::from);
        FoundCandidates { listed: candidates.collect(), count: 3, probability, reply_probability: None, with_replies }
    }

    /// `off` twice as often as it was learned, half of all households.
    fn habits() -> [HabitFactors; 1] {
        [HabitFactors { weight: 0.5, actions: [1.0, 3.0].into(), numbers: [1.0, 0.5].into() }]
    }

    #[test]
    fn probabilities_follow_the_factors() {
        // Two on: 0.5 + 0.5 · 0.5; one off: 0.5 + 0.5 · 3.
        let weighed = by_habits(&found(None), &habits(), 1.0);
        let mean = (0.6 * 0.75 + 0.2 * 2.0) / 0.8;
        let probabilities: Vec<f64> = weighed.listed.iter().map(|one| one.probability).collect();
        assert!((probabilities[0] - 0.6 * 0.75 / mean).abs() < 1e-12, "{probabilities:?}");
        assert!((probabilities[1] - 0.2 * 2.0 / mean).abs() < 1e-12);
        assert!((probabilities.iter().sum::<f64>() - 0.8).abs() < 1e-12, "what is not listed keeps its share");
        assert!((weighed.probability.unwrap() - 0.1 * mean).abs() < 1e-12);
    }

    #[test]
    fn a_list_chosen_by_replies_is_weighed_with_them() {
        let weighed = by_habits(&found(Some([0.1, 0.9])), &habits(), 1.0);
        let mean = 0.1 * 0.75 + 0.9 * 2.0;
        assert!((weighed.listed[0].probability - 0.6 * 0.75 / mean).abs() < 1e-12);
    }

    #[test]
    fn no_other_habits_change_nothing() {
        let weighed = by_habits(&found(None), &[], 1.0);
        assert_eq!(weighed.listed, found(None).listed);
    }

    #[test]
    fn commands_that_came_before_have_their_share_within_their_class() {
        // Two on and one off are classes of their own; P(A) is .06 and .02 of a size with the probability .1.
        let class = |bytes, share| RecurringClass { bytes, replies: [].into(), share };
        let sum_of = |actions: &Actions| actions.total().cast_signed();
        let no_replies = |_: &Actions| Vec::new();
        let weighed = with_recurring_classes(&found(None), &[class(1, 0.08), class(7, 0.5)], 1.0, sum_of, no_replies);
        let mean = (0.6 + 0.2 * 5.0) / 0.8;
        let probabilities: Vec<f64> = weighed.listed.iter().map(|one| one.probability).collect();
        assert!((probabilities[0] - 0.2 * 5.0 / mean).abs() < 1e-12, "{probabilities:?}");
        assert!((probabilities[1] - 0.6 / mean).abs() < 1e-12);
        assert_eq!(weighed.probability, Some(0.1), "sizes are as probable as by habit");
        let none = with_recurring_classes(&found(None), &[], 1.0, sum_of, no_replies);
        assert_eq!(none.listed, found(None).listed);
    }

    /// What the replies make of two candidates, as the pruner does: what is not listed has the rest of P(replies).
    fn with_replies(found: &FoundCandidates, likelihoods: [f64; 2]) -> [f64; 2] {
        let mut joint = [0.0; 2];
        for one in &*found.listed {
            let at = usize::from(one.actions.indexed_counts()[0].0 == 1);
            joint[at] = one.probability * likelihoods[at];
        }
        let all = found.reply_probability.unwrap().max(joint.iter().sum());
        joint.map(|own| own / all)
    }

    #[test]
    fn candidates_that_replies_chose_keep_their_odds_by_other_habits_and_where_they_come_again() {
        let chosen = |given: [f64; 2], likelihoods: [f64; 2]| {
            let joint = [given[0] * likelihoods[0], given[1] * likelihoods[1]];
            let all: f64 = joint.iter().sum();
            let unlike = found(None).listed;
            let listed = unlike.iter().zip(given).map(|(one, probability)| Candidate { probability, ..one.clone() });
            let listed = listed.collect();
            let with_replies = Some(joint.map(|own| own / all).into());
            FoundCandidates {
                listed,
                probability: Some(0.1),
                reply_probability: Some(all),
                with_replies,
                ..found(None)
            }
        };
        let habits = |weight: f64, on: f64, off: f64| {
            [HabitFactors { weight, actions: [on, off].into(), numbers: [1.0].into() }]
        };
        let sum_of = |actions: &Actions| actions.total().cast_signed();
        let again = |found: &FoundCandidates, bytes: i64, share: f64| {
            let class = RecurringClass { bytes, replies: [].into(), share };
            with_recurring_classes(found, &[class], 1.0, sum_of, |_| Vec::new())
        };
        let is_near = |found: [f64; 2], wanted: [f64; 2]| {
            let all: f64 = wanted.iter().sum();
            found.iter().zip(wanted).all(|(own, wanted)| (own - wanted / all).abs() < 1e-9)
        };
        // Habits make what the replies suit best a hundred times as rare.
        let likelihoods = [1.0, 0.01];
        let weighed = by_habits(&chosen([0.1, 0.9], likelihoods), &habits(1.0, 0.1, 1.0), 1.0);
        assert!(is_near(with_replies(&weighed, likelihoods), [0.1 * 0.01, 0.9 * 0.01]), "{weighed:?}");
        // A routine whose reply is lost: `off` comes again, which has 1 byte here.
        let likelihoods = [1.0, 0.02];
        let weighed = again(&chosen([0.8, 0.2], likelihoods), 1, 0.2);
        assert!(is_near(with_replies(&weighed, likelihoods), [0.8, 0.2 * 0.02 * 11.0]), "{weighed:?}");
        // Both in turn: `on` comes again, which is rarer by the habits.
        let likelihoods = [1.0, 0.5];
        let by_own = by_habits(&chosen([0.7, 0.3], likelihoods), &habits(1.0, 1.0, 8.0), 1.0);
        let weighed = again(&by_own, 2, 0.7);
        assert!(is_near(with_replies(&weighed, likelihoods), [0.7 * 11.0, 0.3 * 8.0 * 0.5]), "{weighed:?}");
    }
}
