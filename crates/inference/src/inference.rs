//! The probability of a command's size and replies, all its possible actions together.

use std::cell::OnceCell;

use sizeleak_model::{Action, LikelihoodTable, Model, SeenReplies};
use thiserror::Error;

use crate::action_group::{ActionGroup, SizedAction, groups, table_numbers};
use crate::device_limits::DeviceLimits;
use crate::numbers_search::{FoundNumbers, Groups};
use crate::sum_weights::SumWeights;

/// What is left out of a probability is at most this share of it.
const LEFT_OUT: f64 = 1e-7;

/// By how much, in nats, the first threshold is below the greatest likelihood. Later ones are set by what was found.
const FIRST_DEPTH: f64 = 20.0;

/// By how much thresholds go down while nothing is found, and how often.
const FURTHER_DEPTH: f64 = 40.0;
const MOST_THRESHOLDS: u32 = 8;

/// The most steps of a walk through the numbers of actions.
const MOST_STEPS: u64 = 200_000;

/// The most numbers that tables hold.
const MOST_TABLE_NUMBERS: usize = 1 << 23;

/// A sum that a command's actions may have, with its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedSum {
    /// Σ |aᵢ|·nᵢ in bytes: the command's size without overhead and ε.
    pub bytes: i64,
    /// P(ε) or a multiple of it, above 0.
    pub weight: f64,
}

/// The question is beyond what is computed; another way to the answer is needed.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// The sum may be of more actions than are counted.
    #[error("actions of {0} bytes may be more than are counted")]
    LargeSum(i64),
    /// The replies leave more numbers of actions than can be looked at.
    #[error("the replies leave too many numbers of actions")]
    TooManyNumbers,
}

/// Sums over all actions of a command, for one model.
///
/// Computed to a share of 10⁻⁷: numbers of actions are left out only if their replies are so unlikely that they could
/// not matter even with all the probability that their sizes have without replies.
#[derive(Debug)]
pub struct ReplyInference {
    pub(crate) groups: Groups,
    /// The weights of the sums of k actions, by the inventory's class and k.
    of_class: Vec<Vec<SumWeights>>,
    /// The probability of each sum without replies, once it is needed; `None` where devices can be used up in too many
    /// ways.
    size_totals: OnceCell<Option<SumWeights>>,
    /// The least sum that may be of more actions than are counted.
    too_large: usize,
}

impl ReplyInference {
    /// For a model with sizes of actions and a prior. `None` for any other; for kinds, which are no sums; for actions whose
    /// sizes vary; and where tables would be too large.
    pub fn new(model: &Model) -> Option<Self> {
        if model.kinds.is_some() || model.actions.iter().any(Action::varies) {
            return None;
        }
        let prior = model.prior.as_ref()?;
        let limits = model.limits().ok()?;
        let sized = |(index, size): (usize, i64)| {
            let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
            Some(SizedAction { index, size })
        };
        let actions: Option<Vec<SizedAction>> =
            model.actions.iter().map(|action| action.size).enumerate().map(sized).collect();
        let actions = actions.filter(|actions| !actions.is_empty())?;
        let devices = DeviceLimits::new(&limits);
        if table_numbers(&actions, devices.max_actions()) > MOST_TABLE_NUMBERS {
            return None;
        }
        let mut of_class = vec![Vec::new(); devices.classes()];
        for ActionGroup { class, sums, .. } in groups(&actions, None, prior, &devices) {
            *of_class.get_mut(class)? = sums;
        }
        let number_weights = devices.number_weights(prior, &of_class)?;
        let smallest = actions.iter().map(|action| action.size).min()?;
        let is_counted = limits.max_actions() <= devices.max_actions();
        let too_large = if is_counted { usize::MAX } else { smallest * (devices.max_actions() as usize + 1) };
        let replies = model.single_replies.as_ref();
        let list = groups(&actions, replies, prior, &devices);
        let groups = Groups::new(list, replies, devices, number_weights);
        Some(Self { groups, of_class, size_totals: OnceCell::new(), too_large })
    }

    /// ln P(sum) for each of some sums of actions, whatever the replies; −∞ where it is 0.
    ///
    /// # Errors
    /// [`Beyond`].
    pub fn ln_sums(&self, sums: &[i64]) -> Result<Vec<f64>, Beyond> {
        let totals = self.size_totals().ok_or(Beyond::TooManyNumbers)?;
        let ln_sum = |sum: &i64| Ok(self.checked(*sum)?.map_or(0.0, |sum| totals.at(sum)).ln());
        sums.iter().map(ln_sum).collect()
    }

