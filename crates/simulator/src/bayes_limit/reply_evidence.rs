//! What the replies to single actions reveal: how many of each size arrive.

use std::collections::BTreeMap;

use super::action_traits::ScenarioTraits;
use super::counting::{CountKey, entropy, merge_by_key};
use super::limit_error::BayesLimitError;
use super::observed_sizes::ObservedSizes;
use crate::scenario::{ReplyPadding, Scenario};

/// The most different sets of replies to actions of one kind.
const MAX_OUTCOMES: usize = 1 << 20;

/// Outcomes that are less probable do not count in entropies.
const NEGLIGIBLE: f64 = 1e-11;

/// What an observer sees of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeenReplies {
    None,
    Number,
    Sizes,
}

/// The numbers of replies by size, as a key, with the probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outcome {
    pub(super) seen: u128,
    pub(super) chance: f64,
}

/// The distribution of the replies to any number of actions.
#[derive(Debug)]
pub(super) struct ReplyEvidence<'a> {
    /// The numbers of actions with each kind of replies.
    actions: &'a CountKey,
    /// The numbers of replies with each distribution of sizes, to one action with each kind of replies.
    of_action: Vec<u128>,
    replies: CountKey,
    /// By distribution of sizes and number of replies: the outcomes, the most probable first.
    outcomes: Vec<Vec<Vec<Outcome>>>,
    /// Whether replies with different distributions may look alike.
    is_ambiguous: bool,
}

impl<'a> ReplyEvidence<'a> {
    pub(super) fn new(
        scenario: &Scenario,
        traits: &ScenarioTraits,
        actions: &'a CountKey,
        seen: SeenReplies,
        observed: &mut ObservedSizes<'_>,
    ) -> Result<Self, BayesLimitError> {
        let sent: &[Vec<ReplyPadding>] = if seen == SeenReplies::None { &[] } else { &traits.replies };
        let longest = sent.iter().map(Vec::len).max().unwrap_or(0) as u32;
        let most = scenario.command.most_actions.saturating_mul(longest);
        let classes = SizeClasses::new(sent, most, seen, observed)?;
        let mut kinds: Vec<Vec<Outcome>> = Vec::new();
        let mut kind_of = |padding: &ReplyPadding| {
            let outcomes = classes.outcomes(*padding, scenario.replies.loss);
            kinds.iter().position(|known| *known == outcomes).unwrap_or_else(|| {
                kinds.push(outcomes);
                kinds.len() - 1
            })
        };
        let kinds_of_action: Vec<Vec<usize>> =
            sent.iter().map(|replies| replies.iter().map(&mut kind_of).collect()).collect();
        let replies = CountKey::new(kinds.len(), most).ok_or(BayesLimitError::TooMany)?;
        let of_action = kinds_of_action.iter().map(|kinds| kinds.iter().map(|kind| replies.unit(*kind)).sum());
        let mut seen: Vec<u128> = kinds.iter().flatten().map(|outcome| outcome.seen).filter(|seen| *seen > 0).collect();
        seen.sort_unstable();
        Ok(Self {
            actions,
            of_action: of_action.collect(),
            is_ambiguous: seen.windows(2).any(|pair| matches!(pair, [one, next] if one == next)),
            outcomes: kinds.iter().map(|kind| outcomes_of_numbers(kind, most)).collect::<Result<_, _>>()?,
            replies,
        })
    }

    /// The numbers of replies with each distribution of sizes, from the numbers of actions with each kind of replies.
    pub(super) fn replies(&self, actions: u128) -> u128 {
        let counts = self.actions.counts(actions).zip(&self.of_action);
        counts.map(|(count, replies)| u128::from(count) * replies).sum()
    }

    /// Replaces `found` by the outcomes whose probability is at least about `least`. Returns the probability of the
    /// others.
    pub(super) fn outcomes(&self, replies: u128, least: f64, found: &mut Vec<Outcome>) -> f64 {
        let counts = self.replies.counts(replies).zip(&self.outcomes);
        let parts = counts.filter(|(count, _)| *count > 0);
        let parts: Vec<&[Outcome]> =
            parts.filter_map(|(count, of_number)| of_number.get(count as usize)).map(Vec::as_slice).collect();
        found.clear();
        walk(&parts, NOTHING, least, found);
        let unused = 1.0 - found.iter().map(|outcome| outcome.chance).sum::<f64>();
        if self.is_ambiguous {
            merge(found);
        }
        unused.max(0.0)
    }

