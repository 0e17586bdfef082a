//! Learning the prior P(A) from the habits that labelled commands show, and which commands recur more often than habits
//! explain.
//!
//! Each action of a command uses up a device. The decomposer weighs an action by its share, and by the share of its
//! devices that are still free. So the actions of few devices occur more rarely, in long commands, than their share says.
//! The shares that make labelled commands most likely are those with which each action is expected as often as it
//! occurred.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_model::statistics::times;
use sizeleak_model::{Action, Inventory, LabelledCommand, Limits, Prior, RecurringCommand};
use statrs::distribution::{DiscreteCDF, Poisson};
use statrs::function::gamma::ln_gamma;

use crate::fit::evidence::{MIN_PROBABILITY, most_likely, rounded};

/// So many stretches of the commands are held back in turn, as in any cross-validation.
const HELD_BACK: usize = 5;

/// The strengths of smoothing that the likelihood chooses from, in labelled commands (or actions).
const STRENGTHS: [f64; 13] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

/// Commands that look like experiments are such if chance would make fewer stretches as long among all commands.
const MAX_STRETCHES: f64 = 0.05;

/// Learns from labelled commands; `actions` are in the order of their counts.
///
/// Complete rounds of the paper's experiments (each action alone, and alone on two devices) that follow each other say
/// nothing about usage and are ignored; so is an incomplete last round if nothing else was labelled. Numbers of actions
/// are smoothed towards a geometric distribution, shares towards those of an inventory whose devices use each of their
/// actions equally often, each with the strength that makes the labels most likely. Shares are those with which actions
/// are as frequent as that, although each uses up a device. Single commands recur only if that makes commands that were
/// held back more likely. `None` if no command is left to learn from.
pub fn learn_prior(
    commands: &[LabelledCommand],
    actions: &[Action],
    inventory: Option<&Inventory>,
    limits: &Limits,
) -> Option<Prior> {
    let usage = usage_of(commands, limits, actions.len());
    if usage.is_empty() {
        return None;
    }
    let base = base_shares(actions, inventory);
    let habits = of_habits(&usage, &base, limits);
    let with_recurring = with_recurring(&habits, &usage, &base, limits);
    let is_kept = with_recurring.recurring.is_empty() || recurring_is_seen_again(&usage, &base, limits);
    Some(if is_kept { with_recurring } else { habits })
}

/// The habits beside commands that recur, given those that make up for what recurs too.
fn with_recurring(habits: &Prior, usage: &[&LabelledCommand], base: &[f64], limits: &Limits) -> Prior {
    // What recurs looks like a habit of giving devices the same actions: habits are learned from the rest.
    let recurring = recurring_commands(usage, |counts| habits.probability(counts));
    if recurring.is_empty() {
        return habits.clone();
    }
    let rest = of_habits(&without_recurring(usage, &recurring), base, limits);
    let recurring = recurring_commands(usage, |counts| rest.probability(counts));
    Prior { recurring, ..rest }
}

/// Whether commands that were held back are more likely if single ones recur: each of some stretches of time by what the
/// others teach, so that automations of one week only are not taken for those of every week.
fn recurring_is_seen_again(usage: &[&LabelledCommand], base: &[f64], limits: &Limits) -> bool {
    let stretch = usage.len().div_ceil(HELD_BACK);
    let ln = |prior: &Prior, counts: &[u32]| prior.whole_probability(counts).max(MIN_PROBABILITY).ln();
    let mut gain = 0.0;
    for (begin, held_back) in (0..).step_by(stretch).zip(usage.chunks(stretch)) {
        let others = [&usage[..begin], &usage[begin + held_back.len()..]].concat();
        if !others.is_empty() {
            let without = of_habits(&others, base, limits);
            let with = with_recurring(&without, &others, base, limits);
            gain += held_back.iter().map(|one| ln(&with, &one.counts) - ln(&without, &one.counts)).sum::<f64>();
        }
    }
    gain > 0.0
}

fn of_habits(commands: &[&LabelledCommand], base_shares: &[f64], limits: &Limits) -> Prior {
    let (numbers, decay) = numbers(commands, limits.max_actions());
    let frequencies = frequencies(commands, base_shares);
    let concentration = concentration(commands, &frequencies);
    let shares = shares_by_device_use(&frequencies, concentration, limits, &times_of_numbers(commands));
    let shares = shares.into_iter().map(shown).collect();
    Prior { numbers, decay, shares, concentration, recurring: Vec::new() }
}

