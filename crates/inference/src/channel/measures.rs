//! How much a channel gives away, by every measure that `docs/method.md` explains.
//!
//! With the prior π(A), the channel C(t | A) and their product J(A, t), all sums and maxima are over secrets A and
//! outputs t. Secrets of one row have the same C(t | A), so that max over A of J is that of π times C, and everything
//! here is exact up to rounding.

use std::borrow::Borrow;

use serde::Serialize;

use crate::channel::{Channel, ChannelRow};
use crate::space::{KEPT, SecretSums, insert, weight_log};

pub const TRIES: [usize; 4] = [2, 3, 5, 10];

/// The most pairs of rows that are compared for [`Measures::least_security`].
const MAX_PAIRS: usize = 1 << 22;

/// The most entries of pairs of rows that are compared: a second of work.
const MAX_COMPARED: usize = 1 << 28;

/// Two sums of probabilities that differ by less differ by rounding.
const ROUNDING: f64 = 1e-12;

/// What a channel gives away about its secrets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measures {
    pub secrets: f64,
    /// The number of outputs that may be seen.
    pub outputs: usize,
    /// V₀ = max π: the probability that the best guess is right before anything is seen (prior Bayes vulnerability).
    pub guessing: f64,
    /// V = Σₜ max J: the probability that the best guess is right afterwards (posterior Bayes vulnerability; Smith 2009).
    pub named: f64,
    /// V / V₀ (multiplicative Bayes leakage).
    pub times_guessing: f64,
    /// V − V₀ (additive Bayes leakage).
    pub above_guessing: f64,
    /// log₂(V / V₀), the min-entropy leakage in bits.
    pub min_entropy_bits: f64,
    /// Σₜ max C: the greatest V / V₀ under any prior (multiplicative Bayes capacity; Braun, Chatzikokolakis, Palamidessi 2009).
    pub capacity: f64,
    /// H(A) in bits.
    pub prior_bits: f64,
    /// I(A; T) in bits, the mutual information.
    pub information_bits: f64,
    /// H(A | T) in bits.
    pub remaining_bits: f64,
    /// β = (1 − V) / (1 − V₀), 1 where nothing is given away (Bayes security; Chatzikokolakis et al. 2023). `None` if
    /// guessing is always right.
    pub security: Option<f64>,
    /// β* = 1 − the greatest total variation distance between two rows: the least β under any prior. `None` where there
    /// are too many rows to compare.
    pub least_security: Option<f64>,
    /// The probability that the truth is among the best guesses.
    pub tries: Vec<Tries>,
    /// The greatest posterior probability of any secret, given any output.
    pub worst_posterior: f64,
    /// The probability of outputs after which some secret has a posterior of at least this.
    pub certain: Vec<Certainty>,
    /// The fewest secrets that some output leaves possible.
    pub smallest_set: f64,
    /// The probability of outputs that leave one secret possible.
    pub alone: f64,
    /// The probability of outputs by how many secrets they leave possible.
    pub sets: Vec<SetSizes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tries {
    pub tries: usize,
    /// The probability that one of them is right before anything is seen.
    pub guessing: f64,
    pub named: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Certainty {
    pub posterior: f64,
    /// The probability of outputs after which some secret has it, or a greater one.
    pub probability: f64,
}

/// Outputs that leave from so many to so many secrets possible.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SetSizes {
    pub from: f64,
    pub to: f64,
    pub probability: f64,
}

