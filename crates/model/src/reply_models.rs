//! The replies to a gateway's commands: how many records and how many bytes they are, given the actions, and how long
//! they take, where that is longer than usual.
//!
//! Replies = `fixed` + `per_action` · actions − missing ones + surplus ones. Missing replies (lost, or several in one
//! record) are proportional to the expected replies; surplus ones (reports of other devices) are not. Both are
//! geometric, so the model has four parameters, extrapolates to any number of actions, and sums in closed form. If the
//! replies do not depend on the actions, `per_action` is 0 and the replies are uninformative.
//!
//! If the replies report the new states of devices, their bytes reveal more than their number. P(bytes | replies, A): a
//! linear function of the number of replies and of each action, with a two-sided geometric deviation, mixed with a wide
//! one for odd replies. The product with P(replies | A) is P(replies, bytes | A), so nothing counts twice.

use serde::{Deserialize, Serialize};

use crate::statistics::two_sided;

/// P(replies | number of actions), as a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyCountModel {
    /// Replies to any command.
    pub fixed: f64,
    /// Replies for each of its actions; 0 if replies are uninformative.
    pub per_action: f64,
    /// The share of the expected replies that is missing.
    pub missing: f64,
    /// The mean number of surplus replies for each command.
    pub surplus: f64,
}

/// The largest number of actions for which bounds are computed.
const MAX_ACTIONS: u32 = 4096;

impl ReplyCountModel {
    pub fn uninformative() -> Self {
        Self { fixed: 0.0, per_action: 0.0, missing: 0.0, surplus: 0.0 }
    }

    /// Whether the number of replies depends on the number of actions.
    pub fn is_informative(&self) -> bool {
        self.per_action > 0.0
    }

    /// P(replies | actions), never 0; 1 for any number of actions if replies are uninformative.
    pub fn likelihood(&self, replies: u32, actions: u32) -> f64 {
        if self.is_informative() { self.probability(replies.into(), actions.into()) } else { 1.0 }
    }

    /// The smallest and largest number of actions if no reply is missing, as the paper assumes; any number if replies
    /// are uninformative.
    pub fn paper_bounds(&self, replies: u32) -> (u32, u32) {
        if !self.is_informative() {
            return (0, u32::MAX);
        }
        let seen = ((f64::from(replies) - self.fixed) / self.per_action).clamp(0.0, MAX_ACTIONS.into());
        // The tolerance covers the rounding of the parameters.
        ((seen + 1e-3).floor() as u32, (seen - 1e-3).ceil().max(0.0) as u32)
    }

    /// The smallest and largest plausible number of actions: if the model is right, the bounds contain the true number
    /// with a probability of at least `keep`. Any number if replies are uninformative or `keep` is 1.
    pub fn bounds(&self, replies: u32, keep: f64) -> (u32, u32) {
        let tail = (1.0 - keep) / 2.0;
        if !self.is_informative() || tail.is_nan() || tail <= 0.0 {
            return (0, u32::MAX);
        }
        let deviation = |actions: u32| i64::from(replies) - self.expected(actions.into());
        let spread = |actions: u32| self.spread(actions.into());
        let too_few = |actions| replies > 0 && spread(actions).mixed(|one| one.at_least(deviation(actions))) <= tail;
        let too_many = |actions| spread(actions).mixed(|one| one.at_most(deviation(actions))) <= tail;
        let (mut least, mut most) = self.paper_bounds(replies);
        while least > 0 && !too_few(least - 1) {
            least -= 1;
        }
        while most < MAX_ACTIONS && !too_many(most + 1) {
            most += 1;
        }
        (least, if most < MAX_ACTIONS { most } else { u32::MAX })
    }

    /// P(replies | actions), informative or not. At 0 replies all larger numbers of missing replies are included.
    pub fn probability(&self, replies: i64, actions: f64) -> f64 {
        let (spread, deviation) = (self.spread(actions), replies - self.expected(actions));
        let of_part = |one: &SkewedLaplace| if replies == 0 { one.at_most(deviation) } else { one.exactly(deviation) };
        spread.mixed(of_part).max(f64::MIN_POSITIVE)
    }

