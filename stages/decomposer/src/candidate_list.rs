//! The candidates of one command as they are found: as many as a frame has room for, with all their actions in one
//! place.

use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, SharedList};

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
