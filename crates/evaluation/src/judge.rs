//! The rank of a command's true actions among its candidates.
//!
//! A list that the decomposer truncated does not show all candidates. Whether the truth is among the unlisted ones is
//! still decided wherever possible: it is, if the inventory allows it and either its sum of sizes equals that of a
//! listed candidate or its ε equals that of a listed candidate. All other cases are reported as undecided and never
//! count as found.

use sizeleak_frame::{Actions, Candidate, Identification};
use sizeleak_model::{InventoryError, Limits, Model};

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TruthRank {
    /// In the list, at this position (from 1).
    Listed(u64),
    Unlisted,
    Absent,
    /// The list is truncated, and nothing shows whether the truth is among the unlisted candidates.
    Undecided,
}

impl TruthRank {
    pub(crate) fn is_candidate(self) -> bool {
        matches!(self, Self::Listed(_) | Self::Unlisted)
    }

    pub(crate) fn position(self) -> Option<u64> {
        match self {
            Self::Listed(position) => Some(position),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) rank: TruthRank,
    pub(crate) candidates: u64,
    pub(crate) is_truncated: bool,
    /// The most probable candidate: how often each action occurs, in the order of the labels' actions.
    pub(crate) first: Option<Vec<u32>>,
    pub(crate) probabilities: ProbabilitySummary,
}

impl Judgement {
    pub(crate) fn is_credible(&self) -> bool {
        let is_within = self.rank.position().is_some_and(|position| position <= self.probabilities.credible_size);
        is_within || (!self.probabilities.is_credible_listed && self.rank.is_candidate())
    }

    /// This judgement of a pruner's output, given the judgement of its input. A pruner drops either all or none of the
    /// unlisted candidates, so an unlisted truth keeps its rank.
    pub(crate) fn after_pruning(self, before: &Self) -> Self {
        let rank = match (self.rank, before.rank) {
            (TruthRank::Listed(position), _) => TruthRank::Listed(position),
            (_, rank @ (TruthRank::Unlisted | TruthRank::Undecided)) if self.is_truncated => rank,
            _ => TruthRank::Absent,
        };
        Self { rank, ..self }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JudgedLabel<'a> {
    /// The true actions, in the order of the labels' actions.
    pub(crate) truth: &'a [u32],
    /// `None` if no command was found.
    pub(crate) judgement: Option<&'a Judgement>,
}

#[derive(Debug)]
pub(crate) struct CandidateJudge<'a> {
    /// The sections of the model, with the commands that their inventories allow.
    sections: Vec<(&'a Model, Limits)>,
    actions: &'a [String],
    credible: f64,
}

impl<'a> CandidateJudge<'a> {
    /// A judge of candidates made with these sections; `actions` are those of the labels, in their order, and `credible` is
    /// the probability that a credible set holds.
    pub(crate) fn new(models: &'a [Model], actions: &'a [String], credible: f64) -> Result<Self, InventoryError> {
        let sections =
            models.iter().map(|model| Ok((model, model.limits()?))).collect::<Result<_, InventoryError>>()?;
        Ok(Self { sections, actions, credible })
    }

    pub(crate) fn judge(&self, identification: &Identification, truth: &[u32]) -> Judgement {
        let candidates = &identification.candidates;
        let found = candidates.iter().zip(1..).find(|(candidate, _)| self.is_truth(&candidate.actions, truth));
        let is_truncated = identification.candidate_count > candidates.len() as u64;
        let rank = match found {
            Some((_, position)) => TruthRank::Listed(position),
            None if !is_truncated => TruthRank::Absent,
            None => self.rank_of_unlisted(identification, truth),
        };
        let first = candidates.first().map(|first| self.counts(&first.actions));
        let candidates = identification.candidate_count.max(candidates.len() as u64);
        let probabilities = ProbabilitySummary::new(identification, self.credible);
        Judgement { rank, candidates, is_truncated, first, probabilities }
    }

