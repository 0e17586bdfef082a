//! The candidates' probabilities after the replies: P(candidate | replies) ∝ P(candidate) · P(replies | its actions).

use sizeleak_frame::{Candidate, SharedList};
use sizeleak_model::Rank;

use crate::reply_evidence::{ActionEvidence, ReplyEvidence};

/// Probabilities with a smaller relative difference are equal: they differ by rounding alone.
const EQUAL: f64 = 1e-9;

/// The distribution over the candidates of a command, with a share for those the list leaves out.
#[derive(Debug)]
pub(crate) struct Posterior<'a> {
    listed: &'a SharedList<Candidate>,
    /// The candidates that are left: in the list's order, or best first after [`Self::keep`].
    left: Vec<LeftCandidate>,
    /// The probability of everything that is not listed.
    pub(crate) unlisted: f64,
}

/// A listed candidate, by its index, its current probability, and its likelihood, with that of the evidence.
#[derive(Debug, Clone, Copy)]
struct LeftCandidate {
    index: usize,
    probability: f64,
    likelihood: Option<f64>,
}

impl<'a> Posterior<'a> {
    /// The probabilities before the replies. If the list is cut, or if a command may be something that no candidate
    /// stands for, what is left to 1 is not listed.
    pub(crate) fn new(listed: &'a SharedList<Candidate>, is_incomplete: bool) -> Self {
        let valid = |given: f64| if given.is_nan() { 0.0 } else { given.clamp(0.0, 1.0) };
        let left = listed.iter().enumerate().map(|(index, &Candidate { probability, likelihood, .. })| LeftCandidate {
            index,
            probability: valid(probability),
            likelihood,
        });
        let left: Vec<LeftCandidate> = left.collect();
        let unlisted = if is_incomplete { (1.0 - sum(&left)).max(0.0) } else { 0.0 };
        Self { listed, left, unlisted }
    }

    pub(crate) fn len(&self) -> usize {
        self.left.len()
    }

    /// Drops the candidates that are not wanted, and scales the probabilities of the rest to sum to 1. Returns how many
    /// were dropped.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&Candidate) -> bool) -> u64 {
        let before = self.left.len();
        self.left.retain(|left| self.listed.get(left.index).is_some_and(&mut wanted));
        let dropped = before - self.left.len();
        if dropped > 0 {
            self.normalise();
        }
        dropped as u64
    }

    /// Weighs each candidate by the evidence. Candidates that are not listed have the rest of the evidence's probability
    /// given the size, if that is known (`evidence_probability`). Else they get the greatest likelihood they can have, so
    /// that the probabilities of the listed ones are never too high.
    pub(crate) fn weigh(&mut self, evidence: &impl ActionEvidence, evidence_probability: Option<f64>) {
        let candidates = self.left.iter().filter_map(|left| self.listed.get(left.index));
        let likelihoods: Vec<f64> = candidates.map(|candidate| evidence.ln_likelihood(&candidate.actions)).collect();
        let is_known = |given: &f64| self.unlisted > 0.0 && (f64::MIN_POSITIVE..=1.0).contains(given);
        let known = evidence_probability.filter(is_known).map(f64::ln);
        let of_unlisted = known.unwrap_or_else(|| evidence.ln_greatest());
        let unlisted = if self.unlisted > 0.0 { of_unlisted } else { f64::NEG_INFINITY };
        let greatest = likelihoods.iter().copied().fold(unlisted, f64::max);
        if greatest == f64::NEG_INFINITY {
            return self.normalise();
        }
        // Relative to the greatest: the product with a tiny likelihood would be 0.
        for (left, likelihood) in self.left.iter_mut().zip(likelihoods) {
            let relative = (likelihood - greatest).exp();
            left.probability *= relative;
            left.likelihood = left.likelihood.map(|before| before * relative);
        }
        let relative = (unlisted - greatest).exp();
        self.unlisted = if known.is_some() { (relative - sum(&self.left)).max(0.0) } else { self.unlisted * relative };
        self.normalise();
    }

    /// Takes other probabilities for the listed candidates, in their order; none may have been dropped.
    pub(crate) fn replace(&mut self, probabilities: Vec<f64>) {
        for (left, probability) in self.left.iter_mut().zip(probabilities) {
            left.probability = probability;
        }
    }

    pub(crate) fn left(&self) -> impl Iterator<Item = (&Candidate, f64)> {
        self.left.iter().filter_map(|left| Some((self.listed.get(left.index)?, left.probability)))
    }

    /// The probability of the number of replies before they are used, over all candidates; `None` if it says nothing
    /// about actions or there are no candidates. Those that are not listed have the greatest likelihood.
    pub(crate) fn probability_of_replies(&self, evidence: &ReplyEvidence<'_>) -> Option<f64> {
        let greatest = evidence.greatest_of_number().filter(|_| !self.left.is_empty())?;
        let of = |left: &LeftCandidate| {
            let candidate = self.listed.get(left.index)?;
            Some(left.probability * evidence.likelihood_of_number(&candidate.actions))
        };
        Some(self.left.iter().filter_map(of).sum::<f64>() + self.unlisted * greatest)
    }

    /// Orders the candidates, most probable first and equal ones as listed, and keeps the fewest that have the
    /// probability `share` together. Those as probable as the last one are kept too, since nothing distinguishes them.
    /// Probabilities stay relative to all candidates. Returns whether the kept ones have the share; if not, candidates
    /// that are not listed have to be kept too.
    pub(crate) fn keep(&mut self, share: f64) -> bool {
        let all = std::mem::take(&mut self.left);
        let mut ranks: Vec<Rank> =
            all.iter().zip(0..).map(|(left, index)| Rank::new(left.probability, index)).collect();
        ranks.sort_unstable();
        let (mut kept, mut last) = (0.0, f64::INFINITY);
        for left in ranks.iter().filter_map(|rank| all.get(rank.index())) {
            if share < 1.0 && kept >= share && left.probability < last * (1.0 - EQUAL) {
                break;
            }
            kept += left.probability;
            last = left.probability;
            self.left.push(*left);
        }
        share < 1.0 && kept >= share
    }

    /// The candidates that are left, with their probabilities: the list itself if it is unchanged.
    pub(crate) fn candidates(&self) -> SharedList<Candidate> {
        let given = self.listed.iter().enumerate().map(|(index, candidate)| (index, candidate.probability.to_bits()));
        if given.eq(self.left.iter().map(|left| (left.index, left.probability.to_bits()))) {
            return self.listed.clone();
        }
        let mut candidates = Vec::with_capacity(self.left.len());
        candidates.extend(self.left.iter().filter_map(|left| {
            let given = self.listed.get(left.index)?;
            Some(Candidate { probability: left.probability, likelihood: left.likelihood, ..given.clone() })
        }));
        candidates.into()
    }

    /// Scales probabilities to sum to 1. If all are 0, the listed candidates become equally probable.
    fn normalise(&mut self) {
        let total = sum(&self.left) + self.unlisted;
        let equal = 1.0 / self.left.len() as f64;
        for left in &mut self.left {
            left.probability = if total > 0.0 { left.probability / total } else { equal };
        }
        if total > 0.0 {
            self.unlisted /= total;
        }
    }
}

fn sum(left: &[LeftCandidate]) -> f64 {
    left.iter().map(|left| left.probability).sum()
}

#[cfg(test)]
mod tests;
