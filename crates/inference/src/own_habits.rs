//! The habits of a household as its commands show them: a belief about factors on the learned prior.
//!
//! ```text
//! P(A) = P(n) · P(A | n),   P(A | n) = π(A | n) · e^(θ·A) / Zₙ(θ),   θ ~ N(m, S)
//! ```
//!
//! π is the learned prior, and θ starts at 0 with a deviation of [`DEVIATION`]. A command moves the belief by one step of
//! Laplace's method (as an extended Kalman filter does): the gradient of its log-likelihood by θ is E[A − μₙ | command],
//! and the curvature E[Vₙ | command] − Cov[A − μₙ | command], with mean μₙ and covariance Vₙ of n actions at m. What sizes
//! and replies do not tell has no curvature, so that it stays as uncertain as it was.

use std::sync::Arc;

use crate::habits::{HabitTable, Habits, LearnedHabits};
use crate::inference::ReplyInference;
use crate::number_moments::NumberMoments;
use crate::symmetric::{Symmetric, dot};

/// The standard deviation of log-factors between households. Of .5, .7 and 1, .7 answers homes with routines and homes of
/// product form best (`docs/evaluation.md`).
const DEVIATION: f64 = 0.7;

/// How many commands the numbers of actions to start from weigh.
const KNOWN_NUMBERS: f64 = 6.0;

/// How fast a household changes its habits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// After so many commands, factors on the learned prior are no more known.
    drift: f64,
    /// How many commands the numbers of actions go by.
    memory: f64,
}

impl Pace {
    /// Habits stay for years.
    pub(crate) const SLOW: Self = Self { drift: 2000.0, memory: 400.0 };
    /// Habits change, as with guests or a holiday: of those that changed strongly, 75 % of answers are right with a memory of
    /// 40 commands, and 62 % with 80.
    pub(crate) const FAST: Self = Self { drift: 40.0, memory: 40.0 };
}

/// After so many commands, moments are computed anew if the mean has moved; between, they follow it to first order.
const LEAST_PER_REFRESH: u32 = 8;
/// After so many in any case: the belief becomes narrower.
const MOST_PER_REFRESH: u32 = 32;
/// A mean that moved by no more makes no factor of an action wrong by over 5 %.
const NEAR: f64 = 0.05;
/// One that moved by more is too far away to be followed: second order leaves several per cent of a command of four actions.
const FAR: f64 = 0.5;

/// A belief about a household's habits.
#[derive(Debug, Clone)]
pub(crate) struct OwnHabits {
    pace: Pace,
    mean: Vec<f64>,
    covariance: Symmetric,
    /// How many commands with each number of actions were seen, from 1.
    numbers: Vec<f64>,
    /// Where the moments were computed, and how many commands ago.
    centre: Vec<f64>,
    moments: Arc<NumberMoments>,
    age: u32,
    /// Habits that stand for the belief, each as probable.
    listed: Arc<Vec<Habits>>,
    factors: Arc<HabitTable>,
}

/// What a command says of habits.
struct Evidence {
    /// The probability of each number of actions, from 1.
    of_numbers: Vec<f64>,
    /// Of the log-likelihood, by the log-factors.
    gradient: Vec<f64>,
    curvature: Symmetric,
}

impl OwnHabits {
    /// Before the first command.
    pub(crate) fn new(pace: Pace, learned: &LearnedHabits, inference: &ReplyInference) -> Self {
        let actions = inference.actions();
        let mut own = Self {
            pace,
            mean: vec![0.0; actions],
            covariance: Symmetric::diagonal(actions, DEVIATION * DEVIATION),
            numbers: vec![0.0; learned.numbers.len()],
            centre: vec![0.0; actions],
            moments: Arc::new(learned.moments.clone()),
            age: 0,
            listed: Arc::default(),
            factors: Arc::new(HabitTable::even(&[])),
        };
        own.refresh(learned, inference);
        own
    }

    /// The mean factor of a command on the learned prior.
    pub(crate) fn factor(&self, actions: &[(u32, u32)], room: &mut Vec<f64>) -> f64 {
        self.factors.factor(actions, room)
    }

