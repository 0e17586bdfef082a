//! What an observer sees of secrets, as probabilities: the channel C(t | A) with the prior π(A); and what is given away
//! by several observations of the same secret, where what is seen of it is random.

mod command_figures;
mod measures;
mod observation;
mod reply_noise;
mod size_noise;

use std::collections::BTreeMap;

use crate::space::SecretSums;

pub use command_figures::CommandFigures;
pub use measures::{Certainty, KeyFigures, Measures, SetSizes, TRIES, Tries};
pub use observation::{Observation, Output};
pub use reply_noise::{Observer, ReplyClasses, ReplyNoise};
pub use size_noise::{EpsilonKnowledge, ModelSizes, SizeNoise, VaryingSizes, block_bytes};

/// Secrets of which the observer sees the same, with the same probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelRow {
    /// The secrets. Weights are prior probabilities.
    pub secrets: SecretSums,
    /// C(t | A): the outputs t by their index, in ascending order, with their probabilities, which are above 0 and sum to 1.
    pub outputs: Vec<(u32, f64)>,
}

/// All secrets with what is seen of them. The prior probabilities of all rows sum to 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Channel {
    /// The rows; several may have the same outputs.
    pub rows: Vec<ChannelRow>,
    /// The number of outputs: their indexes are below it.
    pub outputs: usize,
}

impl Channel {
    /// The same channel with one row for all secrets of which the same is seen.
    #[must_use]
    pub fn merged(&self) -> Self {
        let mut merged: BTreeMap<Vec<(u32, u64)>, ChannelRow> = BTreeMap::new();
        for row in &self.rows {
            let key = row.outputs.iter().map(|(output, probability)| (*output, probability.to_bits())).collect();
            let none = || ChannelRow { secrets: SecretSums::NONE, outputs: row.outputs.clone() };
            merged.entry(key).or_insert_with(none).secrets.add(&row.secrets);
        }
        Self { rows: merged.into_values().collect(), outputs: self.outputs }
    }
}

const MAX_COMBINATIONS: usize = 1 << 21;

impl Channel {
    /// V after so many independent observations of the same secret: Σ over outputs t₁ … tₙ of max π(A) Π C(tᵢ | A).
    /// `None` if there are too many combinations of outputs.
    pub fn named_after(&self, observations: u32) -> Option<f64> {
        let mut greatest: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        let mut combinations = 0_usize;
        for row in &self.merged().rows {
            let most = row.secrets.most();
            // Multisets of outputs with the probability of one order of them, and how many orders there are.
            let mut found = vec![(Vec::new(), 1.0, 1.0)];
            for at in 0..observations {
                let mut more = Vec::new();
                for (outputs, probability, orders) in found {
                    let last = outputs.last().copied();
                    for (output, of_output) in
                        row.outputs.iter().filter(|(output, _)| last.is_none_or(|last| *output >= last))
                    {
                        let mut outputs: Vec<u32> = outputs.clone();
                        outputs.push(*output);
                        let same = outputs.iter().filter(|other| *other == output).count() as f64;
                        more.push((outputs, probability * of_output, orders * f64::from(at + 1) / same));
                    }
                    if combinations + more.len() > MAX_COMBINATIONS {
                        return None;
                    }
                }
                found = more;
            }
            combinations += found.len();
            for (outputs, probability, orders) in found {
                let joint = greatest.entry(outputs).or_default();
                *joint = joint.max(most * probability * orders);
            }
        }
        Some(greatest.into_values().sum())
    }

    /// [`Self::named_after`] two observations, for any number of outputs.
    pub fn named_after_two(&self) -> f64 {
        // By the first output, the rows that have it, and how probable their most probable secret is with it.
        let mut of_first: BTreeMap<u32, Vec<(f64, &ChannelRow)>> = BTreeMap::new();
        for row in &self.rows {
            for (first, probability) in &row.outputs {
                of_first.entry(*first).or_default().push((row.secrets.most() * probability, row));
            }
        }
        let mut greatest = vec![0.0_f64; self.outputs];
        let mut named = 0.0;
        for rows in of_first.values() {
            for (joint, row) in rows {
                for (second, probability) in &row.outputs {
                    if let Some(greatest) = greatest.get_mut(*second as usize) {
                        *greatest = greatest.max(joint * probability);
                    }
                }
            }
            named += greatest.iter_mut().map(std::mem::take).sum::<f64>();
        }
        named
    }

    /// V after any number of observations: secrets of which the same is seen stay apart from no other.
    pub fn named_in_the_end(&self) -> f64 {
        self.merged().rows.iter().map(|row| row.secrets.most()).sum()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn channel() -> Channel {
        let row = |probability: f64, outputs: &[(u32, f64)]| ChannelRow {
            secrets: SecretSums::one(probability),
            outputs: outputs.to_vec(),
        };
        Channel {
            rows: vec![
                row(0.5, &[(0, 0.75), (1, 0.25)]),
                row(0.3, &[(0, 0.25), (1, 0.75)]),
                row(0.2, &[(0, 0.25), (1, 0.75)]),
            ],
            outputs: 2,
        }
    }

    #[test]
    fn several_observations_name_what_their_sequences_name() {
        for observations in 1..5_u32 {
            // Every sequence of outputs as the bits of a number.
            let named: f64 = (0..1_u32 << observations)
                .map(|sequence| {
                    let joint = |row: &ChannelRow| {
                        let of_bit = |bit: u32| row.outputs[(sequence >> bit & 1) as usize].1;
                        row.secrets.weight * (0..observations).map(of_bit).product::<f64>()
                    };
                    channel().rows.iter().map(joint).fold(0.0, f64::max)
                })
                .sum();
            let found = channel().named_after(observations).unwrap();
            assert!((found - named).abs() < 1e-12, "{observations}: {found} is not {named}");
        }
        assert!((channel().named_after(1).unwrap() - channel().measures().named).abs() < 1e-12);
        assert!((channel().named_after(2).unwrap() - channel().named_after_two()).abs() < 1e-12);
    }

    #[test]
    fn in_the_end_only_secrets_that_look_alike_are_not_told_apart() {
        assert!((channel().named_in_the_end() - 0.8).abs() < 1e-12);
        let (many, end) = (channel().named_after(40).unwrap(), channel().named_in_the_end());
        assert!(many < end && end - many < 1e-3, "{many}");
    }

    #[test]
    fn too_many_combinations_are_not_summed_over() {
        let outputs = (0..200).map(|output| (output, 0.005)).collect();
        let row = ChannelRow { secrets: SecretSums::one(1.0), outputs };
        assert_eq!(Channel { rows: vec![row], outputs: 200 }.named_after(4), None);
    }
}