    /// The entropy of replies, in bits.
    pub(super) fn entropy(&self, replies: u128) -> f64 {
        let mut found = Vec::new();
        self.outcomes(replies, NEGLIGIBLE, &mut found);
        entropy(found.into_iter().map(|outcome| outcome.chance))
    }
}

/// The sizes that an observer tells apart.
#[derive(Debug)]
struct SizeClasses {
    /// By padding of a reply, the key of one such reply.
    units: BTreeMap<u32, u128>,
}

impl SizeClasses {
    fn new(
        sent: &[Vec<ReplyPadding>],
        most: u32,
        seen: SeenReplies,
        observed: &mut ObservedSizes<'_>,
    ) -> Result<Self, BayesLimitError> {
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        for ReplyPadding { min, max } in sent.iter().flatten() {
            for padding in *min..=*max {
                // All sizes are one where only their number is seen.
                let size = if seen == SeenReplies::Number { 0 } else { observed.status(padding)? };
                sizes.insert(padding, size);
            }
        }
        let mut classes: Vec<usize> = sizes.values().copied().collect();
        classes.sort_unstable();
        classes.dedup();
        let key = CountKey::new(classes.len(), most).ok_or(BayesLimitError::TooMany)?;
        let unit = |size: usize| classes.binary_search(&size).map_or(0, |class| key.unit(class));
        Ok(Self { units: sizes.into_iter().map(|(padding, size)| (padding, unit(size))).collect() })
    }

    /// One reply: lost, or of one of its sizes.
    fn outcomes(&self, ReplyPadding { min, max }: ReplyPadding, loss: f64) -> Vec<Outcome> {
        let each = (1.0 - loss) / f64::from(max - min + 1);
        let mut outcomes = vec![Outcome { seen: 0, chance: loss }];
        outcomes.extend(self.units.range(min..=max).map(|(_, unit)| Outcome { seen: *unit, chance: each }));
        outcomes.retain(|outcome| outcome.chance > 0.0);
        merge(&mut outcomes);
        outcomes
    }
}

/// The outcomes of each number of replies with the same distribution, the most probable first.
fn outcomes_of_numbers(one: &[Outcome], most: u32) -> Result<Vec<Vec<Outcome>>, BayesLimitError> {
    let mut of_number = vec![vec![NOTHING]];
    for _ in 0..most {
        let more = convolved(of_number.last().map_or(&[], Vec::as_slice), one)?;
        of_number.push(more);
    }
    for outcomes in &mut of_number {
        outcomes.sort_by(|one, other| other.chance.total_cmp(&one.chance));
    }
    Ok(of_number)
}

const NOTHING: Outcome = Outcome { seen: 0, chance: 1.0 };

/// All combinations of outcomes of the parts, each of which has its most probable outcome first.
fn walk(parts: &[&[Outcome]], so_far: Outcome, least: f64, found: &mut Vec<Outcome>) {
    let Some((first, others)) = parts.split_first() else { return found.push(so_far) };
    for outcome in *first {
        let chance = so_far.chance * outcome.chance;
        if chance < least {
            break;
        }
        walk(others, Outcome { seen: so_far.seen + outcome.seen, chance }, least, found);
    }
}

/// The outcomes of two independent sets of replies together.
fn convolved(one: &[Outcome], other: &[Outcome]) -> Result<Vec<Outcome>, BayesLimitError> {
    if one.len().saturating_mul(other.len()) > MAX_OUTCOMES {
        return Err(BayesLimitError::TooMany);
    }
    let pair = |a: &Outcome, b: &Outcome| Outcome { seen: a.seen + b.seen, chance: a.chance * b.chance };
    let mut both: Vec<Outcome> = one.iter().flat_map(|a| other.iter().map(move |b| pair(a, b))).collect();
    merge(&mut both);
    Ok(both)
}

fn merge(outcomes: &mut Vec<Outcome>) {
    merge_by_key(outcomes, |outcome| outcome.seen, |kept, other| kept.chance += other.chance);
}
