//! The joint distribution of secrets and outputs, entry by entry, and samples of it: for other programs.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sizeleak_model::Model;

use sizeleak_inference::channel::{EpsilonKnowledge, ModelSizes, Observation, Observer, Output, ReplyNoise, SizeNoise};
use sizeleak_inference::space::{CommandSpace, SpaceError};

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
    pub secrets: Vec<String>,
    /// The index of a secret, an output, and the probability of both.
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
        let (names, channel): (Vec<String>, _) = match (secret, &observation.kinds) {
            (Secret::Number, _) => (observation.numbers.iter().map(u32::to_string).collect(), &observation.number),
            (_, Some(kinds)) => (observation.kind_sets.iter().map(|kinds| kind_names(model, kinds)).collect(), kinds),
            (_, None) => return Ok(None),
        };
        let mut entries = Vec::new();
        for (secret, row) in (0..).zip(&channel.rows) {
            let outputs = row.outputs.iter().map(|(output, probability)| (observation.output(*output), *probability));
            entries.extend(outputs.map(|(output, probability)| (secret, output, row.secrets.weight * probability)));
        }
        Ok(Some(Self { secrets: names, entries }))
    }

    fn of_commands(
        space: &CommandSpace,
        model: &Model,
        mut sizes: ModelSizes,
        replies: &ReplyNoise<'_>,
    ) -> Result<Self, SpaceError> {
        let parts = space.listed_parts()?;
        let (mut of_sizes, mut of_replies) = (BTreeMap::new(), BTreeMap::new());
        let mut joint = Self { secrets: Vec::new(), entries: Vec::new() };
        let mut fault = None;
        space.visit_all(&parts, &mut |combination| {
            let mut counts = vec![0; model.actions.len()];
            for (part, count) in parts.iter().zip(combination.of_parts) {
                part.actions().iter().for_each(|action| counts[*action] = *count);
            }
            let (actions, varying) = (counts.iter().sum(), sizes.varying().of_counts(&counts));
            let classes = replies.of_counts(&counts);
            for (bytes, sums) in combination.by_bytes.iter() {
                let secret = joint.secrets.len() as u32;
                joint.secrets.push(command_name(model, &counts));
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

/// A command in words, such as `2 on, 1 dim`.
pub fn command_name(model: &Model, counts: &[u32]) -> String {
    let occurring = model.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
    let words: Vec<String> = occurring.map(|(action, count)| format!("{count} {}", action.name)).collect();
    words.join(", ")
}

fn kind_names(model: &Model, kinds: &[usize]) -> String {
    let devices = model.inventory.as_ref().map_or(&[][..], |inventory| inventory.devices.as_slice());
    let names: Vec<&str> = kinds.iter().filter_map(|kind| devices.get(*kind)).map(|kind| kind.name.as_str()).collect();
    names.join(", ")
}
