//! The inventory as an automaton: what a walk through the actions must remember to stay within the limits. It knows no
//! sums. And the prior, as weights along the walks through an automaton whose states know the number of actions.
//!
//! The actions have a fixed order, with a layer each. A state of a layer says how far each of Hall's conditions
//! ([`Limits::conditions`]) is used up, as long as that condition is *open*. A condition none of whose actions has come
//! yet is at 0; one whose last action has passed can no longer be broken and is forgotten. Kinds of device that share
//! no action therefore add states instead of multiplying them.
//!
//! By habit, taking the nth of an action weighs [`Prior::ln_next`], times the share of its devices that are still free. The
//! end of a walk of n actions weighs P(n) over the weights of all walks of n actions; that is up to the caller. Where each
//! device is as likely, taking the nth weighs 1 / n, and the end g(t) ([`CommandWeights`]).

use std::collections::BTreeMap;

use sizeleak_model::{Limits, Prior};

use crate::space::{CommandWeights, Home, Premises, PriorName};

pub(super) const MAX_STATES: usize = 1 << 16;

/// The most numbers that the states of a layer hold while it is built.
const MAX_STATE_NUMBERS: usize = 1 << 24;

/// The layers of all actions, in the order of their classes.
#[derive(Debug, Clone)]
pub(super) struct Automaton {
    pub(super) layers: Vec<Layer>,
    /// The number of states of all layers together.
    pub(super) state_count: usize,
    /// Where walks end, by the state after the last layer: how far each condition that is kept is used up.
    pub(super) ends: Vec<Vec<u32>>,
}

/// What can be done with one action.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    /// The action's index in the model's list.
    pub(super) action: usize,
    /// The action's size in bytes.
    pub(super) size: usize,
    /// How many states the earlier layers have together.
    pub(super) offset: usize,
    /// A walk begins in the first state of the first layer.
    pub(super) states: Vec<State>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    /// The state of this layer after one more of the action; `None` where no device is free for it.
    pub(super) take: Option<u32>,
    /// The state of this layer from which one more of the action leads here.
    pub(super) untake: Option<u32>,
    /// The state of the next layer after passing on.
    pub(super) pass: u32,
    /// The share of its devices that are free for the action; 1 without an inventory.
    pub(super) free: f64,
    /// How many actions were taken so far, if the limits count them ([`Limits::counter`]); else 0.
    pub(super) actions_so_far: u32,
}

impl Automaton {
    /// An automaton over actions of these sizes; `None` where it would have more than [`MAX_STATES`] states.
    pub(super) fn new(sizes: &[usize], limits: &Limits) -> Option<Self> {
        let order = order(sizes, limits);
        let mut layers: Vec<Layer> = Vec::new();
        let mut state_count = 0;
        let mut entries = vec![vec![0; limits.conditions().len()]];
        for (position, &(action, size)) in order.iter().enumerate() {
            let later = order.iter().skip(position + 1).map(|(action, _)| limits.class_of(*action));
            let later = later.filter(|class| *class < limits.classes()).fold(0_u64, |set, class| set | 1 << class);
            let open: Vec<bool> = limits.conditions().iter().map(|one| one.is_kept || one.holds_any(later)).collect();
            let room = MAX_STATES - state_count;
            let (states, next_entries) = states_of(limits, limits.class_of(action), &open, entries, room)?;
            entries = next_entries;
            layers.push(Layer { action, size, offset: state_count, states });
            state_count += layers[position].states.len();
        }
        let kept = |used: Vec<u32>| {
            let used = used.into_iter().zip(limits.conditions());
            used.filter(|(_, condition)| condition.is_kept).map(|(used, _)| used).collect()
        };
        Some(Self { layers, state_count, ends: entries.into_iter().map(kept).collect() })
    }
}

/// The states of a layer that is entered in some states, given how far each condition is used up: all that taking an action
/// of this class leads to, at most `room`. `open` says which conditions still matter to later actions. Returns them with the
/// states in which the next layer is entered.
fn states_of(
    limits: &Limits,
    class: usize,
    open: &[bool],
    entries: Vec<Vec<u32>>,
    room: usize,
) -> Option<(Vec<State>, Vec<Vec<u32>>)> {
    let mut numbers: BTreeMap<Vec<u32>, u32> = entries.iter().cloned().zip(0..).collect();
    let (mut keys, mut next_keys, mut next_numbers) = (entries, Vec::new(), BTreeMap::new());
    let mut states: Vec<State> = Vec::new();
    let mut taken_from = BTreeMap::new();
    let mut number = 0;
    while let Some(key) = keys.get(number as usize).cloned() {
        let mut taken = key.clone();
        let free = limits.take(class, &mut taken);
        let take = free.map(|_| number_of(taken, &mut keys, &mut numbers));
        if let Some(take) = take {
            taken_from.insert(take, number);
        }
        let actions_so_far = limits.counter().and_then(|at| key.get(at)).copied().unwrap_or(0);
        let mut passed = key;
        for (used, _) in passed.iter_mut().zip(open).filter(|(_, open)| !**open) {
            *used = 0;
        }
        let pass = number_of(passed, &mut next_keys, &mut next_numbers);
        states.push(State { take, untake: None, pass, free: free.unwrap_or(0.0), actions_so_far });
        if keys.len() > room || keys.len() * limits.conditions().len() > MAX_STATE_NUMBERS {
            return None;
        }
        number += 1;
    }
    for (state, number) in states.iter_mut().zip(0..) {
        state.untake = taken_from.get(&number).copied();
    }
    Some((states, next_keys))
}

