//! Groups of actions that replies and inventory do not tell apart, and the sums that some actions of a group have.

use sizeleak_model::{Multiples, Pmf, Prior, SingleReplies};

use crate::device_limits::DeviceLimits;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SizedAction {
    /// Its index in the model's list.
    pub(crate) index: usize,
    /// How probable each size of one occurrence is.
    pub(crate) sizes: Pmf,
}

/// Actions of the same devices with the same numbers of replies.
#[derive(Debug, Clone)]
pub(crate) struct ActionGroup {
    pub(crate) actions: Vec<SizedAction>,
    /// The class in the inventory's limits.
    pub(crate) class: usize,
    /// How many replies of each class one of the actions sends, without those it does not send.
    pub(crate) sent: Vec<(usize, u32)>,
    /// The sums of k of the actions, by k, weighted by the prior without what depends on other groups.
    pub(crate) sums: Vec<Pmf>,
    /// The sums of each action that occurs k times: by the action's position, then by k.
    pub(crate) occurrences: Vec<Vec<Pmf>>,
    /// The greatest weight of one multiset of k of the actions from some action on: by the action's position, then by k.
    pub(crate) greatest: Vec<Vec<Pmf>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Groups {
    pub(crate) list: Vec<ActionGroup>,
    pub(crate) per_command: Vec<u32>,
    pub(crate) devices: DeviceLimits,
    /// What each number of actions weighs, from 0.
    pub(crate) number_weights: Vec<f64>,
    /// The same at most, with the share of devices that are free.
    greatest_weights: Vec<f64>,
    /// The sums that k actions of the groups from each one on have, by k, weighted by the prior; behind the last one, none.
    behind: Vec<Vec<Pmf>>,
    /// Which classes of replies groups behind each one send.
    pub(crate) open: Vec<Vec<bool>>,
}

impl Groups {
    /// Of these groups, as [`groups`] gives them. `None` where devices can be used up in too many ways.
    pub(crate) fn new(
        list: Vec<ActionGroup>,
        per_command: Vec<u32>,
        devices: DeviceLimits,
        number_weights: Vec<f64>,
    ) -> Option<Self> {
        let mut behind = vec![no_action(devices.max_actions)];
        let mut open = vec![vec![false; per_command.len()]];
        for group in list.iter().rev() {
            let mut sent = open[open.len() - 1].clone();
            group.sent.iter().for_each(|(class, _)| sent[*class] = true);
            behind.push(with_actions(behind[behind.len() - 1].clone(), &group.occurrences));
            open.push(sent);
        }
        behind.reverse();
        open.reverse();
        open.remove(0);
        let shares = devices.greatest_shares()?;
        let greatest_weights = number_weights.iter().zip(shares).map(|(weight, share)| weight * share).collect();
        Some(Self { list, per_command, devices, number_weights, greatest_weights, behind, open })
    }

