//! Learning kinds from labelled commands.

mod doubts;

use std::collections::BTreeMap;

use sizeleak_model::statistics::two_sided;
use sizeleak_model::{Kind, KindReplies, Kinds, LabelledCommand, SeenCommand};

pub use self::doubts::{doubted_labels, size_dependence};
use crate::evidence::{MIN_PROBABILITY, STRONG, most_likely, rounded};

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

/// The other commands of a kind.
fn without<'a>(kind: &'a Kind, one: &'a SeenCommand) -> impl Iterator<Item = SeenCommand> + 'a {
    kind.seen.iter().map(move |seen| {
        let own = u64::from(std::ptr::eq(seen, one));
        SeenCommand { times: seen.times - own.min(seen.times), ..*seen }
    })
}

#[cfg(test)]
mod tests;
