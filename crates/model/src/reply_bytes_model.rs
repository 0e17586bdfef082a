//! How the bytes of a gateway's replies depend on the actions. If the replies report the new states of devices, their
//! bytes reveal more than their number.
//!
//! P(bytes | replies, A): a linear function of the number of replies and of each action, with a two-sided geometric
//! deviation, mixed with a wide one for odd replies. The product with P(replies | A) ([`crate::ReplyCountModel`]) is
//! P(replies, bytes | A), so nothing counts twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::LabelledCommand;
use crate::least_absolute_deviations::least_absolute_deviations;
use crate::two_sided::two_sided;

/// Fewer commands with replies do not show how far off their bytes may be.
const FEWEST_COMMANDS: usize = 50;

/// The gain in log-likelihood (in nats) that makes bytes informative, in addition to the gain that each further
/// parameter brings by chance.
const MIN_GAIN: f64 = 3.0;

/// The smallest spread, in bytes.
const MIN_SPREAD: f64 = 0.01;

/// The spread of odd replies if none was seen, in bytes.
const DEFAULT_ODD_SPREAD: f64 = 100.0;

/// The largest number of deviations of odd replies in a model; the most frequent ones are kept.
const MAX_DEVIATIONS: usize = 64;

/// The largest parameter accepted, in bytes.
const MAX_BYTES: f64 = 1e9;

/// P(bytes | replies, actions), as a few numbers, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyBytesModel {
    /// Bytes for any command.
    pub fixed: f64,
    /// Bytes for each reply.
    pub per_reply: f64,
    /// Bytes for each occurrence of an action, in the order of the model.
    pub per_action: Vec<f64>,
    /// Mean absolute deviation of usual replies.
    pub spread: f64,
    /// The share of commands with odd replies.
    pub odd: f64,
    /// Mean absolute deviation of odd replies.
    pub odd_spread: f64,
    /// Deviations of odd replies with their number: a lost or surplus reply has its own size.
    #[serde(default)]
    pub odd_deviations: Vec<(i64, u32)>,
}

impl ReplyBytesModel {
    /// Learns from labelled commands of `actions` actions; `None` unless the actions explain the bytes clearly better
    /// than the number of replies alone.
    pub fn learn(commands: &[LabelledCommand], actions: usize) -> Option<Self> {
        // The fit treats the number of replies like the count of an action.
        let row = |command: &LabelledCommand, counts: &[u32]| LabelledCommand {
            sizes: [command.reply_bytes; 2],
            counts: std::iter::once(command.replies).chain(counts.iter().copied()).collect(),
            ..command.clone()
        };
        let replied: Vec<&LabelledCommand> = commands.iter().filter(|command| command.replies > 0).collect();
        if replied.len() < FEWEST_COMMANDS {
            return None;
        }
        let alone: Vec<LabelledCommand> = replied.iter().map(|command| row(command, &[])).collect();
        let with_actions: Vec<LabelledCommand> = replied.iter().map(|command| row(command, &command.counts)).collect();
        let alone = Self::through(&least_absolute_deviations(1, &alone), actions, &replied);
        let figures = least_absolute_deviations(actions + 1, &with_actions);
        let line = Self::through(&figures, actions, &replied);
        // Bytes are integers: prefer integer parameters if they fit as well.
        let whole: Vec<f64> = figures.iter().map(|figure| figure.round()).collect();
        let whole = Self::through(&whole, actions, &replied);
        let line = if whole.ln_likelihood(&replied) >= line.ln_likelihood(&replied) { whole } else { line };
        let gain = line.ln_likelihood(&replied) - alone.ln_likelihood(&replied);
        let by_chance = actions as f64 * (replied.len().max(1) as f64).ln();
        (line.fault(actions).is_none() && gain > MIN_GAIN + by_chance).then_some(line)
    }

    /// P(bytes | replies, counts), never 0, with the counts of the actions in the order of the model; 1 without
    /// replies.
    pub fn likelihood(&self, bytes: i64, replies: u32, counts: impl Iterator<Item = u32>) -> f64 {
        if replies == 0 {
            return 1.0;
        }
        self.of_deviation(self.deviation(bytes, replies, counts))
    }

    /// The greatest likelihood of any actions.
    pub fn greatest(&self) -> f64 {
        self.of_deviation(0.0)
    }

