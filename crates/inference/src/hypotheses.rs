//! What is believed of a flow's commands: how its messages differ from those that a model was learned from, and which
//! habits it has. A hidden Markov model whose states are rival hypotheses under one likelihood.
//!
//! A *state* says what messages are like, such as "6 bytes longer"; in each state, commands come by a belief about habits
//! of its own ([`HabitBelief`]). No state is judged by the learned habits alone, so other habits are not taken for other
//! messages. That one action alone is longer is believed beside the learned habits only: with others, it explains nearly
//! every home. Beside each other state, the messages may also be *strange*: not the model's at all, and what the state and
//! other habits than the learned ones say of them is a coincidence. No evidence tells that apart; how probable each is
//! before does. That messages become another's later is told by evidence ([`crate::foreign_messages`]). Before each command,
//! messages may change ([`CHANGE`]), and so may habits; after it, every state is weighed by the likelihood of the command.

use std::cell::RefCell;
use std::collections::BTreeMap;

use sizeleak_model::SeenReplies;

use crate::command_class::CommandClasses;
use crate::foreign_messages::{CHANGE, ForeignBelief};
use crate::habit_belief::{HabitBelief, Judgement, ODD, OTHERS_AT_FIRST};
use crate::habits::LearnedHabits;
use crate::inference::{ExplainedReplies, RecurringCommand, ReplyInference};
use crate::number_walk::{Beyond, WeightedSum};
use crate::possible_commands::{LongerActions, PossibleClass, PossibleCommands, PossibleInState};

/// States that are less probable have no habits of their own, and a state begins to have them where it is more probable than
/// that a change has just led to it: about 6·10⁻⁶ where replies say nothing. Where habits change with the messages, the true
/// state is as improbable until it has learned them.
const MIN_PROBABILITY: f64 = 1e-5;
const BEGIN: f64 = 3e-5;

/// The probability that messages are strange at first: as that of a change with habits other than the learned ones, which
/// looks the same. Ten times as probable, they took 14 of 24 homes with routines for another gateway whose messages had become
/// 1 to 8 bytes longer before; so they take none.
const STRANGE_AT_FIRST: f64 = CHANGE * OTHERS_AT_FIRST;

/// Whether a flow's messages are as learned is known after so many commands. Before, a far state looks like another gateway.
const KNOWN_AFTER: u64 = 20;

/// What a state is believed beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    AnyHabits,
    /// The learned habits: with others, it explains nearly every home.
    LearnedHabits,
    /// The learned habits of a flow whose messages were as learned.
    LearnedHabitsSoFar,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StateBelief {
    /// Whatever the habits.
    pub probability: f64,
    /// As that which strange messages look like: they are not the model's at all, and look like this.
    pub strange: f64,
    /// The time of the first command with it, in nanoseconds since the epoch, on the most probable way to it; `None` where
    /// it has always been so.
    pub since_ns: Option<i64>,
}

#[derive(Debug, Clone, Default)]
pub struct Belief {
    /// After the last command, by state. Empty before the first one: messages are as they were learned.
    pub states: Vec<StateBelief>,
    /// The most probable state of all messages.
    pub best: usize,
    /// How many commands some state that is believed beside any habits explains.
    explained: u64,
    /// The habits in each state that is probable enough. Others are judged by those of the most probable one. None where
    /// habits cannot be told, as before the first command.
    pub followed: BTreeMap<usize, HabitBelief>,
    /// Whether messages have become another's. States are believed as if they had not.
    pub foreign: ForeignBelief,
}

impl Belief {
    /// The probability that messages are the model's.
    pub fn fit(&self) -> f64 {
        (1.0 - self.foreign.probability()) * (1.0 - self.states.iter().map(|state| state.strange).sum::<f64>())
    }
}

