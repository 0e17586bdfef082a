//! Candidates among the kinds of a model: labelled commands whose parts the labels do not separate.

use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, SharedList};
use sizeleak_model::{Kind, Kinds, Model};

use crate::decomposition::FoundCandidates;

/// Below this probability a kind is not listed.
const MIN_PROBABILITY: f64 = 1e-6;

/// If all explanations together are less probable than this, the command is something that was never labelled.
const MIN_EXPLAINED: f64 = 0.05;

/// The kinds of a model with their actions as candidates have them.
#[derive(Debug)]
pub(crate) struct KindCandidates {
    actions: Vec<Actions>,
    /// How many of the labelled commands belong to no kind: sums explain them.
    additive_share: f64,
}

impl KindCandidates {
    /// `None` for a model without kinds; `names` are those of [`Model::action_names`].
    pub(crate) fn new(model: &Model, names: &SharedList<Arc<str>>) -> Option<Self> {
        let kinds = model.kinds.as_ref()?;
        let index = |name: &str| names.iter().position(|known| **known == *name).and_then(|at| u32::try_from(at).ok());
        let counts = |kind: &Kind| {
            let counts = kind.actions.iter().filter_map(|(name, count)| Some((index(name)?, *count)));
            let mut counts: Vec<(u32, u32)> = counts.collect();
            counts.sort_unstable();
            let end = u32::try_from(counts.len()).unwrap_or(u32::MAX);
            Actions::of_many(names.clone(), counts, [end]).next().unwrap_or_default()
        };
        let of_kinds = kinds.list.iter().fold(0, |sum: u64, kind| sum.saturating_add(kind.commands()));
        let additive = model.learned.commands.saturating_sub(of_kinds) as f64;
        let has_sums = !model.actions.is_empty();
        let additive_share = if has_sums { (additive + 1.0) / (additive + of_kinds as f64 + 1.0) } else { 0.0 };
        Some(Self { actions: kinds.list.iter().map(counts).collect(), additive_share })
    }

    /// The candidates of a command of this size: kinds, and sums of actions that were found, at most `limit`. Their
    /// probabilities sum to less than 1, since the command may be none of them. `None` if it most probably is something else.
    pub(crate) fn join(
        &self,
        kinds: &Kinds,
        size: i64,
        found: &FoundCandidates,
        limit: usize,
    ) -> Option<FoundCandidates> {
        let (weights, other) = kinds.weights(size);
        let of_kinds = 1.0 - self.additive_share;
        // Without a prior every size up to twice this one is taken to be equally likely.
        let flat = if found.count > 0 { 0.5 / size.max(1) as f64 } else { 0.0 };
        let sums = self.additive_share * found.probability.unwrap_or(flat) * (1.0 - kinds.other);
        let explained = sums + of_kinds * weights.iter().sum::<f64>();
        let all = explained + other;
        if all <= 0.0 || explained / all < MIN_EXPLAINED {
            return None;
        }
        let of_kind = |((kind, actions), weight): ((&Kind, &Actions), &f64)| Candidate {
            actions: actions.clone(),
            epsilon: size.saturating_sub(kind.nearest_size(size)),
            probability: of_kinds * weight / all,
            likelihood: None,
        };
        let of_kinds = kinds.list.iter().zip(&self.actions).zip(&weights).map(of_kind);
        let scaled =
            |candidate: &Candidate| Candidate { probability: candidate.probability * sums / all, ..candidate.clone() };
        let mut listed: Vec<Candidate> =
            of_kinds.filter(|candidate| candidate.probability >= MIN_PROBABILITY).collect();
        listed.extend(found.listed.iter().map(scaled));
        // Equal ones stay in the order of the labels.
        listed.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let unlisted = found.count.saturating_sub(found.listed.len() as u64);
        let count = unlisted.saturating_add(listed.len() as u64);
        listed.truncate(limit);
        let probability = Some(explained.min(1.0));
        let found = FoundCandidates { listed: listed.into(), count, probability, ..FoundCandidates::default() };
        Some(found).filter(|found| !found.listed.is_empty())
    }
}