/// The commands that are no part of a round of experiments: a complete one, or the last one if all are experiments.
///
/// Where few commands are possible, people also give one or two devices the same action: nearly all that they do looks
/// like an experiment. So experiments are those in a stretch without any other command that is longer than habits would
/// make one; if nothing but such commands was labelled, all, if each is as frequent as in rounds.
fn usage_of<'a>(commands: &'a [LabelledCommand], limits: &Limits, actions: usize) -> Vec<&'a LabelledCommand> {
    let commands: Vec<&LabelledCommand> = commands.iter().filter(|command| command.total() > 0).collect();
    // An action that only one device has has no experiment on two.
    let most = |action: usize| 2.min(limits.max_of_class(limits.class_of(action)));
    let experiment = |command: &&LabelledCommand| {
        let mut occurring = command.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        match (occurring.next(), occurring.next()) {
            (Some((action, count)), None) if *count <= most(action) => Some((action, *count)),
            _ => None,
        }
    };
    let experiments: Vec<Option<(usize, u32)>> = commands.iter().map(experiment).collect();
    let are_rounds = experiments.iter().all(Option::is_some);
    let in_stretch = in_long_stretches(&experiments);
    let found = experiments.iter().zip(&in_stretch).filter(|(_, is_in)| **is_in).filter_map(|(found, _)| *found);
    let times: BTreeMap<(usize, u32), usize> = times(found);
    let round = || (0..actions).flat_map(move |action| (1..=most(action)).map(move |count| (action, count)));
    let complete = round().map(|wanted| times.get(&wanted).copied().unwrap_or(0)).min().unwrap_or(0);
    let rounds = match are_rounds {
        false => complete,
        true if complete > 0 && times.values().all(|times| *times <= complete + 1) => complete + 1,
        true => 0,
    };
    let mut left: BTreeMap<(usize, u32), usize> = round().map(|wanted| (wanted, rounds)).collect();
    let mut is_usage = |(found, is_in): (&Option<(usize, u32)>, &bool)| {
        let Some(left) = found.filter(|_| *is_in).and_then(|found| left.get_mut(&found)).filter(|left| **left > 0)
        else {
            return true;
        };
        *left -= 1;
        false
    };
    let are_usage = experiments.iter().zip(&in_stretch).map(&mut is_usage);
    commands.iter().zip(are_usage).filter(|(_, is_usage)| *is_usage).map(|(command, _)| *command).collect()
}

/// Which commands are in a stretch of experiments alone that chance would hardly make as long, as often as the other
/// commands look like experiments.
fn in_long_stretches(experiments: &[Option<(usize, u32)>]) -> Vec<bool> {
    let all = experiments.iter().flatten().count();
    let mut found = Vec::with_capacity(experiments.len());
    for stretch in experiments.chunk_by(|one, next| one.is_some() == next.is_some()) {
        let length = stretch.len();
        let others = experiments.len() - length;
        let share = (all.saturating_sub(length) as f64 + 1.0) / (others as f64 + 2.0);
        let by_chance = experiments.len() as f64 * share.powf(length as f64);
        let is_long = by_chance < MAX_STRETCHES || others == 0;
        found.extend(std::iter::repeat_n(stretch[0].is_some() && is_long, length));
    }
    found
}

/// The commands with one occurrence of each recurring one.
fn without_recurring<'a>(commands: &[&'a LabelledCommand], recurring: &[RecurringCommand]) -> Vec<&'a LabelledCommand> {
    let mut seen = BTreeSet::new();
    let is_recurring = |command: &LabelledCommand| recurring.iter().any(|other| other.counts == command.counts);
    commands.iter().copied().filter(|command| !is_recurring(command) || seen.insert(&command.counts)).collect()
}

/// The shares of the numbers of actions, and their decay.
fn numbers(commands: &[&LabelledCommand], max_actions: u32) -> (Vec<f64>, f64) {
    let most_seen = commands.iter().map(|command| command.total()).max().unwrap_or(1);
    let most = u64::from(max_actions).max(most_seen);
    let times = times_of_numbers(commands);
    let decay = decay(commands, most);
    let whole = 1.0 - decay.powf(most as f64);
    let base: Vec<f64> = (0..times.len()).map(|at| (1.0 - decay) * decay.powf(at as f64) / whole).collect();
    let smoothed = smoothed(&times, &base, commands.len() as f64);
    (smoothed.into_iter().map(shown).collect(), shown(decay))
}

