//! What is possible at all, beside what was reached.

use serde::Serialize;
use sizeleak_simulator::BayesLimit;

use super::score::Score;

/// The Bayes limit of the scenario, and the shares of it that were reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::command) struct Limits {
    /// The greatest probability of a right first answer by the size alone.
    pub(in crate::command) top_1: f64,
    /// The same by size and replies.
    pub(in crate::command) top_1_with_replies: f64,
    /// The share of right first answers before pruning, of `top_1`; null without a pruner.
    pub(in crate::command) reached: Option<f64>,
    /// The share of right first answers in the end, of `top_1_with_replies`; without a pruner, of `top_1`.
    pub(in crate::command) reached_in_the_end: f64,
    /// The entropy of a command's actions, in bits.
    pub(in crate::command) prior_bits: f64,
    /// What the size tells of them, and what size and replies do, in bits.
    pub(in crate::command) leaked_bits: f64,
    pub(in crate::command) leaked_bits_with_replies: f64,
}

impl Limits {
    /// The limit beside scores.
    pub(in crate::command) fn new(limit: BayesLimit, before: Option<&Score>, after: &Score) -> Self {
        let BayesLimit { top_1, top_1_with_replies, prior_bits, leaked_bits, leaked_bits_with_replies } = limit;
        let reached = |score: &Score, of: f64| score.top_1 as f64 / score.commands.max(1) as f64 / of;
        let in_the_end = if before.is_some() { top_1_with_replies } else { top_1 };
        Self {
            top_1,
            top_1_with_replies,
            reached: before.map(|before| reached(before, top_1)),
            reached_in_the_end: reached(after, in_the_end),
            prior_bits,
            leaked_bits,
            leaked_bits_with_replies,
        }
    }
}
