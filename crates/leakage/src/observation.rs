//! What an observer sees of all commands of an inventory: a channel for each secret.

use std::collections::BTreeMap;

use sizeleak_model::Model;

use crate::channel::{Channel, ChannelRow};
use crate::command_space::{CommandSpace, Part};
use crate::device_ways::KindSet;
use crate::error::LeakageError;
use crate::reply_noise::{Observer, ReplyNoise};
use crate::secret_sums::SecretSums;
use crate::size_noise::{EpsilonKnowledge, SizeNoise};

/// The most combinations of what is seen, and the most entries of a channel.
const MAX_ENTRIES: usize = 1 << 23;

/// An output of a channel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Output {
    /// The size in bytes.
    pub size: u64,
    /// The number of replies, or that of each class; empty if they are not seen.
    pub replies: Vec<u32>,
}

/// What an observer sees of all commands.
#[derive(Debug)]
pub struct Observation {
    /// The secret is the command: which actions, and how often each.
    pub command: Channel,
    /// How many actions the commands of each row of `command` have.
    pub actions_of_rows: Vec<u32>,
    /// The secret is the number of actions.
    pub number: Channel,
    /// The number of actions of each row of `number`.
    pub numbers: Vec<u32>,
    /// The secret is which kinds of device are addressed. `None` without an inventory.
    pub kinds: Option<Channel>,
    /// The kinds of each row of `kinds`, by their index in the inventory.
    pub kind_sets: Vec<Vec<usize>>,
    /// Whether the observer sees no less than this: otherwise all measures are upper bounds.
    pub is_exact: bool,
    /// The sizes, by which outputs are numbered first.
    sizes: Vec<u64>,
    /// What is seen of replies, by which outputs are numbered then.
    replies: Vec<Vec<u32>>,
}

/// What commands have in common that look alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    bytes: usize,
    actions: u32,
    /// How many actions whose sizes vary, by distribution.
    varying: Vec<u32>,
    /// How many replies of each class should come.
    replies: Vec<u32>,
}

/// Commands that look alike.
#[derive(Debug, Clone)]
struct Row {
    secrets: SecretSums,
    /// How probable each set of kinds is.
    kinds: BTreeMap<KindSet, f64>,
}

impl Observation {
    /// What an observer sees of the commands of a model; `None` if that says no more than sizes alone. The model is that of
    /// `space`.
    ///
    /// # Errors
    /// [`LeakageError::TooMany`].
    pub fn new(
        space: &CommandSpace,
        model: &Model,
        observer: Observer,
        knowledge: EpsilonKnowledge,
    ) -> Result<Option<Self>, LeakageError> {
        let Some(replies) = ReplyNoise::new(model, observer) else { return Ok(None) };
        let sizes = SizeNoise::new(model, knowledge);
        let rows = rows(space, &sizes, &replies)?;
        Seen::new(&rows, &sizes, &replies)
            .map(|seen| Some(seen.observation(&rows, replies.is_exact(), space.has_kinds())))
    }

    /// What an output stands for.
    pub fn output(&self, index: u32) -> Output {
        let replies = self.replies.len().max(1);
        let (size, reply) = (index as usize / replies, index as usize % replies);
        Output {
            size: self.sizes.get(size).copied().unwrap_or(0),
            replies: self.replies.get(reply).cloned().unwrap_or_default(),
        }
    }
}

/// All commands, in rows that look alike.
fn rows(
    space: &CommandSpace,
    sizes: &SizeNoise,
    replies: &ReplyNoise<'_>,
) -> Result<BTreeMap<RowKey, Row>, LeakageError> {
    let parts = space.parts(|action| (sizes.varying(action), replies.of_action(action)));
    space.check(&parts)?;
    let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
    let mut is_too_many = false;
    space.visit(&parts, |action| sizes.varying(action).is_none(), &mut |combination| {
        let actions = combination.of_classes.iter().sum();
        let mut varying = vec![0; sizes.distributions()];
        let mut classes = replies.of_command().to_vec();
        for (part, count) in parts.iter().zip(combination.of_parts) {
            let Some(action) = part.first_action() else { continue };
            if let Some(varying) = sizes.varying(action).and_then(|at| varying.get_mut(at)) {
                *varying += count;
            }
            for (class, sent) in classes.iter_mut().zip(replies.of_action(action)) {
                *class += sent * count;
            }
        }
        let kinds = space.kind_shares(combination.of_classes);
        for (bytes, sums) in combination.spread.cells() {
            let key = RowKey { bytes, actions, varying: varying.clone(), replies: classes.clone() };
            let row = rows.entry(key).or_insert_with(|| Row { secrets: SecretSums::NONE, kinds: BTreeMap::new() });
            let sums = sums.scaled(combination.factor);
            row.secrets.add(&sums);
            for (set, share) in &kinds {
                *row.kinds.entry(*set).or_default() += sums.weight * share;
            }
        }
        is_too_many |= rows.len() > MAX_ENTRIES / 8;
    });
    if is_too_many { Err(LeakageError::TooMany) } else { Ok(rows) }
}

