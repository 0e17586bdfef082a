//! Which commands have the same size.

use serde::Serialize;

use sizeleak_inference::channel::Observation;
use sizeleak_inference::space::CommandSpace;

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
pub(super) fn collisions(space: &CommandSpace, most_actions: u32) -> Vec<Collision> {
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
