//! How many records a gateway sends in reply to a command, given the number of its actions.
//!
//! Replies = `fixed` + `per_action` · actions − missing ones + surplus ones. Missing replies (lost, or several in one
//! record) are proportional to the expected replies; surplus ones (reports of other devices) are not. Both are
//! geometric, so the model has four parameters, extrapolates to any number of actions, and sums in closed form. If the
//! replies do not depend on the actions, `per_action` is 0 and the replies are uninformative.

use serde::{Deserialize, Serialize};

use crate::LabelledCommand;
use crate::reply_deviation::ReplyDeviation;

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

/// The gain in log-likelihood (in nats) over a constant that makes replies informative.
const MIN_GAIN: f64 = 3.0;

/// The largest number of actions for which bounds are computed.
const MAX_ACTIONS: u32 = 4096;

impl ReplyCountModel {
    /// The model of a gateway whose replies are uninformative.
    pub fn uninformative() -> Self {
        Self { fixed: 0.0, per_action: 0.0, missing: 0.0, surplus: 0.0 }
    }

    /// Learns from labelled commands. The slope is the median of the slopes between pairs of commands (Theil–Sen),
    /// which is robust against lost and unrelated replies. The replies are uninformative unless the line increases
    /// their log-likelihood over that of a constant by 3 + ln(number of commands).
    pub fn learn(commands: &[LabelledCommand]) -> Self {
        let points: Vec<(f64, f64)> = commands.iter().map(point).collect();
        let slope = median(slopes(&points)).filter(|slope| *slope > 0.0);
        let line = slope.and_then(|slope| Self::through(&points, slope));
        let (Some(line), Some(constant)) = (line, Self::through(&points, 0.0)) else { return Self::uninformative() };
        let gain = line.log_likelihood(&points) - constant.log_likelihood(&points);
        if gain > MIN_GAIN + (points.len() as f64).ln() { line } else { Self::uninformative() }
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
        let too_few = |actions: u32| replies > 0 && self.spread(actions.into()).at_least(deviation(actions)) <= tail;
        let too_many = |actions: u32| self.spread(actions.into()).at_most(deviation(actions)) <= tail;
        let (mut least, mut most) = self.paper_bounds(replies);
        while least > 0 && !too_few(least - 1) {
            least -= 1;
        }
        while most < MAX_ACTIONS && !too_many(most + 1) {
            most += 1;
        }
        (least, if most < MAX_ACTIONS { most } else { u32::MAX })
    }

    /// The line with this slope through the median of the points, with the deviations from it.
    fn through(points: &[(f64, f64)], slope: f64) -> Option<Self> {
        let per_action = round(slope);
        let fixed = round(median(points.iter().map(|(actions, replies)| replies - per_action * actions).collect())?);
        let line = Self { fixed, per_action, missing: 0.0, surplus: 0.0 };
        let (mut expected, mut missing, mut surplus) = (1.0, 0.5, 0.5);
        for (actions, replies) in points {
            let deviation = replies - line.expected(*actions) as f64;
            expected += line.expected(*actions) as f64;
            missing += (-deviation).max(0.0);
            surplus += deviation.max(0.0);
        }
        let surplus = round_up(surplus / (points.len() as f64 + 1.0));
        Some(Self { missing: round_up(missing / expected).min(1.0), surplus, ..line })
    }

    fn log_likelihood(&self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|(actions, replies)| self.probability(*replies as i64, *actions).ln()).sum()
    }

    /// P(replies | actions), informative or not. At 0 replies all larger numbers of missing replies are included.
    fn probability(&self, replies: i64, actions: f64) -> f64 {
        let (spread, deviation) = (self.spread(actions), replies - self.expected(actions));
        let probability = if replies == 0 { spread.at_most(deviation) } else { spread.exactly(deviation) };
        probability.max(f64::MIN_POSITIVE)
    }

    fn expected(&self, actions: f64) -> i64 {
        (self.fixed + self.per_action * actions).round().max(0.0) as i64
    }

    fn spread(&self, actions: f64) -> ReplyDeviation {
        ReplyDeviation::new(self.missing * self.expected(actions) as f64, self.surplus)
    }
}

fn point(command: &LabelledCommand) -> (f64, f64) {
    (command.counts.iter().map(|count| f64::from(*count)).sum(), command.replies.into())
}

/// The slopes between all pairs of points, of at most 2000 points.
fn slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let step = (points.len() / 1000).max(1);
    let thinned: Vec<&(f64, f64)> = points.iter().step_by(step).collect();
    let mut slopes = Vec::new();
    for (at, (x, y)) in thinned.iter().enumerate() {
        let later = thinned.iter().skip(at + 1).filter(|(other, _)| (other - x).abs() > 0.5);
        slopes.extend(later.map(|(other_x, other_y)| (other_y - y) / (other_x - x)));
    }
    slopes
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// Rounds to thousandths, so that the model file stays readable.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Rounds up to ten-thousandths, so that the result is never 0.
fn round_up(value: f64) -> f64 {
    (value * 10_000.0).ceil() / 10_000.0
}

#[cfg(test)]
mod tests;
