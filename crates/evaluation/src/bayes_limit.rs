//! The Bayes limit of a scenario and the share of it that was reached.

use serde::Serialize;
use sizeleak_simulator::BayesLimit;

use crate::score::Score;
use crate::statistics::Interval;

/// The best that any method can do on a scenario, and the shares of it that were reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LimitComparison {
    /// The greatest probability that the first candidate is right, by the size alone.
    pub top_1: f64,
    /// The same by size and replies.
    pub top_1_with_replies: f64,
    /// The share of right first candidates before pruning, relative to `top_1`; null without a pruner.
    pub reached: Option<f64>,
    /// The share of right first candidates at the end, relative to `top_1_with_replies`; without a pruner, to `top_1`.
    pub reached_in_the_end: f64,
    /// The 95 % interval of `reached`.
    pub reached_interval: Option<Interval>,
    /// The 95 % interval of `reached_in_the_end`.
    pub reached_in_the_end_interval: Interval,
    /// The entropy of a command's actions, in bits.
    pub prior_bits: f64,
    /// The information that the size gives away, in bits.
    pub leaked_bits: f64,
    /// The information that size and replies give away, in bits.
    pub leaked_bits_with_replies: f64,
}

impl LimitComparison {
    /// Compares scores with the limit.
    pub(crate) fn new(limit: BayesLimit, before: Option<&Score>, after: &Score) -> Self {
        let BayesLimit { top_1, top_1_with_replies, prior_bits, leaked_bits, leaked_bits_with_replies, .. } = limit;
        let reached = |score: &Score, of: f64| score.top_1 as f64 / score.commands.max(1) as f64 / of;
        let in_the_end = if before.is_some() { top_1_with_replies } else { top_1 };
        Self {
            top_1,
            top_1_with_replies,
            reached: before.map(|before| reached(before, top_1)),
            reached_in_the_end: reached(after, in_the_end),
            reached_interval: before.map(|before| before.intervals.top_1.scaled(1.0 / top_1)),
            reached_in_the_end_interval: after.intervals.top_1.scaled(1.0 / in_the_end),
            prior_bits,
            leaked_bits,
            leaked_bits_with_replies,
        }
    }
}
