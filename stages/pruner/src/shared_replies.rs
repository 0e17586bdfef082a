//! Shares out the replies to commands that overlap: which of them may be to which command, and how probable that is. Until
//! all of those commands are there, their identifications are held, in order.
//!
//! Each command takes what is left of the replies that can be to no later one, and any of those that can. Summed over all
//! ways, from the first command forwards and from the last one backwards, that gives for each command the weight of every
//! multiset of replies that may be its own. Replies of equal length with the same possible commands are interchangeable.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sizeleak_frame::{Command, Identification};
use sizeleak_model::choose;

/// The most identifications that are held; beyond that the first one goes on without the others.
const MAX_HELD: usize = 1024;

/// The most commands whose replies are shared out together.
const MAX_GROUP: usize = 8;

/// Identifications in the order in which they came, each with what is known of its replies; `None` as long as others may
/// share them.
#[derive(Debug, Default)]
pub(crate) struct OverlapQueue {
    held: VecDeque<(Box<Identification>, Option<RepliesKnown>)>,
}

/// What is known of the replies to a command.
#[derive(Debug, Clone)]
pub(crate) enum RepliesKnown {
    /// They are its own.
    Own,
    /// They are among those to the commands of a group, each with the identification it belongs to; this is the command
    /// at that index.
    Grouped(Arc<[Identification]>, usize),
    /// Some of them are not known.
    Unknown,
}

impl OverlapQueue {
    pub(crate) fn push(&mut self, identification: Box<Identification>) {
        let known = identification.command.has_own_replies().then_some(RepliesKnown::Own);
        self.held.push_back((identification, known));
    }

    /// The next identification whose replies are known as far as they ever will be; at the end of the stream, that is all.
    pub(crate) fn next(&mut self, is_end: bool) -> Option<(Box<Identification>, RepliesKnown)> {
        if self.held.front()?.1.is_none() && !self.group(is_end || self.held.len() > MAX_HELD) {
            return None;
        }
        let (identification, known) = self.held.pop_front()?;
        Some((identification, known?))
    }

    /// Finds the group that begins with the first identification. False if later ones may still belong to it.
    fn group(&mut self, is_end: bool) -> bool {
        let mut members: Vec<usize> = Vec::new();
        let mut last: Option<&Command> = None;
        for (at, (Identification { command, .. }, _)) in
            self.held.iter().map(|(own, known)| (&**own, known)).enumerate()
        {
            match last {
                Some(last) if (last.flow, last.direction) != (command.flow, command.direction) => continue,
                Some(_) if command.shared_replies.is_empty() => {
                    // Something else came between: the replies after that are not known.
                    self.set(&members, false);
                    return true;
                }
                None | Some(_) => {}
            }
            members.push(at);
            last = Some(command);
            if !command.overlapped {
                self.set(&members, true);
                return true;
            }
        }
        if is_end {
            self.set(&members, false);
        }
        is_end
    }

    /// Sets what is known of the replies to the members of a group.
    fn set(&mut self, members: &[usize], is_whole: bool) {
        let group = members.iter().filter_map(|at| self.held.get(*at)).map(|(identification, _)| identification);
        let commands: Vec<&Command> = group.clone().map(|identification| &identification.command).collect();
        let is_known = is_whole && members.len() <= MAX_GROUP && is_complete(&commands);
        let group: Arc<[Identification]> =
            if is_known { group.map(|identification| (**identification).clone()).collect() } else { Arc::new([]) };
        for (index, at) in members.iter().enumerate() {
            let known = if is_known { RepliesKnown::Grouped(Arc::clone(&group), index) } else { RepliesKnown::Unknown };
            if let Some((_, own)) = self.held.get_mut(*at) {
                *own = Some(known);
            }
        }
    }
}

/// Whether commands share replies with each other alone, and all replies are listed.
fn is_complete(group: &[&Command]) -> bool {
    let shares_within =
        |(at, command): (usize, &&Command)| command.shared_replies.iter().skip(at).all(|replies| *replies == 0);
    group.iter().enumerate().all(shares_within) && group.iter().all(|command| command.listed_replies().is_some())
}

/// The most multisets of replies that one command may have; beyond that nothing is shared out.
const MAX_SHARES: usize = 1024;

/// The most ways that are followed from one command to the next.
const MAX_STEPS: usize = 16_384;

/// Shares that weigh less, beside the heaviest, are left out.
const NEGLIGIBLE: f64 = 1e-9;

/// Equal replies that may be to the same commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PooledReplies {
    /// The length on the wire of each, in bytes.
    pub(crate) length: u32,
    pub(crate) count: u32,
    /// The first command they may be to.
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Replies that may be those to one command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplyShare {
    /// Their lengths in ascending order.
    pub(crate) lengths: Vec<u32>,
    /// How probable the replies to all other commands are, if these are to this one: relative to other shares.
    pub(crate) weight: f64,
}

/// One step: what a command takes of what is left.
#[derive(Debug)]
struct Step {
    /// What was left before and what is left then, as indices.
    from: usize,
    to: usize,
    /// Which of the command's shares it is.
    share: usize,
    /// In how many ways these replies can be chosen, times the probability of them.
    weight: f64,
}

