//! What the branches of a command weigh: for each state of the automaton and each number of bytes that is left, the
//! sum over all ways to go on of their prior and of the probability that their actions have so many bytes,
//!
//! ```text
//! W(i, q, s) = Σ over n of  prior(q, n) · Σ over x of  Dᵢ*ⁿ(x) · W(i + 1, next(q, n), s − x)
//! ```
//!
//! with Dᵢ*ⁿ, the distribution of the sum of n sizes of action i. As for single sizes (`weight_table`), weights are
//! exact where states can count actions, and else take the number of actions to be geometric.

use sizeleak_model::{Action, Limits, Prior};

use super::distribution::{Distribution, add_multiple};
use crate::automaton::{Automaton, Layer, State};
use crate::prior_walk::{COUNTED_ACTIONS, Transition, WalkPrior, WeighedTransitions, of_state};
use crate::solver::action_sizes;
use crate::sum_table::MAX_TABLE_BYTES;

/// The most products that filling a table takes; some seconds.
const MAX_PRODUCTS: usize = 1 << 32;

/// Weights of the branches, over one automaton.
#[derive(Debug)]
pub(crate) struct BranchWeights {
    automaton: Automaton,
    priors: Priors,
    /// The sizes of each layer's action. In these and in all weights, each byte has the factor exp(`ln_per_byte`)
    /// besides, so that weights neither vanish nor overflow; it cancels out.
    sizes: Vec<Distribution>,
    ln_per_byte: f64,
    /// The largest sum there is room for, in bytes.
    max_sum: usize,
    /// How many sums the table has.
    width: usize,
    /// One row after the other, of each state of each layer.
    rows: Vec<f64>,
}

#[derive(Debug)]
enum Priors {
    /// P(A), in the transitions of each state.
    Exact(WeighedTransitions),
    /// Each layer's factor for one more of its action.
    Geometric(Vec<f64>),
}

/// A way to go on from a state: so many of the layer's action are taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) weight: f64,
    /// The state of the next layer.
    pub(crate) next: u32,
}

impl BranchWeights {
    /// Tables of increasing range. Without a prior every multiset of actions weighs 1.
    pub(crate) fn tables(actions: &[Action], limits: &Limits, prior: Option<WalkPrior<'_>>) -> Vec<Self> {
        let exact =
            prior.and_then(|prior| COUNTED_ACTIONS.iter().find_map(|most| Self::exact(actions, limits, &prior, *most)));
        let geometric = match prior {
            None => Self::geometric(actions, limits, None),
            Some(WalkPrior::Habit(prior)) => Self::geometric(actions, limits, Some(prior)),
            Some(WalkPrior::Devices(_)) => None,
        };
        exact.into_iter().chain(geometric).collect()
    }

    /// Weights of commands of up to `most` actions, or of all if there cannot be more; `None` without room for them.
    fn exact(actions: &[Action], limits: &Limits, prior: &WalkPrior<'_>, most: u32) -> Option<Self> {
        let [smallest, largest] = [actions.iter().map(|action| action.size_range()[0]).min()?, largest(actions)?];
        let [smallest, largest] = [usize::try_from(smallest).ok()?, usize::try_from(largest).ok()?];
        // Commands beyond this sum may have more actions than are counted.
        let max_sum = match limits.max_actions() {
            max if max <= most => largest.saturating_mul(max as usize),
            _ => smallest.saturating_mul(most as usize + 1).saturating_sub(1),
        };
        let limits = prior.limits(limits, most);
        let automaton = Automaton::new(&action_sizes(actions).ok()?, &limits)?;
        let transitions = WeighedTransitions::new(&automaton, &limits, prior)?;
        let products = transitions.transitions.len();
        let table = Self::new(automaton, Priors::Exact(transitions), actions, 0.0, products)?;
        (max_sum <= table.max_sum).then_some(Self { max_sum, ..table })
    }

    /// Approximate weights, for any number of actions.
    fn geometric(actions: &[Action], limits: &Limits, prior: Option<&Prior>) -> Option<Self> {
        let automaton = Automaton::new(&action_sizes(actions).ok()?, limits)?;
        let ln_factor = |layer: &Layer| prior.map_or(0.0, |prior| prior.ln_next(layer.action, 1) + prior.decay.ln());
        let ln_factors: Vec<f64> = automaton.layers.iter().map(ln_factor).collect();
        // The heaviest action for its size then weighs about 1, and no other more.
        let per_byte = automaton.layers.iter().zip(&ln_factors).map(|(layer, ln)| -ln / layer.size as f64);
        let ln_per_byte = per_byte.fold(f64::INFINITY, f64::min);
        let ln_per_byte = if ln_per_byte.is_finite() { ln_per_byte } else { 0.0 };
        let priors = Priors::Geometric(ln_factors.into_iter().map(f64::exp).collect());
        let products = automaton.state_count;
        Self::new(automaton, priors, actions, ln_per_byte, products)
    }

