//! Labels that do not fit kinds: single wrong ones, or all of them.

use sizeleak_model::statistics::two_sided;
use sizeleak_model::{Kind, Kinds, LabelledCommand, SeenCommand};

use crate::additivity::p_value;
use crate::evidence::at_place;

/// A label is doubted if the size of its command is a hundred times more likely for another kind: even if one label in
/// a hundred is wrong, it is then more probably wrong than right.
const DOUBTED_RATIO: f64 = 100.0;

/// Labels are not doubted in rarer kinds or in favour of them: of three commands the median deviation is often 0.
const MIN_COMMANDS: u64 = 4;

/// The least mean deviation of a kind's sizes, in bytes: ids differ by a digit, which a few commands may not show.
const MIN_WIDTH: f64 = 0.6;

/// Sizes that differ by less, in bytes, do not show whether labels are right: ids and length fields differ so much.
const MIN_RANGE: i64 = 8;

/// The fewest labelled commands that are tested: with fewer, the test hardly ever finds that sizes depend on labels.
const MIN_TESTED: usize = 10;

/// The most commands of the permutation test, a bound of its time.
const MAX_TESTED: usize = 2000;

/// Indices of the commands whose size fits another kind far better than their own; `names` are those of the counts.
pub fn doubted_labels(kinds: &Kinds, names: &[String], commands: &[LabelledCommand]) -> Vec<usize> {
    let doubted = |(at, command): (usize, &LabelledCommand)| {
        let counts: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(command.counts.iter().copied()).collect();
        let own = kinds.position(&counts)?;
        let size = command.sizes[1];
        let others = kinds.list.iter().enumerate().filter(|(kind, _)| *kind != own).map(|(_, kind)| kind);
        let others = others.filter(|kind| kind.commands() >= MIN_COMMANDS);
        let elsewhere = others.map(|kind| typical_density(kind, size)).fold(0.0, f64::max);
        let own = kinds.list.get(own).filter(|kind| kind.commands() >= MIN_COMMANDS)?;
        (elsewhere > DOUBTED_RATIO * typical_density(own, size)).then_some(at)
    };
    commands.iter().enumerate().filter_map(doubted).collect()
}

/// The probability that sizes would depend on the kind as much if the labels were assigned at random (a permutation
/// test); `None` if sizes hardly vary, or too few are labelled.
pub fn size_dependence(kinds: &Kinds) -> Option<f64> {
    let mut tested: Vec<(i64, usize)> = Vec::new();
    for (kind, at) in kinds.list.iter().zip(0..) {
        for seen in &kind.seen {
            tested.extend(std::iter::repeat_n((seen.size, at), seen.times.min(MAX_TESTED as u64) as usize));
        }
    }
    let step = tested.len() / MAX_TESTED + 1;
    let (sizes, groups): (Vec<i64>, Vec<usize>) = tested.into_iter().step_by(step).unzip();
    let range = sizes.iter().max()?.saturating_sub(*sizes.iter().min()?);
    let is_tested = kinds.list.len() > 1 && sizes.len() >= MIN_TESTED && range >= MIN_RANGE;
    is_tested.then(|| p_value(&sizes, &groups))
}

/// P(size) around the median of the kind, as wide as the median deviation: single odd commands do not count.
fn typical_density(kind: &Kind, size: i64) -> f64 {
    let median = weighted_median(kind, |seen| seen.size);
    let deviation = weighted_median(kind, |seen| seen.size.saturating_sub(median).saturating_abs());
    two_sided(size.abs_diff(median) as f64, (deviation as f64).max(MIN_WIDTH))
}

fn weighted_median(kind: &Kind, value: impl Fn(&SeenCommand) -> i64) -> i64 {
    let values = kind.seen.iter().map(|seen| (value(seen), seen.times)).collect();
    at_place(values, kind.commands() / 2).unwrap_or(0)
}
