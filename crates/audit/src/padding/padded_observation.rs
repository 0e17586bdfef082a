//! What an observer of padded commands learns, from what the observer of unpadded ones would see.

use std::collections::BTreeMap;

use crate::leakage::Learned;
use sizeleak_inference::channel::{Channel, ChannelRow, Observation, Output};
use sizeleak_inference::space::{CommandGroup, SizeRow};

use crate::padding::coarse_groups::coarse_groups;
use sizeleak_model::policies::PaddingPolicy;

use crate::padding::sparse_sums::SparseSums;

/// What padding makes of everything that an observer sees.
#[derive(Debug, Clone)]
pub struct PaddedOutputs {
    /// Of each output, the padded ones with their probabilities.
    of_outputs: Vec<Vec<(u32, f64)>>,
    outputs: usize,
}

impl PaddedOutputs {
    /// Pads what is seen of commands. Padding is drawn anew for each command; an observer who sees one command learns no
    /// less where it is drawn by an unknown key.
    pub fn new(observation: &Observation, policy: &PaddingPolicy) -> Self {
        Self::with_replies(observation, policy, |replies| replies)
    }

    /// The same where replies of all classes have one size, so that only their number is seen.
    pub(crate) fn with_replies_of_one_size(observation: &Observation, policy: &PaddingPolicy) -> Self {
        Self::with_replies(observation, policy, |replies| vec![replies.iter().sum()])
    }

    /// Pads commands whose replies are seen as `form` makes them.
    fn with_replies(observation: &Observation, policy: &PaddingPolicy, form: impl Fn(Vec<u32>) -> Vec<u32>) -> Self {
        let mut numbers: BTreeMap<Output, u32> = BTreeMap::new();
        let mut of_output = |index: u32| {
            let Output { size, replies } = observation.output(index);
            let replies = form(replies);
            let mut seen: BTreeMap<u32, f64> = BTreeMap::new();
            for padded in policy.padded_sizes(size) {
                let next = numbers.len() as u32;
                let output = Output { size: padded.bytes, replies: replies.clone() };
                let number = *numbers.entry(output).or_insert(next);
                *seen.entry(number).or_default() += padded.probability;
            }
            seen.into_iter().collect()
        };
        let of_outputs = (0..observation.command.outputs as u32).map(&mut of_output).collect();
        Self { of_outputs, outputs: numbers.len() }
    }

    /// What is seen of the secrets of a channel.
    pub fn channel(&self, channel: &Channel) -> Channel {
        let mut seen = SparseSums::new(self.outputs);
        let row = |row: &ChannelRow| {
            for (output, probability) in &row.outputs {
                for (padded, share) in self.of_outputs.get(*output as usize).into_iter().flatten() {
                    seen.add(*padded, probability * share);
                }
            }
            ChannelRow { secrets: row.secrets, outputs: seen.take() }
        };
        Channel { rows: channel.rows.iter().map(row).collect(), outputs: self.outputs }
    }

    /// What is learned about each secret of the observation.
    pub fn learned(&self, observation: &Observation) -> Learned {
        Learned {
            is_exact: observation.is_exact,
            command: self.channel(&observation.command).measures(),
            number: self.channel(&observation.number).measures(),
            kinds: observation.kinds.as_ref().map(|kinds| self.channel(kinds).measures()),
        }
    }
}

/// The commands of an observation by the size that is seen. A command that is seen with several sizes counts as several,
/// so that the leakage of a bucket with some of them is a lower bound.
pub fn seen_rows(observation: &Observation) -> Vec<SizeRow> {
    let mut rows: BTreeMap<u64, SizeRow> = BTreeMap::new();
    for row in &observation.command.rows {
        for (output, probability) in &row.outputs {
            let bytes = observation.output(*output).size;
            let empty = SizeRow { bytes, commands: 0.0, probability: 0.0, greatest: 0.0, plogp: 0.0 };
            let part = row.secrets.scaled(*probability);
            rows.entry(bytes).or_insert(empty).add(&SizeRow {
                bytes,
                commands: part.count,
                probability: part.weight,
                greatest: part.most(),
                plogp: part.weighted_log,
            });
        }
    }
    rows.into_values().collect()
}

/// The commands of an observation by the size that is seen and their probability. A command that is seen with several
/// sizes counts as several, and rare commands that look alike are taken to be as probable as they are on average: so a
/// floor for these groups is one for the commands.
pub fn seen_groups(observation: &Observation) -> Vec<CommandGroup> {
    coarse_groups(observation, 1)
}
