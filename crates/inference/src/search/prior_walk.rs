//! The prior, as weights along the walks through an automaton whose states know the number of actions.
//!
//! By habit, taking the nth of an action weighs [`Prior::ln_next`], times the share of its devices that are still free. The
//! end of a walk of n actions weighs P(n) over the weights of all walks of n actions; that is up to the caller. Where each
//! device is as likely, taking the nth weighs 1 / n, and the end g(t) ([`CommandWeights`]).

use sizeleak_model::{Limits, Prior};

use super::automaton::{Automaton, Layer};
use crate::space::{CommandWeights, Home, Premises, PriorName};

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
