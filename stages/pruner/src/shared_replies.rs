//! Shares out the replies to commands that overlap: which of them may be to which command, and how probable that is.
//!
//! Each command takes what is left of the replies that can be to no later one, and any of those that can. Summed over all
//! ways, from the first command forwards and from the last one backwards, that gives for each command the weight of every
//! multiset of replies that may be its own. Replies of equal length with the same possible commands are interchangeable.

use std::collections::BTreeMap;

use sizeleak_model::choose;

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
