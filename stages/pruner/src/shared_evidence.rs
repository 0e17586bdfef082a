//! What replies that may be to several commands say about the actions of each of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use foldhash::fast::RandomState;
use sizeleak_frame::{Actions, Command, Identification, SingleReply};
use sizeleak_model::statistics::ln_sum;

use crate::posterior::Posterior;
use crate::reply_evidence::{ActionEvidence, ReplyEvidence, ReplyModel};
use crate::shared_replies::{PooledReplies, ReplyShare, share_out};

const MAX_REPLIES: usize = 128;

/// The most likelihoods that are computed to share out the replies to one group.
const MAX_LIKELIHOODS: usize = 1 << 17;

/// Actions that are less probable, by the size, are left out when the replies to *other* commands are weighed.
const NEGLIGIBLE: f64 = 1e-6;

/// The replies to one command of a group, as far as they are known: one of several multisets.
#[derive(Debug)]
pub(crate) struct SharedEvidence<'a> {
    /// Each with the logarithm of its weight.
    shares: Vec<(f64, ReplyEvidence<'a>)>,
    /// Logarithms of likelihoods computed so far, by how many replies of each class there should be.
    known: RefCell<HashMap<Vec<u32>, f64, RandomState>>,
}

impl<'a> SharedEvidence<'a> {
    /// The evidence of these shares for the actions of a command of up to `max_actions`; `None` if replies say nothing.
    pub(crate) fn new(
        model: &'a ReplyModel,
        command: &Command,
        shares: &[ReplyShare],
        max_actions: u32,
    ) -> Option<Self> {
        let of_share = |share: &ReplyShare| {
            let evidence = ReplyEvidence::new(model, &with_replies(command, &share.lengths), max_actions)?;
            Some(((share.weight * orders(share.lengths.len())).ln(), evidence))
        };
        let shares: Vec<_> = shares.iter().map(of_share).collect::<Option<_>>()?;
        (!shares.is_empty()).then(|| Self { shares, known: RefCell::default() })
    }

    /// Over all shares.
    fn ln_sum(&self, ln_likelihood: impl Fn(&ReplyEvidence<'a>) -> f64) -> f64 {
        let ln_terms: Vec<f64> = self.shares.iter().map(|(ln_weight, one)| ln_weight + ln_likelihood(one)).collect();
        ln_sum(&ln_terms)
    }
}

impl ActionEvidence for SharedEvidence<'_> {
    fn ln_likelihood(&self, actions: &Actions) -> f64 {
        let Some(single) = self.shares.first().and_then(|(_, one)| one.only_single()) else {
            return self.ln_sum(|one| one.ln_likelihood(actions));
        };
        let counts = single.class_counts(actions);
        let of_share = |one: &ReplyEvidence<'_>, counts: &[u32]| {
            one.only_single().map_or(f64::NEG_INFINITY, |single| single.seen.ln_likelihood(counts))
        };
        let mut known = self.known.borrow_mut();
        *known.entry(counts).or_insert_with_key(|counts| self.ln_sum(|one| of_share(one, counts)))
    }

    fn ln_greatest(&self) -> f64 {
        self.ln_sum(ActionEvidence::ln_greatest)
    }

    /// Of commands with any of these replies.
    fn learned_bounds(&self, keep: f64) -> RangeInclusive<u32> {
        let bounds = || self.shares.iter().map(|(_, evidence)| evidence.learned_bounds(keep));
        let least = bounds().map(|bounds| *bounds.start()).min().unwrap_or(0);
        least..=bounds().map(|bounds| *bounds.end()).max().unwrap_or(u32::MAX)
    }
}