    /// At least the probability by the prior of all commands whose actions before a group are some, with these sums, and
    /// whose sum is in a range.
    pub(crate) fn prior_behind(&self, group: usize, before: usize, sums: &Pmf, [least, most]: [i64; 2]) -> f64 {
        let mut prior = 0.0;
        for (behind, weight) in self.behind[group].iter().zip(self.greatest_weights.iter().skip(before)) {
            if sums.least() + behind.least() > most {
                break;
            }
            if *weight > 0.0 && sums.end() + behind.end() - 2 >= least {
                let of_sum = |(sum, own): (i64, &f64)| own * behind.total_between(least - sum, most - sum);
                prior += weight * sums.iter().map(of_sum).sum::<f64>();
            }
        }
        prior
    }
}

/// The groups of all actions: those that send replies first, those that send the same classes side by side. Without
/// single replies, an action's class in the inventory is its group.
pub(crate) fn groups(
    actions: &[SizedAction],
    replies: Option<&SingleReplies>,
    prior: &Prior,
    devices: &DeviceLimits,
) -> Vec<ActionGroup> {
    let key = |action: &SizedAction| {
        let row = replies.and_then(|replies| replies.per_action.get(action.index));
        let sent: Vec<(usize, u32)> =
            row.into_iter().flatten().copied().enumerate().filter(|(_, number)| *number > 0).collect();
        (sent.is_empty(), sent, devices.limits.class_of(action.index))
    };
    let mut sorted = actions.to_vec();
    sorted.sort_by_cached_key(|action| (key(action), action.index));
    let group = |own: &[SizedAction]| {
        let (_, sent, class) = key(&own[0]);
        ActionGroup::new(own.to_vec(), class, sent, prior, devices.limits.max_of_class(class))
    };
    sorted.chunk_by(|a, b| key(a) == key(b)).map(group).collect()
}

impl ActionGroup {
    fn new(actions: Vec<SizedAction>, class: usize, sent: Vec<(usize, u32)>, prior: &Prior, most: u32) -> Self {
        let all: Vec<Vec<Pmf>> = actions.iter().map(|action| occurrences(action, most, prior)).collect();
        let sums = with_actions(no_action(most), &all);
        let mut greatest = vec![no_action(most)];
        for own in all.iter().rev() {
            let later = greatest.last().cloned().unwrap_or_default();
            greatest.push(with_action(&later, own, Pmf::convolve_greatest, |sums, more| sums.raise(more, 1.0)));
        }
        greatest.reverse();
        Self { actions, class, sent, sums, occurrences: all, greatest }
    }
}

/// The sums of up to so many actions of none, by their number.
fn no_action(most: u32) -> Vec<Pmf> {
    let mut none = vec![Pmf::default(); most as usize + 1];
    if let Some(first) = none.first_mut() {
        *first = Pmf::one(0, 1.0);
    }
    none
}

/// The sums of an action that occurs up to so many times, by how often, with their weights. The one place that says which
/// sizes an action has.
fn occurrences(action: &SizedAction, most: u32, prior: &Prior) -> Vec<Pmf> {
    let mut sums = Multiples::new(action.sizes.clone());
    let of_times = |times: u32| {
        let ln_weight: f64 = (1..=times).map(|nth| prior.ln_next(action.index, nth)).sum();
        let mut weighed = Pmf::default();
        weighed.add_moved(sums.sum_of(times), 0, ln_weight.exp());
        weighed
    };
    (0..=most).map(of_times).collect()
}

/// The sums of k actions, by k, from those without some actions and from those of each of these alone.
fn with_actions(without: Vec<Pmf>, occurrences: &[Vec<Pmf>]) -> Vec<Pmf> {
    let add = |sums: &mut Pmf, more: &Pmf| sums.add_moved(more, 0, 1.0);
    occurrences.iter().rev().fold(without, |sums, own| with_action(&sums, own, Pmf::convolve, add))
}

/// The same from those without an action and from those of this action alone.
fn with_action(
    without: &[Pmf],
    occurrences: &[Pmf],
    combine: impl Fn(&Pmf, &Pmf) -> Pmf,
    join: impl Fn(&mut Pmf, &Pmf),
) -> Vec<Pmf> {
    let of_number = |number: usize| {
        let mut sums = Pmf::default();
        for (times, own) in occurrences.iter().enumerate().take(number + 1).rev() {
            let rest = &without[number - times];
            if !rest.is_empty() {
                join(&mut sums, &combine(rest, own));
            }
        }
        sums
    };
    (0..without.len()).map(of_number).collect()
}

/// About how many numbers the tables of these actions hold, at most `most` of them at a time.
pub(crate) fn table_numbers(actions: &[SizedAction], most: u32) -> usize {
    let greatest = actions.iter().map(|action| action.sizes.end() - 1).max().unwrap_or(0);
    let least = actions.iter().map(|action| action.sizes.least()).min().unwrap_or(0);
    let range = (greatest - least + 1) as usize;
    let most = most as usize + 1;
    let all_sums = (greatest as usize).saturating_mul(most);
    range.saturating_mul(most * most / 2).saturating_mul(2 * actions.len() + 2).saturating_add(all_sums)
}