fn times_of_numbers(commands: &[&LabelledCommand]) -> Vec<f64> {
    let most_seen = commands.iter().map(|command| command.total()).max().unwrap_or(1);
    let mut times = vec![0.0; most_seen.min(Prior::MAX_LISTED as u64) as usize];
    for command in commands {
        if let Some(times) = (command.total() as usize).checked_sub(1).and_then(|at| times.get_mut(at)) {
            *times += 1.0;
        }
    }
    times
}

/// The decay of a geometric distribution over 1 to `most` actions that makes the commands most likely, with two
/// pseudo-observations: one further action and one end.
fn decay(commands: &[&LabelledCommand], most: u64) -> f64 {
    let beyond_first: f64 = commands.iter().map(|command| command.total().saturating_sub(1) as f64).sum();
    let likelihood = |decay: f64| {
        let whole = (1.0 - decay.powf(most as f64)).ln() - (1.0 - decay).ln();
        (beyond_first + 1.0) * decay.ln() - commands.len() as f64 * whole + (1.0 - decay).ln()
    };
    most_likely((1..1000).map(|thousandths| f64::from(thousandths) / 1000.0), 0.5, likelihood)
}

/// Shares of actions without any observation: all devices are commanded equally often, with each of their actions.
fn base_shares(actions: &[Action], inventory: Option<&Inventory>) -> Vec<f64> {
    let Some(inventory) = inventory else { return vec![1.0 / actions.len() as f64; actions.len()] };
    let mut shares = vec![0.0; actions.len()];
    for device in &inventory.devices {
        for (share, action) in shares.iter_mut().zip(actions) {
            if device.actions.contains(&action.name) {
                *share += f64::from(device.count) / device.actions.len() as f64;
            }
        }
    }
    let sum: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / sum).collect()
}

/// The share of each action among all actions of the commands.
fn frequencies(commands: &[&LabelledCommand], base: &[f64]) -> Vec<f64> {
    let mut times = vec![0.0; base.len()];
    for command in commands {
        for (times, count) in times.iter_mut().zip(&command.counts) {
            *times += f64::from(*count);
        }
    }
    let all = times.iter().sum();
    smoothed(&times, base, all)
}

/// Shares from numbers of occurrences among `all`, smoothed towards `base` with the strength that makes the occurrences
/// most likely (among equals the greatest, so that few occurrences change little).
fn smoothed(times: &[f64], base: &[f64], all: f64) -> Vec<f64> {
    // The likelihood of a Dirichlet-multinomial distribution.
    let likelihood = |strength: f64| {
        let occurrences = times.iter().zip(base).map(|(times, base)| ln_rising(strength * base, *times));
        occurrences.sum::<f64>() - ln_rising(strength, times.iter().sum())
    };
    let strength = most_likely(STRENGTHS.into_iter().rev(), 0.5, likelihood);
    times.iter().zip(base).map(|(times, base)| (times + strength * base) / (all + strength)).collect()
}

/// The posterior mean of the concentration c, as 1 / (1 + c), of which before any observation each order of magnitude
/// is as likely, between 0.0001 (shares hardly vary) and 1 (they always vary).
fn concentration(commands: &[&LabelledCommand], shares: &[f64]) -> f64 {
    // How many commands have an action so often, and how many have so many actions.
    let counts = commands.iter().flat_map(|command| command.counts.iter().copied().enumerate());
    let counts: BTreeMap<(usize, u32), f64> = times(counts.filter(|(_, count)| *count > 0));
    let totals: BTreeMap<u64, f64> = times(commands.iter().map(|command| command.total()));
    let likelihood = |concentration: f64| -> f64 {
        let of_action = |((action, count), times): (&(usize, u32), &f64)| {
            times * ln_rising(concentration * shares.get(*action).unwrap_or(&Prior::MIN_SHARE), f64::from(*count))
        };
        let of_total = |(total, times): (&u64, &f64)| times * ln_rising(concentration, *total as f64);
        counts.iter().map(of_action).sum::<f64>() - totals.iter().map(of_total).sum::<f64>()
    };
    let grid: Vec<(f64, f64)> = (1..100)
        .map(|percent| f64::from(percent * percent) / 10_000.0)
        .map(|spread| (spread, likelihood(1.0 / spread - 1.0)))
        .collect();
    let greatest = grid.iter().map(|(_, likelihood)| *likelihood).fold(f64::NEG_INFINITY, f64::max);
    // The grid of squares is denser near 0: its spacing is that of the square root, and the prior that of the inverse.
    let weight = |spread: f64, likelihood: f64| (likelihood - greatest).exp() / spread.sqrt();
    let (sum, weights) = grid.iter().fold((0.0, 0.0), |(sum, weights), (spread, likelihood)| {
        (sum + spread * weight(*spread, *likelihood), weights + weight(*spread, *likelihood))
    });
    ((weights / sum - 1.0) * 100.0).round().max(1.0) / 100.0
}

