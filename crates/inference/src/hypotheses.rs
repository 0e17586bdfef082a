//! What is believed of a flow's commands: how its messages differ from those that a model was learned from, and which
//! habits it has. A hidden Markov model whose states are rival hypotheses under one likelihood.
//!
//! A *state* says what messages are like, such as "6 bytes longer"; in each state, commands come by a belief about habits
//! of its own ([`HabitBelief`]). No state is judged by the learned habits alone, so other habits are not taken for other
//! messages. That one action alone is longer is believed beside the learned habits only: with others, it explains nearly
//! every home. Beside each other state, the messages may also be *strange*: not the model's at all, and what the state and
//! other habits than the learned ones say of them is a coincidence. No evidence tells that apart; how probable each is
//! before does. Before each command, messages may change ([`CHANGE`]), and so may habits; after it, every state is weighed
//! by the likelihood of the command.

use std::collections::BTreeMap;

use crate::belief::{Belief, StateBelief};
use crate::explained::WeightedSum;
use crate::habit_belief::{HabitBelief, Judgement, ODD};
use crate::habits::LearnedHabits;
use crate::inference::ReplyInference;
use crate::possible_commands::{LongerActions, PossibleCommand, PossibleCommands};

/// The probability that messages change between two commands: firmware and the digits of ids change once in thousands of
/// commands. Two commands that show a change clearly are just enough to believe it.
const CHANGE: f64 = 2e-4;

/// States that are less probable have no habits of their own, and a state begins to have them where it is more probable than
/// that a change has just led to it: about 6·10⁻⁶ where replies say nothing. Where habits change with the messages, the true
/// state is as improbable until it has learned them.
const MIN_PROBABILITY: f64 = 1e-5;
const BEGIN: f64 = 3e-5;

/// The probability that messages are strange at first: that another gateway or app is named is as probable as a change.
const STRANGE_AT_FIRST: f64 = CHANGE;

/// The states that there are, and the habits that they are believed beside.
#[derive(Debug)]
pub struct Hypotheses {
    /// The probability that a change leads to each state.
    arrivals: Vec<f64>,
    /// How many states are of all messages; they come first.
    of_all_messages: usize,
    /// Those in which one action alone is longer, by its index and by how many bytes.
    longer_actions: LongerActions,
    /// `None` where habits cannot be told: the learned ones have to do.
    habits: Option<LearnedHabits>,
}

impl Hypotheses {
    /// States, the first of which is that of the model, each with the probability that a change leads to it. In the last
    /// ones, actions that are given by their index are alone longer by some bytes.
    pub fn new(arrivals: Vec<f64>, longer_actions: &[(u32, i64)], inference: &ReplyInference) -> Self {
        let of_all_messages = arrivals.len() - longer_actions.len();
        let longer_actions = LongerActions::new(longer_actions.iter().copied().zip(of_all_messages..));
        Self { arrivals, of_all_messages, longer_actions, habits: LearnedHabits::new(inference) }
    }

    /// Adds the most probable commands in some states to what a command may be: the states are given with the sums that the
    /// commands may have. The first state of all brings those with it in which one action alone is longer, where `farther`
    /// commands explain a size too.
    pub fn explain(
        &self,
        command: &mut PossibleCommands,
        commands: Vec<PossibleCommand>,
        states: Vec<(usize, Vec<WeightedSum>)>,
        farther: &[PossibleCommand],
    ) {
        command.add(commands, states, farther, &self.longer_actions, self.habits.as_ref());
    }

    /// The belief for a command at this time, in nanoseconds since the epoch, before it is seen.
    pub fn predict(&self, belief: &mut Belief, time_ns: i64, inference: &ReplyInference) {
        if belief.states.is_empty() {
            belief.states.resize(self.arrivals.len(), StateBelief::default());
            belief.states[0].probability = 1.0 - STRANGE_AT_FIRST;
            for state in &mut belief.states[..self.of_all_messages] {
                state.strange = STRANGE_AT_FIRST / self.of_all_messages as f64;
            }
            let first = self.habits.as_ref().map(|learned| (0, HabitBelief::new(learned, inference)));
            belief.followed.extend(first);
        }
        belief.followed.values_mut().for_each(HabitBelief::predict);
        let as_learned = belief.followed.get(&belief.best).map_or(1.0, HabitBelief::as_learned);
        let states = &mut belief.states;
        // What strange messages look like changes as others do. Other habits lose a share to the learned ones before each
        // command, which strange messages cannot have. They lose as much, or a thousand commands made any flow strange.
        let remains = if self.habits.is_some() { HabitBelief::others_remain() } else { 1.0 };
        let of_all_messages = &mut states[..self.of_all_messages];
        let strange =
            CHANGE * of_all_messages.iter().map(|state| state.strange).sum::<f64>() / of_all_messages.len() as f64;
        for state in of_all_messages {
            state.strange = remains * ((1.0 - CHANGE) * state.strange + strange);
        }
        let all: f64 = states.iter().map(|state| state.probability).sum();
        for (at, (state, arrival)) in states.iter_mut().zip(&self.arrivals).enumerate() {
            let beside = if at < self.of_all_messages { all } else { all * as_learned };
            let (stays, arrives) = ((1.0 - CHANGE) * state.probability, CHANGE * arrival * beside);
            state.since_ns = if stays >= arrives { state.since_ns } else { Some(time_ns) };
            state.probability = stays + arrives;
        }
    }

