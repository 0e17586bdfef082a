//! The prior P(A): the probability of a command's actions before its size is known, learned from labels.
//!
//! P(A) = P(n) · P(A | n), where n is the number of actions. P(n) is a table, and geometric beyond its end. Given n,
//! the actions are drawn from Pólya's urn, a distribution that is itself uncertain. So P(A | n) is proportional to the
//! product of one factor for each action,
//!
//! ```text
//! Γ(c·wₐ + nbₐ) / (Γ(c·wₐ) · nbₐ!)
//! ```
//!
//! with the shares wₐ of the actions and the concentration c. A large c stands for devices that are commanded
//! independently, a small c for commands that give many devices the same action. The decomposer, which takes the
//! product, adds the limits of the inventory.
//!
//! Beside that, single commands may recur with a probability of their own ([`RecurringCommand`]); the rest of the
//! probability is as above.

use serde::{Deserialize, Serialize};

use crate::Limits;

/// Commands of more actions are not habitual.
const MAX_ACTIONS: u32 = 4096;

/// P(A) as a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// The shares of commands with 1, 2, 3… actions; the rest to 1 is the share of commands with more.
    pub numbers: Vec<f64>,
    /// P(n + 1 actions) / P(n actions) beyond the list.
    pub decay: f64,
    /// The share of each action among all actions while all devices are free, in the order of the model; they sum to 1.
    pub shares: Vec<f64>,
    /// How little the shares vary between commands, in actions.
    pub concentration: f64,
    /// Commands that recur, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recurring: Vec<RecurringCommand>,
}

impl Prior {
    /// The largest number of actions in the table.
    pub const MAX_LISTED: usize = 256;

    /// The smallest value that six decimals can show.
    pub const MIN_SHARE: f64 = 1e-6;

    /// P(A) by habit, without the limits of an inventory.
    pub fn probability(&self, counts: &[u32]) -> f64 {
        let total = counts.iter().fold(0, |sum: u32, count| sum.saturating_add(*count));
        if total > MAX_ACTIONS {
            return 0.0;
        }
        // Of n draws from the urn, the kth is any action with the weight 1 + k / c.
        let of_place = |place: u32| f64::from(place + 1).ln() - (f64::from(place) / self.concentration).ln_1p();
        let places: f64 = (0..total).map(of_place).sum();
        let of_action = |(action, count): (usize, &u32)| (1..=*count).map(|nth| self.ln_next(action, nth)).sum::<f64>();
        let actions: f64 = counts.iter().enumerate().map(of_action).sum();
        (self.ln_number(total) + places + actions).exp()
    }

    /// P(A), whether by habit or because the command recurs, without the limits of an inventory.
    pub fn whole_probability(&self, counts: &[u32]) -> f64 {
        let own = self.recurring.iter().filter(|command| command.counts == counts).map(|command| command.share);
        (1.0 - self.recurring_share()) * self.probability(counts) + own.sum::<f64>()
    }

    /// The commands that recur, as far as an inventory allows them.
    pub fn recurring_within<'a>(&'a self, limits: &'a Limits) -> impl Iterator<Item = &'a RecurringCommand> {
        self.recurring.iter().filter(|command| limits.admits(&command.counts))
    }

    pub fn recurring_share(&self) -> f64 {
        self.recurring.iter().map(|command| command.share).sum()
    }

    /// ln P(n actions); −∞ for 0 actions.
    pub fn ln_number(&self, actions: u32) -> f64 {
        let Some(index) = actions.checked_sub(1) else { return f64::NEG_INFINITY };
        if let Some(share) = self.numbers.get(index as usize) {
            return share.ln();
        }
        let rest = (1.0 - self.numbers.iter().sum::<f64>()).max(Self::MIN_SHARE);
        rest.ln() + (1.0 - self.decay).ln() + (f64::from(index) - self.numbers.len() as f64) * self.decay.ln()
    }

    /// The logarithm of the factor for the `nth` occurrence of an action, from 1. The sum over the first nb occurrences
    /// is the logarithm of the action's whole factor.
    pub fn ln_next(&self, action: usize, nth: u32) -> f64 {
        let share = self.shares.get(action).copied().unwrap_or(Self::MIN_SHARE);
        let before = f64::from(nth.saturating_sub(1));
        // Divided by the concentration, so that for independent actions the factors are the shares.
        ((share + before / self.concentration) / (before + 1.0)).ln()
    }

    /// What is wrong with the values as a prior of `actions` actions, if anything is.
    pub fn fault(&self, actions: usize) -> Option<&'static str> {
        let is_share = |share: &f64| (Self::MIN_SHARE / 2.0..=1.0).contains(share);
        let sum = |shares: &[f64]| shares.iter().sum::<f64>();
        if self.numbers.len() > Self::MAX_LISTED || !self.numbers.iter().all(is_share) || sum(&self.numbers) > 1.001 {
            return Some("`numbers` of [prior] must be shares of commands");
        }
        if self.shares.len() != actions || !self.shares.iter().all(is_share) {
            return Some("`shares` of [prior] must have one share above 0 for each [[action]]");
        }
        if !(Self::MIN_SHARE..1.0).contains(&self.decay) {
            return Some("`decay` of [prior] must be above 0 and below 1");
        }
        if !(Self::MIN_SHARE..=1e9).contains(&self.concentration) {
            return Some("`concentration` of [prior] must be above 0 and at most 1e9");
        }
        let is_command = |command: &RecurringCommand| {
            command.counts.len() == actions
                && command.counts.iter().any(|count| *count > 0)
                && (0.0..1.0).contains(&command.share)
        };
        if self.recurring.len() > RecurringCommand::MAX_LISTED
            || !self.recurring.iter().all(is_command)
            || !(0.0..1.0).contains(&self.recurring_share())
        {
            return Some(
                "`recurring` of [prior] must be at most 256 commands, with a number for each [[action]], whose shares sum to less than 1",
            );
        }
        None
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurringCommand {
    /// How often each action occurs, in the order of the model.
    pub counts: Vec<u32>,
    /// The share of commands that are this one, beyond those with the same actions by chance.
    pub share: f64,
}

impl RecurringCommand {
    /// The most recurring commands of a model; the most frequent ones are kept.
    pub const MAX_LISTED: usize = 256;
}
