//! What a command may be in each state of a flow's messages: the actions that explain its size and replies, and how
//! probable these are by each kind of habits.

use std::collections::BTreeMap;

use crate::belief::{Belief, ByKind, HabitKind, Shown, StateBelief};
use crate::habits::{Habits, LearnedHabits};
use crate::inference::WeightedSum;

/// Actions that a command may have.
#[derive(Debug, Clone, PartialEq)]
pub struct PossibleCommand {
    /// Indices of the actions in the model's list, each with how often it occurs.
    pub actions: Vec<(u32, u32)>,
    /// Σ |aᵢ|·nᵢ in bytes.
    pub sum: i64,
    /// P(A) · P(replies | A) by the learned habits, without commands that recur, as a multiple of a unit.
    pub probability: f64,
    /// The same where it recurs: its share of all commands takes the place of P(A). 0 if it does not.
    pub recurring: f64,
}

impl PossibleCommand {
    fn has(&self, action: u32) -> bool {
        self.actions.iter().any(|(own, _)| *own == action)
    }
}

/// What a command may be, in each state.
#[derive(Debug)]
pub struct PossibleCommands {
    /// P(size, replies) by the learned habits for each state, without commands that recur, as a multiple of the unit.
    by_habit: Vec<f64>,
    /// The same with them.
    learned: Vec<f64>,
    /// The same by broad habits.
    pub(crate) broad: Vec<f64>,
    /// The share of commands that do not recur.
    not_recurring: f64,
    /// The probability that the unit stands for, where the probability of a sum is asked for: where replies say nothing.
    unit: Option<f64>,
    pub(crate) in_states: Vec<PossibleInStates>,
}

/// What a command may be in the states with the same shift of replies.
#[derive(Debug)]
pub(crate) struct PossibleInStates {
    /// In the order of their sums.
    commands: Vec<PossibleCommand>,
    /// Those of all messages by their index, each with the sums that the command's actions may have.
    pub(crate) states: Vec<(usize, Vec<WeightedSum>)>,
}

/// Commands that explain a size, each with the weight of the sum that it needs.
type Explanations<'a> = Vec<(&'a PossibleCommand, f64)>;

/// What a command may be if one action alone is longer or shorter: what it may be otherwise, without the explanations
/// with this action, and those that need the change.
#[derive(Debug)]
struct LongerAction<'a> {
    as_learned: Explanations<'a>,
    /// By the index of the state.
    longer: BTreeMap<usize, Explanations<'a>>,
}

impl PossibleCommands {
    /// For states with P(size, replies) by the learned habits without commands that recur, as a multiple of a unit that is
    /// the probability of the same name; `None` where replies are part of it. The others have a share of all commands.
    pub fn new(by_habit: Vec<f64>, unit: Option<f64>, not_recurring: f64) -> Self {
        let (learned, broad) = (by_habit.clone(), by_habit.clone());
        Self { by_habit, learned, broad, not_recurring, unit, in_states: Vec::new() }
    }

    /// P(size, replies) by the learned habits for each state, as a multiple of the unit.
    pub fn learned(&self) -> &[f64] {
        &self.learned
    }

    /// How many commands are listed.
    pub fn listed(&self) -> usize {
        self.in_states.iter().map(|possible| possible.commands.len()).sum()
    }

    /// As [`crate::Hypotheses::explain`].
    pub(crate) fn add(
        &mut self,
        mut commands: Vec<PossibleCommand>,
        states: Vec<(usize, Vec<WeightedSum>)>,
        farther: &[PossibleCommand],
        longer_actions: &BTreeMap<(u32, i64), usize>,
        habits: Option<&LearnedHabits>,
    ) {
        commands.sort_by(|a, b| (a.sum, &a.actions).cmp(&(b.sum, &b.actions)));
        let possible = PossibleInStates { commands, states };
        let longer_actions = possible.longer_actions(farther, longer_actions);
        for (state, weighted) in &possible.states {
            let recurring = |sum: &WeightedSum| {
                sum.weight * possible.with_sum(sum.bytes).iter().map(|command| command.recurring).sum::<f64>()
            };
            let recurring = weighted.iter().map(recurring).sum::<f64>();
            self.learned[*state] = self.not_recurring * self.by_habit[*state] + recurring;
        }
        if let Some(habits) = habits {
            let broad = possible.sums(&habits.broad);
            for (state, weighted) in &possible.states {
                self.broad[*state] = self.by_habit[*state] * broad.share(weighted, |_, weight| weight);
            }
        }
        weigh_longer_actions(&longer_actions, &mut self.by_habit, |command| command.probability);
        let by_learned = |command: &PossibleCommand| self.not_recurring * command.probability + command.recurring;
        weigh_longer_actions(&longer_actions, &mut self.learned, by_learned);
        if let Some(habits) = habits {
            let by_broad = |command: &PossibleCommand| command.probability * habits.broad.factor(&command.actions);
            weigh_longer_actions(&longer_actions, &mut self.broad, by_broad);
            self.in_states.push(possible);
        }
    }

