//! The search for distributions of sizes, from those of single sizes on: several starts, the most likely explanation
//! near the best, and a single size again for each action that does not need several.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sizeleak_model::{Action, LabelledCommand, Pmf};

use super::levels::{LABELLED, Levels};
use crate::fit::Fit;
use crate::fit::additivity::ranks;
use crate::fit::expectation::{self, Parameters, Plan};
use crate::fit::sizes::fitted_sizes::{Remainder, fitted};

/// With more actions sizes stay single: their distributions would take too long to learn.
const MAX_ACTIONS: usize = 64;

/// The fewest commands that distributions are learned from. Of 50, they make answers claim 0.07 more than is right where
/// devices have names; with single sizes and a wide ε it is 0.03 (measured).
const MIN_COMMANDS: usize = 60;

/// Commands of more actions say little about the sizes of one.
const MAX_IN_COMMAND: u64 = 64;

/// The most commands that distributions are learned from, a bound of time: half of the fewest actions, which say most.
const MAX_COMMANDS: usize = 600;

/// With a greater mean deviation in bytes, distributions are tried in any case; else a quick test saves time.
const GREAT_DEVIATION: f64 = 0.75;

/// Deviations that grow with the number of some action by fewer standard deviations than this, of what chance would do,
/// are those of the message: random padding leaves at most 0.9, sizes that vary at least 3.6 (measured).
const MIN_GROWTH: f64 = 2.0;

/// By how much distributions must raise the log-likelihood, beyond half the logarithm of the number of commands for
/// each further size (the Bayesian information criterion): the start is the best of some fifty.
const MIN_GAIN: f64 = 4.0;

/// The greatest distance of sizes from the single one at the start, in bytes: of short texts, such as names of rooms.
const MAX_DISTANCE: i64 = 48;

/// Values of ε that are looked at: up to eight digits of an id more or less.
const EPSILONS: std::ops::RangeInclusive<i64> = -8..=8;

/// Where the start looks for the overhead: bytes from that of single sizes.
const OVERHEADS: [i64; 7] = [0, -2, 2, -4, 4, -6, 6];

/// With how many commands it does so, a bound of the time.
const MAX_AT_START: usize = 200;

/// Levels under single sizes that rise more often follow what varies, and are no start.
const MAX_RISES: usize = 2;

/// By how many bytes the sizes of all actions are moved together at most.
const MAX_MOVES: usize = 4;

/// The least share of a size that counts as a parameter: with at most 600 commands, a rarer one occurred in none.
const COUNTED_SHARE: f64 = 1e-3;

/// An action that has its most frequent size with a greater share has it always: the others may be wrong labels.
const SINGLE_SHARE: f64 = 0.97;

/// The most steps of the EM algorithm from each start, after all sizes are moved, between changes of the levels,
/// without the distribution of one action, and at the end; bounds of the time.
const START_STEPS: usize = 15;
const MOVED_STEPS: usize = 6;
const LEVEL_STEPS: usize = 20;
const SINGLE_STEPS: usize = 12;
const LAST_STEPS: usize = 40;
const RESAMPLED_STEPS: usize = 12;

/// How often commands are drawn again: 1 in 40 of them at each end of an interval of 95 %.
const RESAMPLES: usize = 40;

/// Labelled commands of exact sizes, and what single sizes say of them.
pub(super) struct Search<'a> {
    pub(super) commands: &'a [LabelledCommand],
    /// Of the commands, in bytes.
    pub(super) sizes: Vec<i64>,
    pub(super) single: &'a Fit,
    /// What remains of each command beyond single sizes, with the level there.
    fitted: Vec<Remainder>,
    levels: Levels,
    /// The commands that distributions are learned from.
    used: Vec<usize>,
    plan: Plan,
}

