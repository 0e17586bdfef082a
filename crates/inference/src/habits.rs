//! Habits: which actions the commands of a home have, and how many.
//!
//! A household has habits of its own, which may differ from those that a model was learned from, and which change. Other
//! habits are factors on the learned prior, so that one list of a command's possible actions serves all of them:
//!
//! ```text
//! P'(A) = P(A) · g(n) · Π fₐ^nbₐ
//! ```
//!
//! g makes up for what the fₐ change in the number of actions, so that P'(n) is as wanted: it has E[Π fₐ^nbₐ | n], the
//! mean over all multisets of n actions, as its divisor ([`ReplyInference::number_totals`]).

use std::collections::BTreeMap;

use crate::inference::ReplyInference;

/// Commands count less the older they are: this many are remembered. Habits that changed are followed within about as many.
/// Measured on the paper's home of `tests/answers/habits.rs` with strongly other habits: of the first answers 51 % are right
/// with 150, 62 % with 80, 74 % with 40, and 75 % with 25 or 15.
const MEMORY: f64 = 40.0;

/// How many actions and commands the habits to start from weigh: those of a home without any command of its own.
const KNOWN_ACTIONS: f64 = 6.0;
const KNOWN_COMMANDS: f64 = 4.0;

/// How many commands the sums of actions that are expected weigh against those that were seen.
const KNOWN_SUMS: f64 = 30.0;

/// Sums that weigh less are forgotten: a command does after a good five memories.
const MIN_SUM_WEIGHT: f64 = 0.005;

/// The step that shares are differentiated by.
const STEP: f64 = 1e-5;

/// Factors on the prior of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Habits {
    /// By action, in the order of the model.
    pub actions: Vec<f64>,
    /// By the number of actions, from 1.
    pub numbers: Vec<f64>,
}

impl Habits {
    /// The factor of a command, given the indices of its actions, each with how often it occurs. More actions than are
    /// counted have the factor of the most.
    pub fn factor(&self, actions: &[(u32, u32)]) -> f64 {
        habit_factor(&self.actions, &self.numbers, actions)
    }
}

/// The factor of a command by habits that are given as the factors of each action and of each number of actions; see
/// [`Habits::factor`]. They may come from outside: actions without a factor have the factor 1.
pub fn habit_factor(of_actions: &[f64], of_numbers: &[f64], actions: &[(u32, u32)]) -> f64 {
    let (mut number, mut factor) = (0_usize, 1.0);
    for (action, count) in actions {
        number = number.saturating_add(*count as usize);
        factor *= of_actions.get(*action as usize).copied().unwrap_or(1.0).powi(count.cast_signed());
    }
    factor * of_numbers.get(number.max(1) - 1).or(of_numbers.last()).copied().unwrap_or(1.0)
}

/// Shares of actions among all actions, and of numbers of actions, from 1, among all commands.
#[derive(Debug, Clone, PartialEq)]
struct Shares {
    actions: Vec<f64>,
    numbers: Vec<f64>,
}

/// The habits that a model was learned from, and what others are measured against.
#[derive(Debug)]
pub struct LearnedHabits {
    shares: Shares,
    /// The shares halfway between the learned and the broad ones, which estimates start from.
    start: Shares,
    /// What [`ReplyInference::number_totals`] are for the learned prior.
    totals: Vec<f64>,
    /// Habits that leave nearly everything open.
    pub broad: Habits,
}

impl LearnedHabits {
    /// `None` where devices can be used up in too many ways to be counted.
    pub fn new(inference: &ReplyInference) -> Option<Self> {
        let even = vec![1.0; inference.actions()];
        let totals = inference.number_totals(&even)?;
        let numbers = normalised(inference.number_shares(&totals));
        // E[nbₐ | n] is the derivative of ln E[Π fₐ^nbₐ | n] by ln fₐ.
        let expected = |action: usize| {
            let mut factors = even.clone();
            factors[action] += STEP;
            let moved = inference.number_totals(&factors)?;
            let of_number = |((share, moved), total): ((&f64, &f64), &f64)| {
                if *share > 0.0 { share * (moved / total).ln() / STEP } else { 0.0 }
            };
            Some(numbers.iter().zip(&moved).zip(&totals).map(of_number).sum::<f64>().max(f64::MIN_POSITIVE))
        };
        let actions = normalised((0..even.len()).map(expected).collect::<Option<_>>()?);
        let shares = Shares { actions, numbers };
        let broad = shares.broad();
        let middle =
            |own: &[f64], broad: &[f64]| own.iter().zip(broad).map(|(own, broad)| (own + broad) / 2.0).collect();
        let start = Shares {
            actions: middle(&shares.actions, &broad.actions),
            numbers: middle(&shares.numbers, &broad.numbers),
        };
        let even = Habits { actions: even, numbers: vec![1.0; totals.len()] };
        let mut learned = Self { shares, start, totals, broad: even };
        learned.broad = learned.habits(&broad, inference)?;
        Some(learned)
    }

