//! How certain an identification is by its own probabilities, whatever the truth.

use sizeleak_frame::Identification;

/// A summary of the probabilities of a command's candidates.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ProbabilitySummary {
    /// The probability of the first candidate; `None` without candidates.
    pub(crate) first: Option<f64>,
    /// The entropy in bits. For a truncated list this is an upper bound: unlisted candidates count as equally probable.
    pub(crate) entropy_bits: f64,
    /// How many candidates, most probable first, it takes to hold the requested probability; if the list is truncated
    /// before that, the number of all candidates.
    pub(crate) credible_size: u64,
    /// Whether all candidates of the credible set are listed.
    pub(crate) is_credible_listed: bool,
}

impl ProbabilitySummary {
    /// Summarises an identification; `share` is the probability that the credible set holds.
    pub(crate) fn new(identification: &Identification, share: f64) -> Self {
        let probabilities: Vec<f64> = identification.candidates.iter().map(|one| one.probability.max(0.0)).collect();
        let unlisted = identification.candidate_count.saturating_sub(probabilities.len() as u64);
        let listed: f64 = probabilities.iter().sum();
        // Candidates dropped by a pruner are neither listed nor unlisted: the rest is all there is.
        let rest = if unlisted > 0 { (1.0 - listed).max(0.0) } else { 0.0 };
        let all = listed + rest;
        let Some(first) = probabilities.first().copied() else {
            let credible_size = identification.candidate_count;
            return Self { credible_size, entropy_bits: (credible_size.max(1) as f64).log2(), ..Self::default() };
        };
        if all <= 0.0 {
            let credible_size = identification.candidate_count;
            let entropy_bits = (credible_size as f64).log2();
            return Self { first: Some(first), entropy_bits, credible_size, is_credible_listed: unlisted == 0 };
        }
        let bits = |probability: f64| if probability > 0.0 { -probability * probability.log2() } else { 0.0 };
        let mut entropy_bits: f64 = probabilities.iter().map(|probability| bits(probability / all)).sum();
        if rest > 0.0 {
            entropy_bits += bits(rest / all) + rest / all * (unlisted as f64).log2();
        }
        let listed_size = credible_size(&probabilities, share * all);
        let credible_size = listed_size.unwrap_or(identification.candidate_count);
        Self { first: Some(first), entropy_bits, credible_size, is_credible_listed: listed_size.is_some() }
    }
}

/// How many of these probabilities it takes to reach `wanted`.
fn credible_size(probabilities: &[f64], wanted: f64) -> Option<u64> {
    // Sums of many floats are inexact.
    let wanted = wanted * (1.0 - 1e-9);
    let mut sum = 0.0;
    let mut sums = probabilities.iter().map(|probability| {
        sum += probability;
        sum
    });
    sums.position(|sum| sum >= wanted).map(|at| at as u64 + 1)
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Actions, Candidate, Command};

    use super::*;

    fn summary(probabilities: &[f64], candidate_count: u64) -> ProbabilitySummary {
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
        ProbabilitySummary::new(&identification, 0.95)
    }

    #[test]
    fn complete_list_has_exact_entropy_and_credible_size() {
        let even = summary(&[0.25; 4], 4);
        assert_eq!((even.first, even.entropy_bits, even.credible_size), (Some(0.25), 2.0, 4));
        let [most, less] = [&[0.95, 0.05], &[0.94, 0.06]].map(|two| summary(two, 2).credible_size);
        assert_eq!((most, less), (1, 2));
        let certain = summary(&[1.0], 1);
        assert_eq!((certain.entropy_bits, certain.credible_size, certain.is_credible_listed), (0.0, 1, true));
    }

    #[test]
    fn candidates_dropped_by_the_pruner_do_not_count() {
        let pruned = summary(&[0.45, 0.45], 2);
        assert_eq!((pruned.entropy_bits, pruned.credible_size), (1.0, 2));
    }

    #[test]
    fn entropy_of_a_truncated_list_is_an_upper_bound() {
        let truncated = summary(&[0.5], 5);
        // Half for one, half for four: 1 + 0.5 · 2 bits.
        let ProbabilitySummary { entropy_bits, credible_size, is_credible_listed, .. } = truncated;
        assert_eq!((entropy_bits, credible_size, is_credible_listed), (2.0, 5, false));
        let enough = summary(&[0.96], 5);
        assert_eq!((enough.credible_size, enough.is_credible_listed), (1, true));
    }

    #[test]
    fn empty_list_and_zero_probabilities_are_summarised() {
        assert_eq!(summary(&[], 0), ProbabilitySummary::default());
        let all_zero = summary(&[0.0, 0.0], 2);
        assert_eq!((all_zero.entropy_bits, all_zero.credible_size), (1.0, 2));
    }
}
