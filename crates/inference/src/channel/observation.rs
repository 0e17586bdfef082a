//! What an observer sees of all commands of an inventory: a channel for each secret.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;

use sizeleak_model::Model;

use super::reply_noise::{Observer, ReplyNoise};
use super::size_noise::{EpsilonKnowledge, ModelSizes, SizeNoise};
use super::{Channel, ChannelRow};
use crate::space::{CommandSpace, SecretSums, SpaceError, TypeSet};

const MAX_ENTRIES: usize = 1 << 24;

const MAX_OUTPUTS: usize = 1 << 20;

const MAX_ROWS: usize = 1 << 18;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Output {
    /// The size in bytes.
    pub size: u64,
    /// The number of replies, or that of each class; empty if they are not seen.
    pub replies: Vec<u32>,
}

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
    /// Whether the observer sees no less than this: otherwise all measures are upper bounds.
    pub is_exact: bool,
    sizes: Vec<u64>,
    replies: Vec<Vec<u32>>,
    /// The size and the replies of each output, by their index.
    outputs: Vec<(u32, u32)>,
}

/// What commands have in common that look alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey {
    pub(super) bytes: i64,
    pub(super) actions: u32,
    /// How many actions whose sizes vary, by distribution.
    pub(super) varying: Vec<u32>,
    /// How many replies of each class should come.
    pub(super) replies: Vec<u32>,
}

/// Commands that look alike.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) secrets: SecretSums,
    kinds: BTreeMap<TypeSet, f64>,
}

impl Observation {
    /// What an observer sees of the commands of a model; `None` if that says no more than sizes alone. The model is that of
    /// `space`.
    ///
    /// # Errors
    /// [`SpaceError::TooMany`].
    pub fn new(
        space: &CommandSpace,
        model: &Model,
        observer: Observer,
        knowledge: EpsilonKnowledge,
    ) -> Result<Option<Self>, SpaceError> {
        let Some(replies) = ReplyNoise::new(model, observer) else { return Ok(None) };
        let mut sizes = ModelSizes::new(model, knowledge);
        let rows = rows(space, &sizes, &replies)?;
        let mut see = |replies: &ReplyNoise<'_>| {
            let seen = Seen::new(&rows, &mut sizes, replies, MAX_ENTRIES)?;
            Ok(seen.observation(&rows, replies.is_exact(), space.ways.is_some()))
        };
        match (see(&replies), replies.without_loss()) {
            (Err(SpaceError::TooMany), Some(replies)) => see(&replies).map(Some),
            (seen, _) => seen.map(Some),
        }
    }

    pub fn output(&self, index: u32) -> Output {
        let (size, replies) = self.outputs.get(index as usize).copied().unwrap_or_default();
        Output {
            size: self.sizes.get(size as usize).copied().unwrap_or(0),
            replies: self.replies.get(replies as usize).cloned().unwrap_or_default(),
        }
    }
}

/// All commands, in rows that look alike.
pub(super) fn rows(
    space: &CommandSpace,
    sizes: &impl SizeNoise,
    replies: &ReplyNoise<'_>,
) -> Result<BTreeMap<RowKey, Row>, SpaceError> {
    let parts = space.parts(|action| (sizes.varying().of_action(action), replies.of_action(action)));
    space.check(&parts)?;
    let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
    let walk = space.visit(&parts, &mut |combination| {
        let actions = combination.of_classes.iter().sum();
        // The actions of a part look alike, so that it does not matter which of them occur.
        let mut counts = vec![0; space.actions()];
        parts.iter().zip(combination.of_parts).for_each(|(part, count)| counts[part.actions()[0]] = *count);
        let (varying, classes) = (sizes.varying().of_counts(&counts), replies.of_counts(&counts));
        let kinds = space.ways.as_ref().map_or_else(Vec::new, |ways| ways.shares(combination.of_classes));
        if rows.len() > MAX_ROWS {
            return ControlFlow::Break(());
        }
        for (bytes, sums) in combination.by_bytes.iter() {
            let key = RowKey { bytes, actions, varying: varying.clone(), replies: classes.clone() };
            let row = rows.entry(key).or_insert_with(|| Row { secrets: SecretSums::NONE, kinds: BTreeMap::new() });
            let sums = sums.scaled(combination.factor);
            row.secrets.add(&sums);
            for (set, share) in &kinds {
                *row.kinds.entry(*set).or_default() += sums.weight * share;
            }
        }
        ControlFlow::Continue(())
    });
    if walk.is_break() { Err(SpaceError::TooMany) } else { Ok(rows) }
}