    /// The habits that commands showed.
    pub fn shown(&self, counts: &HabitCounts, inference: &ReplyInference) -> Option<Habits> {
        let estimate = |start: &[f64], seen: &[f64], known: f64| -> Vec<f64> {
            let all = known + seen.iter().sum::<f64>();
            start.iter().zip(seen).map(|(start, seen)| (known * start + seen) / all).collect()
        };
        let actions = estimate(&self.start.actions, &counts.actions, KNOWN_ACTIONS);
        let numbers = estimate(&self.start.numbers, &counts.numbers, KNOWN_COMMANDS);
        self.habits(&Shares { actions, numbers }, inference)
    }

    /// The habits that the model was learned from.
    pub fn unchanged(&self) -> Habits {
        let even = |shares: &[f64]| vec![1.0; shares.len()];
        Habits { actions: even(&self.shares.actions), numbers: even(&self.shares.numbers) }
    }

    /// Counts of no command.
    pub fn no_counts(&self) -> HabitCounts {
        let none = |shares: &[f64]| vec![0.0; shares.len()];
        HabitCounts { actions: none(&self.shares.actions), numbers: none(&self.shares.numbers), sums: BTreeMap::new() }
    }

    /// The factors that make the learned shares these ones.
    fn habits(&self, wanted: &Shares, inference: &ReplyInference) -> Option<Habits> {
        let quotient = |(wanted, learned): (&f64, &f64)| if *learned > 0.0 { wanted / learned } else { 0.0 };
        let actions: Vec<f64> = wanted.actions.iter().zip(&self.shares.actions).map(quotient).collect();
        let totals = inference.number_totals(&actions)?;
        let change = self.totals.iter().zip(&totals).map(|(learned, own)| if *own > 0.0 { learned / own } else { 0.0 });
        let numbers = wanted.numbers.iter().zip(&self.shares.numbers).map(quotient).zip(change);
        Some(Habits { actions, numbers: numbers.map(|(wanted, change)| wanted * change).collect() })
    }
}

impl Shares {
    /// Shares of actions halfway to equal ones, as factors, and numbers that fall off slowly, with a mean of at least
    /// three actions.
    fn broad(&self) -> Self {
        let actions = normalised(self.actions.iter().map(|share| share.sqrt()).collect());
        let mean: f64 = self.numbers.iter().zip(1..).map(|(share, number)| share * f64::from(number)).sum();
        let decay = 1.0 - 1.0 / (mean + 1.0).max(3.0);
        let share = |(own, place): (&f64, i32)| if *own > 0.0 { decay.powi(place) } else { 0.0 };
        Self { actions, numbers: normalised(self.numbers.iter().zip(0..).map(share).collect()) }
    }
}

fn normalised(mut shares: Vec<f64>) -> Vec<f64> {
    let all: f64 = shares.iter().sum();
    for share in &mut shares {
        *share /= all;
    }
    shares
}

/// The commands of late, as far as their actions are known.
#[derive(Debug, Clone, PartialEq)]
pub struct HabitCounts {
    actions: Vec<f64>,
    numbers: Vec<f64>,
    /// The weights of the sums of actions, in bytes.
    sums: BTreeMap<i64, f64>,
}

impl HabitCounts {
    /// Forgets a little of what was counted, before the next command.
    pub fn age(&mut self) {
        let kept = 1.0 - 1.0 / MEMORY;
        for count in self.actions.iter_mut().chain(&mut self.numbers) {
            *count *= kept;
        }
        self.sums.retain(|_, weight| {
            *weight *= kept;
            *weight >= MIN_SUM_WEIGHT
        });
    }

    /// Counts a command that has these actions and this sum with a probability.
    pub fn count(&mut self, actions: &[(u32, u32)], sum: i64, probability: f64) {
        let number: u32 = actions.iter().map(|(_, count)| count).sum();
        if let Some(of_number) = self.numbers.get_mut((number as usize).wrapping_sub(1)) {
            *of_number += probability;
        }
        for (action, count) in actions {
            self.actions[*action as usize] += probability * f64::from(*count);
        }
        *self.sums.entry(sum).or_default() += probability;
    }

    /// By what factor a sum is more probable than habits expect it, if sums are as frequent as they were, whatever their
    /// actions: the mean of a Dirichlet process that starts from those habits.
    pub fn sum_factor(&self, sum: i64, expected: f64) -> f64 {
        let seen: f64 = self.sums.values().sum();
        let own = self.sums.get(&sum).copied().unwrap_or(0.0);
        (KNOWN_SUMS + own / expected.max(f64::MIN_POSITIVE)) / (KNOWN_SUMS + seen)
    }
}
