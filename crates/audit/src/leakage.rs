//! Says what the sizes of commands give away about them, exactly, over all commands of an inventory: all figures of an
//! audit, and which commands have the same size.

mod model_observer;

use std::convert::Infallible;

use serde::Serialize;
use sizeleak_inference::channel::{Channel, EpsilonKnowledge, Measures, Observation, Observer, block_bytes};
use sizeleak_inference::space::{CommandSpace, Premises, SpaceError};
use sizeleak_model::{Inventory, InventoryError, Model};

pub use model_observer::{ModelObserver, NamedSecrets};

/// The model with another inventory, without the actions that none of its devices has, and the names of these. What was
/// learned of habits stays: the shares of the actions that are left relative to each other.
pub fn with_inventory(mut model: Model, inventory: Inventory) -> Result<(Model, Vec<String>), InventoryError> {
    inventory.check()?;
    let names = inventory.action_names();
    let is_kept: Vec<bool> = model.actions.iter().map(|action| names.contains(&action.name.as_str())).collect();
    let gone = model.actions.iter().zip(&is_kept).filter(|(_, kept)| !**kept).map(|(action, _)| action.name.clone());
    let gone: Vec<String> = gone.collect();
    keep(&mut model.actions, &is_kept);
    if let Some(prior) = &mut model.prior {
        keep(&mut prior.shares, &is_kept);
        let occurs = |counts: &[u32]| counts.iter().zip(&is_kept).all(|(count, kept)| *kept || *count == 0);
        prior.recurring.retain(|command| occurs(&command.counts));
        prior.recurring.iter_mut().for_each(|command| keep(&mut command.counts, &is_kept));
    }
    if let Some(replies) = &mut model.single_replies {
        keep(&mut replies.per_action, &is_kept);
    }
    model.inventory = Some(inventory);
    Ok((model, gone))
}

fn keep<T>(values: &mut Vec<T>, is_kept: &[bool]) {
    let mut kept = is_kept.iter().copied();
    values.retain(|_| kept.next().unwrap_or(true));
}

/// Sizes of the same command are seen so often.
const OBSERVATIONS: [u32; 2] = [2, 3];

/// Collisions of commands of up to so many actions are listed.
const LISTED_ACTIONS: u32 = 2;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    pub commands: f64,
    /// How many different sizes they have, without ε.
    pub sizes: usize,
    pub most_actions: u32,
    /// The probability of commands of more actions, which are left out.
    pub left_out: f64,
    /// The bytes that sizes are multiples of on the wire, under a block cipher or with padding.
    pub block_bytes: Option<u64>,
    pub by_size: Learned,
    /// The same if ε is known; where sizes are seen in blocks, the same if ε were always 0.
    pub with_known_epsilon: Learned,
    /// The same with the number of replies; `None` if it says nothing, or is among `too_many`.
    pub with_reply_count: Option<Learned>,
    /// The same with the size of each reply; `None` if that says nothing, or is among `too_many`.
    pub with_replies: Option<Learned>,
    /// The observers who see too many combinations to sum over.
    pub too_many: Vec<Observer>,
    /// V of the command after several sizes of the same command.
    pub repeated: Vec<Repeated>,
    /// V of the command after any number of them.
    pub in_the_end: f64,
    pub by_number: Vec<NumberRow>,
    /// Commands of one or two actions that have the same size.
    pub collisions: Vec<Collision>,
}

/// What an observer learns about each secret.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Learned<F = Measures> {
    /// Whether the figures are exact; else they are those of an observer who sees more, and measures of leakage are upper bounds.
    pub is_exact: bool,
    pub command: F,
    /// About the number of actions, which is the number of devices.
    pub number: F,
    /// About which kinds of device are addressed; `None` without an inventory.
    pub kinds: Option<F>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Repeated {
    pub observations: u32,
    /// The probability that the best guess is right; `None` if there are too many combinations.
    pub named: Option<f64>,
}