/// A state before anything is seen.
#[derive(Debug, Clone, Copy)]
pub struct StatePrior {
    /// The probability that a change leads to it.
    pub arrival: f64,
    /// By how many bytes commands are longer.
    pub bytes: i64,
    /// The only action that is longer, by its index; `None` where whole commands are.
    pub action: Option<u32>,
    pub beside: Beside,
}

/// The states that there are, and the habits that they are believed beside.
#[derive(Debug)]
pub struct Hypotheses {
    /// The probability that a change leads to each state, and beside what.
    arrivals: Vec<(f64, Beside)>,
    /// By how many bytes commands are longer in the states that are believed beside any habits, which come first.
    longer: Vec<i64>,
    /// The states in which one action alone is longer, by its index and by how many bytes.
    longer_actions: LongerActions,
    /// `None` where habits cannot be told: the learned ones have to do.
    habits: Option<LearnedHabits>,
    classes: RefCell<CommandClasses>,
}

/// Classes that are less probable beside all that explain a command are left out.
const LEAST_SHARE: f64 = 1e-7;

/// What explains a command's replies if they are longer by some bytes, with the states in which they are so.
#[derive(Debug)]
pub struct ExplainedStates<'a> {
    pub explained: ExplainedReplies<'a>,
    /// `None` where nothing is known of single replies.
    pub replies: Option<SeenReplies>,
    /// Each state by its index, with the sums that the command's actions may have in it.
    pub states: Vec<(usize, Vec<WeightedSum>)>,
    /// The sums in these states, and those with one action alone longer, by [`asked_sums`](crate::asked_sums).
    pub asked: [Vec<i64>; 2],
}

impl Hypotheses {
    /// The first state is that of the model, and those of one action come last.
    pub fn new(states: &[StatePrior], inference: &ReplyInference) -> Self {
        let arrivals = states.iter().map(|state| (state.arrival, state.beside)).collect();
        let longer = states.iter().filter(|state| state.beside == Beside::AnyHabits).map(|state| state.bytes).collect();
        let of_action = |(at, state): (usize, &StatePrior)| Some(((state.action?, state.bytes), at));
        let longer_actions = LongerActions::new(states.iter().enumerate().filter_map(of_action));
        let (habits, classes) = (LearnedHabits::new(inference), RefCell::default());
        Self { arrivals, longer, longer_actions, habits, classes }
    }

    fn of_all_messages(&self) -> usize {
        self.longer.len()
    }

