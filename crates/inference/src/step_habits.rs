//! What follows from a belief about habits until its next step: moments at its mean, and habits that stand for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;

use crate::best_actions::Member;
use crate::command_class::CommandClass;
use crate::habits::{HabitTable, Habits, LearnedHabits, quotients};
use crate::inference::ReplyInference;
use crate::number_moments::NumberMoments;
use crate::symmetric::{Symmetric, dot};

/// The moments of classes that are known take so many numbers, 2 MiB: those of one class take their squares, 300 kB of 192
/// actions. Beyond, they are computed again.
const MAX_KNOWN_NUMBERS: usize = 1 << 18;

/// A belief with the mean and the covariance of one step.
#[derive(Debug)]
pub(crate) struct StepHabits {
    pub(crate) mean: Vec<f64>,
    /// The factors of actions at the mean.
    at_mean: Vec<f64>,
    /// What commands of each number of actions, from 1, weigh beside their learned prior, but for the factors of their
    /// actions.
    of_numbers: Vec<f64>,
    /// How many times as frequent they are as by the learned habits.
    shares: Vec<f64>,
    /// Habits that stand for the belief, each as probable.
    pub(crate) listed: Vec<Habits>,
    /// Their mean factors on the learned prior.
    pub(crate) factors: HabitTable,
    /// Of classes by their id: beliefs that were one share it until they step.
    known: Mutex<KnownClasses>,
}

#[derive(Debug, Default)]
struct KnownClasses {
    /// P(class) by the belief.
    weights: HashMap<usize, f64, RandomState>,
    at_mean: HashMap<usize, ClassMoments, RandomState>,
    /// Of commands by their number of actions at the mean, up to twice as many as were asked for.
    of_numbers: Arc<NumberMoments>,
}

/// What the commands of a class weigh at the mean, and sums over them.
#[derive(Debug, Clone)]
pub(crate) struct ClassMoments {
    /// By the number of actions, from 1.
    pub(crate) of_numbers: Vec<f64>,
    /// Of the numbers of each action: by the number of all actions, then by action.
    pub(crate) counts: Vec<f64>,
    /// Of the products of the numbers of two actions.
    pub(crate) squares: Symmetric,
}

impl StepHabits {
    /// With these shares of numbers of actions.
    pub(crate) fn new(
        mean: Vec<f64>,
        covariance: &Symmetric,
        numbers: &[f64],
        (learned, inference): (&LearnedHabits, &ReplyInference),
    ) -> Self {
        let at_mean: Vec<f64> = mean.iter().map(|own| own.exp()).collect();
        let totals = inference.number_totals(&learned.rows, &at_mean).unwrap_or_else(|| learned.moments.totals.clone());
        let totals = quotients(&learned.moments.totals, &totals);
        let shares = quotients(numbers, &learned.numbers);
        let of_numbers = shares.iter().zip(totals).map(|(share, total)| share * total).collect();
        let habits = |point: Vec<f64>| learned.habits(point.into_iter().map(f64::exp).collect(), numbers, inference);
        let listed: Vec<Habits> = points(&mean, covariance).into_iter().filter_map(habits).collect();
        let factors = HabitTable::even(&listed);
        Self { mean, at_mean, of_numbers, shares, listed, factors, known: Mutex::default() }
    }

