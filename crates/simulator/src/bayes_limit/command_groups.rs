//! The distribution of a scenario's random commands, grouped by what an observer can learn of them.
//!
//! Commands are multisets of actions, and far too many to list. If the actions that the same kinds of device have are
//! taken together, the devices can be assigned to them in a number of ways that depends on their totals t alone; the
//! totals are then divided among the actions: P(A) = P(t) · Π t! / Π c! for the counts c of the actions. So it is
//! enough to add one action after the other, and to keep of all multisets with the same totals, size and replies the
//! sum and the greatest of Π 1 / c!.

use super::action_traits::ScenarioTraits;
use super::counting::{CountKey, factorial, merge_by_key};
use super::limit_error::BayesLimitError;
use super::totals::TotalWeights;
use crate::scenario::Scenario;

/// The most states after each action; as many take some seconds and 500 MB. Of more, the least probable are neglected.
const MAX_STATES: usize = 1 << 20;

/// Commands with the same size of their actions, parameters and replies.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandGroup {
    /// The bytes of the actions without their parameters, in a message of the first app.
    pub(super) bytes: usize,
    /// The number of actions.
    pub(super) total: u32,
    /// How many parameters of each distribution it has, by [`CommandGroups::parameters`].
    pub(super) parameters: u128,
    /// How many actions with each kind of replies it has, by [`CommandGroups::replies`].
    pub(super) replies: u128,
    /// The probability of these commands.
    pub(super) mass: f64,
    /// The probability of the most probable of them.
    pub(super) best: f64,
}

/// All commands of a scenario.
#[derive(Debug)]
pub(super) struct CommandGroups {
    /// In order of bytes, total and parameters.
    pub(super) groups: Vec<CommandGroup>,
    pub(super) parameters: CountKey,
    pub(super) replies: CountKey,
    /// The entropy of a command's actions, in bits.
    pub(super) prior_bits: f64,
}

/// Multisets of the actions so far.
#[derive(Debug, Clone, Copy)]
struct State {
    group: CommandGroup,
    /// The totals of actions that the same kinds have.
    totals: u128,
    /// The sum of w · log₂ w over the multisets, for w = Π 1 / c!. The sum of w is the group's mass.
    logs: f64,
}

impl CommandGroups {
    pub(super) fn new(scenario: &Scenario, traits: &ScenarioTraits) -> Result<Self, BayesLimitError> {
        Self::of_states(scenario, traits, MAX_STATES)
    }

    /// The commands, by way of at most so many states.
    pub(super) fn of_states(
        scenario: &Scenario,
        traits: &ScenarioTraits,
        most_states: usize,
    ) -> Result<Self, BayesLimitError> {
        let most = scenario.command.most_actions;
        let key = |counts: usize| CountKey::new(counts, most).ok_or(BayesLimitError::TooMany);
        let (parameters, replies) = (key(traits.parameters.len())?, key(traits.replies.len())?);
        let totals = TotalWeights::new(scenario, traits)?;
        let device_counts = traits.kind_sets.iter().map(|kinds| {
            kinds.iter().filter_map(|kind| scenario.devices.get(*kind)).map(|kind| kind.count).sum::<u32>()
        });
        let addition = Addition { most, most_states, totals: &totals, device_counts: device_counts.collect() };
        let unit = |key: &CountKey, at: Option<usize>| at.map_or(0, |at| key.unit(at));
        let mut steps: Vec<Step> = traits
            .actions
            .iter()
            .map(|action| Step {
                kinds: action.kinds,
                bytes: action.bytes,
                parameter: unit(&parameters, action.parameter),
                reply: unit(&replies, action.replies),
            })
            .collect();
        // Actions that look alike follow each other, so that states merge early.
        steps.sort_unstable();
        let groups = addition.states(&steps).into_iter().filter_map(|State { group, totals: own, .. }| {
            let weight = totals.weights.get(&own).copied().filter(|weight| *weight > 0.0)?;
            Some(CommandGroup { mass: group.mass * weight, best: group.best * weight, ..group })
        });
        let mut groups: Vec<CommandGroup> = groups.collect();
        let order = |group: &CommandGroup| (group.bytes, group.total, group.parameters, group.replies);
        merge_by_key(&mut groups, order, CommandGroup::add);
        // Sizes do not matter to the entropy, and there are few states without them.
        let alike: Vec<Step> = steps.iter().map(|step| Step { kinds: step.kinds, ..Step::default() }).collect();
        let bits = addition.states(&alike).into_iter().filter_map(|State { group, totals: own, logs }| {
            let weight = totals.weights.get(&own).copied().filter(|weight| *weight > 0.0)?;
            Some(-weight * (logs + group.mass * weight.log2()))
        });
        Ok(Self { groups, prior_bits: bits.sum(), parameters, replies })
    }
}