/// ln of x (x + 1) … (x + n − 1), for integer n.
fn ln_rising(x: f64, n: f64) -> f64 {
    if n > 0.0 { ln_gamma(x + n) - ln_gamma(x) } else { 0.0 }
}

/// A share as the model file shows it, never 0.
fn shown(share: f64) -> f64 {
    rounded(share).max(Prior::MIN_SHARE)
}

/// The fewest occurrences of a command that recurs: twice may be one command that somebody repeated.
const MIN_TIMES: u64 = 3;

/// How many commands are taken for recurring ones by chance in a model: the error rate of all tests (Bonferroni).
const FALSE_ALARMS: f64 = 0.01;

/// The commands that occur more often than by chance, the most frequent first. `probability`: of actions by habit.
fn recurring_commands(commands: &[&LabelledCommand], probability: impl Fn(&[u32]) -> f64) -> Vec<RecurringCommand> {
    let times: BTreeMap<&[u32], u64> = times(commands.iter().map(|command| &command.counts[..]));
    let (all, tested) = (commands.len() as f64, times.len().max(1) as f64);
    // With P(A) by habit, each with the share of all commands that it has beyond it if none recurred.
    let found = times.into_iter().filter_map(|(counts, times)| {
        let by_habit = probability(counts);
        let expected = all * by_habit;
        let is_recurring = times >= MIN_TIMES && poisson_tail(times, expected) < FALSE_ALARMS / tested;
        // One further command may be any other.
        let beyond = (times as f64 - expected) / (all + 1.0);
        (is_recurring && beyond > 0.0).then_some((counts, by_habit, beyond))
    });
    let mut found: Vec<(&[u32], f64, f64)> = found.collect();
    found.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(b.0)));
    found.truncate(RecurringCommand::MAX_LISTED);
    // Habits have what recurring commands leave, so that these are rarer by habit: with H = Σ hⱼ, (1 − H) · P(A) + hⱼ is the
    // share of A that was seen if H · (1 − Σ P(A)) is what all are beyond P(A).
    let beyond: f64 = found.iter().map(|(_, _, beyond)| beyond).sum();
    let recurring = beyond / (1.0 - found.iter().map(|(_, by_habit, _)| by_habit).sum::<f64>());
    let command = |(counts, by_habit, beyond): (&[u32], f64, f64)| {
        let share = beyond + recurring * by_habit;
        RecurringCommand { counts: counts.to_vec(), share: (share * 1e6).floor() / 1e6 }
    };
    let mut found: Vec<RecurringCommand> = found.into_iter().map(command).filter(|one| one.share > 0.0).collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.counts.cmp(&b.counts)));
    found
}

/// P(at least `times` events) where `expected` are; 0 of what never happens.
fn poisson_tail(times: u64, expected: f64) -> f64 {
    Poisson::new(expected).map_or(0.0, |events| events.sf(times - 1))
}

/// The most combinations of how often actions of each class occur, a bound of time; with more, devices do not count.
const MAX_COMBINATIONS: usize = 1 << 14;

/// The most rounds of scaling, and the relative change below which they end: the model file shows six decimals.
const ROUNDS: usize = 100;
const MIN_CHANGE: f64 = 1e-6;

/// How often the actions of each class of [`Limits`] occur in a command, how far they use up each of its conditions, and
/// the share of free devices for all of them.
#[derive(Clone)]
struct Combination {
    totals: Vec<u32>,
    used: Vec<u32>,
    free: f64,
}

