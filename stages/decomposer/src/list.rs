//! The candidates of a command while they are found: as many as a frame has room for, with their actions in one place.

use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, SharedList};

/// The candidates of a command take this many bytes at most in a frame, which may have 16 MiB; a list is cut there, as
/// it is at the limit the user sets.
const MAX_LISTED_BYTES: usize = 12 << 20;

/// What a candidate without actions would take of them.
const LEAST_BYTES: usize = 64;

/// More candidates than this are never listed.
pub(crate) const MOST_LISTED: usize = MAX_LISTED_BYTES / LEAST_BYTES;

/// The candidates of a command while they are found.
pub(crate) struct List<'a> {
    names: &'a SharedList<Arc<str>>,
    limit: usize,
    room: Option<usize>,
    /// The actions of all of them, by their places, with their counts.
    counts: Vec<(u32, u32)>,
    listed: Vec<Listed>,
}

/// A candidate of a list.
struct Listed {
    /// Where its actions end.
    end: u32,
    epsilon: i64,
    probability: f64,
}

impl<'a> List<'a> {
    pub(crate) fn new(names: &'a SharedList<Arc<str>>, limit: usize) -> Self {
        Self { names, limit, room: Some(MAX_LISTED_BYTES), counts: Vec::new(), listed: Vec::new() }
    }

    /// Makes place for so many candidates with so many actions together, so that none has to move.
    pub(crate) fn reserve(&mut self, candidates: usize, actions: usize) {
        self.listed.reserve_exact(candidates.min(self.limit));
        self.counts.reserve_exact(actions);
    }

    pub(crate) fn has_room(&self) -> bool {
        self.room.is_some() && self.listed.len() < self.limit
    }

    /// Lists a candidate, or finds that there is no room for it: of the actions given by their places.
    pub(crate) fn push(&mut self, actions: impl Iterator<Item = (u32, u32)>, epsilon: i64, probability: f64) {
        let begins = self.counts.len();
        self.counts.extend(actions);
        let actions = self.counts.get(begins..).unwrap_or_default();
        self.room = self.room.and_then(|room| room.checked_sub(encoded_bytes(self.names, actions)));
        if self.room.is_some() {
            self.listed.push(Listed { end: self.counts.len() as u32, epsilon, probability });
        }
    }

    /// What is listed.
    pub(crate) fn into_candidates(self) -> SharedList<Candidate> {
        let ends: Vec<u32> = self.listed.iter().map(|listed| listed.end).collect();
        let actions = Actions::of_many(self.names.clone(), self.counts, ends);
        let candidate = |(actions, Listed { epsilon, probability, .. })| Candidate { actions, epsilon, probability };
        actions.zip(self.listed).map(candidate).collect()
    }
}

/// How many bytes a candidate takes in a frame at most: its three fields, and for each action a name and a count.
fn encoded_bytes(names: &[Arc<str>], actions: &[(u32, u32)]) -> usize {
    let bytes_of = |(action, _): &(u32, u32)| names.get(*action as usize).map_or(0, |name| name.len() + 10);
    LEAST_BYTES + actions.iter().map(bytes_of).sum::<usize>()
}