    /// P(size, replies) for each state with each kind of habits.
    pub(crate) fn likelihoods(&self, belief: &Belief) -> Vec<ByKind> {
        let of_state = |(learned, (by_habit, broad)): (&f64, (&f64, &f64))| [*learned, *by_habit, *broad, *by_habit];
        let by_habit = self.by_habit.iter().zip(&self.broad);
        let mut found: Vec<ByKind> = self.learned.iter().zip(by_habit).map(of_state).collect();
        let Some(general) = belief.shown.get(&belief.best) else { return found };
        for possible in &self.in_states {
            let sums = possible.sums(&general.habits);
            for (state, weighted) in &possible.states {
                // Each state that has habits of its own needs a few sums alone.
                let own = belief.shown.get(state).filter(|_| *state != belief.best);
                let shown = own.unwrap_or(general);
                let own_sums = own.map(|own| possible.sums_of(weighted, &own.habits));
                let sums = own_sums.as_ref().unwrap_or(&sums);
                let by_habit = self.by_habit[*state];
                found[*state][HabitKind::Shown as usize] = by_habit * sums.share(weighted, |_, own| own);
                let of_sum = |sum: i64, own: f64| own * self.sum_factor(shown, sum, own);
                found[*state][HabitKind::AnySums as usize] = by_habit * sums.share(weighted, of_sum);
            }
        }
        found
    }

    /// The possible commands with some sums, each with its weight by all kinds of habits together.
    pub(crate) fn weights<'a>(
        &self,
        possible: &'a PossibleInStates,
        sums: &[WeightedSum],
        predicted: &StateBelief,
        shown: &Shown,
        broad: &Habits,
    ) -> Vec<(&'a PossibleCommand, f64)> {
        let mut all = Vec::new();
        for WeightedSum { bytes, weight } in sums {
            let commands = possible.with_sum(*bytes);
            let own: Vec<f64> =
                commands.iter().map(|one| one.probability * shown.habits.factor(&one.actions)).collect();
            let any = self.sum_factor(shown, *bytes, own.iter().sum());
            let by_shown = predicted.with(HabitKind::Shown) + predicted.with(HabitKind::AnySums) * any;
            for (possible, own) in commands.iter().zip(own) {
                let by_learned = self.not_recurring * possible.probability + possible.recurring;
                let by_broad = broad.factor(&possible.actions) * possible.probability;
                let by_others =
                    predicted.with(HabitKind::Learned) * by_learned + predicted.with(HabitKind::Broad) * by_broad;
                all.push((possible, weight * (by_others + own * by_shown)));
            }
        }
        all
    }

    /// How much more probable a sum is by how often it came than by the habits that a flow showed, which expect this
    /// multiple of the unit. Where replies say something about actions, sums are not looked at alone.
    fn sum_factor(&self, shown: &Shown, sum: i64, expected: f64) -> f64 {
        self.unit.map_or(1.0, |unit| shown.counts.sum_factor(sum, expected * unit))
    }
}

impl PossibleInStates {
    fn sums(&self, habits: &Habits) -> SumProbabilities {
        let mut sums = SumProbabilities::default();
        self.commands.iter().for_each(|command| sums.add(command, habits));
        sums
    }