    /// ln P(sum, replies) for each of some sums of actions; −∞ where it is 0. Sums that are less probable than 10⁻⁷ of all
    /// given ones together are not exact. For a model without single replies see [`Self::ln_sums`].
    ///
    /// # Errors
    /// [`Beyond`].
    pub fn ln_sums_with_replies(&self, seen: &SeenReplies, sums: &[i64]) -> Result<Vec<f64>, Beyond> {
        let asked: Vec<Option<usize>> = sums.iter().map(|sum| self.checked(*sum)).collect::<Result<_, _>>()?;
        let possible: Vec<(usize, f64)> = asked.iter().flatten().map(|sum| (*sum, 1.0)).collect();
        let mut found = vec![0.0; asked.len()];
        let ln_unit = self.search(seen, &possible, |is_new, numbers| {
            if is_new {
                found.fill(0.0);
            }
            let FoundNumbers { likelihood, prior, before, last, .. } = numbers;
            let mut all = 0.0;
            for (found, sum) in found.iter_mut().zip(&asked) {
                let own = sum.map_or(0.0, |sum| likelihood * prior * before.convolved_at(last, sum));
                *found += own;
                all += own;
            }
            all
        })?;
        Ok(found.into_iter().map(|found: f64| found.ln() + ln_unit).collect())
    }

    /// ln Σ weight · P(sum, replies) for each of some alternatives, such as a command's size under different assumptions
    /// about its overhead; without replies, that of the sums alone. See [`Self::ln_sums_with_replies`] for how exact it
    /// is.
    ///
    /// # Errors
    /// [`Beyond`].
    pub fn ln_alternatives(
        &self,
        seen: Option<&SeenReplies>,
        alternatives: &[Vec<WeightedSum>],
    ) -> Result<Vec<f64>, Beyond> {
        let mut sums: Vec<i64> = alternatives.iter().flatten().map(|sum| sum.bytes).collect();
        sums.sort_unstable();
        sums.dedup();
        let found = match seen {
            Some(seen) => self.ln_sums_with_replies(seen, &sums)?,
            None => self.ln_sums(&sums)?,
        };
        let ln_sum = |sum: &WeightedSum| {
            let found = sums.binary_search(&sum.bytes).ok().and_then(|at| found.get(at));
            found.map_or(f64::NEG_INFINITY, |found| found + sum.weight.ln())
        };
        let ln_alternative = |alternative: &Vec<WeightedSum>| {
            let greatest = alternative.iter().map(ln_sum).fold(f64::NEG_INFINITY, f64::max);
            if greatest == f64::NEG_INFINITY {
                return greatest;
            }
            greatest + alternative.iter().map(|sum| (ln_sum(sum) - greatest).exp()).sum::<f64>().ln()
        };
        Ok(alternatives.iter().map(ln_alternative).collect())
    }

    /// Visits the numbers of actions that matter to the probability of any of some sums, given with their weights, and
    /// of the replies. `visit` returns what they add to it. Whenever the visits begin anew, since the ones before left out
    /// too much, it gets true with the first one. Returns the unit of the likelihoods, as a logarithm.
    pub(crate) fn search(
        &self,
        seen: &SeenReplies,
        sums: &[(usize, f64)],
        mut visit: impl FnMut(bool, FoundNumbers<'_>) -> f64,
    ) -> Result<f64, Beyond> {
        let mut table = LikelihoodTable::new(seen, self.groups.most_replies());
        let ln_unit = table.ln_unit();
        let (Some(least), Some(most)) = (sums.iter().map(|sum| sum.0).min(), sums.iter().map(|sum| sum.0).max()) else {
            return Ok(ln_unit);
        };
        if ln_unit == f64::NEG_INFINITY {
            return Ok(ln_unit);
        }
        let weights: f64 = sums.iter().map(|(_, weight)| weight).sum();
        let without_replies = self
            .size_totals()
            .map_or(weights, |totals| sums.iter().map(|(sum, weight)| weight * totals.at(*sum)).sum());
        let (mut steps_left, mut depth) = (MOST_STEPS, FIRST_DEPTH);
        for _ in 0..MOST_THRESHOLDS {
            if without_replies <= 0.0 {
                break;
            }
            let (mut found, mut is_new) = (0.0, true);
            let threshold = (-depth).exp();
            let steps = self.groups.visit(&mut table, threshold, [least, most], steps_left, |numbers| {
                found += visit(std::mem::take(&mut is_new), numbers);
            });
            steps_left = steps.map_err(|_| Beyond::TooManyNumbers)?;
            let enough = (without_replies / (LEFT_OUT * found)).ln();
            if depth >= enough {
                break;
            }
            // More is found there, so that it is enough.
            depth = if enough.is_finite() { enough } else { depth + FURTHER_DEPTH };
        }
        Ok(ln_unit)
    }

    /// The sum as an index; `None` if no actions have it.
    pub(crate) fn checked(&self, sum: i64) -> Result<Option<usize>, Beyond> {
        let Ok(index) = usize::try_from(sum) else { return Ok(None) };
        if index >= self.too_large { Err(Beyond::LargeSum(sum)) } else { Ok(Some(index)) }
    }

    fn size_totals(&self) -> Option<&SumWeights> {
        let totals = || self.groups.devices.size_totals(&self.groups.number_weights, &self.of_class);
        self.size_totals.get_or_init(totals).as_ref()
    }
}
