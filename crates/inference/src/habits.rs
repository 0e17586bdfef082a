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
//! mean over all multisets of n actions, as its divisor.

use std::sync::Arc;

use crate::inference::ReplyInference;
use crate::number_moments::{ActionRows, NumberMoments};

/// Powers of factors are tabulated up to this one, for so many factors.
const MAX_POWER: usize = 16;
const MAX_FACTORS: usize = 1 << 12;

/// The factors of so many habits are multiplied at once.
const SIDE_BY_SIDE: usize = 8;

/// Factors on the prior of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Habits {
    /// By action, in the order of the model.
    pub actions: Arc<[f64]>,
    /// By the number of actions, from 1. More have the last one.
    pub numbers: Arc<[f64]>,
}

/// Habits with their weights, ready for many commands.
#[derive(Debug, Clone)]
pub struct HabitTable {
    /// How many habits there are, with some without weight: a multiple of [`SIDE_BY_SIDE`].
    width: usize,
    /// The weights times the factors of each number of actions, from 1: of all habits side by side.
    numbers: Vec<f64>,
    /// The powers of the factors of each action: by action, then by power, of all habits side by side.
    powers: Vec<f64>,
    actions: usize,
    most: usize,
}

impl HabitTable {
    /// Of habits, each given by its weight and the factors of all actions and of all numbers of actions.
    pub fn new<'a>(habits: impl IntoIterator<Item = (f64, &'a [f64], &'a [f64])>) -> Self {
        let mut habits: Vec<(f64, &[f64], &[f64])> = habits.into_iter().collect();
        let actions = habits.iter().map(|(_, actions, _)| actions.len()).max().unwrap_or(0);
        let longest = habits.iter().map(|(_, _, numbers)| numbers.len()).max().unwrap_or(0).max(1);
        // Lists that come from outside may be long: of those, powers are computed when they are asked for.
        let most = if actions.saturating_mul(habits.len()) <= MAX_FACTORS { MAX_POWER } else { 1 };
        let width = habits.len().max(1).next_multiple_of(SIDE_BY_SIDE);
        habits.resize(width, (0.0, &[], &[]));
        let mut of_numbers: Vec<f64> = Vec::with_capacity(longest * width);
        for at in 0..longest {
            let own = |(weight, _, numbers): &(f64, &[f64], &[f64])| {
                weight * numbers.get(at).or(numbers.last()).copied().unwrap_or(1.0)
            };
            of_numbers.extend(habits.iter().map(own));
        }
        let mut powers: Vec<f64> = Vec::with_capacity(actions * (most + 1) * width);
        for action in 0..actions {
            let factors = habits.iter().map(|(_, factors, _)| factors.get(action).copied().unwrap_or(1.0));
            let (factors, mut power) = (factors.collect::<Vec<f64>>(), vec![1.0; width]);
            for _ in 0..=most {
                powers.extend_from_slice(&power);
                power.iter_mut().zip(&factors).for_each(|(own, factor)| *own *= factor);
            }
        }
        Self { width, numbers: of_numbers, powers, actions, most }
    }

    pub(crate) fn even(habits: &[Habits]) -> Self {
        let weight = 1.0 / habits.len() as f64;
        Self::new(habits.iter().map(|one| (weight, &one.actions[..], &one.numbers[..])))
    }

    /// The sum of weights times factors for a command, given the indices of its actions, each with how often it occurs. They
    /// may come from outside: actions without a factor have the factor 1.
    pub fn factor(&self, actions: &[(u32, u32)]) -> f64 {
        let number = actions.iter().fold(0_usize, |number, (_, count)| number.saturating_add(*count as usize));
        let place = number.max(1).min(self.numbers.len() / self.width) - 1;
        let [numbers, powers] = [&self.numbers, &self.powers].map(|all| all.as_chunks::<SIDE_BY_SIDE>().0);
        let (chunks, mut sum) = (self.width / SIDE_BY_SIDE, 0.0);
        for chunk in 0..chunks {
            let mut all = numbers[place * chunks + chunk];
            for (action, count) in actions.iter().filter(|(action, _)| (*action as usize) < self.actions) {
                let power = |power: usize| &powers[(*action as usize * (self.most + 1) + power) * chunks + chunk];
                if *count as usize <= self.most {
                    all.iter_mut().zip(power(*count as usize)).for_each(|(all, own)| *all *= own);
                } else {
                    all.iter_mut().zip(power(1)).for_each(|(all, own)| *all *= own.powf(f64::from(*count)));
                }
            }
            sum = all.iter().fold(sum, |sum, own| sum + own);
        }
        sum
    }
}

