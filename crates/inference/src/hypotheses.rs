//! What is believed of a flow's commands: how its messages differ from those that a model was learned from, and which
//! habits it has. A hidden Markov model whose states are rival hypotheses under one likelihood.
//!
//! A *state* says what messages are like, such as "6 bytes longer"; beside each state, commands come by one of several
//! *kinds of habits* ([`HabitKind`]). No state is judged by the learned habits alone, so other habits are not taken for
//! other messages. That one action alone is longer is believed beside the learned habits only: with others, it explains
//! nearly every home. Beside each other state, the messages may also be *strange*: not the model's at all, and what the
//! state and other habits than the learned ones say of them is a coincidence. No evidence tells that apart; how probable
//! each is before does. Before each command, habits may change ([`HABIT_CHANGE`]), and so may messages ([`CHANGE`]); after
//! it, every pair is weighed by the likelihood of the command.

use std::collections::BTreeMap;

use crate::belief::{Belief, ByKind, HabitKind, Shown, StateBelief};
use crate::habits::{Habits, LearnedHabits};
use crate::inference::{ReplyInference, WeightedSum};
use crate::possible_commands::{PossibleCommand, PossibleCommands};

/// The probability that messages change between two commands: firmware and the digits of ids change once in thousands of
/// commands. Two commands that show a change clearly are just enough to believe it.
const CHANGE: f64 = 2e-4;

/// The probability that a household's habits change between two commands: once in fifty, as hours of a day do.
const HABIT_CHANGE: f64 = 0.02;

/// The share of commands that are odd: their size is that of any state, by chance. So one command speaks against a state
/// by a factor of the number of states over this at most, which is less than the odds against a change.
const ODD: f64 = 3e-3;

/// A state explains a command, where nothing is known of habits, if the command is as probable by broad ones as this share
/// of the mean over all states: habits make actions rarer by a factor of some ten, sizes that cannot be by thousands.
const EXPLAINED: f64 = 0.03;

/// How probable the learned habits are at first; the other kinds share the rest.
const LEARNED_AT_FIRST: f64 = 0.9;

/// States that are less probable have no habits of their own. Where habits change with the messages, the true state is as
/// improbable as this until it has learned them: in `tests/answers/habits.rs` 27 % of such commands keep their truth with
/// 10⁻³, 80 % with 10⁻⁵, 87 % with 10⁻⁶ and 10⁻⁷, and with 0 some states learn whatever makes them right.
const MIN_PROBABILITY: f64 = 1e-6;

/// The probability that messages are strange at first: that another gateway or app is named is as probable as a change.
const STRANGE_AT_FIRST: f64 = CHANGE;

/// After so many commands, the habits that they show are estimated anew: a tenth of the memory.
const COMMANDS_PER_ESTIMATE: u32 = 4;

/// The states that there are, and the habits that they are believed beside.
#[derive(Debug)]
pub struct Hypotheses {
    /// The probability that a change leads to each state.
    arrivals: Vec<f64>,
    /// How many states are of all messages; they come first.
    of_all_messages: usize,
    /// Those in which one action alone is longer, by its index and by how many bytes.
    longer_actions: BTreeMap<(u32, i64), usize>,
    /// `None` where habits cannot be told: the learned ones have to do.
    habits: Option<LearnedHabits>,
}

/// How probable each state is if nothing is known of habits. That messages changed is then believed only as far as commands
/// could not be what they are otherwise, since habits look like shifts; by how much they changed, as ever.
pub fn beliefs_beside_unknown_habits(states: &[StateBelief]) -> Vec<f64> {
    let [unchanged, changed @ ..] = states else { return Vec::new() };
    let strange: f64 = states.iter().map(StateBelief::strange).sum();
    let remains = (unchanged.possible * (1.0 - strange)).max(unchanged.probability());
    let all: f64 = changed.iter().map(StateBelief::probability).sum();
    let share = if all > 0.0 { (1.0 - strange - remains).max(0.0) / all } else { 0.0 };
    let changed = changed.iter().map(|state| share * state.probability());
    std::iter::once(remains).chain(changed).collect()
}