impl Part {
    fn first_action(&self) -> Option<usize> {
        self.actions().first().copied()
    }
}

/// What is seen of rows, with outputs numbered.
struct Seen {
    sizes: Vec<u64>,
    replies: Vec<Vec<u32>>,
    of_rows: Vec<Vec<(u32, f64)>>,
}

impl Seen {
    fn new(
        rows: &BTreeMap<RowKey, Row>,
        size_noise: &SizeNoise,
        reply_noise: &ReplyNoise<'_>,
    ) -> Result<Self, LeakageError> {
        let (mut of_sizes, mut of_replies) = (BTreeMap::new(), BTreeMap::new());
        for RowKey { bytes, actions, varying, replies } in rows.keys() {
            of_sizes.entry((*bytes, varying.as_slice())).or_insert_with(|| size_noise.sizes(*bytes, varying));
            let distribution = || reply_noise.distribution(*actions, replies);
            of_replies.entry((*actions, replies.as_slice())).or_insert_with(distribution);
        }
        let mut sizes: Vec<u64> = of_sizes.values().flatten().map(|(size, _)| *size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut replies: Vec<Vec<u32>> = of_replies.values().flatten().map(|(seen, _)| seen.clone()).collect();
        replies.sort_unstable();
        replies.dedup();
        if sizes.len().saturating_mul(replies.len()) > MAX_ENTRIES {
            return Err(LeakageError::TooMany);
        }
        let mut entries = 0;
        let mut of_rows = Vec::with_capacity(rows.len());
        for RowKey { bytes, actions, varying, replies: classes } in rows.keys() {
            let (Some(of_size), Some(of_reply)) =
                (of_sizes.get(&(*bytes, varying.as_slice())), of_replies.get(&(*actions, classes.as_slice())))
            else {
                continue;
            };
            let indexed: Vec<(usize, f64)> = of_reply
                .iter()
                .map(|(seen, probability)| (replies.binary_search(seen).unwrap_or_default(), *probability))
                .collect();
            let mut outputs = Vec::with_capacity(of_size.len() * indexed.len());
            for (size, probability) in of_size {
                let first = sizes.binary_search(size).unwrap_or_default() * replies.len();
                outputs.extend(indexed.iter().map(|(reply, share)| ((first + reply) as u32, probability * share)));
            }
            outputs.sort_unstable_by_key(|(output, _)| *output);
            entries += outputs.len();
            if entries > MAX_ENTRIES {
                return Err(LeakageError::TooMany);
            }
            of_rows.push(outputs);
        }
        Ok(Self { sizes, replies, of_rows })
    }

    fn observation(self, rows: &BTreeMap<RowKey, Row>, is_exact: bool, has_kinds: bool) -> Observation {
        let outputs = self.sizes.len() * self.replies.len();
        let of_rows = || rows.iter().zip(&self.of_rows);
        let (numbers, number) = mixed(
            outputs,
            of_rows().map(|((key, row), outputs)| (key.actions, row.secrets.weight, outputs.as_slice())),
        );
        let of_kinds = of_rows().flat_map(|((_, row), outputs)| {
            row.kinds.iter().map(move |(set, weight)| (*set, *weight, outputs.as_slice()))
        });
        let (kind_sets, kinds) = mixed(outputs, of_kinds);
        let members = |set: KindSet| (0..KindSet::BITS as usize).filter(|kind| set >> kind & 1 == 1).collect();
        let actions_of_rows = rows.keys().map(|key| key.actions).collect();
        let command_rows =
            rows.values().zip(self.of_rows).map(|(row, outputs)| ChannelRow { secrets: row.secrets, outputs });
        Observation {
            command: Channel { rows: command_rows.collect(), outputs },
            actions_of_rows,
            number,
            numbers,
            kinds: has_kinds.then_some(kinds),
            kind_sets: kind_sets.into_iter().map(members).collect(),
            is_exact,
            sizes: self.sizes,
            replies: self.replies,
        }
    }
}

/// The channel of secrets that are told by a number, each of which is some rows with a weight.
fn mixed<'a>(outputs: usize, rows: impl Iterator<Item = (u32, f64, &'a [(u32, f64)])>) -> (Vec<u32>, Channel) {
    let mut joint: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
    for (secret, weight, of_row) in rows.filter(|(_, weight, _)| *weight > 0.0) {
        let of_secret = joint.entry(secret).or_default();
        for (output, probability) in of_row {
            *of_secret.entry(*output).or_default() += weight * probability;
        }
    }
    let secrets = joint.keys().copied().collect();
    let row = |of_secret: BTreeMap<u32, f64>| {
        let weight: f64 = of_secret.values().sum();
        let outputs = of_secret.into_iter().map(|(output, joint)| (output, joint / weight)).collect();
        ChannelRow { secrets: SecretSums::one(weight), outputs }
    };
    (secrets, Channel { rows: joint.into_values().map(row).collect(), outputs })
}