/// The shares of each command of a group whose candidates have these probabilities before the replies; `None` if the
/// replies say nothing or cannot be shared out.
pub(crate) fn shares_of(
    model: &ReplyModel,
    group: &[Identification],
    candidates: &[Posterior<'_>],
    max_actions: u32,
) -> Option<Vec<Vec<ReplyShare>>> {
    let pool = pool(group)?;
    let mut actions = Vec::with_capacity(group.len());
    for (one, candidates) in group.iter().zip(candidates) {
        let evidence = ReplyEvidence::new(model, &with_replies(&one.command, &[]), max_actions)?;
        actions.push(ProbableActions::new(&evidence, candidates));
    }
    let mut likelihoods = 0;
    let probability = |at: usize, lengths: &[u32]| {
        let (one, actions) = (group.get(at)?, actions.get(at)?);
        likelihoods += actions.by_classes.len() + actions.others.len();
        let evidence = ReplyEvidence::new(model, &with_replies(&one.command, lengths), max_actions)?;
        (likelihoods <= MAX_LIKELIHOODS).then(|| actions.expected_likelihood(&evidence) * orders(lengths.len()))
    };
    share_out(&pool, group.len(), probability)
}

/// The candidates of a command, joined where all replies have the same likelihood for them.
#[derive(Debug)]
struct ProbableActions<'a> {
    /// How many replies of each class there should be.
    by_classes: BTreeMap<Vec<u32>, f64>,
    /// Those for which that is not all.
    others: Vec<(&'a Actions, f64)>,
    /// The probability of everything that is not listed.
    unlisted: f64,
}

impl<'a> ProbableActions<'a> {
    fn new(evidence: &ReplyEvidence<'_>, candidates: &'a Posterior<'_>) -> Self {
        let (mut by_classes, mut others) = (BTreeMap::new(), Vec::new());
        for (candidate, probability) in candidates.left() {
            if let Some(single) = evidence.only_single() {
                *by_classes.entry(single.class_counts(&candidate.actions)).or_insert(0.0) += probability;
            } else {
                others.push((&candidate.actions, probability));
            }
        }
        by_classes.retain(|_, probability| *probability > NEGLIGIBLE);
        Self { by_classes, others, unlisted: candidates.unlisted }
    }

    /// The probability of replies before they are used. What is not listed has the greatest likelihood.
    fn expected_likelihood(&self, evidence: &ReplyEvidence<'_>) -> f64 {
        let likelihood = |ln: f64| ln.exp().max(f64::MIN_POSITIVE);
        let of_classes = |(counts, probability): (&Vec<u32>, &f64)| {
            probability * evidence.only_single().map_or(0.0, |single| likelihood(single.seen.ln_likelihood(counts)))
        };
        let of_other =
            |(actions, probability): &(&Actions, f64)| probability * likelihood(evidence.ln_likelihood(actions));
        let unlisted = if self.unlisted > 0.0 { self.unlisted * evidence.ln_greatest().exp() } else { 0.0 };
        self.by_classes.iter().map(of_classes).sum::<f64>() + self.others.iter().map(of_other).sum::<f64>() + unlisted
    }
}

/// The replies to all commands of a group, with the commands that they may be to; `None` if there are too many.
fn pool(group: &[Identification]) -> Option<Vec<PooledReplies>> {
    let mut pool: Vec<PooledReplies> = Vec::new();
    for (last, Identification { command, .. }) in group.iter().enumerate() {
        for (number, reply) in command.listed_replies()?.iter().enumerate() {
            let may_be_to = |shared: &u32| usize::try_from(*shared).is_ok_and(|shared| number < shared);
            let earlier = command.shared_replies.iter().take_while(|shared| may_be_to(shared)).count();
            let first = last.checked_sub(earlier)?;
            let length = command.learned_length(reply);
            let equal = |one: &&mut PooledReplies| (one.length, one.first, one.last) == (length, first, last);
            match pool.iter_mut().find(equal) {
                Some(equal) => equal.count += 1,
                None => pool.push(PooledReplies { length, count: 1, first, last }),
            }
        }
    }
    let replies: u64 = pool.iter().map(|replies| u64::from(replies.count)).sum();
    (replies <= MAX_REPLIES as u64).then_some(pool)
}

/// A command with replies of these lengths, all of them its own.
fn with_replies(command: &Command, lengths: &[u32]) -> Command {
    Command {
        replies: lengths.len() as u32,
        reply_bytes: lengths.iter().map(|length| u64::from(*length)).sum(),
        single_replies: lengths.iter().map(|length| SingleReply { after_ns: 0, length: *length }).collect(),
        overlapped: false,
        shared_replies: [].into(),
        ..command.clone()
    }
}

/// In how many orders so many replies may come. Likelihoods are those of replies in one order, and replies of several
/// commands come in any.
fn orders(replies: usize) -> f64 {
    (1..=replies).map(|number| number as f64).product()
}
