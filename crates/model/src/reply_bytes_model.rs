//! How the bytes of a gateway's replies depend on the actions. If the replies report the new states of devices, their
//! bytes reveal more than their number.
//!
//! P(bytes | replies, A): a linear function of the number of replies and of each action, with a two-sided geometric
//! deviation, mixed with a wide one for odd replies. The product with P(replies | A) ([`crate::ReplyCountModel`]) is
//! P(replies, bytes | A), so nothing counts twice.

use serde::{Deserialize, Serialize};

use crate::statistics::two_sided;

/// The largest parameter accepted, in bytes.
const MAX_BYTES: f64 = 1e9;

/// P(bytes | replies, actions), as a few numbers, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyBytesModel {
    /// Bytes for any command.
    pub fixed: f64,
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
    /// The smallest spread, in bytes.
    pub const MIN_SPREAD: f64 = 0.01;

    /// The largest number of deviations of odd replies; the most frequent ones are kept.
    pub const MAX_DEVIATIONS: usize = 64;

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

    /// The deviation from the linear function.
    pub fn deviation(&self, bytes: i64, replies: u32, counts: impl Iterator<Item = u32>) -> f64 {
        let of_actions: f64 = self.per_action.iter().zip(counts).map(|(bytes, count)| bytes * f64::from(count)).sum();
        bytes as f64 - self.fixed - self.per_reply * f64::from(replies) - of_actions
    }

    /// What is wrong with the values for `actions` actions, if anything is.
    pub fn fault(&self, actions: usize) -> Option<&'static str> {
        let figures = || [&self.fixed, &self.per_reply].into_iter().chain(&self.per_action);
        if self.per_action.len() != actions {
            return Some("`per_action` of [reply_bytes] must have one number for each [[action]]");
        }
        let are_bytes = figures().all(|figure| figure.abs() <= MAX_BYTES);
        let is_spread = |spread: &f64| (Self::MIN_SPREAD / 2.0..=MAX_BYTES).contains(spread);
        if self.odd_deviations.len() > Self::MAX_DEVIATIONS {
            return Some("`odd_deviations` of [reply_bytes] has too many entries");
        }
        if !are_bytes || ![&self.spread, &self.odd_spread].into_iter().all(is_spread) || !(0.0..1.0).contains(&self.odd)
        {
            return Some("[reply_bytes] has values out of bounds");
        }
        None
    }
}