/// The shares that let actions occur as often as `frequencies` says, which sum to 1, in commands whose numbers of
/// actions are given by how many commands have 1, 2, 3… actions.
fn shares_by_device_use(frequencies: &[f64], concentration: f64, limits: &Limits, commands_of: &[f64]) -> Vec<f64> {
    let mut wanted = vec![0.0; limits.classes()];
    for (action, share) in frequencies.iter().enumerate() {
        wanted.get_mut(limits.class_of(action)).into_iter().for_each(|sum| *sum += share);
    }
    let Some(combinations) = combinations(limits, commands_of.len()).filter(|_| wanted.len() > 1) else {
        return frequencies.to_vec();
    };
    let mut weights = wanted.clone();
    for _ in 0..ROUNDS {
        let expected = expected_shares(&combinations, &weights, concentration, commands_of);
        let scale = |(wanted, expected): (&f64, &f64)| if *expected > 0.0 { wanted / expected } else { 1.0 };
        let scales: Vec<f64> = wanted.iter().zip(&expected).map(scale).collect();
        let next: Vec<f64> = weights.iter().zip(&scales).map(|(weight, scale)| weight * scale).collect();
        let sum: f64 = next.iter().sum();
        weights = next.into_iter().map(|weight| weight / sum).collect();
        if scales.iter().all(|scale| (scale - 1.0).abs() < MIN_CHANGE) {
            break;
        }
    }
    let scale = |(action, share): (usize, &f64)| {
        let class = limits.class_of(action);
        let found = weights.get(class).zip(wanted.get(class)).filter(|(_, wanted)| **wanted > 0.0);
        share * found.map_or(1.0, |(weight, wanted)| weight / wanted)
    };
    frequencies.iter().enumerate().map(scale).collect()
}

/// All combinations of up to `most` actions; `None` if there are too many, or nothing limits them.
fn combinations(limits: &Limits, most: usize) -> Option<Vec<Combination>> {
    if limits.is_free() {
        return None;
    }
    let [totals, used] = [limits.classes(), limits.conditions().len()].map(|length| vec![0; length]);
    let mut found = vec![Combination { totals, used, free: 1.0 }];
    for class in limits.class_order() {
        let mut more = Vec::new();
        for mut combination in found {
            loop {
                more.push(combination.clone());
                let has_room = (combination.totals.iter().sum::<u32>() as usize) < most;
                let Some(free) = limits.take(class, &mut combination.used).filter(|_| has_room) else { break };
                *combination.totals.get_mut(class)? += 1;
                combination.free *= free;
                if more.len() > MAX_COMBINATIONS {
                    return None;
                }
            }
        }
        found = more;
    }
    Some(found)
}

/// Which share of all actions is of each class.
fn expected_shares(combinations: &[Combination], weights: &[f64], concentration: f64, commands_of: &[f64]) -> Vec<f64> {
    let most = commands_of.len();
    // Of a class, by how many actions of it there are: Pólya's urn for all its actions together.
    let of_class = |weight: &f64| -> Vec<f64> {
        let factor = |so_far: &mut f64, before: usize| {
            let weighed = *so_far;
            *so_far *= (weight + before as f64 / concentration) / (before as f64 + 1.0);
            Some(weighed)
        };
        (0..=most).scan(1.0, factor).collect()
    };
    let factors: Vec<Vec<f64>> = weights.iter().map(of_class).collect();
    let mut all = vec![0.0; most + 1];
    let mut occurring = vec![vec![0.0; weights.len()]; most + 1];
    for Combination { totals, free, .. } in combinations {
        let weighed = totals.iter().zip(&factors).map(|(total, factors)| factors[*total as usize]);
        let weight = free * weighed.product::<f64>();
        let number: usize = totals.iter().map(|total| *total as usize).sum();
        let (Some(all), Some(occurring)) = (all.get_mut(number), occurring.get_mut(number)) else { continue };
        *all += weight;
        for (occurring, total) in occurring.iter_mut().zip(totals) {
            *occurring += weight * f64::from(*total);
        }
    }
    let mut expected = vec![0.0; weights.len()];
    for ((commands, all), occurring) in
        commands_of.iter().zip(all.iter().skip(1)).zip(occurring.iter().skip(1)).filter(|((_, all), _)| **all > 0.0)
    {
        for (expected, occurring) in expected.iter_mut().zip(occurring) {
            *expected += commands * occurring / all;
        }
    }
    let sum: f64 = expected.iter().sum();
    expected.into_iter().map(|expected| if sum > 0.0 { expected / sum } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests;