    /// An empty table; `products` are those of a sum, were every size single.
    fn new(
        automaton: Automaton,
        priors: Priors,
        actions: &[Action],
        ln_per_byte: f64,
        products: usize,
    ) -> Option<Self> {
        let sizes = |layer: &Layer| {
            let sizes = actions.get(layer.action)?.sizes();
            let weighed = sizes
                .map(|(size, share)| Some((usize::try_from(size).ok()?, share * (ln_per_byte * size as f64).exp())));
            Some(Distribution::of(&weighed.collect::<Option<Vec<_>>>()?))
        };
        let sizes: Vec<Distribution> = automaton.layers.iter().map(sizes).collect::<Option<_>>()?;
        let widest = sizes.iter().map(|sizes| sizes.weights.len()).max()?;
        let in_memory = MAX_TABLE_BYTES / size_of::<f64>() / automaton.state_count.max(1);
        let in_time = MAX_PRODUCTS / products.saturating_mul(widest).max(1);
        let max_sum = in_memory.min(in_time).checked_sub(1)?;
        Some(Self { automaton, priors, sizes, ln_per_byte, max_sum, width: 0, rows: Vec::new() })
    }

    /// The largest sum there is room for, in bytes.
    pub(crate) fn reach(&self) -> usize {
        self.max_sum
    }

    /// The logarithm of the factor that each byte has besides its weight.
    pub(crate) fn ln_per_byte(&self) -> f64 {
        self.ln_per_byte
    }

    /// How many sums the table has.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many layers there are: one for each action.
    pub(crate) fn layers(&self) -> usize {
        self.automaton.layers.len()
    }

    /// How many states all layers have together.
    pub(crate) fn states(&self) -> usize {
        self.automaton.state_count
    }

    /// The action of a layer, by its index in the model's list.
    pub(crate) fn action(&self, layer: usize) -> Option<u32> {
        self.automaton.layers.get(layer).and_then(|layer| u32::try_from(layer.action).ok())
    }

    /// The sizes of a layer's action.
    pub(crate) fn sizes(&self, layer: usize) -> Option<&Distribution> {
        self.sizes.get(layer)
    }

    /// A state's index among all states; `None` beyond the last layer.
    pub(crate) fn index(&self, layer: usize, state: u32) -> Option<usize> {
        self.automaton.layers.get(layer).map(|layer| layer.offset + state as usize)
    }

    /// The weights of all ways to go on from a state, by its index, for each number of bytes left.
    pub(crate) fn row(&self, index: usize) -> &[f64] {
        self.rows.get(index * self.width..(index + 1) * self.width).unwrap_or_default()
    }

    /// Taking a layer's action 0, 1, 2… times.
    pub(crate) fn steps(&self, layer: usize, state: u32) -> Steps<'_> {
        let (mut transitions, mut states, mut factor) = (&[][..], &[][..], 1.0);
        if let Some(found) = self.automaton.layers.get(layer) {
            match &self.priors {
                Priors::Exact(WeighedTransitions { transitions: all, firsts }) => {
                    transitions = of_state(all, firsts, found.offset + state as usize);
                }
                Priors::Geometric(factors) => {
                    states = &found.states;
                    factor = factors.get(layer).copied().unwrap_or(0.0);
                }
            }
        }
        Steps { transitions, states, at: Some(state), weight: 1.0, factor }
    }

    /// Computes the table up to this sum; returns whether there is room for it.
    pub(crate) fn prepare(&mut self, sum: usize) -> bool {
        if sum > self.max_sum {
            return false;
        }
        if sum >= self.width {
            // Doubling keeps the number of computations small.
            self.width = sum.max(self.width * 2).min(self.max_sum) + 1;
            self.rows = vec![0.0; self.width * self.automaton.state_count];
            self.fill();
        }
        true
    }

    fn fill(&mut self) {
        let Self { automaton, priors, sizes, width, rows, .. } = self;
        let mut end = vec![0.0; *width];
        if let Some(nothing_left) = end.first_mut() {
            *nothing_left = 1.0;
        }
        let mut later: Vec<Vec<f64>> = vec![end];
        for (number, (layer, sizes)) in automaton.layers.iter().zip(sizes.iter()).enumerate().rev() {
            let filled = match priors {
                Priors::Exact(WeighedTransitions { transitions, firsts }) => {
                    let of_layer = |state| of_state(transitions, firsts, layer.offset + state);
                    let transitions: Vec<&[Transition]> = (0..layer.states.len()).map(of_layer).collect();
                    exact_rows(&transitions, sizes, later, *width)
                }
                Priors::Geometric(factors) => {
                    let factor = factors.get(number).copied().unwrap_or(0.0);
                    geometric_rows(&layer.states, sizes, factor, &later, *width)
                }
            };
            let own = rows.get_mut(layer.offset * *width..).unwrap_or_default();
            for (to, row) in own.chunks_exact_mut(*width).zip(&filled) {
                to.copy_from_slice(row);
            }
            later = filled;
        }
    }
}

