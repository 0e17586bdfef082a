//! How probable the ways to make up a sum are under the prior: for each sum, from every state of the automaton on, the
//! total weight of all ways and the weight of the best one.
//!
//! The prior's factors lie on the transitions of a walk through the automaton (see `prior_walk`). Exact weights need
//! states that count actions. Where commands may have too many actions for that, the number of actions is taken to be
//! geometric, and actions to be independent of each other: one factor for each action taken, with no more states than
//! counting needs.

use sizeleak_model::{Limits, Prior};

use crate::automaton::{Automaton, Layer};
use crate::prior_walk::{COUNTED_ACTIONS, Transition, WalkPrior, WeighedTransitions, of_state};
use crate::sum_table::{SmallerSums, SumTable};

/// The most branches looked at for one command; the list ends there.
pub(crate) const MAX_BRANCHES: u64 = 1 << 26;

/// Weights of the ways to make up sums, over one automaton.
#[derive(Debug, Clone)]
pub(crate) struct WeightTable {
    automaton: Automaton,
    factors: Factors,
    table: SumTable<WayWeights>,
    /// With exact weights: bit n says whether taking n of the layer's action leads to an end; bit 31 stands for 31 and
    /// more. Walks look at other cells only where they lead.
    leads: SumTable<u32>,
}

/// The weights of all ways to make up a sum from a state on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct WayWeights {
    total: f64,
    /// The logarithm of the greatest weight.
    ln_best: f64,
}

impl Default for WayWeights {
    /// There is no way.
    fn default() -> Self {
        Self { total: 0.0, ln_best: f64::NEG_INFINITY }
    }
}

impl WayWeights {
    /// Beyond the last layer.
    fn end(sum: usize) -> Self {
        if sum == 0 { Self { total: 1.0, ln_best: 0.0 } } else { Self::default() }
    }

    /// Adds the ways from a state that is reached with a weight.
    fn add(&mut self, weight: f64, ln_weight: f64, from_there: Self) {
        self.total += weight * from_there.total;
        self.ln_best = self.ln_best.max(ln_weight + from_there.ln_best);
    }
}

#[derive(Debug, Clone)]
enum Factors {
    /// The transitions of each state of each layer, with the index of a state's first.
    Exact { transitions: Vec<Transition>, firsts: Vec<usize> },
    /// Each layer's factor for one more of its action. In total weights, each byte has the factor exp(`ln_per_byte`)
    /// besides, so that they neither vanish nor overflow; it cancels out.
    Geometric { takes: Vec<Factor>, ln_per_byte: f64 },
}

/// What one more of an action weighs.
#[derive(Debug, Clone, Copy)]
struct Factor {
    weight: f64,
    ln_weight: f64,
}

/// A position that a walk has reached: the entry of a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) layer: usize,
    state: u32,
    /// What is left of the sum.
    rest: usize,
    /// The logarithm of the weight so far.
    ln_weight: f64,
}

/// A way to continue from an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Branch {
    /// How many of the layer's action are taken.
    pub(crate) taken: u32,
    /// The logarithm of the weight of the best way that continues like this.
    pub(crate) ln_best: f64,
    /// Where the next layer is entered.
    pub(crate) next: Entry,
}

/// One way to make up one of several sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WeightedWay<'a> {
    /// The sum's index among those asked for.
    pub(crate) sum: usize,
    /// The actions that occur, by their indexes in the model's list and in that order, and how often.
    pub(crate) actions: &'a [(u32, u32)],
    /// The logarithm of its weight.
    pub(crate) ln_weight: f64,
}

impl WeightTable {
    /// Exact weights, for as many actions as there is room to count; `None` where there is no room for any.
    pub(crate) fn exact(sizes: &[usize], limits: &Limits, prior: &WalkPrior<'_>) -> Option<Self> {
        let (smallest, largest) = (sizes.iter().min()?, sizes.iter().max()?);
        COUNTED_ACTIONS.iter().find_map(|most| {
            // Commands beyond this sum may have more actions than are counted.
            let max_sum = match limits.max_actions() {
                max if max <= *most => largest.saturating_mul(max as usize),
                _ => smallest.saturating_mul(*most as usize + 1).saturating_sub(1),
            };
            let limits = prior.limits(limits, *most);
            let automaton = Automaton::new(sizes, &limits)?;
            let table = SumTable::new(automaton.state_count, Some(max_sum));
            let factors = Factors::exact(&automaton, &limits, prior).filter(|_| table.has_room_for(max_sum))?;
            let leads = SumTable::new(automaton.state_count, Some(max_sum));
            Some(Self { automaton, factors, table, leads })
        })
    }

    /// Approximate weights, for any number of actions.
    pub(crate) fn geometric(sizes: &[usize], limits: &Limits, prior: &Prior) -> Option<Self> {
        let automaton = Automaton::new(sizes, limits)?;
        let table = SumTable::new(automaton.state_count, None);
        let leads = SumTable::new(0, Some(table.max_sum()));
        Some(Self { factors: Factors::geometric(&automaton, prior), automaton, table, leads })
    }

