//! Learning how many records a gateway sends in reply to a command, and how their bytes depend on the actions.

use sizeleak_model::statistics::{middle, times};
use sizeleak_model::{LabelledCommand, ReplyBytesModel, ReplyCountModel};

use crate::fit::evidence::STRONG;
use crate::fit::least_absolute_deviations::least_absolute_deviations;

/// Learns the numbers of replies from labelled commands. The slope is the median of the slopes between pairs of commands
/// (Theil–Sen), which is robust against lost and unrelated replies. The replies are uninformative unless the line increases
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
    let per_action = rounded(slope);
    let fixed = rounded(median(points.iter().map(|(actions, replies)| replies - per_action * actions).collect())?);
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

/// Rounds up to ten-thousandths, so that the result is never 0.
fn round_up(value: f64) -> f64 {
    (value * 10_000.0).ceil() / 10_000.0
}

/// The fewest commands with replies to learn from: one in ten is odd at most, and five of them show how far.
const MIN_COMMANDS: usize = 50;

/// The spread of odd replies if none was seen, in bytes: about that of one reply more or less.
const DEFAULT_ODD_SPREAD: f64 = 100.0;

/// Learns the bytes of replies from commands of `actions` actions; `None` unless these explain bytes clearly better than
/// numbers of replies.
pub fn learn_reply_bytes(commands: &[LabelledCommand], actions: usize) -> Option<ReplyBytesModel> {
    // The fit treats the number of replies like the count of an action.
    let row = |command: &LabelledCommand, counts: &[u32]| LabelledCommand {
        sizes: [command.reply_bytes; 2],
        counts: std::iter::once(command.replies).chain(counts.iter().copied()).collect(),
        ..command.clone()
    };
    let replied: Vec<&LabelledCommand> = commands.iter().filter(|command| command.replies > 0).collect();
    if replied.len() < MIN_COMMANDS {
        return None;
    }
    let alone: Vec<LabelledCommand> = replied.iter().map(|command| row(command, &[])).collect();
    let with_actions: Vec<LabelledCommand> = replied.iter().map(|command| row(command, &command.counts)).collect();
    let alone = bytes_through(&least_absolute_deviations(1, &alone), actions, &replied);
    let figures = least_absolute_deviations(actions + 1, &with_actions);
    let line = bytes_through(&figures, actions, &replied);
    // Bytes are integers: prefer integer parameters if they fit as well.
    let whole: Vec<f64> = figures.iter().map(|figure| figure.round()).collect();
    let whole = bytes_through(&whole, actions, &replied);
    let line = if ln_likelihood(&whole, &replied) >= ln_likelihood(&line, &replied) { whole } else { line };
    let gain = ln_likelihood(&line, &replied) - ln_likelihood(&alone, &replied);
    let by_chance = actions as f64 * (replied.len().max(1) as f64).ln();
    (line.fault(actions).is_none() && gain > STRONG + by_chance).then_some(line)
}

/// The linear function with these parameters (fixed, per reply, per action) and the deviations from it.
fn bytes_through(figures: &[f64], actions: usize, commands: &[&LabelledCommand]) -> ReplyBytesModel {
    let figure = |at: usize| rounded(figures.get(at).copied().unwrap_or(0.0));
    let per_action = (0..actions).map(|action| figure(action + 2)).collect();
    let usual = ReplyBytesModel {
        fixed: figure(0),
        per_reply: figure(1),
        per_action,
        spread: 1.0,
        odd: 0.0,
        odd_spread: 1.0,
        odd_deviations: Vec::new(),
    };
    let signed: Vec<f64> = commands.iter().map(|command| deviation(&usual, command).round()).collect();
    let mut deviations: Vec<f64> = signed.iter().map(|deviation| deviation.abs()).collect();
    deviations.sort_by(f64::total_cmp);
    // Nine in ten are usual; of the others, those with a much larger deviation are odd.
    let inner = deviations.get(..deviations.len() * 9 / 10).unwrap_or_default();
    let inner_mean = (inner.iter().sum::<f64>() + 0.1) / (inner.len() as f64 + 1.0);
    let from = deviations.partition_point(|deviation| *deviation <= 8.0 * inner_mean + 1.0);
    let (near, far) = deviations.split_at(from);
    let odd = signed.iter().filter(|deviation| far.first().is_some_and(|least| deviation.abs() >= *least));
    let odd = times(odd.map(|deviation| *deviation as i64));
    let mut odd_deviations: Vec<(i64, u32)> = odd.into_iter().collect();
    odd_deviations.sort_by_key(|(deviation, times)| (std::cmp::Reverse(*times), *deviation));
    odd_deviations.truncate(ReplyBytesModel::MAX_DEVIATIONS);
    let mean = |values: &[f64], least: f64| (values.iter().sum::<f64>() + least) / (values.len() as f64 + 1.0);
    ReplyBytesModel {
        spread: rounded(mean(near, 0.1)).max(ReplyBytesModel::MIN_SPREAD),
        odd: rounded((far.len() as f64 + 1.0) / (deviations.len() as f64 + 2.0)),
        odd_spread: rounded(mean(far, DEFAULT_ODD_SPREAD)).max(ReplyBytesModel::MIN_SPREAD),
        odd_deviations,
        ..usual
    }
}

fn deviation(model: &ReplyBytesModel, command: &LabelledCommand) -> f64 {
    model.deviation(command.reply_bytes, command.replies, command.counts.iter().copied())
}

fn ln_likelihood(model: &ReplyBytesModel, commands: &[&LabelledCommand]) -> f64 {
    let of_command = |LabelledCommand { reply_bytes, replies, counts, .. }: &&LabelledCommand| {
        model.likelihood(*reply_bytes, *replies, counts.iter().copied()).ln()
    };
    commands.iter().map(of_command).sum()
}

/// Rounds to thousandths, so that the model file stays readable.
fn rounded(value: f64) -> f64 {
    // The addition turns −0 into 0.
    (value * 1000.0).round() / 1000.0 + 0.0
}

#[cfg(test)]
mod tests;
