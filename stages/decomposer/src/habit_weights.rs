//! Candidates by other habits than those that the model was learned from.

use sizeleak_frame::{Candidate, HabitFactors, SharedList};
use sizeleak_inference::habit_factor;

use crate::candidate_list::FoundCandidates;

/// The weight of the learned habits beside others.
pub(crate) fn learned_share(habits: &[HabitFactors]) -> f64 {
    (1.0 - habits.iter().map(|own| own.weight).sum::<f64>()).max(0.0)
}

/// The candidates of a size by habits, which are factors on the learned prior. What is not listed is taken to have the
/// mean factor of what is.
pub(crate) fn by_habits(found: &FoundCandidates, habits: &[HabitFactors]) -> FoundCandidates {
    let learned = learned_share(habits);
    let factor = |candidate: &Candidate| {
        let of_habits = |own: &HabitFactors| {
            own.weight * habit_factor(&own.actions, &own.numbers, candidate.actions.indexed_counts())
        };
        learned + habits.iter().map(of_habits).sum::<f64>()
    };
    let factors: Vec<f64> = found.listed.iter().map(factor).collect();
    // Where the replies chose the list, it has nearly all that matters with them, and next to nothing without.
    let weights = |(at, candidate): (usize, &Candidate)| {
        found.with_replies.as_ref().map_or(candidate.probability, |joint| joint.get(at).copied().unwrap_or(0.0))
    };
    let weights: Vec<f64> = found.listed.iter().enumerate().map(weights).collect();
    let all: f64 = weights.iter().sum();
    let mean = weights.iter().zip(&factors).map(|(weight, factor)| weight * factor).sum::<f64>() / all;
    if !(mean.is_finite() && mean > 0.0) {
        return found.clone();
    }
    let weighed = |(candidate, factor): (&Candidate, &f64)| Candidate {
        probability: (candidate.probability * factor / mean).min(1.0),
        ..candidate.clone()
    };
    let mut listed: Vec<Candidate> = found.listed.iter().zip(&factors).map(weighed).collect();
    listed.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let listed = SharedList::from(listed);
    FoundCandidates { listed, probability: found.probability.map(|own| (own * mean).min(1.0)), ..found.clone() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::Actions;

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
        let weighed = by_habits(&found(None), &habits());
        let mean = (0.6 * 0.75 + 0.2 * 2.0) / 0.8;
        let probabilities: Vec<f64> = weighed.listed.iter().map(|one| one.probability).collect();
        assert!((probabilities[0] - 0.6 * 0.75 / mean).abs() < 1e-12, "{probabilities:?}");
        assert!((probabilities[1] - 0.2 * 2.0 / mean).abs() < 1e-12);
        assert!((probabilities.iter().sum::<f64>() - 0.8).abs() < 1e-12, "what is not listed keeps its share");
        assert!((weighed.probability.unwrap() - 0.1 * mean).abs() < 1e-12);
    }

    #[test]
    fn a_list_chosen_by_replies_is_weighed_with_them() {
        let weighed = by_habits(&found(Some([0.1, 0.9])), &habits());
        let mean = 0.1 * 0.75 + 0.9 * 2.0;
        assert!((weighed.listed[0].probability - 0.6 * 0.75 / mean).abs() < 1e-12);
    }

    #[test]
    fn no_other_habits_change_nothing() {
        let weighed = by_habits(&found(None), &[]);
        assert_eq!(weighed.listed, found(None).listed);
    }
}