    /// What a command may be. Its size and replies have a probability by the learned habits in each state, without commands
    /// that recur, as a multiple of a unit that is given as a logarithm.
    pub fn possible(
        &self,
        by_habit: Vec<f64>,
        ln_unit: f64,
        explained: &[ExplainedStates<'_>],
        inference: &ReplyInference,
    ) -> Result<PossibleCommands, Beyond> {
        let mut possible = PossibleCommands::new(by_habit, ln_unit, inference.not_recurring);
        for one in explained {
            possible.add(self.classes(one, ln_unit, inference)?, &one.states, &self.longer_actions);
        }
        Ok(possible)
    }

    /// The classes that matter, in the order of their sums.
    fn classes(
        &self,
        one: &ExplainedStates<'_>,
        ln_unit: f64,
        inference: &ReplyInference,
    ) -> Result<Vec<PossibleClass>, Beyond> {
        let ExplainedStates { explained, replies, asked: [own, near], .. } = one;
        let unit = (explained.ln_unit - ln_unit).exp();
        let is_near = |sum: &i64| near.binary_search(sum).is_ok();
        // By the sum and the replies, with the likelihood of these and P(sum, replies).
        let mut possible: BTreeMap<(i64, &[u32]), [f64; 2]> = BTreeMap::new();
        for numbers in &explained.numbers {
            let likelihood = numbers.likelihood * unit;
            for (sum, weight) in numbers.sums.iter().filter(|(sum, _)| is_near(sum)) {
                let all = possible.entry((sum, &numbers.class_counts)).or_insert([likelihood, 0.0]);
                all[1] += likelihood * numbers.prior * weight;
            }
        }
        // Others only matter beside these.
        let of_own = possible.iter().filter(|((sum, _), _)| own.binary_search(sum).is_ok());
        let all: f64 = of_own.map(|(_, [_, joint])| joint).sum();
        possible.retain(|_, [_, joint]| *joint > LEAST_SHARE * all);
        for RecurringCommand { sums, class_counts, .. } in &inference.recurring {
            let ln_likelihood = || replies.as_ref().map_or(0.0, |replies| replies.ln_likelihood(class_counts));
            for (sum, _) in sums.iter().filter(|(sum, _)| is_near(sum)) {
                possible.entry((sum, class_counts)).or_insert_with(|| [(ln_likelihood() - ln_unit).exp(), 0.0]);
            }
        }
        let mut known = self.classes.borrow_mut();
        let class = |((sum, class_counts), [likelihood, _]): ((i64, &[u32]), [f64; 2])| {
            let class = known.find(class_counts, sum, inference, self.habits.as_ref())?;
            Ok(PossibleClass { class, likelihood })
        };
        possible.into_iter().map(class).collect()
    }

    /// The belief for a command at this time, in nanoseconds since the epoch, before it is seen.
    pub fn predict(&self, belief: &mut Belief, time_ns: i64, inference: &ReplyInference) {
        if belief.states.is_empty() {
            belief.states.resize(self.arrivals.len(), StateBelief::default());
            belief.states[0].probability = 1.0 - STRANGE_AT_FIRST;
            for state in &mut belief.states[..self.of_all_messages()] {
                state.strange = STRANGE_AT_FIRST / self.of_all_messages() as f64;
            }
            let first = self.habits.as_ref().map(|learned| (0, HabitBelief::new(learned, inference)));
            belief.followed.extend(first);
        }
        let as_learned = |belief: &Belief| belief.followed.get(&belief.best).map_or(1.0, HabitBelief::as_learned);
        let as_learned_so_far = if belief.explained < KNOWN_AFTER { 0.0 } else { as_learned(belief) };
        belief.followed.values_mut().for_each(HabitBelief::predict);
        let as_learned = as_learned(belief);
        let states = &mut belief.states;
        // What strange messages look like changes as others do. Other habits lose a share to the learned ones before each
        // command, which strange and foreign messages cannot have. They lose as much, or a thousand commands made any flow
        // strange.
        let remains = if self.habits.is_some() { HabitBelief::others_remain() } else { 1.0 };
        belief.foreign.predict(remains);
        let of_all_messages = &mut states[..self.of_all_messages()];
        let strange =
            CHANGE * of_all_messages.iter().map(|state| state.strange).sum::<f64>() / of_all_messages.len() as f64;
        for state in of_all_messages {
            state.strange = remains * ((1.0 - CHANGE) * state.strange + strange);
        }
        let all: f64 = states.iter().map(|state| state.probability).sum();
        for (state, (arrival, beside)) in states.iter_mut().zip(&self.arrivals) {
            let beside = match beside {
                Beside::AnyHabits => all,
                Beside::LearnedHabits => all * as_learned,
                Beside::LearnedHabitsSoFar => all * as_learned_so_far,
            };
            let (stays, arrives) = ((1.0 - CHANGE) * state.probability, CHANGE * arrival * beside);
            state.since_ns = if stays >= arrives { state.since_ns } else { Some(time_ns) };
            state.probability = stays + arrives;
        }
    }

    /// Weighs what was predicted by a command's likelihood in each state, and learns habits from it. A command that no state
    /// explains says nothing.
    pub fn observe(&self, belief: &mut Belief, command: &PossibleCommands, inference: &ReplyInference) {
        let mean = |of_states: &[f64]| of_states.iter().sum::<f64>() / of_states.len().max(1) as f64;
        let (of_any_habits, of_learned) = command.broad.split_at(self.of_all_messages());
        let is_explained = of_any_habits.iter().any(|own| *own > 0.0);
        belief.explained += u64::from(is_explained);
        let is_far_possible = belief.explained >= KNOWN_AFTER;
        let broad = mean(if is_explained { of_any_habits } else { of_learned });
        let odd = ODD * command.unlike_replies.map_or(broad, |unlike| unlike.max(broad));
        if odd.is_nan() || odd <= 0.0 || !is_explained && !is_far_possible {
            return;
        }
        let judgements =
            if self.habits.is_some() { judgements(command, belief, self.of_all_messages()) } else { BTreeMap::new() };
        let sum = |states: &[StateBelief]| states.iter().map(|state| state.probability).sum::<f64>();
        let before = command.are_actions_unknown.then(|| belief.states.clone());
        for (at, state) in belief.states.iter_mut().enumerate() {
            let judged = judgements.get(&at);
            let learned = command.learned[at];
            let [likelihood, of_others] = judged.map_or([learned; 2], |one| [one.likelihood, one.of_others]);
            state.probability *= (1.0 - ODD) * likelihood + odd;
            state.strange *= (1.0 - ODD) * of_others + odd;
        }
        if let Some(before) = before {
            // States of one action are as probable beside the others as they were.
            let (of_all_messages, of_actions) = belief.states.split_at_mut(self.of_all_messages());
            let change = sum(of_all_messages) / sum(&before[..self.of_all_messages()]);
            for (state, before) in of_actions.iter_mut().zip(&before[self.of_all_messages()..]) {
                state.probability = before.probability * change;
            }
        }
        let all: f64 = belief.states.iter().map(|state| state.probability + state.strange).sum();
        for state in &mut belief.states {
            state.probability /= all;
            state.strange /= all;
        }
        belief.foreign.observe(command, &self.longer, all, broad);
        let Some(learned) = &self.habits else { return };
        let of_all_messages = belief.states[..self.of_all_messages()].iter().map(|state| state.probability);
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
            for in_state in &possible.states {
                let judged = belief.followed.get_mut(&in_state.state).zip(judgements.get(&in_state.state));
                if let Some((habits, judgement)) = judged {
                    habits.learn(judgement, odd, possible, in_state, learned, inference);
                }
            }
        }
    }
}

