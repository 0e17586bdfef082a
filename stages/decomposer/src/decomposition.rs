//! The candidates of one command as they are found: as many as a frame has room for, with all their actions in one
//! place. And what a decomposition finds, or why it finds nothing, and the mixture of several.

use std::collections::BTreeMap;
use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, SharedList};
use sizeleak_inference::search::SumTooLarge;
use thiserror::Error;

/// What explains a size, for some values of ε.
#[derive(Debug, Clone)]
pub(crate) struct Decomposition {
    pub(crate) candidates: Result<FoundCandidates, Unexplained>,
    pub(crate) unused_epsilons: u64,
    /// The probability of the size, 0 if nothing explains it; `None` where the model does not say.
    pub(crate) size_probability: Option<f64>,
}

/// Why nothing explains a command, as its notice says.
#[derive(Debug, Clone, Copy, Error)]
pub(crate) enum Unexplained {
    #[error("no message of {0} to {1} bytes comes out of this cipher: it is not decomposed")]
    InvalidRange(i64, i64),
    #[error("no actions add up to the {0} bytes of this message: another kind of message, or another gateway")]
    NoSolution(i64),
    #[error("no actions add up to the {0} to {1} bytes of this message: another kind of message, or another gateway")]
    NoSolutionInRange(i64, i64),
    #[error(
        "no labelled kind of command has {0} bytes, and what other commands weigh is not known: another kind of \
         message, another gateway, or a command to label"
    )]
    NoKind(i64),
    #[error(transparent)]
    TooLarge(#[from] SumTooLarge),
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

/// The most bytes that the candidates of a command take in a frame, which may have 16 MiB; the list is cut there, as it
/// is at the user's limit.
const MAX_LIST_BYTES: usize = 12 << 20;

/// The bytes that a candidate without actions takes at most.
const CANDIDATE_BYTES: usize = 80;

pub(crate) const MAX_CANDIDATES: usize = MAX_LIST_BYTES / CANDIDATE_BYTES;

/// The candidates of a command, listed or not.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoundCandidates {
    pub(crate) listed: SharedList<Candidate>,
    /// How many there are, listed or not; `u64::MAX` stands for that many or more.
    pub(crate) count: u64,
    /// The probability of the size; `None` where the model has no prior.
    pub(crate) probability: Option<f64>,
    /// P(replies | size), where the replies chose the candidates to list.
    pub(crate) reply_probability: Option<f64>,
    /// P(actions | size, replies) of each listed candidate, in that case.
    pub(crate) with_replies: Option<SharedList<f64>>,
}

pub(crate) struct CandidateList<'a> {
    names: &'a SharedList<Arc<str>>,
    limit: usize,
    /// The bytes that are left; `None` once a candidate did not fit.
    room: Option<usize>,
    /// The actions of all candidates, by the indexes of their names, with their counts.
    counts: Vec<(u32, u32)>,
    listed: Vec<ListedCandidate>,
}

struct ListedCandidate {
    /// Where its actions end.
    end: u32,
    epsilon: i64,
    probability: f64,
    likelihood: Option<f64>,
}

impl<'a> CandidateList<'a> {
    pub(crate) fn new(names: &'a SharedList<Arc<str>>, limit: usize) -> Self {
        Self { names, limit, room: Some(MAX_LIST_BYTES), counts: Vec::new(), listed: Vec::new() }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.room.is_some() && self.listed.len() < self.limit
    }

    /// Lists a candidate with these actions, by the indexes of their names, if there is room for it. The weight of its sum
    /// is its likelihood, where actions have single sizes.
    pub(crate) fn push(
        &mut self,
        actions: impl Iterator<Item = (u32, u32)>,
        epsilon: i64,
        probability: f64,
        likelihood: Option<f64>,
    ) {
        let begin = self.counts.len();
        self.counts.extend(actions);
        let actions = self.counts.get(begin..).unwrap_or_default();
        // The most bytes that it takes in a frame: four fields, and a name and a count for each action.
        let of_name = |(action, _): &(u32, u32)| self.names.get(*action as usize).map_or(0, |name| name.len() + 10);
        let bytes = CANDIDATE_BYTES + actions.iter().map(of_name).sum::<usize>();
        self.room = self.room.and_then(|room| room.checked_sub(bytes));
        if self.room.is_some() {
            let end = self.counts.len() as u32;
            self.listed.push(ListedCandidate { end, epsilon, probability, likelihood });
        }
    }

    pub(crate) fn into_candidates(self) -> SharedList<Candidate> {
        let ends: Vec<u32> = self.listed.iter().map(|listed| listed.end).collect();
        let actions = Actions::of_many(self.names.clone(), self.counts, ends);
        let candidate = |(actions, ListedCandidate { epsilon, probability, likelihood, .. })| Candidate {
            actions,
            epsilon,
            probability,
            likelihood,
        };
        actions.zip(self.listed).map(candidate).collect()
    }
}