impl Hypotheses {
    /// States, the first of which is that of the model, each with the probability that a change leads to it. In the last
    /// ones, actions that are given by their index are alone longer by some bytes.
    pub fn new(arrivals: Vec<f64>, longer_actions: &[(u32, i64)], inference: &ReplyInference) -> Self {
        let of_all_messages = arrivals.len() - longer_actions.len();
        let longer_actions = longer_actions.iter().copied().zip(of_all_messages..).collect();
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

    /// The factors of broad habits; `None` where habits cannot be told.
    pub fn broad(&self) -> Option<&Habits> {
        self.habits.as_ref().map(|habits| &habits.broad)
    }

    /// The belief in each state for a command at this time, in nanoseconds since the epoch, before it is seen.
    pub fn predicted(&self, belief: &Belief, time_ns: i64) -> Vec<StateBelief> {
        let mut before = belief.states.clone();
        if before.is_empty() {
            before.resize(self.arrivals.len(), StateBelief::default());
            let own = self.at_first().map(|kind| (1.0 - STRANGE_AT_FIRST) * kind);
            before[0] = StateBelief { by_kind: own, possible: 1.0, ..StateBelief::default() };
            let each = STRANGE_AT_FIRST / self.of_all_messages as f64;
            for state in &mut before[..self.of_all_messages] {
                state.strange = each;
            }
        }
        let change = if self.habits.is_some() { HABIT_CHANGE } else { 0.0 };
        for state in &mut before[..self.of_all_messages] {
            let each = change * state.probability() / HabitKind::ALL.len() as f64;
            state.by_kind = state.by_kind.map(|own| (1.0 - change) * own + each);
        }
        let of_kind = |kind: &HabitKind| before.iter().map(|state| state.with(*kind)).sum();
        let kinds: Vec<f64> = HabitKind::ALL.iter().map(of_kind).collect();
        // What strange messages look like changes as others do. Other habits lose a share to the learned ones before each
        // command, which strange messages cannot have. They lose as much, or a thousand commands made any flow strange.
        let remains = 1.0 - change / HabitKind::ALL.len() as f64;
        let strange = CHANGE * before.iter().map(StateBelief::strange).sum::<f64>() / self.of_all_messages as f64;
        for state in &mut before[..self.of_all_messages] {
            state.strange = remains * ((1.0 - CHANGE) * state.strange + strange);
        }
        for (at, (state, arrival)) in before.iter_mut().zip(&self.arrivals).enumerate() {
            let (stays, arrives) = ((1.0 - CHANGE) * state.probability(), CHANGE * arrival);
            state.since_ns = if stays >= arrives { state.since_ns } else { Some(time_ns) };
            let beside = if at < self.of_all_messages { &kinds[..] } else { &kinds[..1] };
            for (own, of_kind) in state.by_kind.iter_mut().zip(beside) {
                *own = (1.0 - CHANGE) * *own + arrives * of_kind;
            }
            state.possible = (1.0 - CHANGE) * state.possible + arrives;
        }
        before
    }

    fn at_first(&self) -> ByKind {
        let other = (1.0 - LEARNED_AT_FIRST) / (HabitKind::ALL.len() - 1) as f64;
        if self.habits.is_some() { [LEARNED_AT_FIRST, other, other, other] } else { [1.0, 0.0, 0.0, 0.0] }
    }

    /// Weighs what was predicted by a command's likelihood in each state with each kind of habits, and learns habits from
    /// it. A command that no state explains says nothing.
    pub fn observe(
        &self,
        belief: &mut Belief,
        predicted: Vec<StateBelief>,
        command: &PossibleCommands,
        inference: &ReplyInference,
    ) {
        let likelihoods = command.likelihoods(belief);
        let odd = ODD * command.broad[..self.of_all_messages].iter().sum::<f64>() / self.of_all_messages as f64;
        if odd > 0.0 {
            belief.states = predicted.clone();
            for ((state, likelihoods), broad) in belief.states.iter_mut().zip(&likelihoods).zip(&command.broad) {
                state.possible *= broad.min(EXPLAINED * odd / ODD) + odd;
                state.strange *= (1.0 - ODD) * of_other_habits(&state.by_kind, likelihoods) + odd;
                for (own, likelihood) in state.by_kind.iter_mut().zip(likelihoods) {
                    *own *= (1.0 - ODD) * likelihood + odd;
                }
            }
            let all: f64 = belief.states.iter().map(|state| state.probability() + state.strange).sum();
            for state in &mut belief.states {
                state.strange /= all;
                state.by_kind = state.by_kind.map(|own| own / all);
            }
            let all: f64 = belief.states.iter().map(|state| state.possible).sum();
            for state in &mut belief.states {
                state.possible /= all;
            }
            self.learn_habits(belief, &predicted, command, &likelihoods, odd, inference);
        } else {
            belief.states = predicted;
        }
    }

    /// Counts a command's possible actions in each state that is probable enough.
    fn learn_habits(
        &self,
        belief: &mut Belief,
        predicted: &[StateBelief],
        command: &PossibleCommands,
        likelihoods: &[ByKind],
        odd: f64,
        inference: &ReplyInference,
    ) {
        let Some(learned) = &self.habits else { return };
        let of_all_messages = &belief.states[..self.of_all_messages];
        let probabilities: Vec<f64> = of_all_messages.iter().map(StateBelief::probability).collect();
        let best = (0..probabilities.len()).max_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b])).unwrap_or(0);
        let is_followed = |state: &usize| *state == best || probabilities[*state] >= MIN_PROBABILITY;
        // A state that becomes probable begins with the habits of the one that was.
        let possible_states = command.in_states.iter().flat_map(|possible| &possible.states).map(|(state, _)| *state);
        for state in possible_states.filter(is_followed) {
            if !belief.shown.contains_key(&state) {
                let begin = belief.shown.get(&belief.best).cloned().unwrap_or_else(|| learned.none_shown());
                belief.shown.insert(state, begin);
            }
        }
        belief.shown.retain(|state, _| is_followed(state));
        belief.best = best;
        let mut unchanged = belief.unchanged.take().or_else(|| Some(learned.none_shown()));
        for possible in &command.in_states {
            for (state, sums) in &possible.states {
                let is_true = explained_share(&predicted[*state].by_kind, &likelihoods[*state], odd);
                let aside = unchanged.as_mut().filter(|_| *state == 0);
                for shown in belief.shown.get_mut(state).into_iter().chain(aside) {
                    let weights = command.weights(possible, sums, &predicted[*state], shown, &learned.broad);
                    learned.learn(shown, &weights, is_true, inference);
                }
            }
        }
        belief.unchanged = unchanged;
    }
}

