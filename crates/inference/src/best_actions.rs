//! The most probable actions of a command, given its size and replies.
//!
//! The numbers of actions per group are known with their weights; within them, and within the sums that they have, only
//! actions are tried whose best completion is above a threshold, which is lowered until what is listed has nearly all of
//! the probability.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::fast::RandomState;
use sizeleak_model::{Pmf, SeenReplies};

use crate::action_group::ActionGroup;
use crate::inference::{ExplainedReplies, ReplyInference};
use crate::number_walk::{Beyond, Numbers, WeightedSum};

/// Listed actions have this much of the probability together, unless there are too many.
const LISTED_SHARE: f64 = 1.0 - 1e-6;

/// Thresholds, as shares of the probability: the first, by what factor the next one is lower, and the last.
const FIRST_THRESHOLD: f64 = 1e-3;
const LOWER: f64 = 0.1;
const LAST_THRESHOLD: f64 = 1e-10;

/// Above the first threshold there can be no more than this many.
const FIRST_LISTED: usize = 1000;

/// Of the commands of a class, so many are listed, or those that have this much of its probability. What habits make of it is
/// as they make of these.
const MAX_MEMBERS: usize = 64;
const MEMBERS_SHARE: f64 = 0.99;

/// The most steps of the search within known numbers.
const MAX_STEPS: u64 = 1_000_000;

#[derive(Debug, Clone, PartialEq)]
pub struct InferredActions {
    /// Indices of the actions in the model's list, in that order, each with how often it occurs.
    pub actions: Vec<(u32, u32)>,
    /// Which of the given sums they have.
    pub sum: usize,
    /// The logarithm of their prior probability times the weight of their sum.
    pub ln_weight: f64,
    /// Their probability among all actions, given the sums' weights and the replies.
    pub probability: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MostProbable {
    /// ln Σ over the given sums of weight · P(sum, replies); −∞ if no actions explain both.
    pub ln_total: f64,
    /// Most probable first, equal ones in the order of their sums and actions.
    pub listed: Vec<InferredActions>,
}

/// Numbers of actions, with their part of the total.
#[derive(Debug)]
struct Contribution<'a> {
    of_groups: &'a [u32],
    /// What a multiset of these numbers weighs beside its own weight.
    weight: f64,
    /// P(replies | numbers), where it is part of the weight.
    likelihood: f64,
    joint: f64,
    /// The greatest weights of the groups before each one; computed when they are needed.
    before: Cow<'a, [Pmf]>,
}

/// The sums that some numbers of actions have, whatever the replies.
#[derive(Debug)]
pub(crate) struct GroupSums {
    of_groups: Vec<u32>,
    /// The prior without the weights of sums.
    prior: f64,
    sums: Pmf,
    /// The greatest weights of the groups before each one.
    before: Vec<Pmf>,
}

#[derive(Debug)]
pub(crate) struct Member {
    /// Indices of the actions in the model's list, each with how often it occurs.
    pub(crate) actions: Vec<(u32, u32)>,
    /// P(A) by the learned habits, without commands that recur, as if no others were in the class.
    pub(crate) prior: f64,
}

impl ReplyInference {
    /// The most probable actions with one of some sums, given the replies: as many as matter, at most `limit`.
    pub fn most_probable(
        &self,
        seen: &SeenReplies,
        sums: &[WeightedSum],
        limit: usize,
    ) -> Result<MostProbable, Beyond> {
        let bytes = || sums.iter().map(|sum| sum.bytes);
        let range = [bytes().min().unwrap_or(0), bytes().max().unwrap_or(0)];
        Ok(self.explain(seen, sums, range, f64::NEG_INFINITY)?.most_probable(sums, limit))
    }

    pub(crate) fn group_sums(&self, Numbers { of_groups, prior, .. }: &Numbers) -> GroupSums {
        let groups = &self.groups.list[..];
        let of_number = |(group, number): (&ActionGroup, &u32)| group.sums.get(*number as usize).cloned();
        let sums = groups
            .iter()
            .zip(of_groups)
            .map(of_number)
            .try_fold(Pmf::one(0, 1.0), |all, own| Some(all.convolve(&own?)));
        GroupSums {
            of_groups: of_groups.clone(),
            prior: *prior,
            sums: sums.unwrap_or_default(),
            before: greatest_before(groups, of_groups),
        }
    }

