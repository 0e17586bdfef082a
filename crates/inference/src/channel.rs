//! What an observer sees of secrets, as probabilities: the channel C(t | A) with the prior π(A).

mod command_figures;
mod key_figures;
mod measures;
mod observation;
mod repeated;
mod reply_noise;
mod size_noise;
mod varying_sizes;

use std::collections::BTreeMap;

use crate::space::{CommandGroup, SecretSums};

pub use command_figures::CommandFigures;
pub use key_figures::KeyFigures;
pub use measures::{Certainty, Measures, SetSizes, TRIES, Tries};
pub use observation::{Observation, Output};
pub use reply_noise::{Observer, ReplyClasses, ReplyNoise};
pub use size_noise::{EpsilonKnowledge, ModelSizes, SizeNoise, block_bytes};
pub use varying_sizes::VaryingSizes;

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
    /// The channel of commands whose observer sees a size, which may be random: `seen` gives the sizes that commands of
    /// some bytes are seen with, and their probabilities, which sum to 1. Returns the sizes that outputs stand for, too.
    pub fn of_sizes(groups: &[CommandGroup], seen: impl Fn(u64) -> Vec<(u64, f64)>) -> (Self, Vec<u64>) {
        let mut by_bytes: BTreeMap<u64, SecretSums> = BTreeMap::new();
        for CommandGroup { bytes, commands, probability } in groups {
            by_bytes.entry(*bytes).or_insert(SecretSums::NONE).add(&SecretSums::equal(*commands, *probability));
        }
        let rows: Vec<(SecretSums, Vec<(u64, f64)>)> =
            by_bytes.into_iter().map(|(bytes, secrets)| (secrets, seen(bytes))).collect();
        let mut sizes: Vec<u64> = rows.iter().flat_map(|(_, seen)| seen.iter().map(|(size, _)| *size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let index = |size: &u64| sizes.binary_search(size).unwrap_or_default() as u32;
        let row = |(secrets, seen): (SecretSums, Vec<(u64, f64)>)| {
            let mut by_output: BTreeMap<u32, f64> = BTreeMap::new();
            for (size, probability) in seen.iter().filter(|(_, probability)| *probability > 0.0) {
                *by_output.entry(index(size)).or_default() += probability;
            }
            ChannelRow { secrets, outputs: by_output.into_iter().collect() }
        };
        let rows = rows.into_iter().map(row).collect();
        (Self { rows, outputs: sizes.len() }, sizes)
    }

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
