//! Answers where one action alone may be longer or shorter than the model says: those of models that differ in it.

use std::collections::BTreeMap;
use std::fmt;

use sizeleak_frame::{Candidate, Shift};
use sizeleak_model::Model;
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::candidate_list::FoundCandidates;
use crate::decomposition::Decomposition;

/// The most models of this kind that are kept: a few are probable at a time.
const MAX_KEPT: usize = 8;

/// The decomposers `D` of models in which one action has another size.
pub(crate) struct LongerActions<D> {
    model: Model,
    /// The decomposer of a model; `None` where it cannot be solved for.
    build: Box<dyn Fn(Model) -> Option<D> + Send>,
    /// By the action and by how many bytes it is longer.
    decomposers: TwoGenerationCache<(Box<str>, i64), Option<Box<D>>>,
}

impl<D> fmt::Debug for LongerActions<D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LongerActions").finish_non_exhaustive()
    }
}

impl<D> LongerActions<D> {
    pub(crate) fn new(model: Model, build: impl Fn(Model) -> Option<D> + Send + 'static) -> Self {
        Self { model, build: Box::new(build), decomposers: TwoGenerationCache::new(MAX_KEPT) }
    }

    /// What each shift of one action makes of a command, with the shift's share of all; `None` where it has no answer.
    pub(crate) fn answers(
        &mut self,
        shifts: &[Shift],
        answer: impl Fn(&mut D) -> Decomposition,
    ) -> Vec<(f64, Option<Decomposition>)> {
        let all: f64 = shifts.iter().map(|shift| shift.probability).sum();
        let mut found = Vec::new();
        for Shift { bytes, action, probability, .. } in shifts {
            let Some(action) = action else { continue };
            let decomposer = self.decomposers.get_or_default((action.clone(), *bytes));
            if decomposer.is_none() {
                let model = self.model.clone().with_longer_action(action, *bytes);
                *decomposer = model.and_then(&self.build).map(Box::new);
            }
            found.push((probability / all, decomposer.as_deref_mut().map(&answer)));
        }
        found
    }
}

/// The answer by several models, each with its share; the first one's reason where none has an answer.
pub(crate) fn mixture(own: Decomposition, others: Vec<(f64, Option<Decomposition>)>, limit: usize) -> Decomposition {
    let rest = 1.0 - others.iter().map(|(share, _)| share).sum::<f64>();
    let unused_epsilons = own.unused_epsilons;
    let reason = own.candidates.as_ref().err().copied();
    let answers =
        std::iter::once((rest.max(0.0), own)).chain(others.into_iter().filter_map(|(share, own)| Some((share, own?))));
    let (mut size_probability, mut parts) = (0.0, Vec::new());
    for (share, answer) in answers {
        let joint = share * answer.size_probability.unwrap_or(0.0);
        size_probability += joint;
        parts.extend(answer.candidates.ok().filter(|_| joint > 0.0).map(|found| (joint, found)));
    }
    let candidates = match reason {
        Some(reason) if parts.is_empty() => Err(reason),
        _ => Ok(joined(&parts, limit)),
    };
    Decomposition { candidates, unused_epsilons, size_probability: Some(size_probability) }
}

/// The candidates of several answers, with the probability of each together with the size.
fn joined(parts: &[(f64, FoundCandidates)], limit: usize) -> FoundCandidates {
    let all: f64 = parts.iter().map(|(joint, _)| joint).sum();
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    let mut listed: Vec<Candidate> = Vec::new();
    for (joint, found) in parts {
        for candidate in &*found.listed {
            let key = (candidate.actions.indexed_counts(), candidate.epsilon);
            let at = *places.entry(key).or_insert_with(|| {
                listed.push(Candidate { probability: 0.0, ..candidate.clone() });
                listed.len() - 1
            });
            listed[at].probability += joint / all * candidate.probability;
        }
    }
    // Equal ones stay in their order.
    listed.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let most = parts.iter().map(|(_, found)| found.count).max().unwrap_or(0);
    let count = most.max(listed.len() as u64);
    listed.truncate(limit);
    let of_replies = |(joint, found): &(f64, FoundCandidates)| Some(joint / all * found.reply_probability?);
    FoundCandidates {
        listed: listed.into(),
        count,
        probability: Some(all),
        reply_probability: parts.iter().map(of_replies).sum(),
        with_replies: None,
    }
}