    /// P(class).
    pub(crate) fn weight(&self, class: &CommandClass) -> f64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known.weights.entry(class.id).or_insert_with(|| class.weight(&self.shares, &self.factors))
    }

    pub(crate) fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = KnownClasses::default();
    }

    #[cfg(test)]
    pub(crate) fn known_numbers(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.at_mean.values().map(ClassMoments::numbers).sum()
    }

    /// The moments of some classes together at the mean, each with its weight beside P(class); and of all commands of as many
    /// actions.
    pub(crate) fn moments_of(
        &self,
        classes: &[(&CommandClass, f64)],
        (learned, inference): (&LearnedHabits, &ReplyInference),
    ) -> (ClassMoments, Arc<NumberMoments>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = &mut *known;
        // Those of many actions take most of the time, and hardly a command has so many.
        let most = classes.iter().map(|(class, _)| class.most_actions()).max().unwrap_or(0);
        if known.of_numbers.means.len() < most {
            let found = inference.number_moments(&learned.rows, &self.at_mean, most.next_power_of_two());
            known.of_numbers = Arc::new(found.unwrap_or_else(|| learned.moments.clone()));
        }
        let of_numbers = &known.of_numbers;
        let mut all = ClassMoments::none(self.mean.len(), self.of_numbers.len());
        let most = (MAX_KNOWN_NUMBERS / all.numbers()).max(1);
        for (class, weight) in classes {
            if known.at_mean.len() >= most && !known.at_mean.contains_key(&class.id) {
                known.at_mean.clear();
            }
            let new = || {
                if class.members.is_empty() {
                    self.moments_of_numbers(class, of_numbers)
                } else {
                    ClassMoments::new(class, &self.mean, &self.of_numbers)
                }
            };
            all.add(known.at_mean.entry(class.id).or_insert_with(new), *weight);
        }
        (all, Arc::clone(of_numbers))
    }

    /// Of a class whose commands are known by their number of actions alone: those of all commands of so many.
    fn moments_of_numbers(&self, class: &CommandClass, moments: &NumberMoments) -> ClassMoments {
        let size = self.mean.len();
        let mut own = ClassMoments::none(size, self.of_numbers.len());
        for (number, (prior, share)) in class.of_numbers.iter().zip(&self.shares).enumerate().take(moments.means.len())
        {
            let (weight, mean) = (prior * share, &moments.means[number]);
            own.of_numbers[number] = weight;
            own.counts[number * size..].iter_mut().zip(mean).for_each(|(own, mean)| *own = weight * mean);
            own.squares.add(&moments.covariances[number], weight);
            own.squares.add_square(mean, weight);
        }
        own
    }
}

impl ClassMoments {
    fn none(actions: usize, numbers: usize) -> Self {
        Self { of_numbers: vec![0.0; numbers], counts: vec![0.0; actions * numbers], squares: Symmetric::zero(actions) }
    }

    /// At a mean, given what each number of actions weighs.
    fn new(class: &CommandClass, mean: &[f64], of_numbers: &[f64]) -> Self {
        let size = mean.len();
        let mut own = Self::none(size, of_numbers.len());
        for Member { actions, prior } in &class.members {
            let number = number_of(actions) - 1;
            let Some(of_number) = of_numbers.get(number) else { continue };
            let along = |(action, count): &(u32, u32)| f64::from(*count) * mean[*action as usize];
            let weight = prior * of_number * actions.iter().map(along).sum::<f64>().exp();
            own.of_numbers[number] += weight;
            for (action, count) in actions {
                own.counts[number * size + *action as usize] += weight * f64::from(*count);
            }
            own.squares.add_square_of(actions, weight);
        }
        own
    }

    fn numbers(&self) -> usize {
        self.of_numbers.len() + self.counts.len() + self.squares.values.len()
    }

    fn add(&mut self, other: &Self, weight: f64) {
        let add = |all: &mut [f64], own: &[f64]| all.iter_mut().zip(own).for_each(|(all, own)| *all += weight * own);
        add(&mut self.of_numbers, &other.of_numbers);
        add(&mut self.counts, &other.counts);
        self.squares.add(&other.squares, weight);
    }
}

/// Points with the mean and the covariance of the belief, each with its mirror image.
fn points(mean: &[f64], covariance: &Symmetric) -> Vec<Vec<f64>> {
    let size = mean.len();
    // Rows of a Hadamard matrix: the columns of its second half are orthogonal, and each row has its negative.
    let half = size.next_power_of_two();
    let eigen = covariance.eigen();
    let root = |signs: &[f64]| {
        let mut point = mean.to_vec();
        for (value, vector) in &eigen {
            let along = value.max(0.0).sqrt() * dot(vector, signs);
            for (own, one) in point.iter_mut().zip(vector) {
                *own += along * one;
            }
        }
        point
    };
    let sign =
        |row: usize, column: usize| if (row & (half + column)).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    (0..2 * half).map(|row| root(&(0..size).map(|column| sign(row, column)).collect::<Vec<f64>>())).collect()
}

fn number_of(actions: &[(u32, u32)]) -> usize {
    actions.iter().map(|(_, count)| *count as usize).sum::<usize>().max(1)
}