    /// Habits that stand for the belief.
    pub(crate) fn listed(&self) -> &[Habits] {
        &self.listed
    }

    /// Learns from what a command may be: its actions with their weights by the learned prior. The command is such a one,
    /// and none that came again, with the probability `share`.
    pub(crate) fn learn(
        &mut self,
        possible: &[(&[(u32, u32)], f64)],
        share: f64,
        learned: &LearnedHabits,
        inference: &ReplyInference,
    ) {
        let Some(Evidence { of_numbers, gradient, curvature }) = self.evidence(possible, learned) else {
            if self.distance() > 0.0 {
                self.refresh(learned, inference);
            }
            return;
        };
        self.step(&gradient, &curvature, share);
        for (seen, own) in self.numbers.iter_mut().zip(&of_numbers) {
            *seen = *seen * (1.0 - share / self.pace.memory) + share * own;
        }
        self.age += 1;
        let distance = self.distance();
        let size = self.mean.len();
        let least = LEAST_PER_REFRESH.max((size * size / 8) as u32);
        if distance > FAR || self.age >= if distance > NEAR { least } else { MOST_PER_REFRESH.max(least) } {
            self.refresh(learned, inference);
        }
    }

    /// What a command says of habits; `None` where none of what it may be has a weight at the mean.
    fn evidence(&self, possible: &[(&[(u32, u32)], f64)], learned: &LearnedHabits) -> Option<Evidence> {
        let size = self.mean.len();
        // Moments at the mean, to first order from where they were computed: there, a command that tells nothing has a
        // gradient of 0.
        let moved: Vec<f64> = self.mean.iter().zip(&self.centre).map(|(mean, centre)| mean - centre).collect();
        let shifts: Vec<Vec<f64>> = self.moments.covariances.iter().map(|own| own.times(&moved)).collect();
        let probabilities = self.probabilities(possible, &self.number_factors(&moved, &shifts, learned))?;
        let mut of_numbers = vec![0.0; self.numbers.len()];
        let (mut gradient, mut curvature) = (vec![0.0; size], Symmetric::zero(size));
        let mut counts = vec![vec![0.0; size]; self.numbers.len()];
        for ((actions, _), probability) in possible.iter().zip(probabilities) {
            let number = number_of(actions) - 1;
            let Some(counts) = counts.get_mut(number) else { continue };
            of_numbers[number] += probability;
            for (action, count) in *actions {
                counts[*action as usize] += probability * f64::from(*count);
            }
            curvature.add_square_of(actions, -probability);
        }
        // Σ P · (A − μ)(A − μ)ᵀ over commands of one number, by the sums of P, P · A and P · A Aᵀ.
        for (at, (of_number, counts)) in of_numbers.iter().zip(&counts).enumerate().filter(|(_, (own, _))| **own > 0.0)
        {
            let mean: Vec<f64> =
                self.moments.means[at].iter().zip(&shifts[at]).map(|(mean, shift)| mean + shift).collect();
            let observed: Vec<f64> = counts.iter().map(|count| count / of_number).collect();
            let difference: Vec<f64> = observed.iter().zip(&mean).map(|(own, mean)| own - mean).collect();
            curvature.add_square(&observed, *of_number);
            curvature.add_square(&difference, -of_number);
            curvature.add(&self.moments.covariances[at], *of_number);
            for (all, own) in gradient.iter_mut().zip(&difference) {
                *all += of_number * own;
            }
        }
        curvature.add_square(&gradient, 1.0);
        Some(Evidence { of_numbers, gradient, curvature })
    }