impl<'a> Search<'a> {
    /// `None` if there is nothing to learn.
    pub(super) fn new(single: &'a Fit, commands: &'a [LabelledCommand]) -> Option<Self> {
        let is_exact = |command: &LabelledCommand| command.sizes[0] == command.sizes[1];
        let actions = &single.actions;
        if actions.len() > MAX_ACTIONS || actions.iter().any(Action::varies) || !commands.iter().all(is_exact) {
            return None;
        }
        let used = used(actions.len(), commands);
        if used.len() < MIN_COMMANDS {
            return None;
        }
        let single_sizes: Vec<i64> = actions.iter().map(|action| action.size).collect();
        let (fitted, _) = fitted(&single_sizes, commands);
        let sizes: Vec<i64> = commands.iter().map(|command| command.sizes[0]).collect();
        let levels = sizes.iter().zip(&fitted).map(|(size, at)| (*size, at.level - single.overhead));
        let levels = Levels::of(levels);
        let plan = Plan::of_labelled(commands, used.iter().copied());
        let search = Self { commands, sizes, single, fitted, levels, used, plan };
        search.is_promising().then_some(search)
    }

    fn deviation(&self, at: usize) -> i64 {
        self.fitted[at].value - self.fitted[at].level
    }

    /// Whether commands deviate much, or become more likely if some action has another size now and then.
    fn is_promising(&self) -> bool {
        let deviations = self.used.iter().map(|at| self.deviation(*at).unsigned_abs() as f64);
        if deviations.sum::<f64>() > GREAT_DEVIATION * self.used.len() as f64 {
            return self.grows_with_actions();
        }
        let needed = self.price(1);
        (0..self.single.actions.len()).any(|action| {
            let others = [-3, -2, -1, 1, 2, 3].into_iter();
            let gains = others.flat_map(|other| [0.03, 0.1, 0.3].map(|share| self.gain(action, other, share)));
            gains.into_iter().any(|gain| gain > needed)
        })
    }

    /// Whether commands that have more of some action, or more actions, deviate more.
    fn grows_with_actions(&self) -> bool {
        let ranks_of = |value: &dyn Fn(usize) -> i64| ranks(&self.used.iter().map(|at| value(*at)).collect::<Vec<_>>());
        let deviations = ranks_of(&|at| self.deviation(at).saturating_abs());
        let grows = |numbers: &[f64]| {
            let product = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
            let scale = (product(numbers, numbers) * product(&deviations, &deviations)).sqrt();
            product(numbers, &deviations) * ((self.used.len() - 1) as f64).sqrt() > MIN_GROWTH * scale
        };
        let has_more = |action: usize| grows(&ranks_of(&|at| count(self.commands, at, action).into()));
        (0..self.single.actions.len()).any(has_more)
            || grows(&ranks_of(&|at| i64::try_from(self.commands[at].total()).unwrap_or(i64::MAX)))
    }

    /// By how much it raises the log-likelihood of the commands with an action, in the light of all others, if a share
    /// of its occurrences is some bytes longer: one in a command, or none.
    fn gain(&self, action: usize, longer: i64, share: f64) -> f64 {
        let (with, without): (Vec<usize>, Vec<usize>) =
            self.used.iter().copied().partition(|at| count(self.commands, *at, action) > 0);
        let mut epsilon = start_epsilon();
        for at in without {
            epsilon.get_mut(self.deviation(at)).into_iter().for_each(|weight| *weight += 1.0);
        }
        let all = epsilon.total();
        let likelihood = |deviation: i64| 0.98 * epsilon.at(deviation) / all + 0.02 * LABELLED.outlier_density;
        let of_command = |at: &usize| {
            let (deviation, count) = (self.deviation(*at), f64::from(count(self.commands, *at, action)));
            let ratio = likelihood(deviation - longer) / likelihood(deviation);
            let none = (1.0 - share).powf(count);
            (none + count * share * none / (1.0 - share) * ratio).ln()
        };
        with.iter().map(of_command).sum()
    }