/// The habits that a model was learned from, and what others are measured against.
#[derive(Debug)]
pub struct LearnedHabits {
    pub(crate) rows: ActionRows,
    /// The shares of numbers of actions, from 1.
    pub(crate) numbers: Vec<f64>,
    /// The same of a home of which nothing is known: they fall off slowly, with a mean of at least three actions.
    pub(crate) broad_numbers: Vec<f64>,
    /// Commands by the learned prior.
    pub(crate) moments: NumberMoments,
    /// Habits that leave nearly everything open, and how many times as frequent numbers of actions are by them.
    pub(crate) broad: HabitTable,
    pub(crate) broad_shares: Vec<f64>,
}

impl LearnedHabits {
    /// `None` where devices can be used up in too many ways to be counted.
    pub fn new(inference: &ReplyInference) -> Option<Self> {
        let rows = inference.action_rows();
        let moments = inference.number_moments(&rows, &vec![1.0; inference.actions()], usize::MAX)?;
        let weights = inference.groups.number_weights.iter().skip(1);
        let numbers = normalised(weights.zip(&moments.totals).map(|(weight, total)| weight * total).collect());
        let broad_numbers = broad_numbers(&numbers);
        let broad_shares = quotients(&broad_numbers, &numbers);
        let broad = HabitTable::even(&[]);
        let mut learned = Self { rows, numbers, broad_numbers, moments, broad, broad_shares };
        let broad = learned.broad_habits(inference)?;
        learned.broad = HabitTable::even(&[broad]);
        Some(learned)
    }

    /// Shares of actions halfway to equal ones, as factors, and broad numbers.
    fn broad_habits(&self, inference: &ReplyInference) -> Option<Habits> {
        let expected = |action: usize| -> f64 {
            let of_number = self.numbers.iter().zip(&self.moments.means);
            of_number.map(|(share, means)| share * means[action]).sum::<f64>().max(f64::MIN_POSITIVE)
        };
        let shares = normalised((0..inference.actions()).map(expected).collect());
        let wanted = normalised(shares.iter().map(|share| share.sqrt()).collect());
        let factors = wanted.iter().zip(&shares).map(|(wanted, share)| wanted / share).collect();
        self.habits(factors, &self.broad_numbers, inference)
    }

    /// Habits with these factors of actions, and these shares of numbers of actions.
    pub(crate) fn habits(&self, actions: Vec<f64>, numbers: &[f64], inference: &ReplyInference) -> Option<Habits> {
        let totals = inference.number_totals(&self.rows, &actions)?;
        let change = quotients(&self.moments.totals, &totals);
        let numbers = quotients(numbers, &self.numbers).into_iter().zip(change);
        let numbers = numbers.map(|(wanted, change)| wanted * change).collect();
        Some(Habits { actions: actions.into(), numbers })
    }
}

/// What each number is as a multiple of another one; 0 where that is 0.
pub(crate) fn quotients(numbers: &[f64], others: &[f64]) -> Vec<f64> {
    let quotient = |(own, other): (&f64, &f64)| if *other > 0.0 { own / other } else { 0.0 };
    numbers.iter().zip(others).map(quotient).collect()
}

fn broad_numbers(numbers: &[f64]) -> Vec<f64> {
    let mean: f64 = numbers.iter().zip(1..).map(|(share, number)| share * f64::from(number)).sum();
    let decay = 1.0 - 1.0 / (mean + 1.0).max(3.0);
    let share = |(own, place): (&f64, i32)| if *own > 0.0 { decay.powi(place) } else { 0.0 };
    normalised(numbers.iter().zip(0..).map(share).collect())
}

pub(crate) fn normalised(mut shares: Vec<f64>) -> Vec<f64> {
    let all: f64 = shares.iter().sum();
    for share in &mut shares {
        *share /= all;
    }
    shares
}
