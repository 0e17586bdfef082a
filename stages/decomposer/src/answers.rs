//! What was found for a command's sizes and values of ε, remembered: a home's commands have the same few sizes.

use std::sync::Arc;

use sizeleak_frame::{Candidate, SharedList, WeightedEpsilon};
use sizeleak_runtime::TwoGenerationCache;

/// Answers take this many bytes at most.
const MAX_BYTES: usize = 16 << 20;

/// What an answer takes beside its candidates and values of ε, in bytes: itself, its places in tables and on the heap.
const OF_AN_ANSWER: usize = 256;

/// What decomposing came to.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) candidates: SharedList<Candidate>,
    /// How many there are, listed or not; `u64::MAX` stands for that many or more.
    pub(crate) candidate_count: u64,
    /// How many values of ε were not used.
    pub(crate) unused_epsilons: u64,
    /// Why there are none.
    pub(crate) unexplained: Option<Unexplained>,
}

/// Why nothing explains a command.
#[derive(Debug, Clone)]
pub(crate) struct Unexplained {
    /// For a person.
    pub(crate) detail: Arc<str>,
    /// Whether it is for want of room, not of actions.
    pub(crate) is_too_large: bool,
}

/// The answers given lately, by the sizes asked about.
#[derive(Debug)]
pub(crate) struct Answers(TwoGenerationCache<[i64; 2], (SharedList<WeightedEpsilon>, Answer)>);

impl Default for Answers {
    fn default() -> Self {
        Self(TwoGenerationCache::new(MAX_BYTES))
    }
}

impl Answers {
    /// The answer to the same question.
    pub(crate) fn recall(&mut self, sizes: [i64; 2], epsilons: &SharedList<WeightedEpsilon>) -> Option<Answer> {
        let (asked, answer) = self.0.recall(&sizes)?;
        (asked.is_clone_of(epsilons) || is_same(asked, epsilons)).then(|| answer.clone())
    }

    /// Remembers an answer.
    pub(crate) fn remember(&mut self, sizes: [i64; 2], epsilons: SharedList<WeightedEpsilon>, answer: Answer) {
        let detail = answer.unexplained.as_ref().map_or(0, |unexplained| unexplained.detail.len());
        let bytes = OF_AN_ANSWER + size_of_val(&*epsilons) + detail + answer.candidates.memory_bytes();
        self.0.remember(sizes, (epsilons, answer), bytes);
    }
}

/// Whether values and weights are the same to the last bit.
fn is_same(one: &[WeightedEpsilon], other: &[WeightedEpsilon]) -> bool {
    let bits = |value: &WeightedEpsilon| (value.epsilon, value.weight.to_bits());
    one.iter().map(bits).eq(other.iter().map(bits))
}