impl Audit {
    pub fn new(model: &Model, premises: &Premises) -> Result<Self, SpaceError> {
        let space = CommandSpace::new(model, premises)?;
        let see = |observer, knowledge| Observation::new(&space, model, observer, knowledge);
        let of_sizes = |knowledge| see(Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany);
        let by_size = of_sizes(EpsilonKnowledge::Distribution)?;
        let without_epsilon = of_sizes(EpsilonKnowledge::Value)?;
        let mut too_many = Vec::new();
        let mut with_replies = |observer| match see(observer, EpsilonKnowledge::Distribution) {
            Err(SpaceError::TooMany) => {
                too_many.push(observer);
                Ok(None)
            }
            found => found.map(|found| found.as_ref().map(Learned::from)),
        };
        let (with_reply_count, with_replies) = (with_replies(Observer::ReplyCount)?, with_replies(Observer::Replies)?);
        let with_known_epsilon = Learned::from(&without_epsilon);
        let after = |observations| Repeated { observations, named: by_size.command.named_after(observations) };
        Ok(Self {
            commands: with_known_epsilon.command.secrets,
            sizes: with_known_epsilon.command.outputs,
            most_actions: space.most_actions(),
            left_out: space.left_out(),
            block_bytes: block_bytes(model),
            by_size: Learned::from(&by_size),
            with_reply_count,
            with_replies,
            too_many,
            repeated: OBSERVATIONS.iter().map(|observations| after(*observations)).collect(),
            in_the_end: by_size.command.named_in_the_end(),
            by_number: number_rows(&by_size, &without_epsilon),
            collisions: collisions(&space, LISTED_ACTIONS),
            with_known_epsilon,
        })
    }

    /// The figure that matters most, as a sentence.
    pub fn sentence(&self) -> String {
        let Measures { named, guessing, .. } = self.by_size.command;
        format!(
            "An observer who sees only sizes names the exact command in {} of cases (guessing: {}).",
            share_in_words(named),
            share_in_words(guessing)
        )
    }
}

impl From<&Observation> for Learned {
    fn from(observation: &Observation) -> Self {
        Self::of(observation, Channel::measures)
    }
}

impl<F> Learned<F> {
    /// What is learned about each secret of an observation, whose channel has these `figures`.
    pub(crate) fn of(observation: &Observation, figures: impl Fn(&Channel) -> F) -> Self {
        let Ok(learned) = Self::try_of(observation, |channel| Ok::<_, Infallible>(figures(channel)));
        learned
    }

    pub(crate) fn try_of<E>(observation: &Observation, figures: impl Fn(&Channel) -> Result<F, E>) -> Result<Self, E> {
        Ok(Self {
            is_exact: observation.is_exact,
            command: figures(&observation.command)?,
            number: figures(&observation.number)?,
            kinds: observation.kinds.as_ref().map(figures).transpose()?,
        })
    }
}

/// A share in whole percents, as long as that is neither nothing nor everything.
pub fn share_in_words(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        percent if percent >= 100.0 - 1e-9 => "100 %".to_owned(),
        percent if percent > 99.0 => format!("{:.1} %", percent.min(99.9)),
        percent if percent >= 1.0 => format!("{percent:.0} %"),
        percent if percent >= 0.1 => format!("{percent:.1} %"),
        _ => "less than 0.1 %".to_owned(),
    }
}

/// A command in words, such as `2 on, 1 dim`.
pub fn command_name(model: &Model, counts: &[u32]) -> String {
    let occurring = model.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
    let words: Vec<String> = occurring.map(|(action, count)| format!("{count} {}", action.name)).collect();
    words.join(", ")
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collision {
    /// The bytes of its actions.
    pub bytes: i64,
    /// The commands, two or more: how often each action occurs, in the order of the model.
    pub commands: Vec<Vec<u32>>,
}

/// The commands of some number of actions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NumberRow {
    pub actions: u32,
    /// How many commands have so many.
    pub commands: f64,
    pub probability: f64,
    pub sizes: usize,
    /// Which share of them, by probability, is alone in its size: no command of whatever number of actions has it too.
    pub alone: f64,
    /// How probable it is, given this number of actions, that the best guess by size is right.
    pub named: f64,
}