    /// The prior probability that the actions of a command have a sum and one of some numbers, by how many they are, from 1,
    /// and those that have most of it; none where there are too many of them.
    pub(crate) fn members(&self, numbers: &[Arc<GroupSums>], sum: i64) -> (Vec<f64>, Vec<Member>) {
        let contributions = numbers.iter().map(|one| Contribution {
            of_groups: &one.of_groups,
            weight: one.prior,
            likelihood: 1.0,
            joint: one.prior * one.sums.at(sum),
            before: Cow::Borrowed(&one.before[..]),
        });
        let mut all: Vec<Contribution<'_>> = contributions.collect();
        let sums = [WeightedSum { bytes: sum, weight: 1.0 }];
        let mut of_numbers = vec![0.0; self.groups.number_weights.len().max(2) - 1];
        for one in &all {
            of_numbers[one.of_groups.iter().sum::<u32>().max(1) as usize - 1] += one.joint;
        }
        let (_, found) = found(&self.groups.list, &mut all, &sums, (MAX_MEMBERS, MEMBERS_SHARE), None);
        // Those whose actions vary are found once for each way to have the sum.
        let mut members: Vec<Member> = Vec::with_capacity(found.len());
        let mut places: HashMap<Vec<(u32, u32)>, usize, RandomState> = HashMap::default();
        for InferredActions { actions, probability: prior, .. } in found {
            match places.entry(actions) {
                Entry::Occupied(known) => members[*known.get()].prior += prior,
                Entry::Vacant(new) => {
                    members.push(Member { actions: new.key().clone(), prior });
                    new.insert(members.len() - 1);
                }
            }
        }
        (of_numbers, members)
    }
}

impl ExplainedReplies<'_> {
    /// The most probable actions with one of some sums: as many as matter, at most `limit`.
    pub fn most_probable(&self, sums: &[WeightedSum], limit: usize) -> MostProbable {
        let groups = &self.inference.groups.list[..];
        let contributions = self.numbers.iter().map(|one| Contribution {
            of_groups: &one.of_groups,
            weight: one.prior,
            likelihood: one.likelihood,
            joint: one.joint(sums),
            before: Cow::default(),
        });
        let mut all: Vec<Contribution<'_>> = contributions.collect();
        // Mostly, there is room for all.
        let (total, mut listed) = found(groups, &mut all, sums, (limit, LISTED_SHARE), Some(LAST_THRESHOLD));
        for one in &mut listed {
            one.probability = (one.probability / total).min(1.0);
        }
        listed.sort_by(|a, b| {
            b.probability.total_cmp(&a.probability).then_with(|| (a.sum, &a.actions).cmp(&(b.sum, &b.actions)))
        });
        let mut share = 0.0;
        let is_needed = |one: &&InferredActions| {
            let is_needed = share < LISTED_SHARE;
            share += one.probability;
            is_needed
        };
        listed.truncate(listed.iter().take_while(is_needed).count().min(limit));
        MostProbable { ln_total: total.ln() + self.ln_unit, listed }
    }
}

/// The probability of all actions, and those that have the share of it, or that are above a threshold as low as there is
/// room for: at least `limit` have room. A threshold may be tried before all others. Probabilities that are listed are
/// multiples of the same unit.
fn found(
    groups: &[ActionGroup],
    all: &mut Vec<Contribution<'_>>,
    sums: &[WeightedSum],
    (limit, share): (usize, f64),
    tried_first: Option<f64>,
) -> (f64, Vec<InferredActions>) {
    all.retain(|one| one.joint > 0.0);
    all.sort_by(|a, b| b.joint.total_cmp(&a.joint));
    let total: f64 = all.iter().map(|one| one.joint).sum();
    let mut found = Vec::new();
    if total <= 0.0 {
        return (total, found);
    }
    let mut steps_left = MAX_STEPS;
    let mut above = |threshold: f64| {
        let (least, room) = (threshold * total, limit.max(FIRST_LISTED));
        let mut listing = Listing { groups, least, room, steps_left, chosen: Vec::new(), found: Vec::new() };
        let listed = listing.list(all, sums);
        steps_left = listing.steps_left;
        listed.map(|()| listing.found)
    };
    if let Some(found) = tried_first.and_then(&mut above) {
        return (total, found);
    }
    let mut threshold = FIRST_THRESHOLD;
    // What is found without room for all above the threshold would be an arbitrary part of it.
    while let Some(more) = above(threshold) {
        found = more;
        if found.len() >= limit || found.iter().map(|one| one.probability).sum::<f64>() >= share * total {
            break;
        }
        threshold *= LOWER;
        if threshold < LAST_THRESHOLD {
            break;
        }
    }
    (total, found)
}

