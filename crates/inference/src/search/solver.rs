//! Counts and enumerates the ways to make up a sum.
//!
//! With the actions in a fixed order, a way to make up a sum is a walk through the automaton: at each action it either
//! takes one more of it or passes on to the next. `ways(i, q, s)` counts the walks from state `q` of action `i` that
//! make up `s`:
//!
//! ```text
//! ways(i, q, s) = ways(i + 1, pass(q), s) + ways(i, take(q), s − |aᵢ|)      if the inventory lets `q` take one more
//! ways(n, q, s) = 1 if s = 0, else 0                                        beyond the last action
//! ```
//!
//! Each multiset of actions is one walk, so counts are exact. The inventory is part of the recursion, so nothing has to
//! be filtered afterwards. Enumeration walks the table without dead ends, and stores nothing but the current walk.

use sizeleak_model::{Action, InventoryError, Limits, Pmf};
use thiserror::Error;

use super::automaton::{Automaton, Layer, MAX_STATES, State};
use super::way_table::{MAX_TABLE_BYTES, Priors, Walks, WayTable};

/// Counts and enumerates the multisets of actions that make up a sum.
#[derive(Debug, Clone)]
pub struct Solver {
    walks: Walks,
    /// The largest sum that any command can have, if the inventory sets one.
    max_sum: Option<usize>,
    table: WayTable<u64>,
}

/// Why a model's actions cannot be solved for.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SolverError {
    /// An action has no device.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// An action has no size.
    #[error("the size of the action `{0}` is not positive: learn the model again")]
    NoSize(String),
    /// The inventory has too many states.
    #[error(
        "the inventory's kinds of device share actions in so many ways that a command has more than {MAX_STATES} \
         states: merge kinds with nearly the same actions, or count fewer devices"
    )]
    TooManyStates,
    /// The prior is about devices.
    #[error("the prior `devices` needs to know the devices: learn with an inventory, and leave `free` out")]
    NoDevices,
    /// Commands are not weighed by their devices.
    #[error("the inventory has too many combinations of devices to weigh commands by them: choose another prior")]
    TooManyDevices,
}

/// A sum whose table would take too much memory.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error(
    "actions of {sum} bytes are beyond the {reach} bytes that a table of {} MiB reaches: learn with an inventory, or \
     one of fewer devices or actions",
    MAX_TABLE_BYTES >> 20
)]
pub struct SumTooLarge {
    /// The sum asked for, in bytes.
    pub sum: i64,
    /// The largest sum that can be asked for, in bytes.
    pub reach: usize,
}

impl Solver {
    /// A solver for these actions within these limits, which must be for the same actions in the same order. Its table
    /// is empty, and grows with the largest sum asked for.
    ///
    /// # Errors
    /// [`SolverError`].
    pub fn new(actions: &[Action], limits: &Limits) -> Result<Self, SolverError> {
        let sizes = action_sizes(actions)?;
        let automaton = Automaton::new(&sizes, limits).ok_or(SolverError::TooManyStates)?;
        let max_sum = (!limits.is_free()).then(|| {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            largest.saturating_mul(limits.max_actions() as usize)
        });
        let table = WayTable::new(automaton.state_count, max_sum.unwrap_or(usize::MAX));
        let sizes = automaton.layers.iter().map(|layer| Pmf::certain(layer.size.cast_signed() as i64)).collect();
        let priors = Priors::Geometric(vec![1.0; automaton.layers.len()]);
        Ok(Self { walks: Walks { automaton, priors, sizes }, max_sum, table })
    }

    /// How many multisets of actions make up `sum` bytes; `u64::MAX` stands for that many or more. A look-up, if this
    /// sum or a larger one was asked for before.
    ///
    /// # Errors
    /// [`SumTooLarge`].
    pub fn count(&mut self, sum: i64) -> Result<u64, SumTooLarge> {
        Ok(self.prepare(sum)?.map_or(0, |sum| self.ways(0, 0, sum)))
    }

