//! Candidates weighed by the replies.

use sizeleak_frame::Candidate;
use sizeleak_signature::ReplyModel;

/// Probabilities that differ by less than this share are equal: they differ by rounding alone.
const EQUAL: f64 = 1e-9;

/// Weighs each candidate by how likely the replies are given its number of actions, puts the most probable first, and
/// keeps the fewest that hold `keep` of the probability; those as probable as the last one kept are kept too, since
/// nothing tells them apart.
pub(crate) fn keep_likely(candidates: Vec<Candidate>, model: &ReplyModel, replies: u32, keep: f64) -> Vec<Candidate> {
    let mut weighed = candidates;
    for candidate in &mut weighed {
        let actions = u32::try_from(candidate.actions.total()).unwrap_or(u32::MAX);
        candidate.probability *= model.likelihood(replies, actions);
    }
    normalise(&mut weighed);
    // Stable: equal ones stay in the decomposer's order.
    weighed.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let mut held = 0.0;
    let mut last = f64::INFINITY;
    let kept = weighed.iter().take_while(|candidate| {
        let wanted = held < keep || candidate.probability >= last * (1.0 - EQUAL);
        held += candidate.probability;
        if wanted {
            last = candidate.probability;
        }
        wanted
    });
    let kept = kept.count();
    weighed.truncate(kept);
    weighed
}

/// Scales probabilities to sum to 1; where all are 0, candidates are equally probable.
pub(crate) fn normalise(candidates: &mut [Candidate]) {
    let total: f64 = candidates.iter().map(|candidate| candidate.probability).sum();
    let equal = 1.0 / candidates.len() as f64;
    for candidate in candidates {
        candidate.probability = if total > 0.0 { candidate.probability / total } else { equal };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::Actions;

    use super::*;

    fn candidate(actions: u32, probability: f64) -> Candidate {
        Candidate { actions: Actions(vec![(Arc::from("on"), actions)]), epsilon: 0, probability }
    }

    fn kept(candidates: &[(u32, f64)], replies: u32, keep: f64) -> Vec<u32> {
        let model = ReplyModel { fixed: 0.0, per_action: 1.0, deviations: vec![[-1, 10], [0, 90]] };
        let candidates = candidates.iter().map(|(actions, probability)| candidate(*actions, *probability)).collect();
        let kept = keep_likely(candidates, &model, replies, keep);
        kept.iter().map(|candidate| candidate.actions.count("on")).collect()
    }

    #[test]
    fn replies_change_the_order_and_the_unlikely_go() {
        let candidates = [(9, 0.5), (5, 0.25), (4, 0.25)];
        assert_eq!(kept(&candidates, 4, 0.5), [4]);
        assert_eq!(kept(&candidates, 4, 0.99), [4, 5]);
        assert_eq!(kept(&candidates, 4, 1.0), [4, 5, 9]);
    }

    #[test]
    fn equals_stay_together() {
        assert_eq!(kept(&[(4, 0.2); 5], 4, 0.3).len(), 5);
        assert_eq!(kept(&[], 4, 0.9), [0u32; 0]);
        assert_eq!(kept(&[(4, 0.0), (5, 0.0)], 4, 0.9).len(), 2);
    }
}