    /// Computes the table up to this sum; returns whether there is room for it.
    pub(crate) fn prepare(&mut self, sum: usize) -> bool {
        let Self { automaton, factors, table, leads } = self;
        table.grow(sum, |sum, smaller, row| {
            leads.grow(sum, |_, _, leads| factors.fill(automaton, sum, smaller, (row, leads)));
        });
        table.has_room_for(sum)
    }

    /// The logarithm of the total weight of all ways to make up a sum that is in the table.
    pub(crate) fn ln_total(&self, sum: usize) -> f64 {
        let ln_per_byte = if let Factors::Geometric { ln_per_byte, .. } = self.factors { ln_per_byte } else { 0.0 };
        self.ways(0, 0, sum).total.ln() - ln_per_byte * sum as f64
    }

    /// Where the ways to make up a sum begin, and the logarithm of the weight of the best one. The sum itself has a
    /// weight.
    pub(crate) fn start(&self, sum: usize, ln_weight: f64) -> (Entry, f64) {
        (Entry { layer: 0, state: 0, rest: sum, ln_weight }, ln_weight + self.ways(0, 0, sum).ln_best)
    }

    /// Walks on from an entry, always along the best branch; of equally good ones, along the one that takes most.
    /// Passes all other branches to `deviate`, those that take more first, and how many of each layer's action are
    /// taken to `take`. Returns how many branches were looked at. `branches` is a buffer.
    pub(crate) fn walk(
        &self,
        mut entry: Entry,
        branches: &mut Vec<Branch>,
        mut deviate: impl FnMut(Branch),
        mut take: impl FnMut(usize, u32),
    ) -> u64 {
        let mut visited = 0;
        while let Some(layer) = self.automaton.layers.get(entry.layer) {
            if let Some((taken, next, possible)) = self.only_branch(entry, layer) {
                visited += possible;
                take(entry.layer, taken);
                entry = next;
                continue;
            }
            visited += self.branches(entry, layer, branches);
            let best = branches.iter().enumerate().max_by(|(_, a), (_, b)| a.ln_best.total_cmp(&b.ln_best));
            let Some((best_at, best)) = best.map(|(at, branch)| (at, *branch)) else { break };
            branches.iter().enumerate().rev().filter(|(at, _)| *at != best_at).for_each(|(_, branch)| deviate(*branch));
            take(entry.layer, best.taken);
            entry = best.next;
        }
        visited
    }

    /// The branch of an entry where no other leads to an end, so that weights need no look-up: how many it takes, where
    /// it leads, and how many branches were possible.
    #[inline]
    fn only_branch(&self, entry: Entry, layer: &Layer) -> Option<(u32, Entry, u64)> {
        let Factors::Exact { transitions, firsts } = &self.factors else { return None };
        let cell = layer.offset + entry.state as usize;
        let leads = self.leads.cell(entry.rest, cell);
        let taken = leads.trailing_zeros();
        if !leads.is_power_of_two() || taken >= 31 {
            return None;
        }
        let transitions = of_state(transitions, firsts, cell);
        let transition = transitions.get(taken as usize)?;
        let rest = entry.rest.checked_sub(taken as usize * layer.size)?;
        let ln_weight = entry.ln_weight + transition.ln_weight;
        let possible = transitions.len().min(entry.rest / layer.size + 1) as u64;
        Some((taken, Entry { layer: entry.layer + 1, state: transition.next, rest, ln_weight }, possible))
    }

    /// Lists the branches of an entry that lead to an end, those that take fewer first. Returns how many were looked
    /// at.
    fn branches(&self, entry: Entry, layer: &Layer, branches: &mut Vec<Branch>) -> u64 {
        branches.clear();
        let next_layer = self.automaton.layers.get(entry.layer + 1);
        let mut add = |taken: u32, state: u32, rest: usize, ln_factor: f64| {
            let ln_weight = entry.ln_weight + ln_factor;
            let ways = next_layer
                .map_or_else(|| WayWeights::end(rest), |next| self.table.cell(rest, next.offset + state as usize));
            let ln_best = ln_weight + ways.ln_best;
            if ln_best > f64::NEG_INFINITY {
                let next = Entry { layer: entry.layer + 1, state, rest, ln_weight };
                branches.push(Branch { taken, ln_best, next });
            }
        };
        match &self.factors {
            Factors::Exact { transitions, firsts } => {
                let cell = layer.offset + entry.state as usize;
                let transitions = of_state(transitions, firsts, cell);
                let possible = transitions.len().min(entry.rest / layer.size + 1);
                let leads = self.leads.cell(entry.rest, cell);
                let first = leads.trailing_zeros() as usize;
                for (transition, taken) in transitions.get(first..possible).unwrap_or_default().iter().zip(first..) {
                    if leads >> taken.min(31) & 1 == 1 {
                        let rest = entry.rest - taken * layer.size;
                        add(taken as u32, transition.next, rest, transition.ln_weight);
                    }
                }
                possible as u64
            }
            Factors::Geometric { takes, .. } => {
                let ln_factor = takes.get(entry.layer).map_or(f64::NEG_INFINITY, |take| take.ln_weight);
                let (mut at, mut taken) = (Some((entry.state, entry.rest)), 0);
                while let Some((state, rest)) = at
                    && let Some(state) = layer.states.get(state as usize)
                {
                    add(taken, state.pass, rest, ln_factor * f64::from(taken));
                    at = state.take.zip(rest.checked_sub(layer.size));
                    taken += 1;
                }
                u64::from(taken)
            }
        }
    }