/// The commands of up to so many actions that have the same size, by size; those of fewer actions come first. Of actions
/// whose sizes vary, the most frequent one is taken.
fn collisions(space: &CommandSpace, most_actions: u32) -> Vec<Collision> {
    let mut commands: Vec<_> = (1..=most_actions).flat_map(|actions| space.commands_of(actions)).collect();
    commands.sort_by_key(|(bytes, _)| *bytes);
    let of_size = commands.chunk_by(|(one, _), (other, _)| one == other).filter(|same| same.len() > 1);
    let collision = |same: &[(i64, Vec<u32>)]| Collision {
        bytes: same[0].0,
        commands: same.iter().map(|(_, counts)| counts.clone()).collect(),
    };
    of_size.map(collision).collect()
}

/// The commands by their number of actions: `by_size` is what an observer sees, `without_epsilon` what one sees who knows
/// ε.
pub fn number_rows(by_size: &Observation, without_epsilon: &Observation) -> Vec<NumberRow> {
    let (alike, named) = (secrets_of_outputs(without_epsilon), named_by_number(by_size));
    let mut found = Vec::new();
    for (at, actions) in without_epsilon.numbers.iter().enumerate() {
        let own = || {
            let rows = without_epsilon.command.rows.iter().zip(&without_epsilon.actions_of_rows);
            rows.filter(|(_, number)| **number == *actions).map(|(row, _)| row)
        };
        let probability: f64 = own().map(|row| row.secrets.weight).sum();
        let alone = |output: &u32| alike.get(*output as usize).is_some_and(|secrets| *secrets < 1.5);
        let of_alone = |(output, share): &(u32, f64)| if alone(output) { *share } else { 0.0 };
        let alone: f64 = own().map(|row| row.secrets.weight * row.outputs.iter().map(of_alone).sum::<f64>()).sum();
        found.push(NumberRow {
            actions: *actions,
            commands: own().map(|row| row.secrets.count).sum(),
            probability,
            sizes: without_epsilon.number.rows.get(at).map_or(0, |row| row.outputs.len()),
            alone: alone / probability,
            named: named.get(*actions as usize).copied().unwrap_or(0.0) / probability,
        });
    }
    found
}

/// How many commands each output leaves possible.
fn secrets_of_outputs(observation: &Observation) -> Vec<f64> {
    let mut secrets = vec![0.0; observation.command.outputs];
    for row in &observation.command.rows {
        for (output, _) in &row.outputs {
            if let Some(secrets) = secrets.get_mut(*output as usize) {
                *secrets += row.secrets.count;
            }
        }
    }
    secrets
}

/// The probability that the best guess is right and has so many actions, by their number. Of guesses that are as good,
/// the one of fewer bytes, then of fewer actions is taken.
fn named_by_number(observation: &Observation) -> Vec<f64> {
    let mut best = vec![(0.0, 0); observation.command.outputs];
    for (row, actions) in observation.command.rows.iter().zip(&observation.actions_of_rows) {
        for (output, probability) in &row.outputs {
            let joint = row.secrets.most() * probability;
            if let Some(best) = best.get_mut(*output as usize).filter(|(greatest, _)| joint > *greatest) {
                *best = (joint, *actions as usize);
            }
        }
    }
    let most = observation.numbers.iter().max().map_or(0, |most| *most as usize);
    let mut named = vec![0.0; most + 1];
    for (joint, actions) in best {
        if let Some(named) = named.get_mut(actions) {
            *named += joint;
        }
    }
    named
}
