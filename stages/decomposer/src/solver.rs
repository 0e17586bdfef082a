//! How many ways there are to make up a sum.
//!
//! With the actions in a fixed order, a way to make up a sum is a walk through the inventory's automaton: at each action
//! either take one more of it or pass on to the next. `ways(i, q, s)` counts the walks from state `q` of action `i` that
//! make up `s`:
//!
//! ```text
//! ways(i, q, s) = ways(i + 1, pass(q), s) + ways(i, take(q), s − |aᵢ|)      where the inventory lets `q` take
//! ways(n, q, s) = 1 if s = 0, else 0                                        beyond the last action
//! ```
//!
//! Each multiset of actions is one walk, so counts are exact; the inventory is inside the recursion, so nothing has to be
//! filtered afterwards. A row of the table (all `i` and `q` of one `s`) needs rows of smaller sums alone.

use sizeleak_model::{Action, InventoryError, Limits};
use thiserror::Error;

use crate::Solutions;
use crate::cache::{Cache, MAX_TABLE_BYTES, Rows};
use crate::inventory::{Automaton, Layer, MAX_STATES};

/// Counts and enumerates the multisets of actions that make up a sum.
#[derive(Debug, Clone)]
pub struct Solver {
    automaton: Automaton,
    /// The largest sum any command can have, if the inventory sets one.
    max_sum: Option<usize>,
    cache: Cache<u64>,
}

/// Why a model's actions cannot be solved for.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SolverError {
    /// An action has no device.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// An action has no size.
    #[error("the action `{0}` is not 1 byte long at least: learn the model again")]
    NoSize(String),
    /// The inventory has too many states.
    #[error(
        "the inventory's kinds of device share actions in so many ways that a command has more than {MAX_STATES} states: \
         merge kinds with nearly the same actions, or count fewer devices"
    )]
    TooManyStates,
}

/// A sum whose table would take too much memory.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error(
    "actions of {sum} bytes are beyond the {reach} bytes that a table of {} MiB reaches: learn with an inventory, or one of fewer \
     devices or actions",
    MAX_TABLE_BYTES >> 20
)]
pub struct SumTooLarge {
    /// The sum asked for, in bytes.
    pub sum: i64,
    /// The largest sum that can be asked for, in bytes.
    pub reach: usize,
}

impl Solver {
    /// A solver for these actions within these limits, which are about the same actions in the same order. Its table is
    /// empty, and grows with the largest sum asked for.
    ///
    /// # Errors
    /// [`SolverError`].
    pub fn new(actions: &[Action], limits: &Limits) -> Result<Self, SolverError> {
        let sizes = sizes(actions)?;
        let automaton = Automaton::new(&sizes, limits).ok_or(SolverError::TooManyStates)?;
        let max_sum = (!limits.is_free()).then(|| {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            largest.saturating_mul(limits.max_actions() as usize)
        });
        let cache = Cache::new(automaton.states, max_sum);
        Ok(Self { automaton, max_sum, cache })
    }

    /// How many multisets of actions make up `sum` bytes; `u64::MAX` stands for that many or more. Looked up at once
    /// where that sum or a larger one was asked for before.
    ///
    /// # Errors
    /// [`SumTooLarge`].
    pub fn count(&mut self, sum: i64) -> Result<u64, SumTooLarge> {
        Ok(self.prepare(sum)?.map_or(0, |sum| self.ways(0, 0, sum)))
    }

    /// All multisets of actions that make up `sum` bytes, each once: those with more of the solver's earlier actions
    /// first. Actions that fewer devices can take tend to be earlier; among those the same devices can take, larger ones
    /// are, so that fewer actions tend to come first.
    ///
    /// # Errors
    /// [`SumTooLarge`].
    pub fn solutions(&mut self, sum: i64) -> Result<Solutions<'_>, SumTooLarge> {
        let sum = self.prepare(sum)?;
        Ok(Solutions::new(self, sum))
    }

    /// Sees to it that a sum is in the table; `None` where nothing can make it up.
    fn prepare(&mut self, sum: i64) -> Result<Option<usize>, SumTooLarge> {
        let Ok(wanted) = u64::try_from(sum) else { return Ok(None) };
        if self.max_sum.is_some_and(|max| wanted > max as u64) {
            return Ok(None);
        }
        let wanted = usize::try_from(wanted).ok().filter(|wanted| self.cache.reaches(*wanted));
        let wanted = wanted.ok_or_else(|| SumTooLarge { sum, reach: self.cache.reach() })?;
        let Self { automaton, cache, .. } = self;
        cache.grow(wanted, |sum, smaller, row| fill(automaton, sum, smaller, row));
        Ok(Some(wanted))
    }

    /// How many ways make up a sum that is in the table, from a state of a layer on.
    pub(crate) fn ways(&self, layer: usize, state: u32, sum: usize) -> u64 {
        let Some(layer) = self.layer(layer) else { return u64::from(sum == 0) };
        self.cache.cell(sum, layer.offset + state as usize)
    }

    /// A layer; `None` beyond the last action.
    pub(crate) fn layer(&self, layer: usize) -> Option<&Layer> {
        self.automaton.layers.get(layer)
    }

    /// The number of actions.
    pub(crate) fn actions(&self) -> usize {
        self.automaton.layers.len()
    }
}

/// The actions' sizes in bytes.
pub(crate) fn sizes(actions: &[Action]) -> Result<Vec<usize>, SolverError> {
    let sizes = actions.iter().map(|action| {
        let size = usize::try_from(action.size).ok().filter(|size| *size > 0);
        size.ok_or_else(|| SolverError::NoSize(action.name.clone()))
    });
    sizes.collect()
}

/// Counts the ways of one sum from every state, given those of all smaller sums.
fn fill(automaton: &Automaton, sum: usize, smaller: &Rows<'_, u64>, row: &mut [u64]) {
    let mut rest = row;
    let mut next: &mut [u64] = &mut [u64::from(sum == 0)];
    for layer in automaton.layers.iter().rev() {
        let (earlier_layers, current) = rest.split_at_mut(layer.offset);
        let with_one_less = sum
            .checked_sub(layer.size)
            .map(|sum| smaller.cells(sum, layer.offset, layer.steps.len()))
            .unwrap_or_default();
        for (cell, step) in current.iter_mut().zip(&layer.steps) {
            let passed = next.get(step.pass as usize).copied().unwrap_or(0);
            let taken = step.take.and_then(|state| with_one_less.get(state as usize)).copied().unwrap_or(0);
            *cell = passed.saturating_add(taken);
        }
        (rest, next) = (earlier_layers, current);
    }
}