    /// How probable each of some commands is at the mean, given what each number of actions weighs.
    fn probabilities(&self, possible: &[(&[(u32, u32)], f64)], numbers: &[f64]) -> Option<Vec<f64>> {
        let weight = |(actions, prior): &(&[(u32, u32)], f64)| {
            let along = |(action, count): &(u32, u32)| f64::from(*count) * self.mean[*action as usize];
            let number = number_of(actions).min(numbers.len()) - 1;
            prior * numbers[number] * actions.iter().map(along).sum::<f64>().exp()
        };
        let mut weights: Vec<f64> = possible.iter().map(weight).collect();
        let all: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= all;
        }
        (all > 0.0 && all.is_finite()).then_some(weights)
    }

    /// How far the mean is from where moments were computed.
    fn distance(&self) -> f64 {
        self.mean.iter().zip(&self.centre).map(|(mean, centre)| (mean - centre).abs()).fold(0.0, f64::max)
    }

    /// What commands of each number of actions, from 1, weigh beside their learned prior, but for the factors of their
    /// actions: what is wanted of P(n), by Zₙ at the mean to second order.
    fn number_factors(&self, moved: &[f64], shifts: &[Vec<f64>], learned: &LearnedHabits) -> Vec<f64> {
        let wanted = self.number_shares(learned).into_iter().zip(&learned.numbers);
        let quotient = |own: f64, other: f64| if other > 0.0 { own / other } else { 0.0 };
        let factor = |(at, (wanted, share)): (usize, (f64, &f64))| {
            let beyond = dot(&self.moments.means[at], moved) + 0.5 * dot(&shifts[at], moved);
            let total = self.moments.totals[at] * beyond.exp();
            quotient(wanted, *share) * quotient(learned.moments.totals[at], total)
        };
        wanted.enumerate().map(factor).collect()
    }

    /// One step of Laplace's method. Curvature below 0 is rounding, or a command that looks like two modes: none.
    fn step(&mut self, gradient: &[f64], curvature: &Symmetric, share: f64) {
        let size = self.mean.len();
        let kept = (1.0 - 1.0 / self.pace.drift).powi(2);
        self.covariance.scale(kept);
        self.covariance.add(&Symmetric::diagonal(size, DEVIATION * DEVIATION), 1.0 - kept);
        for (value, vector) in curvature.eigen() {
            if value > 0.0 {
                let along = self.covariance.times(&vector);
                let precision = share * value;
                self.covariance.add_square(&along, -precision / (1.0 + precision * dot(&vector, &along)));
            }
        }
        let step = self.covariance.times(gradient);
        for (mean, step) in self.mean.iter_mut().zip(step) {
            *mean = kept.sqrt() * *mean + share * step;
        }
    }

    fn refresh(&mut self, learned: &LearnedHabits, inference: &ReplyInference) {
        let factors: Vec<f64> = self.mean.iter().map(|own| own.exp()).collect();
        if let Some(moments) = inference.number_moments(&learned.rows, &factors) {
            self.moments = Arc::new(moments);
        }
        (self.centre, self.age) = (self.mean.clone(), 0);
        let numbers = self.number_shares(learned);
        let habits = |point: Vec<f64>| learned.habits(point.into_iter().map(f64::exp).collect(), &numbers, inference);
        self.listed = Arc::new(self.points().into_iter().filter_map(habits).collect());
        self.factors = Arc::new(HabitTable::even(&self.listed));
    }

    /// P(n), from 1: a Dirichlet belief that starts halfway between learned and broad numbers.
    fn number_shares(&self, learned: &LearnedHabits) -> Vec<f64> {
        let start = learned.numbers.iter().zip(&learned.broad_numbers);
        let start = start.map(|(own, broad)| KNOWN_NUMBERS * f64::midpoint(*own, *broad));
        let numbers: Vec<f64> = start.zip(&self.numbers).map(|(start, seen)| start + seen).collect();
        let all: f64 = numbers.iter().sum();
        numbers.into_iter().map(|own| own / all).collect()
    }

    /// Points with the mean and the covariance of the belief, each with its mirror image.
    fn points(&self) -> Vec<Vec<f64>> {
        let size = self.mean.len();
        // Rows of a Hadamard matrix: the columns of its second half are orthogonal, and each row has its negative.
        let half = size.next_power_of_two();
        let eigen = self.covariance.eigen();
        let root = |signs: &[f64]| {
            let mut point = self.mean.clone();
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
}

fn number_of(actions: &[(u32, u32)]) -> usize {
    actions.iter().map(|(_, count)| *count as usize).sum::<usize>().max(1)
}