impl Channel {
    pub fn measures(&self) -> Measures {
        let seen = SeenOutputs::of(&self.rows, self.outputs);
        let (prior, prior_bits) = (&seen.prior, seen.prior_bits());
        let KeyFigures { guessing, named, times_guessing, information_bits, worst_posterior, smallest_set } =
            seen.key_figures(0.0);
        let share = |is_meant: &dyn Fn(&SeenOutput) -> bool| {
            // A sum of nothing is −0.
            seen.possible().filter(|seen| is_meant(seen)).map(|seen| seen.probability).sum::<f64>() + 0.0
        };
        let certainty = |posterior_wanted: f64| Certainty {
            posterior: posterior_wanted,
            probability: share(&|seen| seen.posterior() >= posterior_wanted - ROUNDING),
        };
        let of_tries = |tries: usize| Tries {
            tries,
            guessing: prior.greatest.iter().take(tries).sum(),
            named: seen.possible().map(|seen| seen.best(tries)).sum(),
        };
        Measures {
            secrets: prior.count,
            outputs: seen.possible().count(),
            guessing,
            named,
            times_guessing,
            above_guessing: named - guessing,
            min_entropy_bits: (named / guessing).log2().max(0.0),
            capacity: seen.possible().map(|seen| seen.most_likely).sum(),
            prior_bits,
            information_bits,
            remaining_bits: prior_bits - information_bits,
            security: (guessing < 1.0 - ROUNDING).then(|| ((1.0 - named) / (1.0 - guessing)).clamp(0.0, 1.0)),
            least_security: self.greatest_distance().map(|distance| (1.0 - distance).max(0.0)),
            tries: TRIES.iter().map(|tries| of_tries(*tries)).collect(),
            worst_posterior,
            certain: [0.5, 0.9, 0.99].into_iter().map(certainty).collect(),
            smallest_set,
            alone: share(&|seen| seen.secrets < 1.5),
            sets: set_sizes(&seen),
        }
    }

    /// The greatest total variation distance between two rows; `None` where there are too many rows to compare.
    fn greatest_distance(&self) -> Option<f64> {
        let merged = self.merged();
        let rows: Vec<&[(u32, f64)]> = merged.rows.iter().map(|row| row.outputs.as_slice()).collect();
        let (Some(one), Some(last)) = (rows.first(), rows.last()) else { return Some(0.0) };
        let mut greatest = distance(one, last);
        let (mut pairs, mut compared) = (0, 0);
        for (at, one) in rows.iter().enumerate() {
            for other in rows.iter().skip(at + 1) {
                if greatest >= 1.0 - ROUNDING {
                    return Some(1.0);
                }
                pairs += 1;
                compared += one.len() + other.len();
                if pairs > MAX_PAIRS || compared > MAX_COMPARED {
                    return None;
                }
                greatest = greatest.max(distance(one, other));
            }
        }
        Some(greatest)
    }
}

/// The total variation distance of two distributions.
fn distance(one: &[(u32, f64)], other: &[(u32, f64)]) -> f64 {
    let mut other = other.iter().peekable();
    let mut shared = 0.0;
    for (output, probability) in one {
        while other.next_if(|(next, _)| next < output).is_some() {}
        if let Some((_, second)) = other.next_if(|(next, _)| next == output) {
            shared += f64::min(*probability, *second);
        }
    }
    (1.0 - shared).clamp(0.0, 1.0)
}

/// The distribution of the sizes of anonymity sets, by powers of ten.
fn set_sizes(seen: &SeenOutputs) -> Vec<SetSizes> {
    let mut sets = vec![SetSizes { from: 1.0, to: 1.0, probability: 0.0 }];
    for seen in seen.possible() {
        while sets.last().is_some_and(|last| seen.secrets > last.to + 0.5) {
            let from = sets.last().map_or(1.0, |last| last.to + 1.0);
            sets.push(SetSizes { from, to: if from < 2.5 { 9.0 } else { 10.0 * from - 1.0 }, probability: 0.0 });
        }
        if let Some(set) = sets.iter_mut().find(|set| seen.secrets <= set.to + 0.5) {
            set.probability += seen.probability;
        }
    }
    sets
}

/// The measures by which channels of many outputs are compared: those of [`Measures`] that need no pairs of rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KeyFigures {
    pub guessing: f64,
    pub named: f64,
    pub times_guessing: f64,
    pub information_bits: f64,
    /// As [`Measures::worst_posterior`], over outputs that are probable enough.
    pub worst_posterior: f64,
    /// As [`Measures::smallest_set`], over outputs that are probable enough.
    pub smallest_set: f64,
}

