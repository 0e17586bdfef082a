//! The robust fit: integer sizes from all labelled commands, regardless of their actions.
//!
//! The search starts from least absolute deviations, which wrong labels bias little. It then improves the integer sizes
//! one change at a time. The criterion is how well the remainders of the commands fit a step function of the bytes of
//! their actions ([`step_function`]): growing length fields are not mistaken for bytes of actions, and the cost
//! of a wrong label is bounded.

use std::borrow::Cow;

use sizeleak_model::{LabelledCommand, MAX_MESSAGE_SIZE, step_function};

use super::fitted_sizes::{FitError, FittedSizes, median};
use super::remainders::{Remainder, Remainders, action_bytes};
use super::size_sampling::{SampledSizes, thinned};
use super::size_search::SizeSearch;
use crate::experiment_design::undetermined_actions;
use crate::least_absolute_deviations::least_absolute_deviations;

/// The greatest distance of a command's remainder from its level, in bytes; beyond it, the command is an outlier. Ids
/// and length fields take fewer bytes. [`step_function`] caps deviations there, too.
const OUTLIER_BYTES: i64 = 8;

/// The most commands that sizes are searched with, a bound of the time.
const MAX_SEARCHED: usize = 20_000;

/// The least mean deviation of a command, in bytes: exact labels, all of commands with ids of one width, would else
/// make other sizes impossible that are a byte off in one command of four.
const MIN_SCALE: f64 = 0.25;

/// If at least this share of all commands deviates as much as an outlier, it is none: the gateway has two message
/// forms. Fewer labels than that are wrong.
const MESSAGE_FORM_SHARE: f64 = 0.1;

pub(crate) fn fit(names: &[String], commands: &[LabelledCommand]) -> Result<FittedSizes, FitError> {
    FitError::unless_identified(names, commands, &undetermined_actions(names.len(), commands))?;
    let start = least_absolute_deviations(names.len(), commands);
    let searched = searched(commands);
    let mut search = SizeSearch::new(start.iter().skip(1).map(|size| rounded(*size)).collect(), &searched);
    search.descend();
    let mut actions = search.sizes;
    let cost = Remainders::new(&actions, commands).cost();
    let mut command_sizes = None;
    let (intervals, certainty);
    if commands.iter().any(|command| command.sizes[0] < command.sizes[1]) {
        let sampled = SampledSizes::sample(SizeSearch::new(actions.clone(), commands), commands, 1.0);
        actions.clone_from(&sampled.actions);
        (intervals, certainty) = (sampled.intervals(&actions), sampled.share_of(&actions));
        command_sizes = Some(sampled.commands);
    } else {
        let used = thinned(commands);
        let sampled = SampledSizes::sample(SizeSearch::new(actions.clone(), &used), &used, scale(&actions, commands));
        (intervals, certainty) = (sampled.intervals(&actions), sampled.share_of(&actions));
    }
    let fitted = Remainders::new(&actions, commands).fitted();
    let outliers = outliers(&fitted);
    let without_actions =
        |(size, command): (&i64, &LabelledCommand)| size.saturating_sub(action_bytes(&actions, &command.counts));
    let remainders: Vec<i64> = match command_sizes {
        None => fitted.iter().map(|remainder| remainder.value).collect(),
        Some(sizes) => sizes.iter().zip(commands).map(without_actions).collect(),
    };
    let kept = remainders.iter().enumerate().filter(|(at, _)| outliers.binary_search(at).is_err());
    let mut kept: Vec<i64> = kept.map(|(_, remainder)| *remainder).collect();
    let ambiguous_shifts = ambiguous_shifts(&actions, cost, commands);
    let overhead = median(&mut kept);
    Ok(FittedSizes { overhead, actions, intervals, certainty, remainders, outliers, ambiguous_shifts })
}

/// The commands that sizes are searched with: very many are no better than some of them, evenly chosen.
fn searched(commands: &[LabelledCommand]) -> Cow<'_, [LabelledCommand]> {
    match commands.len() / MAX_SEARCHED {
        0 => Cow::Borrowed(commands),
        more => Cow::Owned(commands.iter().step_by(more + 1).cloned().collect()),
    }
}

/// The mean deviation of a command from its level in bytes, as far as the commands outnumber the sizes.
fn scale(actions: &[i64], commands: &[LabelledCommand]) -> f64 {
    let deviation = |at: Remainder| at.value.abs_diff(at.level).min(OUTLIER_BYTES.unsigned_abs()) as f64;
    let sum: f64 = Remainders::new(actions, commands).fitted().into_iter().map(deviation).sum();
    let free = commands.len().saturating_sub(actions.len() + 1) as f64;
    // As if one more command deviated by a byte.
    ((sum + 1.0) / (free + 1.0)).clamp(MIN_SCALE, OUTLIER_BYTES as f64)
}

/// The commands that are far from their level and unlike most others.
fn outliers(remainders: &[Remainder]) -> Vec<usize> {
    let deviations: Vec<i64> = remainders.iter().map(|at| at.value.saturating_sub(at.level)).collect();
    let is_outlier = |deviation: i64| {
        let similar = || deviations.iter().filter(|other| other.abs_diff(deviation) <= 1).count();
        deviation.saturating_abs() > OUTLIER_BYTES && (similar() as f64) < MESSAGE_FORM_SHARE * remainders.len() as f64
    };
    let outliers = deviations.iter().enumerate().filter(|(_, deviation)| is_outlier(**deviation));
    outliers.map(|(at, _)| at).collect()
}

/// The nearest integer size that a message can have.
fn rounded(size: f64) -> i64 {
    (size.round() as i64).clamp(-MAX_MESSAGE_SIZE, MAX_MESSAGE_SIZE)
}

/// Shifts in bytes of all sizes together that cost no more than one further step. If all commands have one or two
/// actions, a length field that grows between them cannot be distinguished from larger actions.
fn ambiguous_shifts(actions: &[i64], cost: i64, commands: &[LabelledCommand]) -> Vec<i64> {
    let shifted = |by: &i64| actions.iter().map(|size| size.saturating_add(*by)).collect::<Vec<_>>();
    let fits = |by: &i64| Remainders::new(&shifted(by), commands).cost() < cost + step_function::price(2);
    [-3, -2, -1, 1, 2, 3].into_iter().filter(fits).collect()
}

#[cfg(test)]
mod tests;