/// The mean of likelihoods over the habits that are not the learned ones; by broad ones, if there are none.
fn of_other_habits(by_kind: &ByKind, likelihoods: &ByKind) -> f64 {
    let others = || HabitKind::ALL.iter().filter(|kind| **kind != HabitKind::Learned).map(|kind| *kind as usize);
    let all: f64 = others().map(|kind| by_kind[kind]).sum();
    let explained: f64 = others().map(|kind| by_kind[kind] * likelihoods[kind]).sum();
    if all > 0.0 { explained / all } else { likelihoods[HabitKind::Broad as usize] }
}

/// The probability that a command is not an odd one, in a state.
fn explained_share(predicted: &ByKind, likelihoods: &ByKind, odd: f64) -> f64 {
    let explained: f64 = predicted.iter().zip(likelihoods).map(|(own, likelihood)| own * likelihood).sum();
    let all = (1.0 - ODD) * explained + odd * predicted.iter().sum::<f64>();
    if all > 0.0 { (1.0 - ODD) * explained / all } else { 0.0 }
}

impl LearnedHabits {
    /// Counts what a command may be, if it is none of the odd ones.
    fn learn(&self, shown: &mut Shown, weights: &[(&PossibleCommand, f64)], is_true: f64, inference: &ReplyInference) {
        shown.counts.age();
        let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
        for (possible, weight) in weights.iter().filter(|_| all > 0.0) {
            shown.counts.count(&possible.actions, possible.sum, is_true * weight / all);
        }
        shown.commands += 1;
        if shown.commands >= COMMANDS_PER_ESTIMATE
            && let Some(habits) = self.shown(&shown.counts, inference)
        {
            (shown.habits, shown.commands) = (habits, 0);
        }
    }

    /// Before the first command: the learned habits.
    fn none_shown(&self) -> Shown {
        Shown { counts: self.no_counts(), habits: self.unchanged(), commands: 0 }
    }
}

#[cfg(test)]
mod tests;
