//! Counts the ways to make up a sum, or a size in a range.
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
//! be filtered afterwards.
//!
//! Where sizes vary, a multiset A has sizes from lo(A) to hi(A), the sums of its actions' least and greatest sizes. It
//! can have one between `least` and `most` unless lo(A) > most or hi(A) < least, which exclude each other. So the
//! number is
//!
//! ```text
//! #(A: lo(A) ≤ most) − #(A: hi(A) < least)
//! ```
//!
//! and both are sums of what [`WayCounts`] counts.

use sizeleak_model::{Action, InventoryError, Limits, Pmf};
use thiserror::Error;

use super::automaton::{Automaton, MAX_STATES};
use super::way_table::{MAX_TABLE_BYTES, Priors, Walks, reach, wider};

/// Counts the multisets of actions that make up sums.
#[derive(Debug, Clone)]
pub struct WayCounts {
    walks: Walks,
    /// The largest sum that any command can have, if the inventory sets one.
    max_sum: Option<usize>,
    /// The largest sum that can be counted, in bytes.
    reach: usize,
    /// Of each sum, and of each with all smaller ones, as far as they were asked for.
    counts: Vec<u64>,
    up_to: Vec<u64>,
}

/// Why the ways of a model's actions cannot be looked for.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SearchError {
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error("the size of the action `{0}` is not positive: learn the model again")]
    NoSize(String),
    #[error(
        "the inventory's kinds of device share actions in so many ways that a command has more than {MAX_STATES} \
         states: merge kinds with nearly the same actions, or count fewer devices"
    )]
    TooManyStates,
    #[error("the prior `devices` needs to know the devices: learn with an inventory, and leave `free` out")]
    NoDevices,
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

impl WayCounts {
    /// Counts of these actions within these limits, which must be for the same actions in the same order.
    pub fn new(actions: &[Action], limits: &Limits) -> Result<Self, SearchError> {
        let sizes = action_sizes(actions)?;
        let automaton = Automaton::new(&sizes, limits).ok_or(SearchError::TooManyStates)?;
        let max_sum = (!limits.is_free()).then(|| {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            largest.saturating_mul(limits.max_actions() as usize)
        });
        let reach = reach::<u64>(automaton.state_count).min(max_sum.unwrap_or(usize::MAX));
        let sizes = automaton.layers.iter().map(|layer| Pmf::certain(layer.size.cast_signed() as i64)).collect();
        let priors = Priors::Geometric(vec![1.0; automaton.layers.len()]);
        let walks = Walks { automaton, priors, sizes };
        Ok(Self { walks, max_sum, reach, counts: Vec::new(), up_to: Vec::new() })
    }

    /// How many multisets of actions make up `sum` bytes; `u64::MAX` stands for that many or more. A look-up, if this
    /// sum or a larger one was asked for before.
    pub fn count(&mut self, sum: i64) -> Result<u64, SumTooLarge> {
        let Ok(wanted) = u64::try_from(sum) else { return Ok(0) };
        if self.max_sum.is_some_and(|max| wanted > max as u64) {
            return Ok(0);
        }
        let wanted = usize::try_from(wanted).ok().filter(|wanted| *wanted <= self.reach);
        let wanted = wanted.ok_or(SumTooLarge { sum, reach: self.reach })?;
        if let Some(width) = wider(self.counts.len(), wanted, self.reach) {
            self.counts = self.walks.totals(width);
        }
        Ok(self.counts[wanted])
    }

    /// How many multisets of actions make up at most `sum` bytes.
    fn up_to(&mut self, sum: i64) -> Result<u64, SumTooLarge> {
        let largest = self.max_sum.and_then(|largest| i64::try_from(largest).ok());
        let sum = largest.map_or(sum, |largest| sum.min(largest));
        let Ok(at) = usize::try_from(sum) else { return Ok(0) };
        if at >= self.up_to.len() {
            // The largest first: it says whether there is room, and the rest are look-ups.
            self.count(sum)?;
            let mut before = self.up_to.last().copied().unwrap_or(0);
            for count in &self.counts[self.up_to.len()..=at] {
                before = before.saturating_add(*count);
                self.up_to.push(before);
            }
        }
        Ok(self.up_to.get(at).copied().unwrap_or(0))
    }
}

pub(super) fn action_sizes(actions: &[Action]) -> Result<Vec<usize>, SearchError> {
    let sizes = actions.iter().map(|action| {
        let size = usize::try_from(action.size).ok().filter(|size| *size > 0);
        size.ok_or_else(|| SearchError::NoSize(action.name.clone()))
    });
    sizes.collect()
}

#[derive(Debug)]
pub struct RangeCount {
    by_least: WayCounts,
    by_most: WayCounts,
}

impl RangeCount {
    pub fn new(actions: &[Action], limits: &Limits) -> Result<Self, SearchError> {
        let with_size = |size: fn([i64; 2]) -> i64| -> Vec<Action> {
            actions.iter().map(|action| Action::new(action.name.clone(), size(action.size_range()))).collect()
        };
        Ok(Self {
            by_least: WayCounts::new(&with_size(|[least, _]| least), limits)?,
            by_most: WayCounts::new(&with_size(|[_, most]| most), limits)?,
        })
    }

    /// The number of multisets that can have a sum in this range, which is above 0; `u64::MAX` stands for that many or
    /// more.
    pub fn count(&mut self, [least, most]: [i64; 2]) -> Result<u64, SumTooLarge> {
        let may_be_smaller = self.by_least.up_to(most)?;
        if may_be_smaller == u64::MAX {
            return Ok(u64::MAX);
        }
        Ok(may_be_smaller.saturating_sub(self.by_most.up_to(least.saturating_sub(1))?))
    }

    /// The largest sum that any command can have; `usize::MAX` without an inventory.
    pub fn largest_sum(&self) -> usize {
        self.by_most.max_sum.unwrap_or(usize::MAX)
    }
}