    fn is_truth(&self, actions: &Actions, truth: &[u32]) -> bool {
        let total: u64 = truth.iter().map(|count| u64::from(*count)).sum();
        actions.total() == total
            && self.actions.iter().zip(truth).all(|(action, count)| actions.count(action) == *count)
    }

    fn counts(&self, actions: &Actions) -> Vec<u32> {
        self.actions.iter().map(|action| actions.count(action)).collect()
    }

    /// The rank of a truth that a truncated list does not show.
    fn rank_of_unlisted(&self, identification: &Identification, truth: &[u32]) -> TruthRank {
        let rank = |(model, limits): &(&Model, Limits)| self.rank_in_section(model, limits, identification, truth);
        match self.sections.as_slice() {
            [only] => rank(only),
            sections if sections.iter().all(|section| rank(section) == TruthRank::Absent) => TruthRank::Absent,
            // Which section answered is not known here.
            _ => TruthRank::Undecided,
        }
    }

    fn rank_in_section(
        &self,
        model: &Model,
        limits: &Limits,
        identification: &Identification,
        truth: &[u32],
    ) -> TruthRank {
        let Some(counts) = self.in_order_of(model, truth).filter(|counts| limits.admits(counts)) else {
            return TruthRank::Absent;
        };
        let command = &identification.command;
        let Ok([least, most]) = model.sizes(command.size, command.records, command.plaintext) else {
            return TruthRank::Undecided;
        };
        let sums = sums_of_sizes(model, counts.iter().copied());
        let rest = |size: i64, sum: i64| size.saturating_sub(model.overhead).saturating_sub(sum);
        let epsilons = rest(least, sums[1])..=rest(most, sums[0]);
        let matches = |candidate: &Candidate| {
            let counts = model.actions.iter().map(|action| candidate.actions.count(&action.name));
            epsilons.contains(&candidate.epsilon) || sums_of_sizes(model, counts) == sums
        };
        if identification.candidates.iter().any(matches) { TruthRank::Unlisted } else { TruthRank::Undecided }
    }

    /// The counts in the order of the model's actions; `None` if the model lacks one of them.
    fn in_order_of(&self, model: &Model, truth: &[u32]) -> Option<Vec<u32>> {
        let named = || self.actions.iter().zip(truth);
        let is_known = |name: &str| model.actions.iter().any(|action| action.name == name);
        let count = |name: &str| named().find(|(action, _)| *action == name).map_or(0, |(_, count)| *count);
        named()
            .all(|(action, count)| *count == 0 || is_known(action))
            .then(|| model.actions.iter().map(|action| count(&action.name)).collect())
    }
}

/// The least and the greatest Σ |aᵢ|·nbᵢ of counts in the model's order.
fn sums_of_sizes(model: &Model, counts: impl Iterator<Item = u32>) -> [i64; 2] {
    model.actions.iter().zip(counts).fold([0; 2], |[least, most]: [i64; 2], (action, count)| {
        let [smallest, largest] = action.size_range().map(|size| size.saturating_mul(count.into()));
        [least.saturating_add(smallest), most.saturating_add(largest)]
    })
}

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
        let (first, count) = (probabilities.first().copied(), identification.candidate_count);
        if first.is_none() || all <= 0.0 {
            let (entropy_bits, is_credible_listed) = ((count.max(1) as f64).log2(), first.is_some() && unlisted == 0);
            return Self { first, entropy_bits, credible_size: count, is_credible_listed };
        }
        let bits = |probability: f64| if probability > 0.0 { -probability * probability.log2() } else { 0.0 };
        let mut entropy_bits: f64 = probabilities.iter().map(|probability| bits(probability / all)).sum();
        if rest > 0.0 {
            entropy_bits += bits(rest / all) + rest / all * (unlisted as f64).log2();
        }
        let listed_size = credible_size(&probabilities, share * all);
        let credible_size = listed_size.unwrap_or(count);
        Self { first, entropy_bits, credible_size, is_credible_listed: listed_size.is_some() }
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
