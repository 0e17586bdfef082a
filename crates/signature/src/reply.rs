//! The reply model: how many records a gateway sends after a command, given the number of its actions.
//!
//! Replies = fixed + per action · actions + a deviation. The deviation's distribution is that of the labelled commands,
//! mixed with a two-sided geometric one so that no number of replies is impossible. A gateway whose replies do not
//! depend on the actions has `per_action = 0`, and its replies then say nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::LabelledCommand;

/// P(replies | number of actions), in plain figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyModel {
    /// Replies to any command.
    pub fixed: f64,
    /// Replies for each of its actions.
    pub per_action: f64,
    /// How often the number of replies was off by how many: `[deviation, times]`.
    pub deviations: Vec<[i64; 2]>,
}

/// The share of the smoothing distribution.
const SMOOTHING: f64 = 0.05;

/// Each step further from what is expected is this much less likely, in the smoothing distribution.
const DECAY: f64 = 0.6;

/// Replies must explain this share of their variance by the number of actions, or they say nothing.
const LEAST_EXPLAINED: f64 = 0.2;

impl ReplyModel {
    /// A gateway whose replies say nothing.
    pub fn silent() -> Self {
        Self { fixed: 0.0, per_action: 0.0, deviations: Vec::new() }
    }

    /// Learns from labelled commands. The slope is the median of the slopes between pairs of commands (Theil–Sen),
    /// which lost and foreign replies do not pull.
    pub fn learn(commands: &[LabelledCommand]) -> Self {
        let points: Vec<(f64, f64)> = commands.iter().map(point).collect();
        let Some(per_action) = middle(slopes(&points)) else { return Self::silent() };
        let Some(fixed) = middle(points.iter().map(|(actions, replies)| replies - per_action * actions).collect())
        else {
            return Self::silent();
        };
        let (fixed, per_action) = (round(fixed), round(per_action));
        let line = Self { fixed, per_action, deviations: Vec::new() };
        if per_action <= 0.0 || line.explained(&points) < LEAST_EXPLAINED {
            return Self::silent();
        }
        let mut deviations: BTreeMap<i64, i64> = BTreeMap::new();
        for (actions, replies) in &points {
            *deviations.entry(*replies as i64 - line.expected(*actions)).or_default() += 1;
        }
        Self { deviations: deviations.into_iter().map(|(deviation, times)| [deviation, times]).collect(), ..line }
    }

    /// Whether the number of replies says something about the number of actions.
    pub fn is_informative(&self) -> bool {
        self.per_action > 0.0
    }

    /// P(replies | actions); 1 for any number of actions where replies say nothing.
    pub fn likelihood(&self, replies: u32, actions: u32) -> f64 {
        if !self.is_informative() {
            return 1.0;
        }
        let deviation = i64::from(replies) - self.expected(actions.into());
        let times = self.deviations.iter().find(|[known, _]| *known == deviation).map_or(0, |[_, times]| *times);
        let total: i64 = self.deviations.iter().map(|[_, times]| times).sum();
        let seen = times as f64 / total.max(1) as f64;
        let steps = i32::try_from(deviation.unsigned_abs()).unwrap_or(i32::MAX);
        let smooth = DECAY.powi(steps) * (1.0 - DECAY) / (1.0 + DECAY);
        (1.0 - SMOOTHING) * seen + SMOOTHING * smooth
    }

    /// The number of actions the replies show when taken at their word, as the paper does; `None` where they say
    /// nothing.
    pub fn seen_actions(&self, replies: u32) -> Option<u32> {
        if !self.is_informative() {
            return None;
        }
        let seen = (f64::from(replies) - self.fixed) / self.per_action;
        Some(seen.round().clamp(0.0, f64::from(u32::MAX)) as u32)
    }

    fn expected(&self, actions: f64) -> i64 {
        (self.fixed + self.per_action * actions).round() as i64
    }

    /// The share of the absolute deviation of the replies that the line takes away.
    fn explained(&self, points: &[(f64, f64)]) -> f64 {
        let Some(level) = middle(points.iter().map(|(_, replies)| *replies).collect()) else { return 0.0 };
        let around_level: f64 = points.iter().map(|(_, replies)| (replies - level).abs()).sum();
        let around_line: f64 =
            points.iter().map(|(actions, replies)| (replies - self.expected(*actions) as f64).abs()).sum();
        if around_level > 0.0 { 1.0 - around_line / around_level } else { 0.0 }
    }
}

fn point(command: &LabelledCommand) -> (f64, f64) {
    (command.counts.iter().map(|count| f64::from(*count)).sum(), command.replies.into())
}

/// The slopes between all pairs of points, thinned out where there are very many.
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

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// To thousandths, so that the model file stays readable.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(actions: u32, replies: u32) -> LabelledCommand {
        LabelledCommand { size: 0, counts: vec![actions], replies }
    }

    #[test]
    fn a_reply_an_action_with_some_lost() {
        let commands: Vec<_> = (0..120)
            .map(|at| {
                let actions = 1 + at % 8;
                command(actions, 1 + actions - u32::from(at % 11 == 0))
            })
            .collect();
        let model = ReplyModel::learn(&commands);
        assert_eq!((model.fixed, model.per_action), (1.0, 1.0));
        assert_eq!(model.deviations, [[-1, 11], [0, 109]]);
        assert!(model.likelihood(6, 5) > 0.8);
        assert!(model.likelihood(5, 5) > 0.05);
        assert!(model.likelihood(40, 5) > 0.0);
        assert_eq!(model.seen_actions(21), Some(20), "beyond what was learned from");
        let all: f64 = (0..200).map(|replies| model.likelihood(replies, 30)).sum();
        assert!((all - 1.0).abs() < 0.01, "{all}");
    }

    #[test]
    fn replies_that_say_nothing_cost_nothing() {
        for replies in [|_| 0, |_| 1, |actions: u32| actions * 7 % 5] {
            let commands: Vec<_> = (0..60).map(|at| command(1 + at % 8, replies(at))).collect();
            let model = ReplyModel::learn(&commands);
            assert!(!model.is_informative(), "{model:?}");
            assert!((model.likelihood(3, 9) - 1.0).abs() < f64::EPSILON);
            assert_eq!(model.seen_actions(3), None);
        }
        assert_eq!(ReplyModel::learn(&[]), ReplyModel::silent());
        assert_eq!(ReplyModel::learn(&[command(1, 1)]), ReplyModel::silent());
    }
}
