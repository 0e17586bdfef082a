//! The habits of a household as its commands show them: a belief about factors on the learned prior.
//!
//! ```text
//! P(A) = P(n) · P(A | n),   P(A | n) = π(A | n) · e^(θ·A) / Zₙ(θ),   θ ~ N(m, S)
//! ```
//!
//! π is the learned prior, and θ starts at 0 with a deviation of [`DEVIATION`]. A command moves the belief by one step of
//! Laplace's method (as an extended Kalman filter does): the gradient of its log-likelihood by θ is E[A − μₙ | command],
//! and the curvature E[Vₙ | command] − Cov[A − μₙ | command], with mean μₙ and covariance Vₙ of n actions at m. What sizes
//! and replies do not tell has no curvature, so that it stays as uncertain as it was. Commands that would move m little
//! together are one step.

use std::sync::Arc;

use crate::command_class::CommandClass;
use crate::habits::{LearnedHabits, normalised};
use crate::inference::ReplyInference;
use crate::step_habits::StepHabits;
use crate::symmetric::{Symmetric, dot};

/// The standard deviation of log-factors between households. Of .5, .7 and 1, .7 answers homes with routines and homes of
/// product form best (`docs/figures.md`).
const DEVIATION: f64 = 0.7;

/// How many commands the numbers of actions to start from weigh.
const KNOWN_NUMBERS: f64 = 6.0;

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

/// A step is taken once it moves a log-factor by as much. With .05 to .5, answers of homes with routines are equally good;
/// households that change much are followed best with .1 to .3.
const STEP: f64 = 0.3;
/// After so many commands, a step is taken in any case: the belief becomes narrower.
const MOST_PER_STEP: u32 = 32;

#[derive(Debug, Clone)]
pub(crate) struct OwnHabits {
    pace: Pace,
    covariance: Symmetric,
    /// How many commands with each number of actions were seen, from 1.
    numbers: Vec<f64>,
    /// What commands since the last step say.
    pending: Evidence,
    /// What follows from the belief since the last step.
    pub(crate) at_step: Arc<StepHabits>,
}

#[derive(Debug, Clone)]
struct Evidence {
    commands: u32,
    /// Of the log-likelihood, by the log-factors.
    gradient: Vec<f64>,
    curvature: Symmetric,
}

fn no_evidence(actions: usize) -> Evidence {
    Evidence { commands: 0, gradient: vec![0.0; actions], curvature: Symmetric::zero(actions) }
}

impl OwnHabits {
    pub(crate) fn new(pace: Pace, learned: &LearnedHabits, inference: &ReplyInference) -> Self {
        let actions = inference.actions();
        let (mean, covariance) = (vec![0.0; actions], Symmetric::diagonal(actions, DEVIATION * DEVIATION));
        let numbers = vec![0.0; learned.numbers.len()];
        let shares = number_shares(&numbers, learned);
        let at_step = StepHabits::new(mean, &covariance, &shares, (learned, inference));
        let (at_step, pending) = (Arc::new(at_step), no_evidence(actions));
        Self { pace, covariance, numbers, pending, at_step }
    }

    /// Learns from the classes that a command may be of, each with its weight beside P(class). The command is such a one, and
    /// none that came again, with the probability `share`.
    pub(crate) fn learn(
        &mut self,
        possible: &[(&CommandClass, f64)],
        share: f64,
        learned: &LearnedHabits,
        inference: &ReplyInference,
    ) {
        self.add(possible, share, (learned, inference));
        let moves = || self.covariance.times(&self.pending.gradient).iter().any(|step| step.abs() > STEP);
        if self.pending.commands >= MOST_PER_STEP || moves() {
            self.step(learned, inference);
        }
    }

    /// Adds what a command says of habits: nothing where none of what it may be has a weight at the mean.
    fn add(&mut self, possible: &[(&CommandClass, f64)], share: f64, model: (&LearnedHabits, &ReplyInference)) {
        let size = self.at_step.mean.len();
        let (mut all, moments) = self.at_step.moments_of(possible, model);
        let total: f64 = all.of_numbers.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return;
        }
        let Evidence { commands, gradient, curvature } = &mut self.pending;
        *commands += 1;
        curvature.add(&all.squares, -share / total);
        let mut own_gradient = vec![0.0; size];
        // Σ P · (A − μ)(A − μ)ᵀ over commands of one number, by the sums of P, P · A and P · A Aᵀ.
        let of_each = all.of_numbers.iter().zip(all.counts.chunks_exact_mut(size)).enumerate();
        for (at, (weight, counts)) in of_each.filter(|(_, (own, _))| **own > 0.0) {
            let probability = weight / total;
            for count in counts.iter_mut() {
                *count /= weight;
            }
            curvature.add_square(counts, share * probability);
            counts.iter_mut().zip(&moments.means[at]).for_each(|(own, mean)| *own -= mean);
            curvature.add_square(counts, -share * probability);
            curvature.add(&moments.covariances[at], share * probability);
            own_gradient.iter_mut().zip(counts).for_each(|(all, own)| *all += probability * *own);
        }
        curvature.add_square(&own_gradient, share);
        gradient.iter_mut().zip(own_gradient).for_each(|(all, own)| *all += share * own);
        for (seen, own) in self.numbers.iter_mut().zip(&all.of_numbers) {
            *seen = *seen * (1.0 - share / self.pace.memory) + share * own / total;
        }
    }

    /// One step of Laplace's method. Curvature below 0 is rounding, or commands that look like two modes: none.
    fn step(&mut self, learned: &LearnedHabits, inference: &ReplyInference) {
        let mean = &self.at_step.mean;
        let size = mean.len();
        let Evidence { commands, gradient, curvature } = std::mem::replace(&mut self.pending, no_evidence(size));
        let kept = (1.0 - 1.0 / self.pace.drift).powi(2 * commands.cast_signed());
        self.covariance.scale(kept);
        self.covariance.add(&Symmetric::diagonal(size, DEVIATION * DEVIATION), 1.0 - kept);
        for (value, vector) in curvature.eigen() {
            if value > 0.0 {
                let along = self.covariance.times(&vector);
                self.covariance.add_square(&along, -value / (1.0 + value * dot(&vector, &along)));
            }
        }
        let step = self.covariance.times(&gradient);
        let mean = mean.iter().zip(step).map(|(mean, step)| kept.sqrt() * mean + step).collect();
        let numbers = number_shares(&self.numbers, learned);
        self.at_step = Arc::new(StepHabits::new(mean, &self.covariance, &numbers, (learned, inference)));
    }
}

/// P(n), from 1, by how many commands with each number were seen: a Dirichlet belief that starts halfway between learned and
/// broad numbers.
fn number_shares(seen: &[f64], learned: &LearnedHabits) -> Vec<f64> {
    let start = learned.numbers.iter().zip(&learned.broad_numbers);
    let start = start.map(|(own, broad)| KNOWN_NUMBERS * f64::midpoint(*own, *broad));
    normalised(start.zip(seen).map(|(start, seen)| start + seen).collect())
}