fn number_of(key: Vec<u32>, keys: &mut Vec<Vec<u32>>, numbers: &mut BTreeMap<Vec<u32>, u32>) -> u32 {
    *numbers.entry(key).or_insert_with_key(|key| {
        keys.push(key.clone());
        keys.len() as u32 - 1
    })
}

/// The actions with their sizes by the classes' order ([`Limits::class_order`]); within a class larger actions come
/// first, then the model's order decides.
fn order(sizes: &[usize], limits: &Limits) -> Vec<(usize, usize)> {
    let mut actions: Vec<(usize, usize)> = sizes.iter().copied().enumerate().collect();
    let classes = limits.class_order();
    actions.sort_by_key(|(action, size)| {
        let class = limits.class_of(*action);
        let rank = classes.iter().position(|placed| *placed == class).unwrap_or(usize::MAX);
        (rank, std::cmp::Reverse(*size), *action)
    });
    actions
}

/// How many actions of a command the states may count. The first number for which the tables have room is used.
pub(super) const COUNTED_ACTIONS: [u32; 4] = [64, 32, 16, 8];

/// What walks weigh.
#[derive(Debug, Clone, Copy)]
pub enum WalkPrior<'a> {
    /// As learned of habits.
    Habit(&'a Prior),
    /// Each device of a home is as likely, and each of its actions.
    Devices(Home<'a>),
}

impl WalkPrior<'_> {
    /// The logarithm of what the nth of an action weighs, where a share of its devices is free.
    fn ln_next(&self, action: usize, nth: u32, free: f64) -> f64 {
        match self {
            Self::Habit(prior) => prior.ln_next(action, nth) + free.ln(),
            Self::Devices(_) => -f64::from(nth).ln(),
        }
    }
}

/// The most transitions of an automaton, all states together.
const MAX_TRANSITIONS: usize = 1 << 21;

/// Takes an action some number of times, and leads on to the next layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transition {
    pub(super) weight: f64,
    pub(super) ln_weight: f64,
    pub(super) next: u32,
    /// How many actions the walk has then.
    pub(super) actions: u32,
}

/// Takes a layer's action 0, 1, 2… times from a state, as often as the limits allow.
fn transitions_from(layer: &Layer, state: usize, prior: &WalkPrior<'_>) -> impl Iterator<Item = Transition> {
    let (mut at, mut ln_weight, mut nth) = (layer.states.get(state), 0.0, 0);
    std::iter::from_fn(move || {
        let state = at?;
        let transition =
            Transition { weight: f64::exp(ln_weight), ln_weight, next: state.pass, actions: state.actions_so_far };
        nth += 1;
        ln_weight += prior.ln_next(layer.action, nth, state.free);
        at = state.take.and_then(|take| layer.states.get(take as usize));
        Some(transition)
    })
}

/// The transitions of all states, weighed so that the product along a walk is P(A): those of the last layer have P(n)
/// over the weights of all walks of n actions besides.
#[derive(Debug, Clone)]
pub(super) struct WeighedTransitions {
    pub(super) transitions: Vec<Transition>,
    /// The index of each state's first transition, by the state's index among all states.
    firsts: Vec<usize>,
}