    /// The number of replies to a command of so many actions, if none is missing or surplus.
    pub fn expected(&self, actions: f64) -> i64 {
        (self.fixed + self.per_action * actions).round().max(0.0) as i64
    }

    fn spread(&self, actions: f64) -> ReplyDeviation {
        ReplyDeviation::new(self.missing * self.expected(actions) as f64, self.surplus)
    }
}

/// The weight of the wider distribution, for differences that were never seen.
const WIDE_SHARE: f64 = 0.01;

/// The smallest means of the wider distribution, in replies.
const MIN_WIDE_MEAN: f64 = 1.5;

/// Surplus minus missing replies, a mixture of two skewed Laplace distributions.
#[derive(Debug, Clone, Copy)]
struct ReplyDeviation {
    usual: SkewedLaplace,
    wide: SkewedLaplace,
}

impl ReplyDeviation {
    /// From the mean numbers of missing and of surplus replies.
    fn new(missing: f64, surplus: f64) -> Self {
        let wide = SkewedLaplace::new(missing.max(MIN_WIDE_MEAN), surplus.max(MIN_WIDE_MEAN));
        Self { usual: SkewedLaplace::new(missing, surplus), wide }
    }

    fn mixed(&self, probability: impl Fn(&SkewedLaplace) -> f64) -> f64 {
        (1.0 - WIDE_SHARE) * probability(&self.usual) + WIDE_SHARE * probability(&self.wide)
    }
}

/// The difference of two independent geometric variables: the skewed discrete Laplace distribution.
#[derive(Debug, Clone, Copy)]
struct SkewedLaplace {
    /// P(value − 1) / P(value) below 0.
    down: f64,
    /// P(value + 1) / P(value) above 0.
    up: f64,
}

impl SkewedLaplace {
    fn new(mean_down: f64, mean_up: f64) -> Self {
        Self { down: mean_down / (1.0 + mean_down), up: mean_up / (1.0 + mean_up) }
    }

    fn exactly(&self, value: i64) -> f64 {
        let peak = (1.0 - self.down) * (1.0 - self.up) / self.overlap();
        let step = if value < 0 { self.down } else { self.up };
        peak * step.powf(value.unsigned_abs() as f64)
    }

    fn at_most(&self, value: i64) -> f64 {
        if value > 0 {
            return 1.0 - self.at_least(value.saturating_add(1));
        }
        (1.0 - self.up) / self.overlap() * self.down.powf(value.unsigned_abs() as f64)
    }

    fn at_least(&self, value: i64) -> f64 {
        Self { down: self.up, up: self.down }.at_most(value.saturating_neg())
    }

    fn overlap(&self) -> f64 {
        1.0 - self.down * self.up
    }
}

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

/// The longest time within which replies can come, in milliseconds.
pub const MAX_REPLY_WITHIN_MS: u64 = 60_000;

/// When what the gateway sends counts as a reply to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReplyWindows {
    /// Replies come within this time after a command, in milliseconds.
    #[serde(rename = "reply-within-ms")]
    pub within_ms: u64,
    /// Replies end when the gateway is silent for this long, in milliseconds.
    #[serde(rename = "reply-gap-ms")]
    pub gap_ms: u64,
    /// Within this time most replies have come, in milliseconds. A command later than that after another one does not
    /// share its replies.
    #[serde(rename = "reply-mostly-within-ms", default = "usually_mostly_ms")]
    pub mostly_ms: u64,
}

/// Within what time most replies come where a model does not say.
fn usually_mostly_ms() -> u64 {
    1_000
}

impl ReplyWindows {
    pub(crate) fn fault(self) -> Option<&'static str> {
        let is_possible =
            (1..=MAX_REPLY_WITHIN_MS).contains(&self.within_ms) && (1..=self.within_ms).contains(&self.gap_ms);
        (!is_possible || self.mostly_ms > MAX_REPLY_WITHIN_MS).then_some(
            "in [segmenter] `reply-within-ms` must be 1 to 60000, `reply-gap-ms` at least 1 and no longer, and \
             `reply-mostly-within-ms` at most 60000",
        )
    }

    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            within_ms: self.within_ms.max(other.within_ms),
            gap_ms: self.gap_ms.max(other.gap_ms),
            mostly_ms: self.mostly_ms.max(other.mostly_ms),
        }
    }
}
