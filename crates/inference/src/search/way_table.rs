//! What the ways to go on amount to: for each state of an automaton and each number of bytes that is left,
//!
//! ```text
//! W(i, q, s) = over all n:  prior(q, n) · Σ over x of  Dᵢ*ⁿ(x) · W(i + 1, next(q, n), s − x)
//! W(end, s)  = 1 if s = 0, else nothing
//! ```
//!
//! with Dᵢ*ⁿ, the distribution of the sum of n sizes of action i; a single size is a distribution of one entry. "Over
//! all" counts ways, adds weights, or takes the greatest, as the kind of [`Ways`] says.

use sizeleak_model::Pmf;

use super::automaton::{Automaton, State, Transition, WeighedTransitions};

pub(super) const MAX_TABLE_BYTES: usize = 256 << 20;

/// What ways amount to together.
pub(super) trait Ways: Copy {
    const NONE: Self;
    /// The way that is at its end.
    const END: Self;

    /// Joins the ways of a branch that has a weight.
    fn join(&mut self, weight: f64, branch: Self);

    /// Adds the same ways, where an action has another size.
    fn add_size(&mut self, share: f64, ways: Self);
}

/// How many there are; `u64::MAX` stands for that many or more. Every one weighs 1.
impl Ways for u64 {
    const NONE: Self = 0;
    const END: Self = 1;

    fn join(&mut self, _: f64, branch: Self) {
        *self = self.saturating_add(branch);
    }

    fn add_size(&mut self, _: f64, ways: Self) {
        *self = self.saturating_add(ways);
    }
}

/// Their weight together.
impl Ways for f64 {
    const NONE: Self = 0.0;
    const END: Self = 1.0;

    fn join(&mut self, weight: f64, branch: Self) {
        *self += weight * branch;
    }

    fn add_size(&mut self, share: f64, ways: Self) {
        *self += share * ways;
    }
}

/// No way weighs more; with single sizes, the heaviest one weighs as much.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Heaviest(pub(super) f64);

impl Ways for Heaviest {
    const NONE: Self = Self(0.0);
    const END: Self = Self(1.0);

    fn join(&mut self, weight: f64, branch: Self) {
        // A plain comparison is one instruction for several numbers, unlike `max`, which minds NaN.
        let other = weight * branch.0;
        self.0 = if other > self.0 { other } else { self.0 };
    }

    fn add_size(&mut self, share: f64, ways: Self) {
        self.0 += share * ways.0;
    }
}

/// The walks that ways are: what they weigh, and how many bytes their actions have.
#[derive(Debug, Clone)]
pub(super) struct Walks {
    pub(super) automaton: Automaton,
    pub(super) priors: Priors,
    pub(super) sizes: Vec<Pmf>,
}

#[derive(Debug, Clone)]
pub(super) enum Priors {
    /// P(A), in the transitions of each state.
    Exact(WeighedTransitions),
    /// Each layer's factor for one more of its action.
    Geometric(Vec<f64>),
}

/// The largest sum that there is room for with so many states, in bytes.
pub(super) fn reach<W>(states: usize) -> usize {
    (MAX_TABLE_BYTES / size_of::<W>() / states.max(1)).saturating_sub(1)
}

/// The width that rows should have for a sum; `None` where they are wide enough.
pub(super) fn wider(width: usize, sum: usize, max_sum: usize) -> Option<usize> {
    // Doubling keeps the number of computations small.
    (sum >= width).then(|| (sum + 1).max(width * 2).min(max_sum + 1))
}

impl Walks {
    /// What all ways to each sum amount to; without layers, the empty way.
    pub(super) fn totals<W: Ways>(&self, width: usize) -> Vec<W> {
        let mut totals = vec![W::NONE; width];
        totals[0] = W::END;
        self.visit_rows(width, |offset, rows: &[Vec<W>]| {
            if offset == 0 {
                totals.clone_from(&rows[0]);
            }
        });
        totals
    }

    /// Calls `visit` with the rows of each layer's states, the last layer first, and the index of its first state.
    pub(super) fn visit_rows<W: Ways>(&self, width: usize, mut visit: impl FnMut(usize, &[Vec<W>])) {
        let mut end = vec![W::NONE; width];
        end[0] = W::END;
        let mut rows = vec![end];
        for (at, layer) in self.automaton.layers.iter().enumerate().rev() {
            rows = match &self.priors {
                Priors::Exact(weighed) => {
                    let of_layer = |state| weighed.of_state(layer.offset + state);
                    let transitions: Vec<&[Transition]> = (0..layer.states.len()).map(of_layer).collect();
                    exact_rows(&transitions, &self.sizes[at], rows)
                }
                Priors::Geometric(factors) => geometric_rows(&layer.states, &self.sizes[at], factors[at], &rows),
            };
            visit(layer.offset, &rows);
        }
    }