impl WeighedTransitions {
    /// `None` where there are too many transitions.
    pub(super) fn new(automaton: &Automaton, limits: &Limits, prior: &WalkPrior<'_>) -> Option<Self> {
        let (mut transitions, mut firsts): (Vec<Transition>, Vec<usize>) = (Vec::new(), Vec::new());
        // The weights of all walks to each state of a layer, and in the end by their number of actions.
        let (mut entering, mut by_actions) = (vec![1.0], vec![0.0; limits.max_actions() as usize + 1]);
        for (index, layer) in automaton.layers.iter().enumerate() {
            let next_layer = automaton.layers.get(index + 1);
            let mut leaving = vec![0.0; next_layer.map_or(0, |next| next.states.len())];
            for state in 0..layer.states.len() {
                // To begin with, no action is taken.
                let walks = entering.get(state).copied().unwrap_or(0.0);
                let first = transitions.len();
                firsts.push(first);
                transitions.extend(transitions_from(layer, state, prior));
                if transitions.len() > MAX_TRANSITIONS {
                    return None;
                }
                for Transition { weight, next, actions, .. } in &transitions[first..] {
                    let target = match next_layer {
                        Some(_) => leaving.get_mut(*next as usize),
                        None => by_actions.get_mut(*actions as usize),
                    };
                    if let Some(target) = target {
                        *target += weight * walks;
                    }
                }
            }
            entering = leaving;
        }
        let last_layer = firsts.get(automaton.layers.last()?.offset).copied()?;
        let ln_ends = ln_ends(automaton, limits, prior)?;
        for Transition { weight, ln_weight, next, actions } in transitions.iter_mut().skip(last_layer) {
            *ln_weight += match prior {
                WalkPrior::Habit(prior) => {
                    let all = by_actions[*actions as usize].max(f64::MIN_POSITIVE);
                    prior.ln_number(*actions) - all.ln()
                }
                // Behind the last layer all ends are one state.
                WalkPrior::Devices(_) => ln_ends[std::mem::take(next) as usize],
            };
            *weight = ln_weight.exp();
        }
        Some(Self { transitions, firsts })
    }

    /// The transitions of a state, by its index among all states.
    pub(super) fn of_state(&self, state: usize) -> &[Transition] {
        let first = self.firsts.get(state).copied().unwrap_or(self.transitions.len());
        let end = self.firsts.get(state + 1).copied().unwrap_or(self.transitions.len());
        self.transitions.get(first..end).unwrap_or_default()
    }
}

/// ln g(t) of each end of the walks where each device is as likely; `None` where that is too much to compute.
fn ln_ends(automaton: &Automaton, limits: &Limits, prior: &WalkPrior<'_>) -> Option<Vec<f64>> {
    let WalkPrior::Devices(home) = prior else { return Some(Vec::new()) };
    let premises = Premises { prior: PriorName::Devices, decay: None };
    let weights = CommandWeights::new(home, limits, &premises).ok()?;
    let ln_end = |totals: &Vec<u32>| weights.of_totals.get(totals).copied().unwrap_or(0.0).ln();
    Some(automaton.ends.iter().map(ln_end).collect())
}

#[cfg(test)]
mod tests {
    use sizeleak_model::{Action, Device, Inventory};

    use super::*;

    /// The limits of kinds of device, each given as a count and the letters of its actions, on all letters in order.
    fn limits(kinds: &[(u32, &str)]) -> Limits {
        let names = |letters: &str| letters.chars().map(String::from).collect::<Vec<_>>();
        let devices = kinds.iter().zip(0..).map(|((count, letters), at): (_, u32)| Device {
            name: at.to_string(),
            count: *count,
            actions: names(letters),
            safe: true,
        });
        let inventory = Inventory { devices: devices.collect() };
        let mut all: Vec<&str> = inventory.action_names();
        all.sort_unstable();
        let actions: Vec<Action> = all.iter().map(|name| Action::new(*name, 1)).collect();
        inventory.limits(&actions).unwrap()
    }

    fn states(kinds: &[(u32, &str)], actions: usize) -> Vec<usize> {
        let automaton = Automaton::new(&vec![1; actions], &limits(kinds)).unwrap();
        automaton.layers.iter().map(|layer| layer.states.len()).collect()
    }

    #[test]
    fn a_condition_is_forgotten_after_its_last_action() {
        assert_eq!(states(&[(12, "ab"), (4, "abcd")], 4), [5, 5, 17, 17]);
    }

    #[test]
    fn kinds_without_a_common_action_add_states() {
        assert_eq!(states(&[(100, "ab"), (50, "c"), (30, "d")], 4), [101, 101, 51, 31]);
    }

    #[test]
    fn without_limits_each_layer_has_one_state() {
        let automaton = Automaton::new(&[5, 9, 7], &Limits::free(3)).unwrap();
        let order: Vec<usize> = automaton.layers.iter().map(|layer| layer.action).collect();
        assert_eq!((automaton.state_count, order), (3, vec![1, 2, 0]));
        assert_eq!(Automaton::new(&[], &Limits::free(0)).unwrap().state_count, 0);
    }

    #[test]
    fn actions_unknown_to_the_limits_are_never_taken() {
        let automaton = Automaton::new(&[5, 9], &Limits::free(1)).unwrap();
        assert!(automaton.layers.iter().any(|layer| layer.action == 1 && layer.states[0].take.is_none()));
    }

    #[test]
    fn too_many_states_are_refused() {
        assert!(Automaton::new(&[1; 2], &limits(&[(u32::MAX, "a"), (u32::MAX, "ab")])).is_none());
    }
}
