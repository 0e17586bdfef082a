//! The joint distribution of secrets and outputs, entry by entry, and samples of it: what figures are compared with.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sizeleak_inference::channel::{EpsilonKnowledge, ModelSizes, Observation, Observer, Output, ReplyNoise, SizeNoise};
use sizeleak_inference::space::{CommandGroup, CommandSpace, SizeRow, SpaceError};
use sizeleak_model::Model;

/// What an observer wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secret {
    /// Which actions a command has, and how often each.
    Command,
    /// How many actions it has.
    Number,
    /// Which kinds of device it addresses.
    Kinds,
}

/// All secrets with what is seen of them, listed one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct Joint {
    /// The number of a secret, an output, and the probability of both.
    pub entries: Vec<(u32, Output, f64)>,
}

impl Joint {
    /// What an observer sees of a secret; `None` if replies say nothing, or if there is no inventory and so no kinds.
    ///
    /// # Errors
    /// [`SpaceError`], among them [`SpaceError::TooManyCommands`].
    pub fn new(
        space: &CommandSpace,
        model: &Model,
        secret: Secret,
        observer: Observer,
        knowledge: EpsilonKnowledge,
    ) -> Result<Option<Self>, SpaceError> {
        if secret == Secret::Command {
            let Some(replies) = ReplyNoise::new(model, observer) else { return Ok(None) };
            return Self::of_commands(space, model, ModelSizes::new(model, knowledge), &replies).map(Some);
        }
        let Some(observation) = Observation::new(space, model, observer, knowledge)? else { return Ok(None) };
        let channel = if secret == Secret::Number { Some(&observation.number) } else { observation.kinds.as_ref() };
        let Some(channel) = channel else { return Ok(None) };
        let mut entries = Vec::new();
        for (secret, row) in (0..).zip(&channel.rows) {
            let outputs = row.outputs.iter().map(|(output, probability)| (observation.output(*output), *probability));
            entries.extend(outputs.map(|(output, probability)| (secret, output, row.secrets.weight * probability)));
        }
        Ok(Some(Self { entries }))
    }

    fn of_commands(
        space: &CommandSpace,
        model: &Model,
        mut sizes: ModelSizes,
        replies: &ReplyNoise<'_>,
    ) -> Result<Self, SpaceError> {
        let parts = space.listed_parts()?;
        let (mut of_sizes, mut of_replies) = (BTreeMap::new(), BTreeMap::new());
        let mut joint = Self { entries: Vec::new() };
        let (mut secrets, mut fault) = (0, None);
        space.visit_all(&parts, &mut |combination| {
            let mut counts = vec![0; model.actions.len()];
            for (part, count) in parts.iter().zip(combination.of_parts) {
                part.actions().iter().for_each(|action| counts[*action] = *count);
            }
            let (actions, varying) = (counts.iter().sum(), sizes.varying().of_counts(&counts));
            let classes = replies.of_counts(&counts);
            for (bytes, sums) in combination.by_bytes.iter() {
                let secret = secrets;
                secrets += 1;
                let of_size =
                    of_sizes.entry((bytes, varying.clone())).or_insert_with(|| sizes.sizes(bytes, actions, &varying));
                let of_reply = of_replies.entry((actions, classes.clone())).or_insert_with(|| {
                    replies.distribution(actions, &classes).unwrap_or_else(|error| {
                        fault = Some(error);
                        Vec::new()
                    })
                });
                for (size, probability) in of_size.iter() {
                    let joint_with = |(replies, share): &(Vec<u32>, f64)| {
                        let output = Output { size: *size, replies: replies.clone() };
                        (secret, output, sums.weight * combination.factor * probability * share)
                    };
                    joint.entries.extend(of_reply.iter().map(joint_with));
                }
            }
        });
        fault.map_or(Ok(joint), Err)
    }

    /// Draws entries, each with its probability.
    pub fn samples(&self, samples: u32, seed: u64) -> Vec<(u32, &Output)> {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let add = |sum: &mut f64, (_, _, probability): &(u32, Output, f64)| {
            *sum += probability;
            Some(*sum)
        };
        let sums: Vec<f64> = self.entries.iter().scan(0.0, add).collect();
        let Some(all) = sums.last().copied() else { return Vec::new() };
        let draw = |_| {
            let drawn = random.random_range(0.0..all);
            let (secret, output, _) = self.entries.get(sums.partition_point(|sum| *sum <= drawn))?;
            Some((*secret, output))
        };
        (0..samples).filter_map(draw).collect()
    }
}

/// The commands of groups by size, added up one group after the other.
pub fn rows_of_groups(groups: &[CommandGroup]) -> Vec<SizeRow> {
    let row = |CommandGroup { bytes, commands, probability }: &CommandGroup| SizeRow {
        bytes: *bytes,
        commands: *commands,
        probability: commands * probability,
        greatest: *probability,
        plogp: if *probability > 0.0 { commands * (probability * probability.log2()) } else { 0.0 },
    };
    let mut rows: BTreeMap<u64, SizeRow> = BTreeMap::new();
    for row in groups.iter().map(row) {
        rows.entry(row.bytes).and_modify(|all| all.add(&row)).or_insert(row);
    }
    rows.into_values().collect()
}
