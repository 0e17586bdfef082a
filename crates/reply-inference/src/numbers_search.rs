//! The numbers of actions of each group that the replies to a command allow.
//!
//! A walk decides on one group after the other, and turns back where the replies would be less likely than a threshold
//! whatever follows ([`SeenReplies::ln_bound`]), where devices are missing, or where the sum is too large.

use sizeleak_model::{SeenReplies, SingleReplies};

use crate::action_group::ActionGroup;
use crate::device_limits::DeviceLimits;
use crate::sum_weights::SumWeights;

/// The groups of a home with what is needed to walk through their numbers.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    pub(crate) list: Vec<ActionGroup>,
    /// Before each group and at the end: which classes of replies a later group sends.
    open: Vec<Vec<bool>>,
    per_command: Vec<u32>,
    pub(crate) devices: DeviceLimits,
    /// What each number of actions weighs, from 0.
    pub(crate) number_weights: Vec<f64>,
}

/// The replies to a command, with their threshold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyThreshold<'a> {
    pub(crate) seen: &'a SeenReplies,
    /// See [`SeenReplies::most_helpful`].
    pub(crate) most_helpful: u32,
    /// Numbers with less likely replies are left out.
    pub(crate) ln_least: f64,
    /// Likelihoods are given as multiples of this one.
    pub(crate) ln_unit: f64,
}

/// Numbers of actions that the walk has reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundNumbers<'a> {
    /// How many actions of each group.
    pub(crate) numbers: &'a [u32],
    /// P(replies | numbers) as a multiple of the unit; 1 without replies.
    pub(crate) likelihood: f64,
    /// The prior without the sums' weights.
    pub(crate) prior: f64,
    /// The sums of all groups but the last.
    pub(crate) before: &'a SumWeights,
    /// The sums of the last group.
    pub(crate) last: &'a SumWeights,
}

/// More steps were needed than are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManySteps;

struct Walk<'a, V> {
    groups: &'a Groups,
    replies: Option<ReplyThreshold<'a>>,
    /// The least and the greatest sum that matter.
    sums: [usize; 2],
    steps_left: u64,
    numbers: Vec<u32>,
    /// How many actions of each class of the inventory, and how many replies of each class.
    totals: Vec<u32>,
    class_counts: Vec<u32>,
    visit: V,
}

impl Groups {
    pub(crate) fn new(
        list: Vec<ActionGroup>,
        replies: Option<&SingleReplies>,
        devices: DeviceLimits,
        number_weights: Vec<f64>,
    ) -> Self {
        let classes = replies.map_or(0, |replies| replies.classes.len());
        let mut open = vec![vec![false; classes]];
        for group in list.iter().rev() {
            let mut earlier = open.last().cloned().unwrap_or_default();
            for (class, _) in &group.sent {
                if let Some(open) = earlier.get_mut(*class) {
                    *open = true;
                }
            }
            open.push(earlier);
        }
        open.reverse();
        let per_command = replies.map(|replies| replies.per_command.clone()).unwrap_or_default();
        Self { list, open, per_command, devices, number_weights }
    }

    /// The greatest logarithm that the likelihood of the replies can have, and maybe more.
    pub(crate) fn ln_bound(&self, seen: &SeenReplies) -> f64 {
        seen.ln_bound(&self.per_command, self.open.first().map(Vec::as_slice).unwrap_or_default())
    }

    /// Visits all numbers with sums in a range whose replies, if any are given, are at least as likely as the threshold.
    /// Returns how many of the steps are left.
    pub(crate) fn visit(
        &self,
        replies: Option<ReplyThreshold<'_>>,
        sums: [usize; 2],
        most_steps: u64,
        visit: impl FnMut(FoundNumbers<'_>),
    ) -> Result<u64, TooManySteps> {
        let mut walk = Walk {
            groups: self,
            replies,
            sums,
            steps_left: most_steps,
            numbers: vec![0; self.list.len()],
            totals: vec![0; self.devices.classes()],
            class_counts: self.per_command.clone(),
            visit,
        };
        walk.descend(0, 0, &SumWeights::of_one(0, 1.0))?;
        Ok(walk.steps_left)
    }
}

impl<V: FnMut(FoundNumbers<'_>)> Walk<'_, V> {
    /// Decides on the groups from `at` on, given how many actions there are and their sums.
    fn descend(&mut self, at: usize, actions: u32, before: &SumWeights) -> Result<(), TooManySteps> {
        let Some(group) = self.groups.list.get(at) else { return Ok(()) };
        let is_last = at + 1 == self.groups.list.len();
        for (number, own) in (0_u32..).zip(&group.sums) {
            if number > 0 && !self.add(at, group) {
                break;
            }
            if before.least() + own.least() > self.sums[1] || actions + number > self.groups.devices.max_actions() {
                break;
            }
            self.steps_left = self.steps_left.checked_sub(1).ok_or(TooManySteps)?;
            if is_last && before.end() + own.end() < self.sums[0] + 2 {
                continue;
            }
            if self.is_unlikely(at) {
                // Further actions only help as long as replies are unexplained.
                let is_beyond = self.replies.is_some_and(|replies| number >= replies.most_helpful);
                if is_beyond && !group.sent.is_empty() {
                    break;
                }
                continue;
            }
            if is_last {
                self.found(actions + number, before, own);
            } else if number == 0 {
                self.descend(at + 1, actions, before)?;
            } else {
                self.descend(at + 1, actions + number, &before.convolve(own))?;
            }
        }
        self.remove_all(at, group);
        Ok(())
    }

    /// One more action of a group; returns whether there is a device for it.
    fn add(&mut self, at: usize, group: &ActionGroup) -> bool {
        self.change(at, group, |count, by| *count += by, 1);
        self.groups.devices.admits(&self.totals)
    }

    fn remove_all(&mut self, at: usize, group: &ActionGroup) {
        let number = self.numbers.get(at).copied().unwrap_or(0);
        self.change(at, group, |count, by| *count -= by, number);
    }

    fn change(&mut self, at: usize, group: &ActionGroup, change: impl Fn(&mut u32, u32), number: u32) {
        if let Some(count) = self.numbers.get_mut(at) {
            change(count, number);
        }
        if let Some(total) = self.totals.get_mut(group.class) {
            change(total, number);
        }
        for (class, sent) in &group.sent {
            if let Some(count) = self.class_counts.get_mut(*class) {
                change(count, sent * number);
            }
        }
    }

    /// Whether the replies are too unlikely, whatever groups after this one add.
    fn is_unlikely(&self, at: usize) -> bool {
        let Some(replies) = self.replies else { return false };
        let open = self.groups.open.get(at + 1).map(Vec::as_slice).unwrap_or_default();
        replies.seen.ln_bound(&self.class_counts, open) < replies.ln_least
    }

    fn found(&mut self, actions: u32, before: &SumWeights, last: &SumWeights) {
        let number_weight = self.groups.number_weights.get(actions as usize).copied().unwrap_or(0.0);
        if number_weight <= 0.0 {
            return;
        }
        let likelihood = match self.replies {
            None => 1.0,
            Some(replies) => {
                let ln_likelihood = replies.seen.ln_likelihood(&self.class_counts);
                if ln_likelihood < replies.ln_least {
                    return;
                }
                (ln_likelihood - replies.ln_unit).exp()
            }
        };
        let prior = number_weight * self.groups.devices.share(&self.totals);
        (self.visit)(FoundNumbers { numbers: &self.numbers, likelihood, prior, before, last });
    }
}