    /// Taking a layer's action 0, 1, 2… times from a state: what that weighs, and the state of the next layer.
    pub(super) fn steps(&self, layer: usize, state: u32) -> impl Iterator<Item = (f64, u32)> {
        let found = &self.automaton.layers[layer];
        let (transitions, factor) = match &self.priors {
            Priors::Exact(weighed) => (weighed.of_state(found.offset + state as usize), None),
            Priors::Geometric(factors) => (&[][..], Some(factors[layer])),
        };
        let (mut at, mut weight) = (factor.map(|_| state), 1.0);
        let geometric = std::iter::from_fn(move || {
            let state = found.states[at? as usize];
            at = state.take;
            let step = (weight, state.pass);
            weight *= factor?;
            Some(step)
        });
        transitions.iter().map(|step| (step.weight, step.next)).chain(geometric)
    }
}

/// The rows of a layer's states, from those of the next layer. Taking one more of the action is the same convolution
/// for all states that lead to one state of the next layer.
fn exact_rows<W: Ways>(transitions: &[&[Transition]], sizes: &Pmf, mut taken: Vec<Vec<W>>) -> Vec<Vec<W>> {
    let width = taken[0].len();
    let mut rows = vec![vec![W::NONE; width]; transitions.len()];
    let most = transitions.iter().map(|transitions| transitions.len()).max().unwrap_or(0);
    for number in 0..most {
        let bytes = number.saturating_mul(sizes.least() as usize);
        if bytes >= width {
            break;
        }
        let mut later = vec![false; taken.len()];
        for (row, transitions) in rows.iter_mut().zip(transitions) {
            if let Some(transition) = transitions.get(number) {
                join(&mut row[bytes..], transition.weight, &taken[transition.next as usize]);
            }
            if !sizes.is_certain() {
                transitions.iter().skip(number + 1).for_each(|transition| later[transition.next as usize] = true);
            }
        }
        for (from, _) in taken.iter_mut().zip(later).filter(|(_, is_needed)| *is_needed) {
            *from = beyond_least(from, sizes);
        }
    }
    rows
}

/// The same where the number of actions is geometric: each state passes on, or takes one more.
fn geometric_rows<W: Ways>(states: &[State], sizes: &Pmf, factor: f64, later: &[Vec<W>]) -> Vec<Vec<W>> {
    let mut rows: Vec<Vec<W>> = states.iter().map(|state| later[state.pass as usize].clone()).collect();
    let least = sizes.least() as usize;
    for (last, state) in states.iter().enumerate() {
        match state.take {
            // Taking may go on without end.
            Some(take) if take as usize == last => {
                let row = &mut rows[last];
                for sum in least..row.len() {
                    let mut taken = W::NONE;
                    let smaller = sizes.iter().take_while(|(size, _)| *size as usize <= sum);
                    smaller.for_each(|(size, share)| taken.add_size(*share, row[sum - size as usize]));
                    row[sum].join(factor, taken);
                }
            }
            Some(_) => {}
            // Before the last one are those that take one more.
            None => {
                let mut at = last;
                while let Some(before) = states[at].untake {
                    let taken = beyond_least(&rows[at], sizes);
                    at = before as usize;
                    let own = rows[at].get_mut(least..).unwrap_or_default();
                    join(own, factor, &taken);
                }
            }
        }
    }
    rows
}

fn join<W: Ways>(row: &mut [W], weight: f64, branches: &[W]) {
    row.iter_mut().zip(branches).for_each(|(own, branch)| own.join(weight, *branch));
}

/// The ways after one more size was taken, by what is then taken beyond the least size.
fn beyond_least<W: Ways>(row: &[W], sizes: &Pmf) -> Vec<W> {
    let mut taken = vec![W::NONE; row.len()];
    for (size, share) in sizes.iter() {
        let more = (size - sizes.least()) as usize;
        let to = taken.get_mut(more..).unwrap_or_default();
        to.iter_mut().zip(row).for_each(|(to, ways)| to.add_size(*share, *ways));
    }
    taken
}
