//! The probability of a command's size and replies, all its possible actions together.

use std::cell::OnceCell;

use sizeleak_model::{Action, Model, Multiples, Pmf, SeenReplies};

use crate::action_group::{ActionGroup, Groups, SizedAction, groups, table_numbers};
use crate::device_limits::DeviceLimits;
use crate::number_walk::{Beyond, Numbers, ReplyEvidence, Terms, WeightedSum, numbers};

/// The most numbers that tables hold: 128 MB.
const MAX_TABLE_NUMBERS: usize = 1 << 24;

/// Sums over all actions of a command, for one model.
///
/// Computed to a share of 10⁻⁷: numbers of actions are left out only if their replies are so unlikely that they could
/// not matter even with all the probability that their sizes have without replies.
#[derive(Debug)]
pub struct ReplyInference {
    pub(crate) groups: Groups,
    /// The weights of the sums of k actions, by the inventory's class and k.
    pub(crate) of_class: Vec<Vec<Pmf>>,
    /// The probability of each sum without replies, once it is needed; `None` where devices can be used up in too many
    /// ways.
    size_totals: OnceCell<Option<Pmf>>,
    /// The least sum that may be of more actions than are counted.
    too_large: i64,
    /// The greatest sum of those that are.
    greatest: i64,
    /// Commands that recur by the model, as far as devices allow them.
    pub(crate) recurring: Vec<RecurringCommand>,
    pub(crate) not_recurring: f64,
}

#[derive(Debug)]
pub(crate) struct RecurringCommand {
    pub(crate) actions: Vec<(u32, u32)>,
    pub(crate) sums: Pmf,
    pub(crate) class_counts: Vec<u32>,
    pub(crate) share: f64,
}

impl ReplyInference {
    /// For a model with sizes of actions and a prior. `None` for any other; for kinds, which are no sums; and where tables
    /// would be too large.
    pub fn new(model: &Model) -> Option<Self> {
        if model.kinds.is_some() {
            return None;
        }
        let prior = model.prior.as_ref()?;
        let limits = model.limits().ok()?;
        let sized = |(index, action): (usize, &Action)| {
            let sizes = Pmf::from_values(action.sizes());
            (sizes.least() > 0).then_some(SizedAction { index, sizes })
        };
        let actions: Option<Vec<SizedAction>> = model.actions.iter().enumerate().map(sized).collect();
        let actions = actions.filter(|actions| !actions.is_empty())?;
        let devices = DeviceLimits::new(&limits)?;
        if table_numbers(&actions, devices.max_actions) > MAX_TABLE_NUMBERS {
            return None;
        }
        let mut of_class = vec![Vec::new(); limits.classes()];
        for ActionGroup { class, sums, .. } in groups(&actions, None, prior, &devices) {
            *of_class.get_mut(class)? = sums;
        }
        let number_weights = devices.number_weights(prior, &of_class)?;
        let smallest = actions.iter().map(|action| action.sizes.least()).min()?;
        let is_counted = limits.max_actions() <= devices.max_actions;
        let too_large = if is_counted { i64::MAX } else { smallest * (i64::from(devices.max_actions) + 1) };
        let greatest = actions.iter().map(|action| action.sizes.end() - 1).max()?;
        let greatest = greatest.saturating_mul(devices.max_actions.into());
        let replies = model.single_replies.as_ref();
        let list = groups(&actions, replies, prior, &devices);
        // A prior whose actions hardly vary within a command has no numbers for so many of them.
        let totals = || list.iter().flat_map(|group| &group.sums).map(Pmf::total);
        if !totals().chain(number_weights.iter().copied()).all(f64::is_finite) {
            return None;
        }
        let per_command = replies.map(|replies| replies.per_command.clone()).unwrap_or_default();
        let groups = Groups::new(list, per_command, devices, number_weights)?;
        let recurring = prior.recurring_within(&limits).map(|command| {
            let counted = || command.counts.iter().copied().enumerate();
            let of_action =
                |(action, count): (&SizedAction, u32)| Multiples::new(action.sizes.clone()).sum_of(count).clone();
            let sums = actions.iter().zip(command.counts.iter().copied()).map(of_action);
            RecurringCommand {
                actions: (0..).zip(command.counts.iter().copied()).filter(|(_, count)| *count > 0).collect(),
                sums: sums.fold(Pmf::certain(0), |sums, own| sums.convolve(&own)),
                class_counts: replies.map(|replies| replies.class_counts(counted())).unwrap_or_default(),
                share: command.share,
            }
        });
        let recurring: Vec<RecurringCommand> = recurring.collect();
        let not_recurring = 1.0 - recurring.iter().map(|command| command.share).sum::<f64>();
        let size_totals = OnceCell::new();
        Some(Self { groups, of_class, size_totals, too_large, greatest, recurring, not_recurring })
    }

