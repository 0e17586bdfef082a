//! Candidates where actions have several sizes: P(|s| | A) is the convolution of the distributions of the sizes of A's
//! actions and of ε.
//!
//! A *branch* stands for all commands that begin alike: with so many of the first action, so many of the second, and
//! so on. The weight of a branch, the sum over its commands, is known exactly ([`branch_weights`]). So the search for
//! the heaviest commands ([`heaviest_commands`]) leaves out branches that are too light as a whole. How many commands
//! there are follows from the least and the greatest sizes alone ([`range_count`]).

mod branch_weights;
mod distribution;
mod heaviest_commands;
mod range_count;

use std::sync::Arc;

use sizeleak_frame::{Candidate, SharedList};
use sizeleak_model::{Action, Limits, Model};

use crate::candidate_list::{CandidateList, MAX_CANDIDATES};
use crate::prior_walk::WalkPrior;
use crate::solver::{SolverError, SumTooLarge};
use crate::target_sums::TargetSum;
use branch_weights::BranchWeights;
use heaviest_commands::{Targets, heaviest_commands};
use range_count::RangeCount;

/// Finds candidates for a model whose actions have several sizes.
#[derive(Debug)]
pub(crate) struct VaryingSizes {
    /// By tables of increasing range; the first with room for a command's sums is used.
    weights: Vec<BranchWeights>,
    counts: RangeCount,
    has_prior: bool,
}

/// The candidates of a command.
#[derive(Debug, Default)]
pub(crate) struct VaryingCandidates {
    pub(crate) listed: SharedList<Candidate>,
    /// How many commands there are whose range of sizes holds this one's; `u64::MAX` stands for that many or more.
    pub(crate) count: u64,
    /// The logarithm of their weight: the sum of P(A) · P(|s| | A), as a multiple of the heaviest ε's weight; `None`
    /// without a prior.
    pub(crate) ln_total: Option<f64>,
}

impl VaryingSizes {
    /// `None` if every action of the model has a single size.
    ///
    /// # Errors
    /// [`SolverError`] if the model's actions and inventory cannot be solved for.
    pub(crate) fn new(
        model: &Model,
        limits: &Limits,
        prior: Option<WalkPrior<'_>>,
    ) -> Result<Option<Self>, SolverError> {
        if !model.actions.iter().any(Action::varies) {
            return Ok(None);
        }
        let counts = RangeCount::new(&model.actions, limits)?;
        let weights = BranchWeights::tables(&model.actions, limits, prior);
        Ok(Some(Self { weights, counts, has_prior: prior.is_some() }))
    }

    /// Whether there is room for the prior's weights.
    pub(crate) fn has_weights(&self) -> bool {
        !self.weights.is_empty()
    }

    /// The candidates for some sums, which are not empty, most probable first, at most `limit`; probabilities are among
    /// all of them.
    ///
    /// # Errors
    /// [`SumTooLarge`].
    pub(crate) fn candidates(
        &mut self,
        sums: &[TargetSum],
        names: &SharedList<Arc<str>>,
        limit: usize,
    ) -> Result<VaryingCandidates, SumTooLarge> {
        let bytes = || sums.iter().map(|sum| sum.bytes);
        let (Some(least), Some(most)) = (bytes().min(), bytes().max()) else { return Ok(VaryingCandidates::default()) };
        let count = self.counts.count([least, most])?;
        if count == 0 {
            return Ok(VaryingCandidates::default());
        }
        let largest = usize::try_from(most).unwrap_or(usize::MAX).min(self.counts.largest_sum());
        let reach = self.weights.iter().map(BranchWeights::reach).max().unwrap_or(0);
        let weights = self.weights.iter_mut().find_map(|table| table.prepare(largest).then_some(&*table));
        let weights = weights.ok_or(SumTooLarge { sum: most, reach })?;
        let targets = Targets::new(sums, weights);
        let found = heaviest_commands(weights, &targets, limit.min(MAX_CANDIDATES));
        if found.total <= 0.0 {
            return Ok(VaryingCandidates::default());
        }
        let mut list = CandidateList::new(names, limit);
        for command in &found.commands {
            if !list.has_room() {
                break;
            }
            let epsilon = sums.get(command.sum).map_or(0, |sum| sum.epsilon);
            let probability = (command.weight / found.total).min(1.0);
            list.push(command.actions.iter().copied(), epsilon, probability);
        }
        let ln_total = self.has_prior.then(|| found.total.ln() + targets.ln_scale());
        Ok(VaryingCandidates { listed: list.into_candidates(), count, ln_total })
    }
}

#[cfg(test)]
mod tests;