    /// By how much this number of further sizes must raise the log-likelihood.
    fn price(&self, sizes: usize) -> f64 {
        MIN_GAIN + 0.5 * sizes as f64 * (self.used.len() as f64).ln()
    }

    /// What the actions and ε of each row add up to.
    pub(super) fn targets(&self, plan: &Plan, levels: &Levels) -> Vec<i64> {
        plan.rows.iter().map(|row| row.size - self.single.overhead - levels.at(row.size)).collect()
    }

    /// The distributions, if any action needs one, with the levels.
    pub(super) fn distributions(&self) -> Option<(Parameters, Levels)> {
        let start = self.start()?;
        let of_single = Some(self.levels.clone()).filter(|levels| levels.rises() <= MAX_RISES);
        // Larger sizes of all actions and a smaller overhead look alike at first.
        let mut best = self.best_start(&start, of_single, &OVERHEADS, START_STEPS)?;
        if best.parameters.sizes.iter().all(Pmf::is_certain) {
            return None;
        }
        for by in [-1, 1] {
            for _ in 0..MAX_MOVES {
                let Some(other) = self.all_moved(&best, by).filter(|other| other.score > best.score) else { break };
                best = other;
            }
        }
        // Whatever varies in all commands alike has become ε.
        let varies = !best.parameters.sizes.iter().all(Pmf::is_certain);
        varies.then_some((best.parameters, best.levels))
    }

    /// What as many commands drawn from these, some of them several times, make most likely: a sample of what the commands
    /// leave open (Efron 1979). `start` gives each size that is not to be ruled out a share.
    pub(super) fn resampled(&self, start: &Parameters, levels: &Levels) -> Vec<Resample> {
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut resample = || {
            let draw = |_: &usize| self.used[random.random_range(0..self.used.len())];
            let drawn: Vec<usize> = self.used.iter().map(draw).collect();
            let plan = Plan::of_labelled(self.commands, drawn.iter().copied());
            let targets = self.targets(&plan, levels);
            let mut parameters = start.clone();
            improve(&plan, &targets, &mut parameters, RESAMPLED_STEPS);
            move_single(&plan, &targets, &mut parameters);
            Resample { parameters, commands: drawn.into_iter().collect() }
        };
        std::iter::repeat_with(&mut resample).take(RESAMPLES).collect()
    }

    /// The most likely explanation near this one, with as few sizes as it needs.
    fn settled(&self, mut parameters: Parameters, mut levels: Levels) -> Explanation {
        for _ in 0..3 {
            improve(&self.plan, &self.targets(&self.plan, &levels), &mut parameters, LEVEL_STEPS);
            let fitted = Levels::fit(&self.plan, self.single.overhead, &parameters);
            if fitted == levels {
                break;
            }
            levels = fitted;
        }
        let targets = self.targets(&self.plan, &levels);
        self.make_single(&targets, &mut parameters);
        move_single(&self.plan, &targets, &mut parameters);
        improve(&self.plan, &targets, &mut parameters, LAST_STEPS);
        let further: usize = parameters.sizes.iter().map(further_sizes).sum();
        let likelihood = log_likelihood(&self.plan, &targets, &parameters);
        let score = likelihood - levels.price() - 0.5 * further as f64 * (self.used.len() as f64).ln();
        Explanation { parameters, levels, score }
    }

