//! Whether sizes add up: |s| = |ac| + ε + Σ |aᵢ|·nbᵢ is an assumption that padding, compression and messages of
//! several forms break. What labelled commands say about it.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use sizeleak_model::{Action, EpsilonDistribution, LabelledCommand};

use crate::fit::Fit;
use crate::fit::least_absolute_deviations::least_absolute_deviations;
use crate::fit::sizes::fitted_sizes::fitted;

/// The number of random assignments of residuals to commands; the smallest p-value is one more than it, inverted.
const ASSIGNMENTS: u32 = 999;

/// The most commands that the test of residuals uses, a bound of its time.
const MAX_TESTED: usize = 2000;

/// The least multiple of bytes that counts as padding: sizes of actions may all be even by chance.
const MIN_PADDING: i64 = 4;

/// The fewest different sizes that show padding: by chance, five sizes are alike modulo 4 in one of 256 cases.
const MIN_SIZES: usize = 5;

/// If bodies are compressed, an action that occurs again is shorter by at least this share of its size: a reference to
/// the first one takes its place (RFC 1951), while a field that is left out is smaller.
const COMPRESSED_SHARE: f64 = 0.2;

/// The least distance of two forms of messages, in bytes: ids and length fields differ by less.
const MIN_FORM_BYTES: i64 = 3;

/// The least share of the commands that each form has: fewer are wrong labels.
const MIN_FORM_SHARE: f64 = 0.1;

/// The greatest share of the commands that are far from their form, such as wrong labels.
const MAX_BETWEEN: f64 = 0.02;

/// How the sizes of labelled commands deviate from the sum of their parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Additivity {
    /// The probability that residuals would depend on the actions as much by chance: by the number of actions, and by
    /// the actions themselves if some were labelled several times; the smaller of both, times two.
    pub p_value: f64,
    /// Mean deviation of a command from what its parts sum up to, in bytes. Where sizes vary, single commands deviate
    /// in any case: then that of the means over commands of the same number of actions.
    pub mean_deviation: f64,
    /// By how many bytes an action that occurs again is shorter than the first time, as compressed; if commands tell.
    pub repeated_shorter: Option<f64>,
    /// How many bytes longer one of two forms of messages is, and the share of commands that have it.
    pub forms: Option<(i64, f64)>,
}

impl Additivity {
    /// Examines the commands of a fit, outliers included.
    pub fn of(fit: &Fit, commands: &[LabelledCommand]) -> Self {
        let sizes: Vec<i64> = fit.actions.iter().map(|action| action.size).collect();
        let step = commands.len() / MAX_TESTED + 1;
        let used: Vec<&LabelledCommand> = commands.iter().step_by(step).collect();
        let varies = fit.actions.iter().any(Action::varies);
        let residuals = if varies { from_mean(fit, &used) } else { residuals(&sizes, commands, step) };
        let totals: Vec<u64> = used.iter().map(|command| command.total()).collect();
        let kinds: Vec<&[u32]> = used.iter().map(|command| &command.counts[..]).collect();
        let p_value = f64::min(p_value(&residuals, &totals), p_value(&residuals, &kinds)) * 2.0;
        let deviations = residuals.iter().map(|residual| residual.unsigned_abs() as f64);
        let mean_deviation = deviations.sum::<f64>() / residuals.len().max(1) as f64;
        Self {
            p_value: p_value.min(1.0),
            mean_deviation: if varies { mean_of_numbers(&residuals, &used) } else { mean_deviation },
            repeated_shorter: repeated_shorter(&sizes, commands),
            forms: forms(residuals),
        }
    }
}

/// What is left of every `step`th command without single sizes and levels, in bytes.
fn residuals(sizes: &[i64], commands: &[LabelledCommand], step: usize) -> Vec<i64> {
    // Length fields grow in steps; what they add is no deviation.
    let (fitted, _) = fitted(sizes, commands);
    fitted.into_iter().step_by(step).map(|at| at.value.saturating_sub(at.level)).collect()
}

/// What is left of commands without the mean sizes of their actions and levels, in bytes.
fn from_mean(fit: &Fit, commands: &[&LabelledCommand]) -> Vec<i64> {
    let mean = |action: &Action| action.sizes().map(|(size, share)| size as f64 * share).sum::<f64>();
    let means: Vec<f64> = fit.actions.iter().map(mean).collect();
    let epsilons = EpsilonDistribution::new(&fit.neighbours, fit.smoothing);
    let residual = |command: &&LabelledCommand| {
        let size = command.middle();
        let expected: f64 = means.iter().zip(&command.counts).map(|(mean, count)| mean * f64::from(*count)).sum();
        ((size - fit.overhead - epsilons.level(size)) as f64 - expected).round() as i64
    };
    commands.iter().map(residual).collect()
}

/// The mean over all commands of how far the residuals of commands with their number of actions are off on average.
fn mean_of_numbers(residuals: &[i64], commands: &[&LabelledCommand]) -> f64 {
    let mut by_number: BTreeMap<u64, i64> = BTreeMap::new();
    for (residual, command) in residuals.iter().zip(commands) {
        *by_number.entry(command.total()).or_default() += residual;
    }
    by_number.values().map(|sum| sum.unsigned_abs() as f64).sum::<f64>() / residuals.len().max(1) as f64
}