/// The shares of each of so many commands, if `probability` is that of the replies of these lengths to a command by itself,
/// whatever their order in time. `None` where there are too many ways, or none that is possible, or where a probability is
/// not known.
pub(crate) fn share_out(
    pool: &[PooledReplies],
    commands: usize,
    mut probability: impl FnMut(usize, &[u32]) -> Option<f64>,
) -> Option<Vec<Vec<ReplyShare>>> {
    // What may be left of each of the pool's replies.
    let mut states = vec![Some(pool.iter().map(|replies| replies.count).collect::<Vec<u32>>())];
    let mut before = vec![1.0];
    let mut all_steps = Vec::with_capacity(commands);
    let mut all_before = Vec::with_capacity(commands);
    let mut all_shares = Vec::with_capacity(commands);
    for command in 0..commands {
        let (next, shares, mut steps) = steps_of(pool, &states, command)?;
        let probabilities: Vec<f64> =
            shares.iter().map(|lengths| probability(command, lengths)).collect::<Option<_>>()?;
        for step in &mut steps {
            step.weight *= probabilities.get(step.share).copied().unwrap_or(0.0);
        }
        let mut after = vec![0.0; next.len()];
        for step in &steps {
            let weight = before.get(step.from).copied().unwrap_or(0.0) * step.weight;
            after.get_mut(step.to).map(|sum| *sum += weight)?;
        }
        scale(&mut after)?;
        all_before.push(std::mem::replace(&mut before, after));
        all_steps.push(steps);
        all_shares.push((shares, probabilities));
        // No step begins at a state that hardly matters.
        states =
            next.into_iter().zip(&before).map(|(left, weight)| Some(left).filter(|_| *weight >= NEGLIGIBLE)).collect();
    }
    let mut behind = vec![1.0; states.len()];
    let mut shared = Vec::with_capacity(commands);
    for ((steps, before), (lengths, probabilities)) in all_steps.iter().zip(&all_before).zip(all_shares).rev() {
        let mut weights = vec![0.0; lengths.len()];
        let mut ahead = vec![0.0; before.len()];
        for step in steps {
            let rest = behind.get(step.to).copied().unwrap_or(0.0) * step.weight;
            ahead.get_mut(step.from).map(|sum| *sum += rest)?;
            weights.get_mut(step.share).map(|sum| *sum += rest * before.get(step.from).copied().unwrap_or(0.0))?;
        }
        scale(&mut ahead)?;
        behind = ahead;
        shared.push(shares(lengths, &weights, &probabilities));
    }
    shared.reverse();
    Some(shared)
}

/// Divides by the greatest, so that long groups do not underflow; `None` if all are 0.
fn scale(weights: &mut [f64]) -> Option<()> {
    let greatest = weights.iter().copied().fold(0.0, f64::max);
    (greatest > 0.0 && greatest.is_finite()).then(|| weights.iter_mut().for_each(|weight| *weight /= greatest))
}

/// The shares that matter, each weighed by the replies to the other commands alone.
fn shares(lengths: Vec<Vec<u32>>, weights: &[f64], probabilities: &[f64]) -> Vec<ReplyShare> {
    let greatest = weights.iter().copied().fold(0.0, f64::max);
    let all = lengths.into_iter().zip(weights).zip(probabilities);
    let relevant = all.filter(|((_, weight), _)| **weight > greatest * NEGLIGIBLE);
    relevant.map(|((lengths, weight), own)| ReplyShare { lengths, weight: weight / greatest / own }).collect()
}

/// What may be left after a command, what may be its share, and the steps to them; `None` if there are too many.
#[expect(clippy::type_complexity, reason = "three lists that refer to each other by index")]
fn steps_of(
    pool: &[PooledReplies],
    states: &[Option<Vec<u32>>],
    command: usize,
) -> Option<(Vec<Vec<u32>>, Vec<Vec<u32>>, Vec<Step>)> {
    let mut next = BTreeMap::new();
    let mut shares = BTreeMap::new();
    let mut steps = Vec::new();
    for (from, left) in states.iter().enumerate().filter_map(|(from, left)| Some((from, left.as_ref()?))) {
        let mut pending = vec![(left.clone(), Vec::new(), 1.0, 0)];
        while let Some((left, taken, ways, at)) = pending.pop() {
            let (Some(replies), Some(count)) = (pool.get(at), left.get(at).copied()) else {
                let (next_count, share_count) = (next.len(), shares.len());
                let mut lengths = taken;
                lengths.sort_unstable();
                let to = *next.entry(left).or_insert(next_count);
                let share = *shares.entry(lengths).or_insert(share_count);
                steps.push(Step { from, to, share, weight: ways });
                continue;
            };
            let most = if replies.first <= command { count } else { 0 };
            let least = if replies.last <= command { count } else { 0 };
            for take in least..=most {
                let mut left = left.clone();
                left.get_mut(at).map(|left| *left -= take)?;
                let mut taken = taken.clone();
                taken.extend((0..take).map(|_| replies.length));
                pending.push((left, taken, ways * choose(count, take), at + 1));
            }
            if steps.len() + pending.len() > MAX_STEPS || shares.len() > MAX_SHARES {
                return None;
            }
        }
    }
    Some((by_index(next), by_index(shares), steps))
}

fn by_index(found: BTreeMap<Vec<u32>, usize>) -> Vec<Vec<u32>> {
    let mut entries: Vec<(usize, Vec<u32>)> = found.into_iter().map(|(entry, index)| (index, entry)).collect();
    entries.sort_unstable();
    entries.into_iter().map(|(_, entry)| entry).collect()
}
