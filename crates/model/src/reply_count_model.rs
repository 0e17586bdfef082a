//! How many records a gateway sends in reply to a command, given the number of its actions.
//!
//! Replies = `fixed` + `per_action` · actions − missing ones + surplus ones. Missing replies (lost, or several in one
//! record) are proportional to the expected replies; surplus ones (reports of other devices) are not. Both are
//! geometric, so the model has four parameters, extrapolates to any number of actions, and sums in closed form. If the
//! replies do not depend on the actions, `per_action` is 0 and the replies are uninformative.

use serde::{Deserialize, Serialize};

use crate::reply_deviation::{ReplyDeviation, SkewedLaplace};

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
