//! Candidates chosen by the size and the replies together, for sizes with more candidates than can be listed.
//!
//! A list that is cut by the size alone seldom holds the truth where there are millions of candidates. The replies tell
//! which few of them matter ([`sizeleak_inference`]). What the replies say still is not part of a candidate's
//! probability: that is up to `pruner`, or whatever comes next.

use std::cell::OnceCell;

use sizeleak_frame::Command;
use sizeleak_inference::{InferredActions, MostProbable, ReplyInference, WeightedSum};
use sizeleak_model::{Model, ReplyReader, SeenReplies, WireSize};

use crate::target_sums::TargetSum;

/// The most sums that are looked at; ranges of block ciphers have some hundred.
const MAX_SUMS: usize = 4096;

/// Below this probability of the replies, quotients by it are not exact.
const MIN_PROBABILITY: f64 = 1e-280;

/// What the replies to commands say, for one model.
#[derive(Debug, Default)]
pub(crate) struct ReplyCandidates {
    /// Built when it is first needed; `None` for a model that does not allow it.
    inference: OnceCell<Option<ReplyInference>>,
    /// What reads replies that are longer by so many bytes than those that the model was learned from.
    reader: Option<(i64, ReplyReader)>,
}

/// The replies to a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommandReplies {
    /// Their sizes in ascending order, the least and the most bytes of each.
    pub(crate) sizes: Vec<[i64; 2]>,
    /// By how many bytes each is longer than those that the model was learned from.
    pub(crate) longer: i64,
}

/// A candidate that the replies allow.
#[derive(Debug)]
pub(crate) struct ReplyCandidate {
    /// Indices of the actions that occur, with their counts.
    pub(crate) actions: Vec<(u32, u32)>,
    /// Which of the sums they have.
    pub(crate) sum: usize,
    /// P(actions | size).
    pub(crate) probability: f64,
    /// P(actions | size, replies).
    pub(crate) with_replies: f64,
}

/// The candidates that matter.
#[derive(Debug)]
pub(crate) struct ReplyAnswer {
    /// Most probable given the size first.
    pub(crate) candidates: Vec<ReplyCandidate>,
    /// ln P(size), as a multiple of the unit of the sums' weights.
    pub(crate) ln_size: f64,
    /// P(replies | size).
    pub(crate) reply_probability: f64,
}

impl CommandReplies {
    /// The replies to a command, each of which is longer by some bytes, as far as the model's single replies say something
    /// about actions. `None` if they say nothing, or if not all are known.
    pub(crate) fn new(model: &Model, command: &Command, longer: i64) -> Option<Self> {
        if model.single_replies.is_none() || model.kinds.is_some() {
            return None;
        }
        let size = WireSize { wire: command.size, records: command.records, plaintext: command.plaintext };
        let replies = command.all_single_replies()?.iter();
        let mut sizes: Vec<[i64; 2]> =
            replies.map(|reply| model.learned.basis.reply_sizes(reply.length, size)).collect();
        sizes.sort_unstable();
        Some(Self { sizes, longer })
    }
}

impl ReplyCandidates {
    /// What the replies say; `None` if nothing.
    pub(crate) fn read(&mut self, model: &Model, replies: &CommandReplies) -> Option<SeenReplies> {
        let learned = model.single_replies.as_ref()?;
        let longer = replies.longer;
        if self.reader.as_ref().is_none_or(|(known, _)| *known != longer) {
            self.reader = Some((longer, ReplyReader::new(learned.clone().longer_by(longer))));
        }
        Some(self.reader.as_ref()?.1.read(&replies.sizes))
    }

    /// The candidates with one of some sums that are most probable given these replies, at most `limit`. `None` where
    /// that is too much to compute, or where no actions explain both: sizes alone have to do.
    pub(crate) fn most_probable<'a>(
        &mut self,
        model: &Model,
        replies: &CommandReplies,
        sums: impl Iterator<Item = &'a TargetSum>,
        limit: usize,
    ) -> Option<ReplyAnswer> {
        let inference = self.inference.get_or_init(|| ReplyInference::new(model)).as_ref()?;
        let sums: Vec<WeightedSum> =
            sums.map(|sum| WeightedSum { bytes: sum.bytes, weight: sum.weight }).take(MAX_SUMS + 1).collect();
        if sums.len() > MAX_SUMS {
            return None;
        }
        let ln_size = inference.ln_size(&sums).ok()?;
        let seen = self.read(model, replies)?;
        let inference = self.inference.get()?.as_ref()?;
        let MostProbable { ln_total, listed } = inference.most_probable(&seen, &sums, limit).ok()?;
        let reply_probability = (ln_total - ln_size).exp().min(1.0);
        if listed.is_empty() || !ln_size.is_finite() || reply_probability < MIN_PROBABILITY {
            return None;
        }
        let candidate = |InferredActions { actions, sum, ln_weight, probability: with_replies }| {
            let probability = f64::exp(ln_weight - ln_size).min(1.0);
            ReplyCandidate { actions, sum, probability, with_replies }
        };
        let mut candidates: Vec<ReplyCandidate> = listed.into_iter().map(candidate).collect();
        // Equal ones stay in the order of what they are worth with the replies.
        candidates.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        Some(ReplyAnswer { candidates, ln_size, reply_probability })
    }
}

#[cfg(test)]
mod tests;
