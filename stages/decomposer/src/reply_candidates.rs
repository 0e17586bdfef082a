//! Candidates chosen by the size and the replies together, for sizes with more candidates than can be listed.
//!
//! A list that is cut by the size alone seldom holds the truth where there are millions of candidates. The replies tell
//! which few of them matter ([`sizeleak_inference`]). What the replies say still is not part of a candidate's
//! probability: that is up to `pruner`, or whatever comes next.

use std::cell::OnceCell;
use std::sync::Arc;

use sizeleak_frame::{Command, SharedList};
use sizeleak_inference::{InferredActions, MostProbable, ReplyInference, WeightedSum};
use sizeleak_model::{Model, ReplyReader, SeenReplies, WireSize};

use crate::decomposition::{CandidateList, FoundCandidates, MAX_CANDIDATES, TargetSum};

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

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommandReplies {
    /// Their sizes in ascending order, the least and the most bytes of each.
    pub(crate) sizes: Vec<[i64; 2]>,
    /// By how many bytes each is longer than those that the model was learned from.
    pub(crate) longer: i64,
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
            replies.map(|reply| model.learned.basis.reply_sizes(command.learned_length(reply), size)).collect();
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

    /// The candidates with one of some sums that are most probable given these replies, at most `limit`; how many there are
    /// beside these is not counted. The weights of sums are multiples of `heaviest`. `None` where that is too much to
    /// compute, or where no actions explain both: sizes alone have to do.
    pub(crate) fn most_probable(
        &mut self,
        model: &Model,
        names: &SharedList<Arc<str>>,
        replies: &CommandReplies,
        sums: &[TargetSum],
        heaviest: f64,
        limit: usize,
    ) -> Option<FoundCandidates> {
        let inference = self.inference.get_or_init(|| ReplyInference::new(model)).as_ref()?;
        if sums.len() > MAX_SUMS {
            return None;
        }
        let weighted: Vec<WeightedSum> =
            sums.iter().map(|sum| WeightedSum { bytes: sum.bytes, weight: sum.weight }).collect();
        let ln_size = inference.ln_size(&weighted).ok()?;
        let seen = self.read(model, replies)?;
        let inference = self.inference.get()?.as_ref()?;
        let MostProbable { ln_total, listed } =
            inference.most_probable(&seen, &weighted, limit.min(MAX_CANDIDATES)).ok()?;
        let reply_probability = (ln_total - ln_size).exp().min(1.0);
        if listed.is_empty() || !ln_size.is_finite() || reply_probability < MIN_PROBABILITY {
            return None;
        }
        let of_size = |one: InferredActions| (f64::exp(one.ln_weight - ln_size).min(1.0), one);
        let mut candidates: Vec<(f64, InferredActions)> = listed.into_iter().map(of_size).collect();
        // Equal ones stay in the order of what they are worth with the replies.
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let with_replies = candidates.iter().map(|(_, one)| one.probability).collect();
        let mut list = CandidateList::new(names, limit);
        for (probability, InferredActions { actions, sum, .. }) in candidates {
            let TargetSum { epsilon, weight, .. } = sums[sum];
            list.push(actions.into_iter(), epsilon, probability, Some(weight));
        }
        Some(FoundCandidates {
            listed: list.into_candidates(),
            count: 0,
            probability: Some((ln_size + heaviest.ln()).exp().min(1.0)),
            reply_probability: Some(reply_probability),
            with_replies: Some(with_replies),
        })
    }
}