    /// The explanation near the most likely one of several starts from these distributions: with length fields of WebSocket or MQTT, with
    /// none, or with further levels (among much variation, steps are hard to see), and with ε moved by some bytes.
    fn best_start(
        &self,
        start: &Parameters,
        further: Option<Levels>,
        moves: &[i64],
        steps: usize,
    ) -> Option<Explanation> {
        let forms = [Levels::default(), Levels::rising_at(&[(128, 2)]), Levels::rising_at(&[(130, 1)])];
        let mut by_total: Vec<(u64, usize)> = self.used.iter().map(|at| (self.commands[*at].total(), *at)).collect();
        by_total.sort_unstable();
        let few = Plan::of_labelled(self.commands, by_total.into_iter().take(MAX_AT_START).map(|(_, at)| at));
        let mut best: Option<(f64, Parameters, Levels)> = None;
        for levels in forms.into_iter().chain(further) {
            let targets = self.targets(&few, &levels);
            for by in moves {
                let mut parameters = Parameters { epsilon: start.epsilon.clone().moved(*by), ..start.clone() };
                let likelihood = improve(&few, &targets, &mut parameters, steps) - levels.price();
                if best.as_ref().is_none_or(|(most, ..)| likelihood > *most) {
                    best = Some((likelihood, parameters, levels.clone()));
                }
            }
        }
        best.map(|(_, parameters, levels)| self.settled(parameters, levels))
    }

    /// The best explanation near one with the sizes of all actions some bytes larger, and ε or the levels smaller. No
    /// change of one size leads there. `None` if a size would be 0 or less.
    fn all_moved(&self, from: &Explanation, by: i64) -> Option<Explanation> {
        let sizes: Vec<Pmf> = from.parameters.sizes.iter().map(|sizes| sizes.clone().moved(by)).collect();
        if sizes.iter().any(|sizes| sizes.least() <= 0) {
            return None;
        }
        // What was learned of ε may hold the levels of the sizes before.
        let start = Parameters { sizes, epsilon: start_epsilon(), ..from.parameters.clone() };
        let moves = OVERHEADS.map(|bytes| bytes - by);
        self.best_start(&start, Some(from.levels.clone()), &moves, MOVED_STEPS)
    }

    /// Any size that small commands allow, for every action.
    fn start(&self) -> Option<Parameters> {
        let sizes = self.single.actions.iter().enumerate().map(|(action, Action { size, .. })| {
            let with = self.used.iter().filter(|at| count(self.commands, **at, action) > 0);
            let mut with: Vec<(u64, i64)> =
                with.map(|at| (self.commands[*at].total(), self.fitted[*at].value - self.single.overhead)).collect();
            with.sort_unstable();
            let (most_actions, _) = *with.get(with.len().div_ceil(3).max(20).min(with.len()).checked_sub(1)?)?;
            let few = || with.iter().filter(|(total, _)| *total <= most_actions).map(|(_, remainder)| *remainder);
            let [least, most] = [few().min()?, few().max()?];
            // Wrong labels would make it tiny.
            let least = (least.clamp(-MAX_DISTANCE, 0) - 1).max(-size / 2);
            let most = most.clamp(0, MAX_DISTANCE) + 1;
            let each = 1.0 / (most - least + 1) as f64;
            Some(Pmf::from_values((least..=most).map(|distance| (size + distance, each))))
        });
        let sizes = sizes.collect::<Option<_>>()?;
        Some(Parameters { sizes, epsilon: start_epsilon(), silent: Vec::new(), outliers: 0.02, lost: 0.0 })
    }

    /// Gives each action a single size again unless it needs several; those that need them least first.
    fn make_single(&self, targets: &[i64], parameters: &mut Parameters) {
        let mut likelihood = log_likelihood(&self.plan, targets, parameters);
        let needs = |action: usize| Some((likelihood - self.with_single(targets, parameters, action)?.0, action));
        let mut ranked: Vec<(f64, usize)> = (0..parameters.sizes.len()).filter_map(needs).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, action) in ranked {
            let Some((_, mut single)) = self.with_single(targets, parameters, action) else { continue };
            improve(&self.plan, targets, &mut single, SINGLE_STEPS);
            let without = log_likelihood(&self.plan, targets, &single);
            let sizes = &parameters.sizes[action];
            let is_mostly_one = sizes.at(sizes.mode()) > SINGLE_SHARE;
            if is_mostly_one || likelihood - without < self.price(further_sizes(sizes).max(1)) {
                (*parameters, likelihood) = (single, without);
            }
        }
    }

    /// The parameters with the best single size of an action, and their log-likelihood; `None` if it has one already.
    fn with_single(&self, targets: &[i64], parameters: &Parameters, action: usize) -> Option<(f64, Parameters)> {
        let sizes = Some(&parameters.sizes[action]).filter(|sizes| !sizes.is_certain())?;
        let candidates: BTreeSet<i64> = [sizes.mode(), sizes.mean().round() as i64].into();
        let with = candidates.into_iter().map(|size| {
            let mut single = parameters.clone();
            single.sizes[action] = Pmf::certain(size);
            (log_likelihood(&self.plan, targets, &single), single)
        });
        with.max_by(|a, b| a.0.total_cmp(&b.0))
    }
}

