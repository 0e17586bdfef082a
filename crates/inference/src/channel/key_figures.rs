//! What is known of each output of a channel, collected row by row, and the measures that follow from it alone.

use std::borrow::Borrow;

use serde::Serialize;

use crate::channel::{Channel, ChannelRow};
use crate::space::{KEPT, SecretSums, insert, weight_log};

/// The measures by which channels of many outputs are compared: those of [`super::Measures`] that need no pairs of rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KeyFigures {
    /// V₀, as [`super::Measures::guessing`].
    pub guessing: f64,
    /// V, as [`super::Measures::named`].
    pub named: f64,
    /// V / V₀, as [`super::Measures::times_guessing`].
    pub times_guessing: f64,
    /// I(A; T), as [`super::Measures::information_bits`].
    pub information_bits: f64,
    /// As [`super::Measures::worst_posterior`], over outputs that are probable enough.
    pub worst_posterior: f64,
    /// As [`super::Measures::smallest_set`], over outputs that are probable enough.
    pub smallest_set: f64,
}

/// What is known of an output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenOutput {
    pub(crate) probability: f64,
    /// The greatest J.
    greatest: [f64; KEPT],
    /// max C.
    pub(crate) most_likely: f64,
    /// How many secrets are possible.
    pub(crate) secrets: f64,
}

/// What is known of all outputs, from rows that need not be kept.
#[derive(Debug, Clone)]
pub(crate) struct SeenOutputs {
    outputs: Vec<SeenOutput>,
    /// All secrets together.
    pub(crate) prior: SecretSums,
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

    /// The sum of the k greatest J.
    pub(crate) fn best(&self, tries: usize) -> f64 {
        self.greatest.iter().take(tries).sum()
    }

    pub(crate) fn posterior(&self) -> f64 {
        (self.best(1) / self.probability).min(1.0)
    }
}

impl SeenOutputs {
    /// From rows whose outputs have indexes below `outputs`.
    pub(crate) fn of<R: Borrow<ChannelRow>>(rows: impl IntoIterator<Item = R>, outputs: usize) -> Self {
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

    /// The outputs that may be seen.
    pub(crate) fn possible(&self) -> impl Iterator<Item = &SeenOutput> {
        self.outputs.iter().filter(|seen| seen.probability > 0.0)
    }

    pub(crate) fn prior_bits(&self) -> f64 {
        (-self.prior.weighted_log).max(0.0)
    }

    /// The measures that follow; the worst cases are those of outputs that have at least this probability.
    pub(crate) fn key_figures(&self, least_probability: f64) -> KeyFigures {
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
