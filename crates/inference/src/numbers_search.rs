//! The numbers of actions of each group that the replies to a command allow.
//!
//! A walk decides on one group after the other, and turns back where the replies would be less likely than a threshold
//! whatever follows ([`LikelihoodTable::likely`]), where devices are missing, or where the sum is too large.

use sizeleak_model::{LikelihoodTable, SingleReplies};

use crate::action_group::ActionGroup;
use crate::device_limits::DeviceLimits;
use crate::sum_weights::SumWeights;

/// What the interpretations that are left out at a step have at most, as a share of the threshold.
const LEFT_OUT: f64 = 0.1;

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

/// Numbers of actions that the walk has reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundNumbers<'a> {
    /// How many actions of each group.
    pub(crate) numbers: &'a [u32],
    /// P(replies | numbers) as a multiple of the table's unit.
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

struct Walk<'a, 'b, V> {
    groups: &'a Groups,
    table: &'a mut LikelihoodTable<'b>,
    /// Numbers with less likely replies are left out, as a multiple of the table's unit.
    least: f64,
    /// See [`LikelihoodTable::most_helpful`].
    most_helpful: Vec<u32>,
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

    /// The most replies of a class that a command should have.
    pub(crate) fn most_replies(&self) -> u32 {
        let sent = self.list.iter().flat_map(|group| &group.sent).map(|(_, sent)| *sent).max().unwrap_or(0);
        self.per_command.iter().copied().max().unwrap_or(0) + sent * self.devices.max_actions()
    }

    /// Visits all numbers with sums in a range whose replies are at least as likely as `least`, a multiple of the table's
    /// unit. Returns how many of the steps are left.
    pub(crate) fn visit(
        &self,
        table: &mut LikelihoodTable<'_>,
        least: f64,
        sums: [usize; 2],
        most_steps: u64,
        visit: impl FnMut(FoundNumbers<'_>),
    ) -> Result<u64, TooManySteps> {
        let mut walk = Walk {
            groups: self,
            least,
            most_helpful: (0..self.per_command.len()).map(|class| table.most_helpful(class)).collect(),
            sums,
            steps_left: most_steps,
            numbers: vec![0; self.list.len()],
            totals: vec![0; self.devices.classes()],
            class_counts: self.per_command.clone(),
            visit,
            table,
        };
        let interpretations = walk.table.interpretations();
        walk.descend(0, 0, &SumWeights::of_one(0, 1.0), &interpretations)?;
        Ok(walk.steps_left)
    }
}

impl<V: FnMut(FoundNumbers<'_>)> Walk<'_, '_, V> {
    /// Decides on the groups from `at` on, given how many actions there are, their sums, and the interpretations of the
    /// replies that still are likely.
    fn descend(
        &mut self,
        at: usize,
        actions: u32,
        before: &SumWeights,
        interpretations: &[usize],
    ) -> Result<(), TooManySteps> {
        let groups = self.groups;
        let Some(group) = groups.list.get(at) else { return Ok(()) };
        let open = groups.open.get(at + 1).map(Vec::as_slice).unwrap_or_default();
        let is_last = at + 1 == groups.list.len();
        for (number, own) in (0_u32..).zip(&group.sums) {
            if number > 0 && !self.add(at, group) {
                break;
            }
            if before.least() + own.least() > self.sums[1] || actions + number > groups.devices.max_actions() {
                break;
            }
            self.steps_left = self.steps_left.checked_sub(1).ok_or(TooManySteps)?;
            if is_last && before.end() + own.end() < self.sums[0] + 2 {
                continue;
            }
            let left_out = self.least * LEFT_OUT;
            let (likely, likelihood) = self.table.likely(&self.class_counts, open, interpretations, left_out);
            if likelihood < self.least {
                if self.is_beyond_help(group) {
                    break;
                }
            } else if is_last {
                self.found(actions + number, likelihood, before, own);
            } else if number == 0 {
                self.descend(at + 1, actions, before, &likely)?;
            } else {
                self.descend(at + 1, actions + number, &before.convolve(own), &likely)?;
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

    /// Whether more actions of a group only make the replies less likely.
    fn is_beyond_help(&self, group: &ActionGroup) -> bool {
        let is_beyond = |(class, _): &(usize, u32)| self.class_counts.get(*class) >= self.most_helpful.get(*class);
        group.sent.iter().all(is_beyond)
    }

    fn found(&mut self, actions: u32, likelihood: f64, before: &SumWeights, last: &SumWeights) {
        let number_weight = self.groups.number_weights.get(actions as usize).copied().unwrap_or(0.0);
        let prior = number_weight * self.groups.devices.share(&self.totals);
        if prior > 0.0 {
            (self.visit)(FoundNumbers { numbers: &self.numbers, likelihood, prior, before, last });
        }
    }
}
