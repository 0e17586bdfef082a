//! The most probable actions of a command, given its size and replies.
//!
//! The numbers of actions per group are known with their weights; within them, and within the sums that they have, only
//! actions are tried whose best completion is above a threshold, which is lowered until what is listed has nearly all of
//! the probability.

use sizeleak_model::{Pmf, SeenReplies};

use crate::action_group::ActionGroup;
use crate::explained::{Numbers, WeightedSum};
use crate::inference::{Beyond, ExplainedReplies, ReplyInference};

/// Listed actions have this much of the probability together, unless there are too many.
const LISTED_SHARE: f64 = 1.0 - 1e-6;

/// Thresholds, as shares of the probability: the first, by what factor the next one is lower, and the last.
const FIRST_THRESHOLD: f64 = 1e-3;
const LOWER: f64 = 0.1;
const LAST_THRESHOLD: f64 = 1e-10;

/// Below the first threshold there can be no more than this many.
const FIRST_LISTED: usize = 1000;

/// The most steps of the search within known numbers.
const MAX_STEPS: u64 = 1_000_000;

/// Actions that explain a command.
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

/// The most probable actions of a command.
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
    numbers: &'a Numbers,
    joint: f64,
    /// The greatest weights of the groups before each one.
    before: Vec<Pmf>,
}

impl ReplyInference {
    /// The most probable actions with one of some sums, given the replies: as many as matter, at most `limit`.
    ///
    /// # Errors
    /// [`Beyond`].
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
}

impl ExplainedReplies<'_> {
    /// The most probable actions with one of some sums: as many as matter, at most `limit`.
    pub fn most_probable(&self, sums: &[WeightedSum], limit: usize) -> MostProbable {
        let groups = &self.inference.groups.list[..];
        let contribution = |numbers| Contribution { numbers, joint: Numbers::joint(numbers, sums), before: Vec::new() };
        let mut all: Vec<Contribution<'_>> = self.numbers.iter().map(contribution).collect();
        all.retain(|one| one.joint > 0.0);
        all.sort_by(|a, b| b.joint.total_cmp(&a.joint));
        let total: f64 = all.iter().map(|one| one.joint).sum();
        let inferred = |Found { actions, sum, weight, joint }| InferredActions {
            actions,
            sum,
            ln_weight: f64::ln(weight),
            probability: f64::min(joint / total, 1.0),
        };
        let found = if total > 0.0 { found(groups, &mut all, sums, total, limit) } else { Vec::new() };
        let mut listed: Vec<InferredActions> = found.into_iter().map(inferred).collect();
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

/// The actions that have [`LISTED_SHARE`] together, or those above a threshold that is as low as there is room for.
fn found(
    groups: &[ActionGroup],
    all: &mut [Contribution<'_>],
    sums: &[WeightedSum],
    total: f64,
    limit: usize,
) -> Vec<Found> {
    let mut steps_left = MAX_STEPS;
    let mut above = |threshold: f64| {
        let (least, room) = (threshold * total, limit.max(FIRST_LISTED));
        let mut listing = Listing { groups, least, room, steps_left, chosen: Vec::new(), found: Vec::new() };
        let listed = listing.list(all, sums);
        steps_left = listing.steps_left;
        listed.map(|()| listing.found)
    };
    // Mostly, there is room for all.
    if let Ok(found) = above(LAST_THRESHOLD) {
        return found;
    }
    let mut found = Vec::new();
    let mut threshold = FIRST_THRESHOLD;
    // What is found without room for all above the threshold would be an arbitrary part of it.
    while let Ok(more) = above(threshold) {
        found = more;
        if found.iter().map(|found| found.joint).sum::<f64>() >= LISTED_SHARE * total {
            break;
        }
        threshold *= LOWER;
    }
    found
}

/// Actions above the threshold.
#[derive(Debug)]
struct Found {
    actions: Vec<(u32, u32)>,
    sum: usize,
    /// The prior times the weight of the sum.
    weight: f64,
    /// The same times the likelihood of the replies, as a multiple of the unit.
    joint: f64,
}

/// Too many actions are above the threshold.
#[derive(Debug, Clone, Copy)]
struct TooMany;

/// The search for all actions above a threshold.
struct Listing<'a> {
    groups: &'a [ActionGroup],
    /// The least joint weight that is listed.
    least: f64,
    room: usize,
    steps_left: u64,
    /// The actions chosen so far, last group first.
    chosen: Vec<(u32, u32)>,
    found: Vec<Found>,
}

/// What is fixed while the actions of one group after the other are chosen.
struct Fixed<'a> {
    numbers: &'a Numbers,
    before: &'a [Pmf],
    sum: usize,
}

/// A position in the choice of the actions of one group.
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
    fn list(&mut self, all: &mut [Contribution<'_>], sums: &[WeightedSum]) -> Result<(), TooMany> {
        let least = self.least;
        for Contribution { numbers, before, .. } in all.iter_mut().take_while(|one| one.joint >= least) {
            if before.is_empty() {
                *before = greatest_before(self.groups, numbers);
            }
            for (sum, WeightedSum { bytes, weight }) in sums.iter().enumerate() {
                let joint = numbers.likelihood * numbers.prior * weight;
                self.choose_sum(&Fixed { numbers, before, sum }, self.groups.len(), *bytes, joint)?;
            }
        }
        Ok(())
    }

    /// Chooses the sum of the group before `end`, given that of all groups up to it.
    fn choose_sum(&mut self, fixed: &Fixed<'_>, end: usize, sum: i64, joint: f64) -> Result<(), TooMany> {
        let Some(group) = end.checked_sub(1) else {
            if sum == 0 {
                self.push(fixed, joint)?;
            }
            return Ok(());
        };
        let number = fixed.numbers.of_groups.get(group).copied().unwrap_or(0);
        let groups = self.groups;
        let (Some(own), Some(before)) = (groups.get(group), fixed.before.get(group)) else { return Ok(()) };
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
        Ok(())
    }

    /// Chooses how often an action of a group occurs.
    fn choose_action(&mut self, fixed: &Fixed<'_>, at: Position) -> Result<(), TooMany> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(TooMany)?;
        let groups = self.groups;
        let (Some(group), Some(before)) = (groups.get(at.group), fixed.before.get(at.group)) else { return Ok(()) };
        let Some((action, occurrences)) = group.actions.get(at.action).zip(group.occurrences.get(at.action)) else {
            return self.choose_sum(fixed, at.group, at.rest, at.joint);
        };
        let Some(later) = group.greatest.get(at.action + 1) else { return Ok(()) };
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
        Ok(())
    }

    fn push(&mut self, fixed: &Fixed<'_>, joint: f64) -> Result<(), TooMany> {
        if self.found.len() >= self.room {
            return Err(TooMany);
        }
        let mut actions = self.chosen.clone();
        actions.sort_unstable();
        self.found.push(Found { actions, sum: fixed.sum, weight: joint / fixed.numbers.likelihood, joint });
        Ok(())
    }
}

/// The greatest weights that so many actions of the groups before each one have, by their sum.
fn greatest_before(groups: &[ActionGroup], numbers: &Numbers) -> Vec<Pmf> {
    let mut before = vec![Pmf::one(0, 1.0)];
    for (group, number) in groups.iter().zip(&numbers.of_groups) {
        let greatest = group.greatest.first().and_then(|of_all| of_all.get(*number as usize));
        let next = before.last().zip(greatest).map(|(before, own)| before.convolve_greatest(own));
        before.push(next.unwrap_or_default());
    }
    before
}