impl CommandGroup {
    fn add(&mut self, other: &Self) {
        self.mass += other.mass;
        self.best = self.best.max(other.best);
    }
}

/// What one more of an action adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    reply: u128,
    parameter: u128,
    kinds: usize,
    bytes: usize,
}

/// The addition of one action after the other.
#[derive(Debug)]
struct Addition<'a> {
    /// The most actions of a command.
    most: u32,
    /// The most states to keep.
    most_states: usize,
    totals: &'a TotalWeights,
    /// The number of devices that have the actions of each total.
    device_counts: Vec<u32>,
}

impl Addition<'_> {
    /// All multisets of actions that the devices allow.
    fn states(&self, steps: &[Step]) -> Vec<State> {
        let none = CommandGroup { bytes: 0, total: 0, parameters: 0, replies: 0, mass: 1.0, best: 1.0 };
        let mut states = vec![State { group: none, totals: 0, logs: 0.0 }];
        for (at, step) in steps.iter().enumerate() {
            let mut more: Vec<State> = states.iter().flat_map(|state| self.added(state, step)).collect();
            let order = |state: &State| (state.totals, state.group.bytes, state.group.parameters, state.group.replies);
            merge_by_key(&mut more, order, |kept, other| {
                kept.group.add(&other.group);
                kept.logs += other.logs;
            });
            self.neglect(&mut more, steps.get(at + 1..).unwrap_or(&[]));
            states = more;
        }
        states
    }

    /// A state with each possible number of an action.
    fn added(&self, state: &State, step: &Step) -> impl Iterator<Item = State> {
        let State { group, totals, logs } = *state;
        let Step { reply, parameter, kinds, bytes } = *step;
        let devices = self.device_counts.get(kinds).copied().unwrap_or(0);
        let left = devices.saturating_sub(self.totals.key.count(totals, kinds)).min(self.most - group.total);
        let unit = self.totals.key.unit(kinds);
        (0..=left).map(move |count| {
            let (weight, times) = (factorial(count).recip(), u128::from(count));
            let group = CommandGroup {
                bytes: group.bytes + bytes * count as usize,
                total: group.total + count,
                parameters: group.parameters + parameter * times,
                replies: group.replies + reply * times,
                mass: group.mass * weight,
                best: group.best * weight,
            };
            // Σ wv · log₂ wv = v · Σ w log₂ w + v log₂ v · Σ w, for one weight v.
            State { group, totals: totals + unit * times, logs: logs * weight + weight.log2() * group.mass }
        })
    }

    /// Drops the least probable states where there are too many.
    fn neglect(&self, states: &mut Vec<State>, steps_left: &[Step]) {
        if states.len() <= self.most_states {
            return;
        }
        let mut left = vec![0; self.device_counts.len()];
        for step in steps_left {
            if let Some(left) = left.get_mut(step.kinds) {
                *left += 1;
            }
        }
        let weights = self.totals.before(&left);
        let probability = |state: &State| state.group.mass * weights.get(&state.totals).copied().unwrap_or(0.0);
        states.select_nth_unstable_by(self.most_states, |one, other| probability(other).total_cmp(&probability(one)));
        states.truncate(self.most_states);
    }
}