    /// The same for some sums alone.
    fn sums_of(&self, some: &[WeightedSum], habits: &Habits) -> SumProbabilities {
        let mut sums = SumProbabilities::default();
        let commands = some.iter().flat_map(|sum| self.with_sum(sum.bytes));
        commands.for_each(|command| sums.add(command, habits));
        sums
    }

    /// The commands with a sum.
    fn with_sum(&self, sum: i64) -> &[PossibleCommand] {
        let begin = self.commands.partition_point(|command| command.sum < sum);
        let end = self.commands.partition_point(|command| command.sum <= sum);
        &self.commands[begin..end]
    }

    /// What explains the command if one action alone is longer by some bytes, given the states by both; `farther` commands
    /// explain it in no other state. None where the first state is not among those of all messages.
    fn longer_actions<'a>(
        &'a self,
        farther: &'a [PossibleCommand],
        states: &BTreeMap<(u32, i64), usize>,
    ) -> Vec<LongerAction<'a>> {
        let Some((_, sums)) = self.states.iter().find(|(state, _)| *state == 0) else { return Vec::new() };
        let with_sum = |sum: &WeightedSum| {
            let weight = sum.weight;
            self.with_sum(sum.bytes).iter().map(move |command| (command, weight))
        };
        let as_learned: Explanations<'_> = sums.iter().flat_map(with_sum).collect();
        let mut found: BTreeMap<u32, LongerAction<'_>> = BTreeMap::new();
        for ((action, _), state) in states {
            let of_action = || {
                let own = as_learned.iter().filter(|(command, _)| command.has(*action)).copied();
                LongerAction { as_learned: own.collect(), longer: BTreeMap::new() }
            };
            found.entry(*action).or_insert_with(of_action).longer.insert(*state, Explanations::new());
        }
        let most = states.keys().map(|(_, bytes)| bytes.abs()).max().unwrap_or_default();
        for command in self.commands.iter().chain(farther) {
            for (action, count) in &command.actions {
                let count = i64::from(*count);
                for WeightedSum { bytes, weight } in sums {
                    // Most commands are too far away.
                    let missing = bytes - command.sum;
                    if missing.abs() > most * count || missing % count != 0 {
                        continue;
                    }
                    let state = states.get(&(*action, missing / count));
                    if let (Some(state), Some(longer)) = (state, found.get_mut(action)) {
                        longer.longer.entry(*state).or_default().push((command, *weight));
                    }
                }
            }
        }
        found.into_values().collect()
    }
}

/// Sets the probabilities of the states with one longer action, given those of the others and of each command.
fn weigh_longer_actions(
    longer_actions: &[LongerAction<'_>],
    of_states: &mut [f64],
    value: impl Fn(&PossibleCommand) -> f64,
) {
    let value = |explanations: &Explanations<'_>| -> f64 {
        explanations.iter().map(|(command, weight)| weight * value(command)).sum()
    };
    for LongerAction { as_learned, longer } in longer_actions {
        let others = (of_states[0] - value(as_learned)).max(0.0);
        for (state, explanations) in longer {
            of_states[*state] = others + value(explanations);
        }
    }
}

/// The probabilities of sums by the learned habits and by others, from the listed commands.
#[derive(Debug, Default)]
struct SumProbabilities(BTreeMap<i64, [f64; 2]>);

impl SumProbabilities {
    fn add(&mut self, command: &PossibleCommand, habits: &Habits) {
        let [learned, own] = self.0.entry(command.sum).or_default();
        *learned += command.probability;
        *own += command.probability * habits.factor(&command.actions);
    }

    fn of(&self, sum: i64) -> [f64; 2] {
        self.0.get(&sum).copied().unwrap_or_default()
    }

    /// The probability of some weighted sums by other habits, as a multiple of that by the learned ones. What is not listed
    /// matters as little by either.
    fn share(&self, sums: &[WeightedSum], other: impl Fn(i64, f64) -> f64) -> f64 {
        let (mut by_learned, mut by_other) = (0.0, 0.0);
        for WeightedSum { bytes, weight } in sums {
            let [learned, own] = self.of(*bytes);
            by_learned += weight * learned;
            by_other += weight * other(*bytes, own);
        }
        if by_learned > 0.0 { by_other / by_learned } else { 1.0 }
    }
}