/// How probable a command is in each of the first states, if habits are those that are believed in it.
fn judgements(command: &PossibleCommands, belief: &Belief, states: usize) -> BTreeMap<usize, Judgement> {
    let mut found = BTreeMap::new();
    let Some(general) = belief.followed.get(&belief.best) else { return found };
    for possible in &command.in_states {
        let weigh = |habits: &HabitBelief, at: usize| {
            let class = &possible.classes[at].class;
            (habits.own_weights(class), habits.seen.times(class.sum, &class.class_counts))
        };
        let of_general: Vec<_> = (0..possible.classes.len()).map(|at| weigh(general, at)).collect();
        for PossibleInState { state, classes, scale } in possible.states.iter().filter(|one| one.state < states) {
            let own = belief.followed.get(state).filter(|_| *state != belief.best);
            let (mut by_own, mut again) = ([0.0; 2], [0.0; 2]);
            for (at, weight) in classes {
                let (own, times) = own.map_or_else(|| of_general[*at], |own| weigh(own, *at));
                by_own.iter_mut().zip(own).for_each(|(all, own)| *all += weight * own);
                again.iter_mut().zip(times).for_each(|(all, times)| *all += weight * times);
            }
            // What is not listed matters as little by any habits.
            let [slow, fast] = by_own.map(|own| if *scale > 0.0 { own * scale } else { command.by_habit[*state] });
            let base = [command.learned[*state], slow, fast];
            found.insert(*state, own.unwrap_or(general).judge(base, again));
        }
    }
    found
}

#[cfg(test)]
mod tests;
