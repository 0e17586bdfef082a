//! How probable the ways to make up sums are under the prior: the total weight of all ways to each sum, and from every
//! state of the automaton on a weight that no way exceeds.
//!
//! The prior's factors lie on the transitions of a walk through the automaton (see `automaton`). Exact weights need
//! states that count actions. Where commands may have too many actions for that, the number of actions is taken to be
//! geometric, and actions to be independent of each other: one factor for each action taken, with no more states than
//! counting needs.

use sizeleak_model::{Action, Limits, Pmf, Prior};

use super::automaton::{Automaton, COUNTED_ACTIONS, Layer, WalkPrior, WeighedTransitions};
use super::way_counts::action_sizes;
use super::way_table::{Heaviest, Priors, Walks, Ways, reach, wider};

/// The most products that filling a table takes; some seconds.
const MAX_PRODUCTS: usize = 1 << 32;

/// Weights of the ways to make up sums, over one automaton.
#[derive(Debug, Clone)]
pub struct WayWeights {
    pub(super) walks: Walks,
    /// In all weights, each byte has the factor exp(`ln_per_byte`) besides, so that they neither vanish nor overflow; it
    /// cancels out. The factor of an action has it for the least size, and the sizes for what is beyond that.
    pub(super) ln_per_byte: f64,
    /// The largest sum there is room for, in bytes.
    max_sum: usize,
    /// Of all ways to each sum there is.
    pub(super) totals: Vec<f64>,
    /// What no way from a state on exceeds: a row for each state of each layer, with a cell for each sum that is left.
    heaviest: Vec<Heaviest>,
}

impl WayWeights {
    /// By the prior, in tables of increasing range.
    pub fn tables(actions: &[Action], limits: &Limits, prior: WalkPrior<'_>) -> Vec<Self> {
        let exact = COUNTED_ACTIONS.iter().find_map(|most| Self::exact(actions, limits, &prior, *most));
        let geometric = match prior {
            WalkPrior::Habit(prior) => Self::geometric(actions, limits, Some(prior)),
            WalkPrior::Devices(_) => None,
        };
        exact.into_iter().chain(geometric).collect()
    }

    /// Every multiset of actions weighs 1. `None` without room for a table.
    pub fn flat(actions: &[Action], limits: &Limits) -> Option<Self> {
        Self::geometric(actions, limits, None)
    }

    /// Weights of commands of up to `most` actions, or of all if there cannot be more; `None` without room for them.
    fn exact(actions: &[Action], limits: &Limits, prior: &WalkPrior<'_>, most: u32) -> Option<Self> {
        let range = |at: usize| actions.iter().map(move |action| action.size_range()[at]);
        let [smallest, largest] = [range(0).min()?, range(1).max()?];
        let [smallest, largest] = [usize::try_from(smallest).ok()?, usize::try_from(largest).ok()?];
        // Commands beyond this sum may have more actions than are counted.
        let max_sum = match limits.max_actions() {
            max if max <= most => largest.saturating_mul(max as usize),
            _ => smallest.saturating_mul(most as usize + 1).saturating_sub(1),
        };
        let counting = limits.counting(most);
        let limits = if let WalkPrior::Devices(_) = prior { counting.counting_classes() } else { counting };
        let automaton = Automaton::new(&action_sizes(actions).ok()?, &limits)?;
        let transitions = WeighedTransitions::new(&automaton, &limits, prior)?;
        let products = transitions.transitions.len();
        let weights = Self::new(automaton, Priors::Exact(transitions), actions, (max_sum, 0.0), products)?;
        (weights.reach() == max_sum).then_some(weights)
    }

    /// Approximate weights, for any number of actions.
    fn geometric(actions: &[Action], limits: &Limits, prior: Option<&Prior>) -> Option<Self> {
        let automaton = Automaton::new(&action_sizes(actions).ok()?, limits)?;
        let ln_factor = |layer: &Layer| prior.map_or(0.0, |prior| prior.ln_next(layer.action, 1) + prior.decay.ln());
        // The heaviest action for its size then weighs about 1, and no other more.
        let per_byte = automaton.layers.iter().map(|layer| -ln_factor(layer) / layer.size as f64);
        let ln_per_byte = per_byte.fold(f64::INFINITY, f64::min);
        let ln_per_byte = if ln_per_byte.is_finite() { ln_per_byte } else { 0.0 };
        let least = |layer: &Layer| actions[layer.action].size_range()[0] as f64;
        let factor = |layer: &Layer| (ln_factor(layer) + ln_per_byte * least(layer)).exp();
        let priors = Priors::Geometric(automaton.layers.iter().map(factor).collect());
        let products = automaton.state_count;
        Self::new(automaton, priors, actions, (usize::MAX, ln_per_byte), products)
    }

    /// An empty table; `products` are those of a sum, were every size single.
    fn new(
        automaton: Automaton,
        priors: Priors,
        actions: &[Action],
        (max_sum, ln_per_byte): (usize, f64),
        products: usize,
    ) -> Option<Self> {
        let sizes = |layer: &Layer| {
            let [least, _] = actions[layer.action].size_range();
            let factor = |size: i64| (ln_per_byte * (size - least) as f64).exp();
            Pmf::from_values(actions[layer.action].sizes().map(|(size, share)| (size, share * factor(size))))
        };
        let sizes: Vec<Pmf> = automaton.layers.iter().map(sizes).collect();
        if sizes.iter().any(|sizes| sizes.least() <= 0) {
            return None;
        }
        let widest = sizes.iter().map(Pmf::len).max()?;
        let in_time = (MAX_PRODUCTS / products.saturating_mul(widest).max(1)).checked_sub(1)?;
        let max_sum = max_sum.min(in_time).min(reach::<Heaviest>(automaton.state_count));
        let walks = Walks { automaton, priors, sizes };
        Some(Self { walks, ln_per_byte, max_sum, totals: Vec::new(), heaviest: Vec::new() })
    }

    pub fn reach(&self) -> usize {
        self.max_sum
    }

    /// Computes the table up to this sum; returns whether there is room for it.
    pub fn prepare(&mut self, sum: usize) -> bool {
        if sum > self.max_sum {
            return false;
        }
        if let Some(width) = wider(self.totals.len(), sum, self.max_sum) {
            self.heaviest.clear();
            self.heaviest.resize(width * self.walks.automaton.state_count, Heaviest::NONE);
            self.walks.visit_rows(width, |offset, rows: &[Vec<Heaviest>]| {
                for (own, row) in self.heaviest[offset * width..].chunks_exact_mut(width).zip(rows) {
                    own.copy_from_slice(row);
                }
            });
            self.totals = self.walks.totals(width);
        }
        true
    }

    /// For each number of bytes left, what no way from a state on exceeds; `None` beyond the last layer.
    pub(super) fn heaviest(&self, layer: usize, state: u32) -> Option<&[Heaviest]> {
        let (layer, width) = (self.walks.automaton.layers.get(layer)?, self.totals.len());
        self.heaviest[(layer.offset + state as usize) * width..].get(..width)
    }

    /// A state's index among those of all layers; the next one beyond the last layer.
    pub(super) fn index(&self, layer: usize, state: u32) -> usize {
        let layers = &self.walks.automaton.layers;
        layers.get(layer).map_or(self.walks.automaton.state_count, |layer| layer.offset + state as usize)
    }

    pub(super) fn varies(&self) -> bool {
        self.walks.sizes.iter().any(|sizes| !sizes.is_certain())
    }
}