    /// Weighs what was predicted by a command's likelihood in each state, and learns habits from it. A command that no state
    /// explains says nothing.
    pub fn observe(&self, belief: &mut Belief, command: &PossibleCommands, inference: &ReplyInference) {
        let odd = ODD * command.broad[..self.of_all_messages].iter().sum::<f64>() / self.of_all_messages as f64;
        if odd.is_nan() || odd <= 0.0 {
            return;
        }
        let judgements = judgements(command, belief);
        for (at, state) in belief.states.iter_mut().enumerate() {
            let judged = judgements.get(&at);
            let learned = command.learned()[at];
            let [likelihood, of_others] = judged.map_or([learned; 2], |one| [one.likelihood, one.of_others]);
            state.probability *= (1.0 - ODD) * likelihood + odd;
            state.strange *= (1.0 - ODD) * of_others + odd;
        }
        let all: f64 = belief.states.iter().map(|state| state.probability + state.strange).sum();
        for state in &mut belief.states {
            state.probability /= all;
            state.strange /= all;
        }
        let Some(learned) = &self.habits else { return };
        let of_all_messages = belief.states[..self.of_all_messages].iter().map(|state| state.probability);
        let best = of_all_messages.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(state, _)| state);
        // A state that becomes probable begins with the habits of the one that was.
        let begins = |state: &usize| {
            let is_probable = *state == best || belief.states[*state].probability >= BEGIN;
            is_probable && !belief.followed.contains_key(state)
        };
        let beginning: Vec<usize> = judgements.keys().copied().chain([best]).filter(begins).collect();
        if !beginning.is_empty()
            && let Some(begin) = belief.followed.get(&belief.best).cloned()
        {
            belief.followed.extend(beginning.into_iter().map(|state| (state, begin.clone())));
        }
        let states = &belief.states;
        let is_followed = |state: &usize| *state == best || states[*state].probability >= MIN_PROBABILITY;
        belief.followed.retain(|state, _| is_followed(state));
        belief.best = best;
        for possible in &command.in_states {
            for (state, sums) in &possible.states {
                let judged = belief.followed.get_mut(state).zip(judgements.get(state));
                if let Some((habits, judgement)) = judged {
                    habits.learn(judgement, odd, possible, sums, learned, inference);
                }
            }
        }
    }
}

/// How probable a command is in each state, if habits are those that are believed in it.
fn judgements(command: &PossibleCommands, belief: &Belief) -> BTreeMap<usize, Judgement> {
    let mut found = BTreeMap::new();
    let Some(general) = belief.followed.get(&belief.best) else { return found };
    for possible in &command.in_states {
        let of_general = general.own_weights(possible, 0..possible.classes.len());
        for (state, weighted) in &possible.states {
            // Each state that has habits of its own needs a few sums alone.
            let own = belief.followed.get(state).filter(|_| *state != belief.best);
            let habits = own.unwrap_or(general);
            let (mut by_own, mut again) = ([0.0; 2], [0.0; 2]);
            for WeightedSum { bytes, weight } in weighted {
                let range = possible.with_sum(*bytes);
                let alone = own.map(|own| own.own_weights(possible, range.clone()));
                let weights = alone.as_deref().unwrap_or(&of_general[range.clone()]);
                for of_class in weights {
                    for (all, own) in by_own.iter_mut().zip(of_class) {
                        *all += weight * own;
                    }
                }
                for class in &possible.classes[range] {
                    for (again, times) in again.iter_mut().zip(habits.times(class)) {
                        *again += weight * class.likelihood * times;
                    }
                }
            }
            // What is not listed matters as little by any habits.
            let listed = possible.sum(weighted, PossibleCommand::by_habit);
            let scale = if listed > 0.0 { command.by_habit[*state] / listed } else { 0.0 };
            let [slow, fast] = by_own.map(|own| if listed > 0.0 { own * scale } else { command.by_habit[*state] });
            found.insert(*state, habits.judge([command.learned[*state], slow, fast], again));
        }
    }
    found
}

#[cfg(test)]
mod tests;