#[derive(Debug, Clone, Copy)]
struct SeenOutput {
    probability: f64,
    /// The greatest J.
    greatest: [f64; KEPT],
    /// max C.
    most_likely: f64,
    secrets: f64,
}

/// What is known of all outputs, from rows that need not be kept.
#[derive(Debug, Clone)]
struct SeenOutputs {
    outputs: Vec<SeenOutput>,
    prior: SecretSums,
    /// H(T | A) in bits.
    output_bits: f64,
}

impl KeyFigures {
    /// Those of a channel's rows, whose outputs have indexes below `outputs`. The worst cases are those of outputs that
    /// have at least this probability.
    pub fn of_rows(rows: impl IntoIterator<Item = ChannelRow>, outputs: usize, least_probability: f64) -> Self {
        SeenOutputs::of(rows, outputs).key_figures(least_probability)
    }

    pub fn of(channel: &Channel) -> Self {
        SeenOutputs::of(&channel.rows, channel.outputs).key_figures(0.0)
    }
}

impl SeenOutput {
    const NONE: Self = Self { probability: 0.0, greatest: [0.0; KEPT], most_likely: 0.0, secrets: 0.0 };

    fn best(&self, tries: usize) -> f64 {
        self.greatest.iter().take(tries).sum()
    }

    fn posterior(&self) -> f64 {
        (self.best(1) / self.probability).min(1.0)
    }
}

impl SeenOutputs {
    fn of<R: Borrow<ChannelRow>>(rows: impl IntoIterator<Item = R>, outputs: usize) -> Self {
        let mut seen = Self { outputs: vec![SeenOutput::NONE; outputs], prior: SecretSums::NONE, output_bits: 0.0 };
        rows.into_iter().for_each(|row| seen.add(row.borrow()));
        seen
    }

    fn add(&mut self, row: &ChannelRow) {
        let ChannelRow { secrets, outputs } = row;
        self.prior.add(secrets);
        for (output, probability) in outputs {
            let Some(seen) = self.outputs.get_mut(*output as usize) else { continue };
            seen.probability += secrets.weight * probability;
            seen.most_likely = seen.most_likely.max(*probability);
            seen.secrets += secrets.count;
            for weight in secrets.greatest {
                if !insert(&mut seen.greatest, weight * probability) {
                    break;
                }
            }
            self.output_bits += secrets.weight * bits(*probability);
        }
    }

    fn possible(&self) -> impl Iterator<Item = &SeenOutput> {
        self.outputs.iter().filter(|seen| seen.probability > 0.0)
    }

    fn prior_bits(&self) -> f64 {
        (-self.prior.weighted_log).max(0.0)
    }

    /// The measures that follow; the worst cases are those of outputs that have at least this probability.
    fn key_figures(&self, least_probability: f64) -> KeyFigures {
        let probable = || self.possible().filter(|seen| seen.probability >= least_probability);
        let (guessing, named) = (self.prior.most(), self.possible().map(|seen| seen.best(1)).sum::<f64>());
        // I(A; T) = H(T) − H(T | A).
        let information_bits = entropy_bits(self.possible().map(|seen| seen.probability)) - self.output_bits;
        KeyFigures {
            guessing,
            named,
            times_guessing: named / guessing,
            // Where nothing is given away it may be −0.
            information_bits: information_bits.clamp(0.0, self.prior_bits()) + 0.0,
            worst_posterior: probable().map(SeenOutput::posterior).fold(0.0, f64::max),
            smallest_set: probable().map(|seen| seen.secrets).fold(f64::INFINITY, f64::min),
        }
    }
}

pub(super) fn entropy_bits(probabilities: impl Iterator<Item = f64>) -> f64 {
    probabilities.map(bits).sum()
}

/// −p·log₂ p.
fn bits(probability: f64) -> f64 {
    -weight_log(probability)
}

#[cfg(test)]
mod tests;
