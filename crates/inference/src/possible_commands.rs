//! What a command may be in each state of a flow's messages: the actions that explain its size and replies, and how
//! probable these are by each kind of habits.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::habits::LearnedHabits;
use crate::inference::WeightedSum;

/// Actions that a command may have.
#[derive(Debug, Clone, PartialEq)]
pub struct PossibleCommand {
    /// Indices of the actions in the model's list, each with how often it occurs.
    pub actions: Vec<(u32, u32)>,
    /// Σ |aᵢ|·nᵢ in bytes.
    pub sum: i64,
    /// How many replies of each class it should have; none where replies say nothing one by one.
    pub class_counts: Vec<u32>,
    /// P(A) by the learned habits, without commands that recur.
    pub prior: f64,
    /// Its share of all commands if it recurs; 0 if it does not.
    pub recurring: f64,
    /// P(replies | A), as a multiple of the unit.
    pub likelihood: f64,
}

impl PossibleCommand {
    fn has(&self, action: u32) -> bool {
        self.actions.iter().any(|(own, _)| *own == action)
    }

    /// P(A, replies) by the learned habits as a multiple of the unit, without commands that recur.
    pub(crate) fn by_habit(&self) -> f64 {
        self.prior * self.likelihood
    }
}

/// What a command may be, in each state.
#[derive(Debug)]
pub struct PossibleCommands {
    /// P(size, replies) by the learned habits for each state, without commands that recur, as a multiple of the unit.
    pub(crate) by_habit: Vec<f64>,
    /// The same with them.
    pub(crate) learned: Vec<f64>,
    /// The same by broad habits.
    pub(crate) broad: Vec<f64>,
    /// The share of commands that do not recur.
    not_recurring: f64,
    pub(crate) in_states: Vec<PossibleInStates>,
}

/// What a command may be in the states with the same shift of replies.
#[derive(Debug)]
pub(crate) struct PossibleInStates {
    /// Those of a class side by side.
    pub(crate) commands: Vec<PossibleCommand>,
    /// In the order of their sums.
    pub(crate) classes: Vec<PossibleClass>,
    /// Those of all messages by their index, each with the sums that the command's actions may have.
    pub(crate) states: Vec<(usize, Vec<WeightedSum>)>,
}

/// Commands that no size and no reply tells apart.
#[derive(Debug)]
pub(crate) struct PossibleClass {
    pub(crate) sum: i64,
    pub(crate) class_counts: Vec<u32>,
    /// Where its commands are.
    pub(crate) members: Range<usize>,
    /// P(replies | class), as a multiple of the unit.
    pub(crate) likelihood: f64,
    /// P(class, replies) by the learned habits with commands that recur, as a multiple of the unit.
    pub(crate) learned: f64,
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
    /// For states with P(size, replies) by the learned habits without commands that recur, as a multiple of a unit. The
    /// others have a share of all commands.
    pub fn new(by_habit: Vec<f64>, not_recurring: f64) -> Self {
        let (learned, broad) = (by_habit.clone(), by_habit.clone());
        Self { by_habit, learned, broad, not_recurring, in_states: Vec::new() }
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
        commands: Vec<PossibleCommand>,
        states: Vec<(usize, Vec<WeightedSum>)>,
        farther: &[PossibleCommand],
        longer_actions: &BTreeMap<(u32, i64), usize>,
        habits: Option<&LearnedHabits>,
    ) {
        let possible = PossibleInStates::new(commands, states, self.not_recurring);
        let longer_actions = possible.longer_actions(farther, longer_actions);
        for (state, weighted) in &possible.states {
            let recurring = |sum: &WeightedSum| {
                let of_sum = possible.commands_with(sum.bytes).iter();
                sum.weight * of_sum.map(|command| command.recurring * command.likelihood).sum::<f64>()
            };
            let recurring = weighted.iter().map(recurring).sum::<f64>();
            self.learned[*state] = self.not_recurring * self.by_habit[*state] + recurring;
            if let Some(habits) = habits {
                let broad = possible.sum(weighted, |one| one.by_habit() * habits.broad_factor(&one.actions));
                self.broad[*state] = self.by_habit[*state] * possible.share(weighted, broad);
            }
        }
        weigh_longer_actions(&longer_actions, &mut self.by_habit, PossibleCommand::by_habit);
        let by_learned = |one: &PossibleCommand| self.not_recurring * one.by_habit() + one.recurring * one.likelihood;
        weigh_longer_actions(&longer_actions, &mut self.learned, by_learned);
        if let Some(habits) = habits {
            let by_broad = |one: &PossibleCommand| one.by_habit() * habits.broad_factor(&one.actions);
            weigh_longer_actions(&longer_actions, &mut self.broad, by_broad);
            self.in_states.push(possible);
        }
    }
}

impl PossibleInStates {
    fn new(mut commands: Vec<PossibleCommand>, states: Vec<(usize, Vec<WeightedSum>)>, not_recurring: f64) -> Self {
        commands.sort_by(|a, b| (a.sum, &a.class_counts, &a.actions).cmp(&(b.sum, &b.class_counts, &b.actions)));
        let mut classes = Vec::new();
        let mut begin = 0;
        for members in commands.chunk_by(|a, b| (a.sum, &a.class_counts) == (b.sum, &b.class_counts)) {
            let PossibleCommand { sum, class_counts, likelihood, .. } = &members[0];
            let prior: f64 = members.iter().map(|one| not_recurring * one.prior + one.recurring).sum();
            classes.push(PossibleClass {
                sum: *sum,
                class_counts: class_counts.clone(),
                members: begin..begin + members.len(),
                likelihood: *likelihood,
                learned: likelihood * prior,
            });
            begin += members.len();
        }
        Self { commands, classes, states }
    }

    /// The classes with a sum.
    pub(crate) fn with_sum(&self, sum: i64) -> Range<usize> {
        self.classes.partition_point(|class| class.sum < sum)..self.classes.partition_point(|class| class.sum <= sum)
    }

    /// The commands with a sum.
    fn commands_with(&self, sum: i64) -> &[PossibleCommand] {
        let begin = self.commands.partition_point(|command| command.sum < sum);
        let end = self.commands.partition_point(|command| command.sum <= sum);
        &self.commands[begin..end]
    }

    /// A sum over the commands with some weighted sums.
    pub(crate) fn sum(&self, sums: &[WeightedSum], value: impl Fn(&PossibleCommand) -> f64) -> f64 {
        let of_sum = |sum: &WeightedSum| sum.weight * self.commands_with(sum.bytes).iter().map(&value).sum::<f64>();
        sums.iter().map(of_sum).sum()
    }

    /// The probability of some weighted sums by other habits, as a multiple of that by the learned ones. What is not listed
    /// matters as little by either.
    fn share(&self, sums: &[WeightedSum], by_other: f64) -> f64 {
        let by_learned = self.sum(sums, PossibleCommand::by_habit);
        if by_learned > 0.0 { by_other / by_learned } else { 1.0 }
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
            self.commands_with(sum.bytes).iter().map(move |command| (command, weight))
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