/// The multiple of bytes to which all sizes seem padded: they are alike modulo it. `None` if not, or if few are known.
pub fn padding(sizes: impl Iterator<Item = i64>) -> Option<i64> {
    let mut sizes: Vec<i64> = sizes.collect();
    sizes.sort_unstable();
    sizes.dedup();
    let steps = sizes.windows(2).map(|pair| if let [low, high] = pair { high - low } else { 0 });
    let common = steps.fold(0, greatest_common_divisor);
    (sizes.len() >= MIN_SIZES && common >= MIN_PADDING).then_some(common)
}

fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// A permutation test: how often do values differ between groups as much if they are assigned at random? The
/// statistic is Σ (sum of a group's ranks)² / its commands.
pub(crate) fn p_value<G: Ord>(residuals: &[i64], groups: &[G]) -> f64 {
    let mut index: BTreeMap<&G, usize> = BTreeMap::new();
    let mut index_of = |group| {
        let next = index.len();
        *index.entry(group).or_insert(next)
    };
    let group_of: Vec<usize> = groups.iter().map(&mut index_of).collect();
    // Groups of one command each, or one group, say nothing.
    if index.len() < 2 || index.len() == groups.len() {
        return 1.0;
    }
    let mut values: Vec<f64> = ranks(residuals);
    let statistic = |values: &[f64]| {
        let mut sums = vec![(0.0, 0.0); index.len()];
        for (value, group) in values.iter().zip(&group_of) {
            let (sum, n) = sums[*group];
            sums[*group] = (sum + value, n + 1.0);
        }
        sums.iter().map(|(sum, n)| sum * sum / n).sum::<f64>()
    };
    let observed = statistic(&values);
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut as_great = 0;
    for _ in 0..ASSIGNMENTS {
        values.shuffle(&mut random);
        as_great += u32::from(statistic(&values) >= observed * (1.0 - 1e-12));
    }
    f64::from(as_great + 1) / f64::from(ASSIGNMENTS + 1)
}

/// Centred ranks, equal values with their mean rank: a few far outliers do not decide.
pub(crate) fn ranks(values: &[i64]) -> Vec<f64> {
    let mut sorted: Vec<i64> = values.to_vec();
    sorted.sort_unstable();
    let rank = |value: &i64| {
        let below = sorted.partition_point(|other| other < value);
        let up_to = sorted.partition_point(|other| other <= value);
        (below + up_to) as f64 / 2.0 - sorted.len() as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// By how many bytes an action is shorter when it occurs again: absolute deviations with repeats as one more action.
fn repeated_shorter(sizes: &[i64], commands: &[LabelledCommand]) -> Option<f64> {
    let repeats = |command: &LabelledCommand| command.counts.iter().map(|n| n.saturating_sub(1)).sum::<u32>();
    let with_repeats: Vec<LabelledCommand> = commands
        .iter()
        .map(|command| LabelledCommand {
            counts: command.counts.iter().copied().chain([repeats(command)]).collect(),
            ..command.clone()
        })
        .collect();
    // Repeats must not follow from the other counts.
    let undetermined = crate::fit::experiment_design::undetermined_actions(sizes.len() + 1, &with_repeats);
    let repeated = with_repeats.iter().filter(|command| command.counts.last().is_some_and(|n| *n > 0)).count();
    if !undetermined.is_empty() || repeated < MIN_SIZES {
        return None;
    }
    let fitted = least_absolute_deviations(sizes.len() + 1, &with_repeats);
    let shorter = -fitted.last()?;
    let first: Vec<f64> = fitted.iter().skip(1).take(sizes.len()).copied().collect();
    let mean = first.iter().sum::<f64>() / first.len().max(1) as f64;
    (shorter > COMPRESSED_SHARE * mean && mean > 0.0).then_some(shorter)
}

/// Two clusters of residuals with nothing between them: their distance, and the share of the upper one.
fn forms(mut residuals: Vec<i64>) -> Option<(i64, f64)> {
    residuals.sort_unstable();
    let all = residuals.len();
    let median = |part: &[i64]| part.get(part.len() / 2).copied().unwrap_or(0);
    let gaps = residuals.windows(2).enumerate().filter_map(|(at, pair)| match pair {
        [low, high] => Some((high - low, at + 1)),
        _ => None,
    });
    let least = (MIN_FORM_SHARE * all as f64).ceil() as usize;
    let (gap, from) = gaps.filter(|(_, from)| *from >= least && all - from >= least).max()?;
    let (lower, upper) = residuals.split_at_checked(from)?;
    let apart = median(upper) - median(lower);
    // Each form is narrow compared with the distance.
    let spread = |part: &[i64]| {
        let middle = median(part);
        let far = part.iter().filter(|residual| residual.abs_diff(middle).saturating_mul(2) > apart.unsigned_abs());
        far.count() as f64
    };
    let between = (spread(lower) + spread(upper)) / all as f64;
    (gap >= MIN_FORM_BYTES && 2 * gap > apart && between <= MAX_BETWEEN.max(1.5 / all as f64))
        .then_some((apart, (all - from) as f64 / all as f64))
}

#[cfg(test)]
mod tests;
