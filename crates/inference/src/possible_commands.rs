//! What a command may be in each state of a flow's messages: the actions that explain its size and replies, and how
//! probable these are by each kind of habits.

use std::ops::Range;

use crate::explained::WeightedSum;
use crate::habits::LearnedHabits;

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
    /// The same by broad habits, for states of all messages.
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

/// Which states have one action alone longer by how many bytes.
#[derive(Debug, Default)]
pub(crate) struct LongerActions {
    /// By action, then by how many bytes it is longer, from `-most` to `most`.
    states: Vec<Vec<Option<usize>>>,
    most: i64,
}

/// P(command) by the learned habits, without commands that recur and with them.
type ByHabits = [f64; 2];

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
        longer_actions: &LongerActions,
        habits: Option<&LearnedHabits>,
    ) {
        let possible = PossibleInStates::new(commands, states, self.not_recurring);
        let broad: Vec<f64> = habits.map_or_else(Vec::new, |habits| {
            possible.commands.iter().map(|one| one.by_habit() * habits.broad_factor(&one.actions)).collect()
        });
        for (state, weighted) in &possible.states {
            let recurring = possible.sum(weighted, |command| command.recurring * command.likelihood);
            self.learned[*state] = self.not_recurring * self.by_habit[*state] + recurring;
            if habits.is_some() {
                let broad = possible.sum_by_place(weighted, |at| broad[at]);
                self.broad[*state] = self.by_habit[*state] * possible.share(weighted, broad);
            }
        }
        if let Some((_, sums)) = possible.states.iter().find(|(state, _)| *state == 0) {
            let by_habits = |one: &PossibleCommand| {
                let by_habit = one.by_habit();
                [by_habit, self.not_recurring * by_habit + one.recurring * one.likelihood]
            };
            let all = possible.commands.iter().chain(farther).map(|command| (command, by_habits(command)));
            for (state, by_habits) in longer_actions.weigh([self.by_habit[0], self.learned[0]], all, sums) {
                [self.by_habit[state], self.learned[state]] = by_habits;
            }
        }
        if habits.is_some() {
            self.in_states.push(possible);
        }
    }
}

impl LongerActions {
    /// Of states, by the index of the action and by how many bytes it is longer.
    pub(crate) fn new(states: impl IntoIterator<Item = ((u32, i64), usize)>) -> Self {
        let states: Vec<((u32, i64), usize)> = states.into_iter().collect();
        let most = states.iter().map(|((_, bytes), _)| bytes.abs()).max().unwrap_or(0);
        let actions = states.iter().map(|((action, _), _)| *action as usize + 1).max().unwrap_or(0);
        let mut own = Self { states: vec![vec![None; 2 * most as usize + 1]; actions], most };
        for ((action, bytes), state) in states {
            own.states[action as usize][(bytes + most) as usize] = Some(state);
        }
        own
    }

    /// The states with how probable the command is in them: as in the first state, without the commands that have the action,
    /// and with those that explain one of the sums if it is longer. Commands are given with how probable they are.
    fn weigh<'a>(
        &self,
        first: ByHabits,
        commands: impl IntoIterator<Item = (&'a PossibleCommand, ByHabits)>,
        sums: &[WeightedSum],
    ) -> Vec<(usize, ByHabits)> {
        let add = |all: &mut ByHabits, own: ByHabits, weight: f64| {
            all.iter_mut().zip(own).for_each(|(all, own)| *all += weight * own);
        };
        let mut as_learned = vec![ByHabits::default(); self.states.len()];
        let mut longer: Vec<Vec<ByHabits>> =
            self.states.iter().map(|of_action| vec![ByHabits::default(); of_action.len()]).collect();
        for (command, by_habits) in commands {
            for (action, count) in &command.actions {
                let Some(longer) = longer.get_mut(*action as usize) else { continue };
                let count = i64::from(*count);
                for WeightedSum { bytes, weight } in sums {
                    let missing = bytes - command.sum;
                    // Most commands are too far away.
                    if missing == 0 {
                        add(&mut as_learned[*action as usize], by_habits, *weight);
                    } else if missing.abs() <= self.most * count && missing % count == 0 {
                        add(&mut longer[(missing / count + self.most) as usize], by_habits, *weight);
                    }
                }
            }
        }
        let mut weighed = Vec::new();
        for ((states, longer), as_learned) in self.states.iter().zip(longer).zip(as_learned) {
            for (state, mut by_habits) in states.iter().zip(longer) {
                let Some(state) = state else { continue };
                for ((own, first), as_learned) in by_habits.iter_mut().zip(first).zip(as_learned) {
                    *own += (first - as_learned).max(0.0);
                }
                weighed.push((*state, by_habits));
            }
        }
        weighed
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

    /// A sum over the commands with some weighted sums.
    pub(crate) fn sum(&self, sums: &[WeightedSum], value: impl Fn(&PossibleCommand) -> f64) -> f64 {
        self.sum_by_place(sums, |at| value(&self.commands[at]))
    }

    /// The same of values by the place of a command.
    fn sum_by_place(&self, sums: &[WeightedSum], value: impl Fn(usize) -> f64) -> f64 {
        let of_sum = |sum: &WeightedSum| {
            let begin = self.commands.partition_point(|command| command.sum < sum.bytes);
            let end = self.commands.partition_point(|command| command.sum <= sum.bytes);
            sum.weight * (begin..end).map(&value).sum::<f64>()
        };
        sums.iter().map(of_sum).sum()
    }

    /// The probability of some weighted sums by other habits, as a multiple of that by the learned ones. What is not listed
    /// matters as little by either.
    fn share(&self, sums: &[WeightedSum], by_other: f64) -> f64 {
        let by_learned = self.sum(sums, PossibleCommand::by_habit);
        if by_learned > 0.0 { by_other / by_learned } else { 1.0 }
    }
}
