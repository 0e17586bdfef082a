//! How sure an identification is: what its probabilities say, whatever the truth.

use sizeleak_frame::Identification;

/// What the probabilities of a command's candidates come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::command) struct Belief {
    /// The probability of the first candidate; `None` without candidates.
    pub(in crate::command) first: Option<f64>,
    /// Their entropy in bits. Of a cut list this is an upper bound: what is not listed is taken to be equally probable.
    pub(in crate::command) entropy_bits: f64,
    /// The fewest candidates, most probable first, that hold the probability asked for.
    pub(in crate::command) credible: u64,
    /// Whether all of them are listed; where not, `credible` is the number of all candidates.
    pub(in crate::command) is_credible_listed: bool,
}

impl Belief {
    /// What an identification says; `share` is the probability that the credible set holds.
    pub(in crate::command) fn new(identification: &Identification, share: f64) -> Self {
        let probabilities: Vec<f64> = identification.candidates.iter().map(|one| one.probability.max(0.0)).collect();
        let unlisted = identification.candidate_count.saturating_sub(probabilities.len() as u64);
        let listed: f64 = probabilities.iter().sum();
        // What a pruner dropped is not in the list, and not unlisted either: the rest is all there is.
        let rest = if unlisted > 0 { (1.0 - listed).max(0.0) } else { 0.0 };
        let all = listed + rest;
        let Some(first) = probabilities.first().copied() else {
            let credible = identification.candidate_count;
            return Self { credible, entropy_bits: (credible.max(1) as f64).log2(), ..Self::default() };
        };
        if all <= 0.0 {
            let candidates = identification.candidate_count;
            let entropy_bits = (candidates as f64).log2();
            return Self { first: Some(first), entropy_bits, credible: candidates, is_credible_listed: unlisted == 0 };
        }
        let bits = |probability: f64| if probability > 0.0 { -probability * probability.log2() } else { 0.0 };
        let mut entropy_bits: f64 = probabilities.iter().map(|probability| bits(probability / all)).sum();
        if rest > 0.0 {
            entropy_bits += bits(rest / all) + rest / all * (unlisted as f64).log2();
        }
        let credible = credible(&probabilities, share * all);
        let count = credible.unwrap_or(identification.candidate_count);
        Self { first: Some(first), entropy_bits, credible: count, is_credible_listed: credible.is_some() }
    }
}

/// How many of these it takes to hold so much.
fn credible(probabilities: &[f64], wanted: f64) -> Option<u64> {
    // Sums of many summands are not exact.
    let wanted = wanted * (1.0 - 1e-9);
    let mut held = 0.0;
    let mut sums = probabilities.iter().map(|probability| {
        held += probability;
        held
    });
    sums.position(|held| held >= wanted).map(|at| at as u64 + 1)
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Actions, Candidate, Command};

    use super::*;

    fn belief(probabilities: &[f64], candidate_count: u64) -> Belief {
        let command = Command {
            time_ns: 0,
            end_ns: 0,
            flow: 1,
            size: 100,
            plaintext: None,
            records: 1,
            replies: 0,
            reply_bytes: 0,
        };
        let candidate =
            |probability: &f64| Candidate { actions: Actions::default(), epsilon: 0, probability: *probability };
        let identification = Identification {
            command,
            candidates: probabilities.iter().map(candidate).collect(),
            candidate_count,
            listed: probabilities.len() as u64,
            min_actions: None,
            max_actions: None,
        };
        Belief::new(&identification, 0.95)
    }

    #[test]
    fn a_whole_list() {
        let even = belief(&[0.25; 4], 4);
        assert_eq!((even.first, even.entropy_bits, even.credible), (Some(0.25), 2.0, 4));
        assert_eq!((belief(&[0.95, 0.05], 2).credible, belief(&[0.94, 0.06], 2).credible), (1, 2));
        let sure = belief(&[1.0], 1);
        assert_eq!((sure.entropy_bits, sure.credible, sure.is_credible_listed), (0.0, 1, true));
    }

    #[test]
    fn what_a_pruner_dropped_is_gone() {
        let pruned = belief(&[0.45, 0.45], 2);
        assert_eq!((pruned.entropy_bits, pruned.credible), (1.0, 2));
    }

    #[test]
    fn of_a_cut_list_it_is_a_bound() {
        let cut = belief(&[0.5], 5);
        // Half for one, half for four: 1 + 0.5 · 2 bits.
        assert_eq!((cut.entropy_bits, cut.credible, cut.is_credible_listed), (2.0, 5, false));
        let enough = belief(&[0.96], 5);
        assert_eq!((enough.credible, enough.is_credible_listed), (1, true));
    }

    #[test]
    fn nothing_and_nonsense() {
        assert_eq!(belief(&[], 0), Belief::default());
        let all_zero = belief(&[0.0, 0.0], 2);
        assert_eq!((all_zero.entropy_bits, all_zero.credible), (1.0, 2));
    }
}