/// What is seen of rows, with outputs numbered.
struct Seen {
    sizes: Vec<u64>,
    replies: Vec<Vec<u32>>,
    outputs: Vec<(u32, u32)>,
    of_rows: Vec<Vec<(u32, f64)>>,
}

impl Seen {
    fn new(
        rows: &BTreeMap<RowKey, Row>,
        size_noise: &mut impl SizeNoise,
        reply_noise: &ReplyNoise<'_>,
        most_entries: usize,
    ) -> Result<Self, SpaceError> {
        let (mut sizes, mut replies, mut outputs) = (Numbering::default(), Numbering::default(), Numbering::default());
        let mut of_replies: NumberedReplies<'_> = BTreeMap::new();
        for RowKey { actions, replies: classes, .. } in rows.keys() {
            if let Entry::Vacant(entry) = of_replies.entry((*actions, classes.as_slice())) {
                entry.insert(replies.number_all(reply_noise.distribution(*actions, classes)?));
            }
        }
        check_least_entries(rows, size_noise, &of_replies, most_entries)?;
        let mut of_sizes = BTreeMap::new();
        let mut entries = 0;
        let mut of_rows = Vec::with_capacity(rows.len());
        for RowKey { bytes, actions, varying, replies: classes } in rows.keys() {
            let of_size = of_sizes
                .entry((*bytes, *actions, varying.as_slice()))
                .or_insert_with(|| sizes.number_all(size_noise.sizes(*bytes, *actions, varying)));
            let of_reply = of_replies.get(&(*actions, classes.as_slice())).map_or(&[][..], Vec::as_slice);
            entries += of_size.len() * of_reply.len();
            if entries > most_entries || outputs.0.len() > MAX_OUTPUTS {
                return Err(SpaceError::TooMany);
            }
            let mut of_row = Vec::with_capacity(of_size.len() * of_reply.len());
            for (size, probability) in of_size.iter() {
                let with = |(reply, share): &(u32, f64)| (outputs.number((*size, *reply)), probability * share);
                of_row.extend(of_reply.iter().map(with));
            }
            of_row.sort_unstable_by_key(|(output, _)| *output);
            of_rows.push(of_row);
        }
        let (sizes, replies, outputs) = (sizes.in_order(), replies.in_order(), outputs.in_order());
        Ok(Self { sizes, replies, outputs, of_rows })
    }

    fn observation(self, rows: &BTreeMap<RowKey, Row>, is_exact: bool, has_kinds: bool) -> Observation {
        let outputs = self.outputs.len();
        let of_rows = || rows.iter().zip(&self.of_rows);
        let (numbers, number) = mixed(
            outputs,
            of_rows().map(|((key, row), outputs)| (key.actions, row.secrets.weight, outputs.as_slice())),
        );
        let of_kinds = of_rows().flat_map(|((_, row), outputs)| {
            row.kinds.iter().map(move |(set, weight)| (*set, *weight, outputs.as_slice()))
        });
        let (_, kinds) = mixed(outputs, of_kinds);
        let actions_of_rows = rows.keys().map(|key| key.actions).collect();
        let command_rows =
            rows.values().zip(self.of_rows).map(|(row, outputs)| ChannelRow { secrets: row.secrets, outputs });
        Observation {
            command: Channel { rows: command_rows.collect(), outputs },
            actions_of_rows,
            number,
            numbers,
            kinds: has_kinds.then_some(kinds),
            is_exact,
            sizes: self.sizes,
            replies: self.replies,
            outputs: self.outputs,
        }
    }
}

/// What is seen of the replies to rows, by their numbers of actions and of replies of each class.
type NumberedReplies<'a> = BTreeMap<(u32, &'a [u32]), Vec<(u32, f64)>>;

/// Checks that rows do not have more than `most` entries for sure, which takes much less time than to compute these.
fn check_least_entries(
    rows: &BTreeMap<RowKey, Row>,
    noise: &mut impl SizeNoise,
    of_replies: &NumberedReplies<'_>,
    most: usize,
) -> Result<(), SpaceError> {
    let mut least_sizes = BTreeMap::new();
    let mut entries = 0_usize;
    for RowKey { bytes, actions, varying, replies } in rows.keys() {
        let sizes =
            least_sizes.entry((*bytes, varying.as_slice())).or_insert_with(|| noise.least_sizes(*bytes, varying));
        let of_reply = of_replies.get(&(*actions, replies.as_slice())).map_or(0, Vec::len);
        entries = entries.saturating_add(of_reply.saturating_mul(*sizes));
        if entries > most {
            return Err(SpaceError::TooMany);
        }
    }
    Ok(())
}