/// The search for all actions above a threshold. It ends with `None` where there are too many.
struct Listing<'a> {
    groups: &'a [ActionGroup],
    /// The least joint weight that is listed.
    least: f64,
    room: usize,
    steps_left: u64,
    /// The actions chosen so far, last group first.
    chosen: Vec<(u32, u32)>,
    found: Vec<InferredActions>,
}

/// What is fixed while the actions of one group after the other are chosen.
struct Fixed<'a> {
    of_groups: &'a [u32],
    likelihood: f64,
    before: &'a [Pmf],
    sum: usize,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    group: usize,
    /// The action's position in the group.
    action: usize,
    /// How many actions of the group are still to be chosen, and their sum.
    number: u32,
    own: i64,
    /// The sum of the groups before.
    rest: i64,
    /// The joint weight so far.
    joint: f64,
}

impl Listing<'_> {
    fn list(&mut self, all: &mut [Contribution<'_>], sums: &[WeightedSum]) -> Option<()> {
        let least = self.least;
        for one in all.iter_mut().take_while(|one| one.joint >= least) {
            if one.before.is_empty() {
                one.before = greatest_before(self.groups, one.of_groups).into();
            }
            let Contribution { of_groups, weight: of_numbers, likelihood, before, .. } = one;
            for (sum, WeightedSum { bytes, weight }) in sums.iter().enumerate() {
                let fixed = Fixed { of_groups, likelihood: *likelihood, before, sum };
                self.choose_sum(&fixed, self.groups.len(), *bytes, *likelihood * *of_numbers * weight)?;
            }
        }
        Some(())
    }

    /// Chooses the sum of the group before `end`, given that of all groups up to it.
    fn choose_sum(&mut self, fixed: &Fixed<'_>, end: usize, sum: i64, joint: f64) -> Option<()> {
        let Some(group) = end.checked_sub(1) else {
            return if sum == 0 { self.push(fixed, joint) } else { Some(()) };
        };
        let number = fixed.of_groups.get(group).copied().unwrap_or(0);
        let groups = self.groups;
        let (Some(own), Some(before)) = (groups.get(group), fixed.before.get(group)) else { return Some(()) };
        let sums = own.greatest.first().and_then(|of_all| of_all.get(number as usize));
        for (own, greatest) in sums.into_iter().flat_map(Pmf::iter) {
            let rest = sum - own;
            if rest < 0 {
                break;
            }
            if joint * greatest * before.at(rest) >= self.least {
                self.choose_action(fixed, Position { group, action: 0, number, own, rest, joint })?;
            }
        }
        Some(())
    }

    fn choose_action(&mut self, fixed: &Fixed<'_>, at: Position) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let groups = self.groups;
        let (Some(group), Some(before)) = (groups.get(at.group), fixed.before.get(at.group)) else { return Some(()) };
        let Some((action, occurrences)) = group.actions.get(at.action).zip(group.occurrences.get(at.action)) else {
            return self.choose_sum(fixed, at.group, at.rest, at.joint);
        };
        let Some(later) = group.greatest.get(at.action + 1) else { return Some(()) };
        for times in 0..=at.number {
            let number = at.number - times;
            let (Some(later), Some(of_times)) = (later.get(number as usize), occurrences.get(times as usize)) else {
                continue;
            };
            for (size, weight) in of_times.iter() {
                let own = at.own - size;
                if own < 0 {
                    break;
                }
                let joint = at.joint * weight;
                if joint * later.at(own) * before.at(at.rest) < self.least {
                    continue;
                }
                let chosen = self.chosen.len();
                if times > 0 {
                    self.chosen.push((action.index as u32, times));
                }
                self.choose_action(fixed, Position { action: at.action + 1, number, own, joint, ..at })?;
                self.chosen.truncate(chosen);
            }
        }
        Some(())
    }

    fn push(&mut self, fixed: &Fixed<'_>, joint: f64) -> Option<()> {
        let mut actions = self.chosen.clone();
        actions.sort_unstable();
        let ln_weight = (joint / fixed.likelihood).ln();
        self.found.push(InferredActions { actions, sum: fixed.sum, ln_weight, probability: joint });
        (self.found.len() <= self.room).then_some(())
    }
}

/// The greatest weights that so many actions of the groups before each one have, by their sum.
fn greatest_before(groups: &[ActionGroup], of_groups: &[u32]) -> Vec<Pmf> {
    let mut before = vec![Pmf::one(0, 1.0)];
    for (group, number) in groups.iter().zip(of_groups) {
        let greatest = group.greatest.first().and_then(|of_all| of_all.get(*number as usize));
        let next = before.last().zip(greatest).map(|(before, own)| before.convolve_greatest(own));
        before.push(next.unwrap_or_default());
    }
    before
}