    fn of_deviation(&self, deviation: f64) -> f64 {
        let deviation = deviation.round();
        let usual = two_sided(deviation.abs(), self.spread);
        let times = |known: &(i64, u32)| if known.0 == deviation as i64 { f64::from(known.1) } else { 0.0 };
        let seen: f64 = self.odd_deviations.iter().map(times).sum();
        let all: f64 = self.odd_deviations.iter().map(|(_, times)| f64::from(*times)).sum();
        // One pseudo-observation of an odd reply, at any deviation.
        let odd = (seen + two_sided(deviation.abs(), self.odd_spread)) / (all + 1.0);
        ((1.0 - self.odd) * usual + self.odd * odd).max(f64::MIN_POSITIVE)
    }

    /// The linear function with these parameters (fixed, per reply, per action) and the deviations from it.
    fn through(figures: &[f64], actions: usize, commands: &[&LabelledCommand]) -> Self {
        let figure = |at: usize| rounded(figures.get(at).copied().unwrap_or(0.0));
        let per_action = (0..actions).map(|action| figure(action + 2)).collect();
        let usual = Self {
            fixed: figure(0),
            per_reply: figure(1),
            per_action,
            spread: 1.0,
            odd: 0.0,
            odd_spread: 1.0,
            odd_deviations: Vec::new(),
        };
        let signed: Vec<f64> = commands.iter().map(|command| usual.deviation_of(command).round()).collect();
        let mut deviations: Vec<f64> = signed.iter().map(|deviation| deviation.abs()).collect();
        deviations.sort_by(f64::total_cmp);
        // Nine in ten are usual; of the others, those with a much larger deviation are odd.
        let inner = deviations.get(..deviations.len() * 9 / 10).unwrap_or_default();
        let inner_mean = (inner.iter().sum::<f64>() + 0.1) / (inner.len() as f64 + 1.0);
        let from = deviations.partition_point(|deviation| *deviation <= 8.0 * inner_mean + 1.0);
        let (near, far) = deviations.split_at(from);
        let mut odd: BTreeMap<i64, u32> = BTreeMap::new();
        for deviation in signed.iter().filter(|deviation| far.first().is_some_and(|least| deviation.abs() >= *least)) {
            *odd.entry(*deviation as i64).or_default() += 1;
        }
        let mut odd_deviations: Vec<(i64, u32)> = odd.into_iter().collect();
        odd_deviations.sort_by_key(|(deviation, times)| (std::cmp::Reverse(*times), *deviation));
        odd_deviations.truncate(MAX_DEVIATIONS);
        let mean = |values: &[f64], least: f64| (values.iter().sum::<f64>() + least) / (values.len() as f64 + 1.0);
        Self {
            spread: rounded(mean(near, 0.1)).max(MIN_SPREAD),
            odd: rounded((far.len() as f64 + 1.0) / (deviations.len() as f64 + 2.0)),
            odd_spread: rounded(mean(far, DEFAULT_ODD_SPREAD)).max(MIN_SPREAD),
            odd_deviations,
            ..usual
        }
    }

    /// The deviation from the linear function.
    fn deviation(&self, bytes: i64, replies: u32, counts: impl Iterator<Item = u32>) -> f64 {
        let of_actions: f64 = self.per_action.iter().zip(counts).map(|(bytes, count)| bytes * f64::from(count)).sum();
        bytes as f64 - self.fixed - self.per_reply * f64::from(replies) - of_actions
    }

    fn deviation_of(&self, command: &LabelledCommand) -> f64 {
        self.deviation(command.reply_bytes, command.replies, command.counts.iter().copied())
    }

    fn ln_likelihood(&self, commands: &[&LabelledCommand]) -> f64 {
        commands.iter().map(|command| self.of_deviation(self.deviation_of(command)).ln()).sum()
    }

    /// What is wrong with the values for `actions` actions, if anything is.
    pub(crate) fn fault(&self, actions: usize) -> Option<&'static str> {
        let figures = || [&self.fixed, &self.per_reply].into_iter().chain(&self.per_action);
        if self.per_action.len() != actions {
            return Some("`per_action` of [reply_bytes] must have one number for each [[action]]");
        }
        let are_bytes = figures().all(|figure| figure.abs() <= MAX_BYTES);
        let is_spread = |spread: &f64| (MIN_SPREAD / 2.0..=MAX_BYTES).contains(spread);
        if self.odd_deviations.len() > MAX_DEVIATIONS {
            return Some("`odd_deviations` of [reply_bytes] has too many entries");
        }
        if !are_bytes || ![&self.spread, &self.odd_spread].into_iter().all(is_spread) || !(0.0..1.0).contains(&self.odd)
        {
            return Some("[reply_bytes] has values out of bounds");
        }
        None
    }
}

/// Rounds to thousandths, so that the model file stays readable.
fn rounded(value: f64) -> f64 {
    // The addition turns −0 into 0.
    (value * 1000.0).round() / 1000.0 + 0.0
}

#[cfg(test)]
mod tests;