    /// All multisets of actions that make up `sum` bytes, each once; those with more of the solver's earlier actions
    /// come first. Actions that fewer devices can take tend to be earlier. Among those that the same devices can take,
    /// larger ones are earlier, so that solutions with fewer actions tend to come first.
    ///
    /// # Errors
    /// [`SumTooLarge`].
    pub fn solutions(&mut self, sum: i64) -> Result<Solutions<'_>, SumTooLarge> {
        let start = self.prepare(sum)?.filter(|sum| self.ways(0, 0, *sum) > 0);
        Ok(Solutions { start, path: Vec::new(), counts: vec![0; self.walks.sizes.len()], solver: self })
    }

    /// The largest sum that any command can have, if the inventory sets one.
    pub(super) fn largest_sum(&self) -> Option<usize> {
        self.max_sum
    }

    /// Computes the table up to a sum; `None` where nothing can make it up.
    fn prepare(&mut self, sum: i64) -> Result<Option<usize>, SumTooLarge> {
        let Ok(wanted) = u64::try_from(sum) else { return Ok(None) };
        if self.max_sum.is_some_and(|max| wanted > max as u64) {
            return Ok(None);
        }
        let wanted = usize::try_from(wanted).ok().filter(|wanted| *wanted <= self.table.max_sum());
        let wanted = wanted.ok_or_else(|| SumTooLarge { sum, reach: self.table.max_sum() })?;
        if let Some(width) = self.table.wider(wanted) {
            self.table.fill(&self.walks, width);
        }
        Ok(Some(wanted))
    }

    /// How many ways make up a sum that is in the table, from a state of a layer on.
    fn ways(&self, layer: usize, state: u32, sum: usize) -> u64 {
        let Some(layer) = self.walks.automaton.layers.get(layer) else { return u64::from(sum == 0) };
        self.table.row(layer.offset + state as usize)[sum]
    }
}

/// The actions' sizes in bytes.
pub(super) fn action_sizes(actions: &[Action]) -> Result<Vec<usize>, SolverError> {
    let sizes = actions.iter().map(|action| {
        let size = usize::try_from(action.size).ok().filter(|size| *size > 0);
        size.ok_or_else(|| SolverError::NoSize(action.name.clone()))
    });
    sizes.collect()
}

/// Enumerates the multisets of actions that make up a sum.
#[derive(Debug, Clone)]
pub struct Solutions<'a> {
    solver: &'a Solver,
    /// The sum, before the first solution; `None` if it has none.
    start: Option<usize>,
    /// Where the walk is in each layer but the last, where the rest of the sum determines how often the action is
    /// taken.
    path: Vec<PathStep>,
    /// How often each action is taken, in the model's order.
    counts: Vec<u32>,
}

/// A layer's state after its action was taken some times, and what is then left of the sum.
#[derive(Debug, Clone, Copy)]
struct PathStep {
    state: u32,
    rest: usize,
    taken: u32,
}

impl<'a> Solutions<'a> {
    /// The next multiset: how often each action occurs, in the model's order. Avoids the copy that the iterator makes.
    pub fn advance(&mut self) -> Option<&[u32]> {
        match self.start.take() {
            Some(sum) => self.descend(0, sum),
            None if !self.backtrack() => return None,
            None => (),
        }
        Some(&self.counts)
    }

    /// Walks to the first solution below a state that leads to one: takes each action as often as possible.
    fn descend(&mut self, mut state: u32, mut rest: usize) {
        while let Some(layer) = self.layer() {
            let at = self.path.len();
            if at + 1 == self.counts.len() {
                self.set(layer.action, u32::try_from(rest / layer.size).unwrap_or(u32::MAX));
                return;
            }
            let mut taken = 0;
            while let Some((next, left)) = take(layer.states.get(state as usize), rest, layer.size)
                && self.solver.ways(at, next, left) > 0
            {
                (state, rest, taken) = (next, left, taken + 1);
            }
            self.path.push(PathStep { state, rest, taken });
            self.set(layer.action, taken);
            state = layer.states.get(state as usize).map_or(0, |state| state.pass);
        }
    }

    /// Goes back to the last action of which fewer can be taken, and walks on from there; returns whether there is one.
    fn backtrack(&mut self) -> bool {
        while let Some(mut step) = self.path.pop() {
            let at = self.path.len();
            let Some(layer) = self.layer() else { return false };
            while step.taken > 0 {
                let Some(state) = layer.states.get(step.state as usize).and_then(|state| state.untake) else { break };
                step = PathStep { state, rest: step.rest + layer.size, taken: step.taken - 1 };
                let Some(pass) = layer.states.get(state as usize).map(|state| state.pass) else { break };
                if self.solver.ways(at + 1, pass, step.rest) > 0 {
                    self.path.push(step);
                    self.set(layer.action, step.taken);
                    self.descend(pass, step.rest);
                    return true;
                }
            }
        }
        false
    }

    /// The layer behind the path.
    fn layer(&self) -> Option<&'a Layer> {
        self.solver.walks.automaton.layers.get(self.path.len())
    }

    fn set(&mut self, action: usize, count: u32) {
        if let Some(slot) = self.counts.get_mut(action) {
            *slot = count;
        }
    }
}

impl Iterator for Solutions<'_> {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        self.advance().map(<[u32]>::to_vec)
    }
}

/// The state and the rest of the sum after one more of an action of this size.
fn take(state: Option<&State>, rest: usize, size: usize) -> Option<(u32, usize)> {
    Some((state?.take?, rest.checked_sub(size)?))
}