/// The steps from a state.
#[derive(Debug, Clone)]
pub(crate) struct Steps<'a> {
    /// Those that are left with exact weights.
    transitions: &'a [Transition],
    /// The layer's states, with geometric ones.
    states: &'a [State],
    /// The state after so many were taken.
    at: Option<u32>,
    weight: f64,
    factor: f64,
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some((first, rest)) = self.transitions.split_first() {
            self.transitions = rest;
            return Some(Step { weight: first.weight, next: first.next });
        }
        let state = self.states.get(self.at? as usize)?;
        let step = Step { weight: self.weight, next: state.pass };
        self.weight *= self.factor;
        self.at = state.take;
        Some(step)
    }
}

/// The greatest size of all actions.
fn largest(actions: &[Action]) -> Option<i64> {
    actions.iter().map(|action| action.size_range()[1]).max()
}

/// The rows of a layer's states, from those of the next layer. Taking one more of the action is the same convolution
/// for all states that lead to one state of the next layer.
fn exact_rows(
    transitions: &[&[Transition]],
    sizes: &Distribution,
    mut taken: Vec<Vec<f64>>,
    width: usize,
) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![0.0; width]; transitions.len()];
    let most = transitions.iter().map(|transitions| transitions.len()).max().unwrap_or(0);
    for number in 0..most {
        let mut later = vec![false; taken.len()];
        for (row, transitions) in rows.iter_mut().zip(transitions) {
            if let Some(transition) = transitions.get(number)
                && let Some(from) = taken.get(transition.next as usize)
            {
                add_multiple(row, transition.weight, from);
            }
            for transition in transitions.get(number + 1..).unwrap_or_default() {
                if let Some(slot) = later.get_mut(transition.next as usize) {
                    *slot = true;
                }
            }
        }
        for (from, _) in taken.iter_mut().zip(later).filter(|(_, is_needed)| *is_needed) {
            *from = shifted(from, sizes);
        }
    }
    rows
}

/// The weights after one more size is taken from what is left.
fn shifted(row: &[f64], sizes: &Distribution) -> Vec<f64> {
    let mut shifted = vec![0.0; row.len()];
    for (size, weight) in (sizes.least..).zip(&sizes.weights).filter(|(_, weight)| **weight > 0.0) {
        add_multiple(shifted.get_mut(size..).unwrap_or_default(), *weight, row);
    }
    shifted
}

/// The same where the number of actions is geometric: each state passes on, or takes one more.
fn geometric_rows(
    states: &[State],
    sizes: &Distribution,
    factor: f64,
    later: &[Vec<f64>],
    width: usize,
) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![0.0; width]; states.len()];
    for sum in 0..width {
        for (state, at) in states.iter().zip(0..) {
            let at_sum = |rows: &[Vec<f64>], state: u32, sum: usize| {
                rows.get(state as usize).and_then(|row| row.get(sum)).copied().unwrap_or(0.0)
            };
            let passed = at_sum(later, state.pass, sum);
            let taken = state.take.map_or(0.0, |take| {
                let sizes = (sizes.least..=sum).zip(&sizes.weights);
                sizes.map(|(size, weight)| weight * at_sum(&rows, take, sum - size)).sum()
            });
            if let Some(slot) = rows.get_mut(at).and_then(|row: &mut Vec<f64>| row.get_mut(sum)) {
                *slot = passed + factor * taken;
            }
        }
    }
    rows
}