fn improve(plan: &Plan, targets: &[i64], parameters: &mut Parameters, steps: usize) -> f64 {
    expectation::improve(plan, targets, parameters, steps, LABELLED, |_, _, _| ())
}

fn log_likelihood(plan: &Plan, targets: &[i64], parameters: &Parameters) -> f64 {
    plan.log_likelihood(targets, parameters, LABELLED)
}

/// Moves single sizes by a byte where that is more likely.
fn move_single(plan: &Plan, targets: &[i64], parameters: &mut Parameters) {
    let mut likelihood = log_likelihood(plan, targets, parameters);
    for action in 0..parameters.sizes.len() {
        for by in [-1, 1] {
            let mut moved = parameters.clone();
            moved.sizes[action] = parameters.sizes[action].clone().moved(by);
            let other = log_likelihood(plan, targets, &moved);
            if parameters.sizes[action].is_certain() && other > likelihood {
                (*parameters, likelihood) = (moved, other);
            }
        }
    }
}

/// What some of the commands make most likely.
pub(super) struct Resample {
    pub(super) parameters: Parameters,
    pub(super) commands: BTreeSet<usize>,
}

struct Explanation {
    parameters: Parameters,
    levels: Levels,
    /// The log-likelihood, less what the number of sizes and of steps is worth.
    score: f64,
}

fn further_sizes(sizes: &Pmf) -> usize {
    sizes.iter().filter(|(_, share)| **share > COUNTED_SHARE).count().saturating_sub(1)
}

fn start_epsilon() -> Pmf {
    let weight = |epsilon: i64| 0.5_f64.powf(epsilon.abs() as f64);
    let all: f64 = EPSILONS.map(weight).sum();
    Pmf::from_values(EPSILONS.map(|epsilon| (epsilon, weight(epsilon) / all)))
}

fn count(commands: &[LabelledCommand], at: usize, action: usize) -> u32 {
    commands[at].counts.get(action).copied().unwrap_or(0)
}

/// Whether a command says something about the sizes of its actions.
pub(super) fn is_usable(command: &LabelledCommand) -> bool {
    (1..=MAX_IN_COMMAND).contains(&command.total())
}

/// The commands that distributions are learned from, ascending: those of the fewest actions for each, others evenly.
fn used(actions: usize, commands: &[LabelledCommand]) -> Vec<usize> {
    let usable = commands.iter().enumerate().filter(|(_, command)| is_usable(command));
    let mut by_total: Vec<(u64, usize)> = usable.map(|(at, command)| (command.total(), at)).collect();
    if by_total.len() <= MAX_COMMANDS {
        return by_total.into_iter().map(|(_, at)| at).collect();
    }
    let others = by_total.iter().map(|(_, at)| *at).step_by(by_total.len() / (MAX_COMMANDS / 2) + 1);
    let mut chosen: BTreeSet<usize> = others.collect();
    by_total.sort_unstable();
    let of_each = (MAX_COMMANDS / 2 / actions.max(1)).max(4);
    for action in 0..actions {
        let with = by_total.iter().map(|(_, at)| *at).filter(|at| count(commands, *at, action) > 0);
        chosen.extend(with.take(of_each));
    }
    chosen.into_iter().collect()
}