    /// How many layers there are: one for each action.
    pub(crate) fn layers(&self) -> usize {
        self.automaton.layers.len()
    }

    /// The action of a layer, by its index in the model's list; `None` beyond the last layer.
    pub(crate) fn action(&self, layer: usize) -> Option<usize> {
        self.automaton.layers.get(layer).map(|layer| layer.action)
    }

    fn ways(&self, layer: usize, state: u32, sum: usize) -> WayWeights {
        let Some(layer) = self.automaton.layers.get(layer) else { return WayWeights::end(sum) };
        self.table.cell(sum, layer.offset + state as usize)
    }
}

impl Factors {
    /// `None` where they take too much room.
    fn exact(automaton: &Automaton, limits: &Limits, prior: &WalkPrior<'_>) -> Option<Self> {
        let WeighedTransitions { transitions, firsts } = WeighedTransitions::new(automaton, limits, prior)?;
        Some(Self::Exact { transitions, firsts })
    }

    fn geometric(automaton: &Automaton, prior: &Prior) -> Self {
        let ln_weight = |layer: &Layer| prior.ln_next(layer.action, 1) + prior.decay.ln();
        let takes: Vec<(f64, f64)> =
            automaton.layers.iter().map(|layer| (ln_weight(layer), layer.size as f64)).collect();
        // The heaviest action for its size then weighs 1, and no other more.
        let ln_per_byte = takes.iter().map(|(ln, size)| -ln / size).fold(f64::INFINITY, f64::min);
        let ln_per_byte = if ln_per_byte.is_finite() { ln_per_byte } else { 0.0 };
        let factor =
            |(ln_weight, size): (f64, f64)| Factor { weight: (ln_weight + ln_per_byte * size).exp(), ln_weight };
        Self::Geometric { takes: takes.into_iter().map(factor).collect(), ln_per_byte }
    }

    /// Weighs the ways to make up one sum from every state, given those of all smaller sums.
    fn fill(
        &self,
        automaton: &Automaton,
        sum: usize,
        smaller: &SmallerSums<'_, WayWeights>,
        (row, leads): (&mut [WayWeights], &mut [u32]),
    ) {
        let mut rest = row;
        let mut next: &mut [WayWeights] = &mut [WayWeights::end(sum)];
        for (number, layer) in automaton.layers.iter().enumerate().rev() {
            let (earlier_layers, current) = rest.split_at_mut(layer.offset);
            let is_last = number + 1 == automaton.layers.len();
            for (cell, state) in current.iter_mut().zip(0..) {
                *cell = match self {
                    Self::Exact { transitions, firsts } => {
                        let transitions = of_state(transitions, firsts, layer.offset + state);
                        let (ways, leading) = exact_ways((layer, is_last), transitions, sum, next, smaller);
                        if let Some(leads) = leads.get_mut(layer.offset + state) {
                            *leads = leading;
                        }
                        ways
                    }
                    Self::Geometric { takes, .. } => {
                        let state = layer.states.get(state);
                        let passed = state.and_then(|state| next.get(state.pass as usize));
                        let mut ways = passed.copied().unwrap_or_default();
                        let taken = state.and_then(|state| state.take).zip(sum.checked_sub(layer.size));
                        let taken = taken.and_then(|(take, sum)| smaller.cell(sum, layer.offset + take as usize));
                        if let Some((taken, factor)) = taken.zip(takes.get(number)) {
                            ways.add(factor.weight, factor.ln_weight, taken);
                        }
                        ways
                    }
                };
            }
            (rest, next) = (earlier_layers, current);
        }
    }
}

/// The ways from a state with these transitions, and the bits of those that lead to an end.
fn exact_ways(
    (layer, is_last): (&Layer, bool),
    transitions: &[Transition],
    sum: usize,
    next: &[WayWeights],
    smaller: &SmallerSums<'_, WayWeights>,
) -> (WayWeights, u32) {
    let (mut ways, mut leads, mut rest) = (WayWeights::default(), 0, Some(sum));
    let next_offset = layer.offset + layer.states.len();
    for (transition, taken) in transitions.iter().zip(0_u32..) {
        let Some(left) = rest else { break };
        let from_there = match taken {
            0 => next.get(transition.next as usize).copied(),
            _ if is_last => Some(WayWeights::end(left)),
            _ => smaller.cell(left, next_offset + transition.next as usize),
        };
        if let Some(from_there) = from_there.filter(|ways| ways.ln_best > f64::NEG_INFINITY) {
            ways.add(transition.weight, transition.ln_weight, from_there);
            leads |= 1 << taken.min(31);
        }
        rest = left.checked_sub(layer.size);
    }
    (ways, leads)
}
