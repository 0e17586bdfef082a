//! What a command may be in each state of a flow's messages: the classes that explain its size and replies, and how
//! probable these are by each kind of habits.

use std::sync::Arc;

use crate::command_class::CommandClass;
use crate::number_walk::WeightedSum;

/// One action alone is taken to be longer only in commands that are longer by at most as many bytes by it.
pub const MAX_BY_ONE_ACTION: i64 = 16;

/// The sums that a command's actions may have in some states, and these with those that they may have only if one action
/// alone is longer than in the first state of all; both in ascending order.
pub fn asked_sums(states: &[(usize, Vec<WeightedSum>)]) -> [Vec<i64>; 2] {
    let bytes = |(_, sums): &(usize, Vec<WeightedSum>)| sums.iter().map(|sum| sum.bytes).collect::<Vec<i64>>();
    let near = |bytes: i64| (-MAX_BY_ONE_ACTION..=MAX_BY_ONE_ACTION).map(move |longer| bytes.saturating_add(longer));
    let own: Vec<i64> = states.iter().flat_map(bytes).collect();
    let as_learned = states.iter().filter(|(state, _)| *state == 0);
    let all = as_learned.flat_map(bytes).flat_map(near).chain(own.iter().copied()).collect();
    [own, all].map(|mut sums: Vec<i64>| {
        sums.sort_unstable();
        sums.dedup();
        sums
    })
}

#[derive(Debug)]
pub struct PossibleCommands {
    /// The logarithm of the unit.
    pub ln_unit: f64,
    /// P(size, replies) by the learned habits for each state, without commands that recur, as a multiple of the unit.
    pub(crate) by_habit: Vec<f64>,
    /// The same with them.
    pub learned: Vec<f64>,
    /// The same by broad habits, for states of all messages.
    pub(crate) broad: Vec<f64>,
    /// P(size, replies) by the learned habits where the replies are none of the model's, on average over the states of all
    /// messages, as a multiple of the unit; `None` where replies are not known.
    pub unlike_replies: Option<f64>,
    not_recurring: f64,
    /// Whether it is not known which actions explain the command: it speaks neither for nor against a longer one.
    pub are_actions_unknown: bool,
    pub(crate) in_states: Vec<PossibleInStates>,
}

/// What a command may be in the states with the same shift of replies.
#[derive(Debug)]
pub(crate) struct PossibleInStates {
    /// In the order of their sums.
    pub(crate) classes: Vec<PossibleClass>,
    pub(crate) states: Vec<PossibleInState>,
}

#[derive(Debug, Clone)]
pub(crate) struct PossibleClass {
    pub(crate) class: Arc<CommandClass>,
    /// P(replies | class), as a multiple of the unit.
    pub(crate) likelihood: f64,
}

#[derive(Debug)]
pub(crate) struct PossibleInState {
    pub(crate) state: usize,
    /// The places of its classes, each with P(size, replies | class), as a multiple of the unit.
    pub(crate) classes: Vec<(usize, f64)>,
    /// What is listed, times this, is all; 0 where nothing is.
    pub(crate) scale: f64,
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
    pub(crate) fn new(by_habit: Vec<f64>, ln_unit: f64, not_recurring: f64) -> Self {
        let (learned, broad) = (by_habit.clone(), by_habit.clone());
        let (unlike_replies, in_states) = (None, Vec::new());
        Self { ln_unit, by_habit, learned, broad, unlike_replies, not_recurring, are_actions_unknown: false, in_states }
    }

    /// How many classes and members of classes are listed.
    pub fn listed(&self) -> usize {
        let classes = self.in_states.iter().flat_map(|possible| &possible.classes);
        classes.map(|one| 1 + one.class.members.len()).sum()
    }

    /// Adds the classes that a command may be of in some states, in the order of their sums: the states are given with the
    /// sums that the command may have. The first state of all brings those with it in which one action alone is longer.
    pub(crate) fn add(
        &mut self,
        classes: Vec<PossibleClass>,
        states: &[(usize, Vec<WeightedSum>)],
        longer_actions: &LongerActions,
    ) {
        if let Some((_, sums)) = states.iter().find(|(state, _)| *state == 0) {
            let mut recurring = 0.0;
            for PossibleClass { class, likelihood } in &classes {
                let of_sums = sums.iter().filter(|sum| sum.bytes == class.sum);
                of_sums.for_each(|sum| recurring += sum.weight * likelihood * class.recurring);
            }
            let first = self.by_habit[0];
            let first = [first, self.not_recurring * first + recurring];
            for (state, by_habits) in longer_actions.weigh(first, self.not_recurring, &classes, sums) {
                [self.by_habit[state], self.learned[state]] = by_habits;
            }
        }
        let mut possible = PossibleInStates { classes, states: Vec::new() };
        possible.classes.retain(|one| states.iter().any(|(_, sums)| sums.iter().any(|sum| sum.bytes == one.class.sum)));
        for (state, sums) in states {
            let classes = possible.with_sums(sums);
            let sum = |value: fn(&CommandClass) -> f64| -> f64 {
                classes.iter().map(|(at, weight)| weight * value(&possible.classes[*at].class)).sum()
            };
            let by_habit = self.by_habit[*state];
            let listed = sum(|class| class.prior);
            let scale = if listed > 0.0 { by_habit / listed } else { 0.0 };
            self.learned[*state] = self.not_recurring * by_habit + sum(|class| class.recurring);
            self.broad[*state] = if listed > 0.0 { scale * sum(|class| class.broad) } else { by_habit };
            possible.states.push(PossibleInState { state: *state, classes, scale });
        }
        self.in_states.push(possible);
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
    /// and with those that explain one of the sums if it is longer.
    fn weigh(
        &self,
        first: ByHabits,
        not_recurring: f64,
        classes: &[PossibleClass],
        sums: &[WeightedSum],
    ) -> Vec<(usize, ByHabits)> {
        let mut as_learned = vec![ByHabits::default(); self.states.len()];
        let mut longer: Vec<Vec<ByHabits>> =
            self.states.iter().map(|of_action| vec![ByHabits::default(); of_action.len()]).collect();
        let near = |one: &PossibleClass, bytes: i64| (bytes - one.class.sum).abs() <= MAX_BY_ONE_ACTION;
        for WeightedSum { bytes, weight } in sums {
            for PossibleClass { class, likelihood } in classes.iter().filter(|one| near(one, *bytes)) {
                let missing = bytes - class.sum;
                for one in &class.occurrences {
                    let (action, times) = (one.action as usize, i64::from(one.times));
                    let Some(longer) = longer.get_mut(action) else { continue };
                    let all = if missing == 0 {
                        &mut as_learned[action]
                    } else if missing.abs() <= self.most * times && missing % times == 0 {
                        &mut longer[(missing / times + self.most) as usize]
                    } else {
                        continue;
                    };
                    all[0] += weight * likelihood * one.prior;
                    all[1] += weight * likelihood * (not_recurring * one.prior + one.recurring);
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
    /// The places of the classes with some sums, each with its weight.
    fn with_sums(&self, sums: &[WeightedSum]) -> Vec<(usize, f64)> {
        let mut found = Vec::new();
        for WeightedSum { bytes, weight } in sums {
            let begin = self.classes.partition_point(|one| one.class.sum < *bytes);
            let of_sum = self.classes[begin..].iter().take_while(|one| one.class.sum == *bytes);
            found.extend((begin..).zip(of_sum).map(|(at, one)| (at, weight * one.likelihood)));
        }
        found
    }
}
