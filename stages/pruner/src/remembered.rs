//! What pruning came to, remembered: the same sizes come with the same replies again and again.

use sizeleak_frame::{Candidate, Identification, SharedList};
use sizeleak_runtime::TwoGenerationCache;

use crate::evidence::Bounds;

/// What is remembered takes this many bytes at most; lists that a decomposer remembers too are counted as if it did not.
const MAX_BYTES: usize = 24 << 20;

/// What remembering takes beside the candidates, in bytes.
const OF_ALL: usize = 256;

/// What is left of a list of candidates.
#[derive(Debug, Clone)]
pub(crate) struct Pruned {
    pub(crate) candidates: SharedList<Candidate>,
    /// How many candidates there are that are not listed and must still be kept.
    pub(crate) unlisted: u64,
    /// Which numbers of actions the replies allow; `None` where they say nothing.
    pub(crate) bounds: Option<Bounds>,
    /// How many the inventory did not allow.
    pub(crate) beyond_inventory: u64,
    /// Whether it allowed any.
    pub(crate) is_possible: bool,
}

/// All that pruning depends on, beside the model and the candidates themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Asked {
    size: u64,
    plaintext: Option<[u64; 2]>,
    records: u32,
    replies: u32,
    reply_bytes: u64,
    candidate_count: u64,
}

/// What was pruned lately.
#[derive(Debug)]
pub(crate) struct Remembered(TwoGenerationCache<Asked, (SharedList<Candidate>, Pruned)>);

impl Default for Remembered {
    fn default() -> Self {
        Self(TwoGenerationCache::new(MAX_BYTES))
    }
}

impl Remembered {
    /// What pruning the same candidates after the same replies came to. `reply_bytes` are 0 where they tell nothing.
    pub(crate) fn recall(&mut self, identification: &Identification, reply_bytes: u64) -> Option<Pruned> {
        let (given, pruned) = self.0.recall(&Asked::of(identification, reply_bytes))?;
        is_same(given, &identification.candidates).then(|| pruned.clone())
    }

    /// Remembers what it came to.
    pub(crate) fn remember(&mut self, identification: &Identification, reply_bytes: u64, pruned: Pruned) {
        let given = &identification.candidates;
        let left = if pruned.candidates.is_clone_of(given) { 0 } else { size_of_val(&*pruned.candidates) };
        let bytes = OF_ALL + given.memory_bytes() + left;
        self.0.remember(Asked::of(identification, reply_bytes), (given.clone(), pruned), bytes);
    }
}

impl Asked {
    fn of(Identification { command, candidate_count, .. }: &Identification, reply_bytes: u64) -> Self {
        Self {
            size: command.size,
            plaintext: command.plaintext,
            records: command.records,
            replies: command.replies,
            reply_bytes,
            candidate_count: *candidate_count,
        }
    }
}

/// Whether lists are the same to the last bit of each probability; a decomposer that remembers hands on the very same.
fn is_same(one: &SharedList<Candidate>, other: &SharedList<Candidate>) -> bool {
    let bits = |candidate: &Candidate| (candidate.epsilon, candidate.probability.to_bits());
    let is_same_kind =
        |(one, other): (&Candidate, &Candidate)| bits(one) == bits(other) && one.actions == other.actions;
    one.is_clone_of(other) || (one.len() == other.len() && one.iter().zip(other).all(is_same_kind))
}
