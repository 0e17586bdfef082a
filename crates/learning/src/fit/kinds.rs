//! Learning kinds from labelled commands, and labels that do not fit them: single wrong ones, or all of them.

use std::collections::BTreeMap;

use sizeleak_model::statistics::{at_place, two_sided};
use sizeleak_model::{Kind, KindReplies, Kinds, LabelledCommand, SeenCommand};

use crate::fit::additivity::p_value;
use crate::fit::evidence::{MIN_PROBABILITY, STRONG, most_likely, rounded};

/// The widths of kernels that cross-validation chooses from, in bytes: each about twice the one before.
const SPREADS_TRIED: [f64; 14] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 5.0, 9.0, 16.0, 50.0, 200.0];

/// The strengths of smoothing that cross-validation chooses from, in labelled commands.
const STRENGTHS_TRIED: [f64; 5] = [0.5, 1.0, 2.0, 5.0, 20.0];

/// Before any command is seen again, sizes vary by about so many bytes, a digit or two; this weighs one command.
const USUAL_SPREAD: f64 = 1.5;

/// The greatest share of commands of unseen kinds: a model of kinds that are hardly ever seen would answer nothing.
const MAX_OTHER: f64 = 0.9;

/// The most commands that cross-validation leaves out one by one, a bound of its time: each is compared with its kind.
const MAX_LEFT_OUT: usize = 512;

/// The kinds of labelled commands whose counts are in the order of `names`; `None` without commands. Besides them,
/// `others` were labelled. Of more than 4096 kinds, or different commands of a kind, the first are kept.
pub fn learn_kinds<'a>(
    names: &[String],
    commands: impl Iterator<Item = &'a LabelledCommand>,
    others: usize,
) -> Option<Kinds> {
    let mut order: Vec<&[u32]> = Vec::new();
    let mut seen: BTreeMap<&[u32], BTreeMap<SeenCommand, u64>> = BTreeMap::new();
    for command in commands {
        let of_kind = seen.entry(&command.counts).or_insert_with(|| {
            order.push(&command.counts);
            BTreeMap::new()
        });
        let one = SeenCommand {
            size: command.sizes[1],
            replies: command.replies,
            reply_bytes: command.reply_bytes,
            times: 0,
        };
        *of_kind.entry(one).or_default() += 1;
    }
    let with_times = |(one, times): (&SeenCommand, &u64)| SeenCommand { times: *times, ..*one };
    let kind = |counts: &&[u32]| Kind {
        actions: names.iter().zip(*counts).filter(|(_, n)| **n > 0).map(|(name, n)| (name.clone(), *n)).collect(),
        seen: seen[counts].iter().map(with_times).take(Kind::MAX_SEEN).collect(),
    };
    let list: Vec<Kind> = order.iter().take(Kinds::MAX_KINDS).map(kind).collect();
    let commands: u64 = list.iter().map(Kind::commands).sum();
    if commands == 0 {
        return None;
    }
    let spread = spread(&list, |seen| seen.size, |_, _| true);
    // Good and Turing: as often as kinds were seen once, commands are of a kind that was never seen.
    let once = list.iter().filter(|kind| kind.commands() == 1).count() as f64;
    let other = rounded((once + 0.5) / (commands as f64 + others as f64 + 1.0)).clamp(1e-4, MAX_OTHER);
    let replies = reply_smoothing(&list);
    Some(Kinds { spread, other, replies, list })
}

/// The width of the kernel that makes each command's value likeliest, given those like it and one usual deviation.
fn spread(
    kinds: &[Kind],
    value: impl Fn(&SeenCommand) -> i64,
    are_alike: impl Fn(&SeenCommand, &SeenCommand) -> bool,
) -> f64 {
    let ln_likelihood = |spread: f64| {
        let of_command = |(kind, one): (&Kind, &SeenCommand)| {
            let alike = || without(kind, one).filter(|seen| are_alike(seen, one));
            let commands: f64 = alike().map(|seen| seen.times as f64).sum();
            let near = |seen: &SeenCommand| two_sided(value(seen).abs_diff(value(one)) as f64, spread);
            let weight: f64 = alike().map(|seen| seen.times as f64 * near(&seen)).sum();
            if commands > 0.0 { one.times as f64 * (weight / commands).max(MIN_PROBABILITY).ln() } else { 0.0 }
        };
        left_out(kinds).map(of_command).sum::<f64>() + two_sided(USUAL_SPREAD, spread).ln()
    };
    most_likely(SPREADS_TRIED, USUAL_SPREAD, ln_likelihood)
}

/// How replies are smoothed; `None` unless they tell kinds apart clearly better than by chance.
fn reply_smoothing(kinds: &[Kind]) -> Option<KindReplies> {
    if kinds.len() < 2 {
        return None;
    }
    // The gain over what is likely without knowing the kind.
    let gain = |smoothing: &KindReplies| -> f64 {
        let of_command = |(kind, one): (&Kind, &SeenCommand)| {
            let all = kinds.iter().flat_map(|kind| kind.seen.iter().copied());
            let pooled = smoothing.pooled(all, one.replies, one.reply_bytes);
            let own = smoothing.likelihood(without(kind, one), pooled, one.replies, one.reply_bytes);
            one.times as f64 * (own / pooled).max(MIN_PROBABILITY).ln()
        };
        left_out(kinds).map(of_command).sum()
    };
    let answers_alike = |seen: &SeenCommand, one: &SeenCommand| seen.replies == one.replies && seen.replies > 0;
    let spread = spread(kinds, |seen| seen.reply_bytes, answers_alike);
    let strength = most_likely(STRENGTHS_TRIED, 1.0, |strength| gain(&KindReplies { spread, strength }));
    let smoothing = KindReplies { spread, strength };
    (gain(&smoothing) > STRONG + (kinds.len() as f64).ln()).then_some(smoothing)
}

/// The commands of kinds that were labelled more than once, each with its kind.
fn left_out(kinds: &[Kind]) -> impl Iterator<Item = (&Kind, &SeenCommand)> {
    let repeated = kinds.iter().filter(|kind| kind.commands() > 1);
    repeated.flat_map(|kind| kind.seen.iter().map(move |seen| (kind, seen))).take(MAX_LEFT_OUT)
}

fn without<'a>(kind: &'a Kind, one: &'a SeenCommand) -> impl Iterator<Item = SeenCommand> + 'a {
    kind.seen.iter().map(move |seen| {
        let own = u64::from(std::ptr::eq(seen, one));
        SeenCommand { times: seen.times - own.min(seen.times), ..*seen }
    })
}

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

#[cfg(test)]
mod tests;