/// Numbers of values, in the order in which they are first seen.
#[derive(Default)]
struct Numbering<T>(BTreeMap<T, u32>);

impl<T: Ord> Numbering<T> {
    fn number(&mut self, value: T) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(value).or_insert(next)
    }

    fn number_all(&mut self, distribution: Vec<(T, f64)>) -> Vec<(u32, f64)> {
        distribution.into_iter().map(|(value, probability)| (self.number(value), probability)).collect()
    }

    fn in_order(self) -> Vec<T> {
        let mut values: Vec<(T, u32)> = self.0.into_iter().collect();
        values.sort_unstable_by_key(|(_, number)| *number);
        values.into_iter().map(|(value, _)| value).collect()
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

#[cfg(test)]
mod tests {
    use sizeleak_model::{Action, Device, Inventory};

    use super::*;
    use crate::space::{Premises, PriorName};

    const PREMISES: Premises = Premises { prior: PriorName::Flat, decay: None };

    /// The bundled home with so many lamps of four actions, each of so many sizes.
    fn model(lamps: u32, several: i64) -> Model {
        let mut model = Model::from_toml(include_str!("../../../../examples/home/model.toml")).unwrap();
        let names = ["a", "b", "c", "d"];
        let sizes = |at: i64| (0..several).map(move |more| (30 + at + more * (at + 1), 1.0));
        let action = |(name, at): (&&str, i64)| Action::of_sizes(*name, &sizes(at).collect::<Vec<_>>()).unwrap();
        model.actions = names.iter().zip(0..).map(action).collect();
        let actions = names.map(str::to_owned).to_vec();
        model.inventory =
            Some(Inventory { devices: vec![Device { name: "lamp".to_owned(), count: lamps, actions, safe: true }] });
        model.prior = None;
        model
    }

    #[test]
    fn too_many_sizes_are_refused_before_a_distribution_of_sizes_is_computed() {
        let model = model(4, 5);
        let space = CommandSpace::new(&model, &PREMISES).unwrap();
        let mut sizes = ModelSizes::new(&model, EpsilonKnowledge::Distribution);
        let rows = rows(&space, &sizes, &ReplyNoise::Unseen).unwrap();
        let least: usize = rows.keys().map(|key| sizes.least_sizes(key.bytes, &key.varying)).sum();
        let mut see = |most| {
            let seen = Seen::new(&rows, &mut sizes, &ReplyNoise::Unseen, most);
            (seen.err(), sizes.distributions_made)
        };
        assert_eq!(see(least - 1), (Some(SpaceError::TooMany), 0));
        assert_eq!(see(MAX_ENTRIES), (None, rows.len()));
    }

    #[test]
    fn no_more_sizes_are_counted_than_are_seen() {
        let model = model(4, 5);
        for knowledge in [EpsilonKnowledge::Distribution, EpsilonKnowledge::Value] {
            let mut sizes = ModelSizes::new(&model, knowledge);
            for varying in [[0, 0, 0, 0], [1, 0, 0, 0], [0, 2, 1, 0], [1, 1, 1, 1], [0, 0, 0, 4]] {
                let (least, seen) =
                    (sizes.least_sizes(40, &varying), sizes.sizes(40, varying.iter().sum(), &varying).len());
                assert!(least <= seen && seen <= 40 * least, "{varying:?}: {least} of {seen}");
                assert!(knowledge == EpsilonKnowledge::Distribution || least == seen, "{varying:?}: {least} of {seen}");
            }
        }
    }

    #[test]
    fn a_walk_over_combinations_ends_where_it_is_broken_off() {
        let model = model(6, 5);
        let space = CommandSpace::new(&model, &PREMISES).unwrap();
        let parts = space.parts(|action| action);
        let mut visits = 0;
        let walk = space.visit(&parts, &mut |_| {
            visits += 1;
            if visits == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(walk.is_break() && space.combinations(&parts) > 3.0);
        assert_eq!(visits, 3);
    }
}
