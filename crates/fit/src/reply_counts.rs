//! Learning how many records a gateway sends in reply to a command.

use sizeleak_model::statistics::middle;
use sizeleak_model::{LabelledCommand, ReplyCountModel};

use crate::evidence::STRONG;

/// Learns from labelled commands. The slope is the median of the slopes between pairs of commands (Theil–Sen),
/// which is robust against lost and unrelated replies. The replies are uninformative unless the line increases
/// their log-likelihood over that of a constant by 3 + ln(number of commands).
pub fn learn_reply_counts(commands: &[LabelledCommand]) -> ReplyCountModel {
    let points: Vec<(f64, f64)> = commands.iter().map(point).collect();
    let slope = median(slopes(&points)).filter(|slope| *slope > 0.0);
    let line = slope.and_then(|slope| through(&points, slope));
    let (Some(line), Some(constant)) = (line, through(&points, 0.0)) else { return ReplyCountModel::uninformative() };
    let gain = log_likelihood(&line, &points) - log_likelihood(&constant, &points);
    if gain > STRONG + (points.len() as f64).ln() { line } else { ReplyCountModel::uninformative() }
}

/// The line with this slope through the median of the points, with the deviations from it.
fn through(points: &[(f64, f64)], slope: f64) -> Option<ReplyCountModel> {
    let per_action = round(slope);
    let fixed = round(median(points.iter().map(|(actions, replies)| replies - per_action * actions).collect())?);
    let line = ReplyCountModel { fixed, per_action, missing: 0.0, surplus: 0.0 };
    let (mut expected, mut missing, mut surplus) = (1.0, 0.5, 0.5);
    for (actions, replies) in points {
        let deviation = replies - line.expected(*actions) as f64;
        expected += line.expected(*actions) as f64;
        missing += (-deviation).max(0.0);
        surplus += deviation.max(0.0);
    }
    let surplus = round_up(surplus / (points.len() as f64 + 1.0));
    Some(ReplyCountModel { missing: round_up(missing / expected).min(1.0), surplus, ..line })
}

fn log_likelihood(model: &ReplyCountModel, points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(actions, replies)| model.probability(*replies as i64, *actions).ln()).sum()
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

/// The lower one of two middle values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    middle(&mut values, f64::total_cmp).map(|[lower, _]| lower)
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
