//! How certain an identification is according to its own probabilities, regardless of the truth.

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
        // Candidates dropped by a pruner count neither as listed nor as unlisted.
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
mod tests;