    pub fn actions(&self) -> usize {
        self.groups.list.iter().map(|group| group.actions.len()).sum()
    }

    /// ln Σ weight · P(sum), whatever the replies; −∞ where it is 0.
    pub fn ln_size(&self, sums: &[WeightedSum]) -> Result<f64, Beyond> {
        let totals = || self.groups.devices.size_totals(&self.groups.number_weights, &self.of_class);
        let totals = self.size_totals.get_or_init(totals).as_ref().ok_or(Beyond::TooManyNumbers)?;
        let of_sum =
            |sum: &WeightedSum| Ok(if self.is_sum(sum.bytes)? { sum.weight * totals.at(sum.bytes) } else { 0.0 });
        Ok(sums.iter().map(of_sum).sum::<Result<f64, Beyond>>()?.ln())
    }

    /// The same by the learned habits, with commands that recur.
    pub fn ln_learned_size(&self, sums: &[WeightedSum]) -> Result<f64, Beyond> {
        let of_command = |one: &RecurringCommand| -> f64 {
            one.share * sums.iter().map(|sum| sum.weight * one.sums.at(sum.bytes)).sum::<f64>()
        };
        let recurring: f64 = self.recurring.iter().map(of_command).sum();
        Ok((self.not_recurring * self.ln_size(sums)?.exp() + recurring).ln())
    }

    /// What explains the replies to a command if its actions have one of some sums. Other sums from `range[0]` to `range[1]`
    /// bytes can be asked of it too. It is exact to a share of what is found, or of another probability, given as a logarithm.
    pub fn explain(
        &self,
        seen: &SeenReplies,
        sums: &[WeightedSum],
        range: [i64; 2],
        ln_beside: f64,
    ) -> Result<ExplainedReplies<'_>, Beyond> {
        let mut possible = Vec::with_capacity(sums.len());
        for sum in sums {
            possible.extend(self.is_sum(sum.bytes)?.then_some(*sum));
        }
        let range = [range[0].max(0), range[1].min(self.greatest).min(self.too_large - 1)];
        let mut evidence = ReplyEvidence::new(&self.groups, seen);
        let (terms, ln_unit) = (std::mem::take(&mut evidence.greatest), evidence.ln_unit);
        if ln_unit == f64::NEG_INFINITY {
            return Ok(ExplainedReplies { inference: self, numbers: Vec::new(), ln_unit });
        }
        let beside = (ln_beside - ln_unit).exp();
        let numbers = numbers(&self.groups, &mut evidence, Terms::new(&terms), (&possible, range), beside)?;
        Ok(ExplainedReplies { inference: self, numbers, ln_unit })
    }

    fn is_sum(&self, sum: i64) -> Result<bool, Beyond> {
        if sum >= self.too_large { Err(Beyond::LargeSum(sum)) } else { Ok((0..=self.greatest).contains(&sum)) }
    }
}

#[derive(Debug)]
pub struct ExplainedReplies<'a> {
    pub(crate) inference: &'a ReplyInference,
    pub(crate) numbers: Vec<Numbers>,
    /// The logarithm of what likelihoods are multiples of.
    pub(crate) ln_unit: f64,
}

impl ExplainedReplies<'_> {
    /// ln Σ weight · P(sum, replies); −∞ where it is 0. What is less probable than 10⁻⁷ of all sums that were asked for is not
    /// exact.
    pub fn ln_joint(&self, sums: &[WeightedSum]) -> f64 {
        self.numbers.iter().map(|numbers| numbers.joint(sums)).sum::<f64>().ln() + self.ln_unit
    }
}
