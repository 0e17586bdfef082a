//! How many ways there are to make up a sum: a table of counts, built once and grown where larger sums are asked for.
//!
//! With the actions in a fixed order, a way to make up a sum is a walk: at each action either take one more of it or go
//! on to the next. `ways(i, t, s)` counts the walks from action `i` that make up `s` when the classes of actions have
//! been taken `t` times already:
//!
//! ```text
//! ways(i, t, s) = ways(i + 1, t, s) + ways(i, t + class(i), s − |aᵢ|)   where the inventory admits t + class(i)
//! ```
//!
//! The totals of classes decide whether every action finds a device, so the inventory is inside the recursion, and
//! since each multiset of actions is one walk, counts are exact.

use sizeleak_signature::{Action, InventoryError, Limits};
use thiserror::Error;

use crate::Solutions;

/// The table takes this many bytes at most.
const MOST_TABLE_BYTES: usize = 256 << 20;
const CELL_BYTES: usize = 8;

/// Totals of classes are numbered up to this many; more would make a table too large for all but tiny sums.
const MOST_TOTALS: usize = 100_000;

/// Counts and enumerates the ways to make up sums from actions.
#[derive(Debug, Clone)]
pub struct Solver {
    sizes: Vec<usize>,
    classes: Vec<usize>,
    totals: Totals,
    /// The largest sum any command can have, if the inventory sets one.
    most_sum: Option<usize>,
    /// Sums below this are in the table.
    sums: usize,
    ways: Vec<u64>,
}

/// Why sums cannot be taken apart.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SolverError {
    /// An action has no device.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// An action has no size.
    #[error("the action `{0}` must be 1 byte long at least")]
    NoSize(String),
    /// The table would be too large.
    #[error(
        "sums up to {sum} bytes from {actions} actions over {totals} states of the inventory need a table of more than \
         {} MiB: use an inventory with fewer kinds of device",
        MOST_TABLE_BYTES >> 20
    )]
    TooLarge {
        /// The sum asked for.
        sum: u64,
        /// How many actions.
        actions: usize,
        /// How many totals of classes the inventory admits, at least.
        totals: usize,
    },
}

impl Solver {
    /// A solver for these actions within these limits, which are about the same actions in the same order.
    ///
    /// # Errors
    /// [`SolverError`].
    pub fn new(actions: &[Action], limits: &Limits) -> Result<Self, SolverError> {
        let sizes = actions.iter().map(|action| {
            let size = usize::try_from(action.size).ok().filter(|size| *size > 0);
            size.ok_or_else(|| SolverError::NoSize(action.name.clone()))
        });
        let sizes: Vec<usize> = sizes.collect::<Result<_, _>>()?;
        let classes: Vec<usize> = (0..actions.len()).filter_map(|action| limits.class_of(action)).collect();
        let most_sum = (!limits.is_free()).then(|| {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            largest.saturating_mul(limits.most_actions() as usize)
        });
        let too_large = SolverError::TooLarge { sum: 0, actions: actions.len(), totals: MOST_TOTALS };
        let totals = Totals::new(limits).ok_or(too_large)?;
        Ok(Self { sizes, classes, totals, most_sum, sums: 0, ways: Vec::new() })
    }

    /// How many multisets of actions make up `sum` bytes; `u64::MAX` stands for that many or more.
    ///
    /// # Errors
    /// [`SolverError::TooLarge`] where the sum is larger than the table may be.
    pub fn count(&mut self, sum: i64) -> Result<u64, SolverError> {
        Ok(self.prepare(sum)?.map_or(0, |sum| self.ways_from(0, Totals::NONE, sum)))
    }

    /// All multisets of actions that make up `sum` bytes, each once, as counts in the order of the actions; with more
    /// of the earlier actions first.
    ///
    /// # Errors
    /// [`SolverError::TooLarge`] where the sum is larger than the table may be.
    pub fn solutions(&mut self, sum: i64) -> Result<Solutions<'_>, SolverError> {
        let sum = self.prepare(sum)?;
        Ok(Solutions::new(self, sum))
    }

    /// Sees to it that a sum is in the table; `None` where nothing can make it up.
    fn prepare(&mut self, sum: i64) -> Result<Option<usize>, SolverError> {
        let Ok(wanted) = u64::try_from(sum) else { return Ok(None) };
        let fits = self.most_sum.is_none_or(|most| wanted <= most as u64);
        if !fits {
            return Ok(None);
        }
        let too_large = SolverError::TooLarge { sum: wanted, actions: self.sizes.len(), totals: self.totals.len() };
        let Ok(wanted) = usize::try_from(wanted) else { return Err(too_large) };
        if wanted >= self.sums {
            let rows = (self.sizes.len() + 1) * self.totals.len();
            let most_sums = MOST_TABLE_BYTES / CELL_BYTES / rows;
            if wanted >= most_sums {
                return Err(too_large);
            }
            // Doubling keeps the cost of growing within that of the last table.
            let sums = (wanted + 1).max(self.sums * 2).max(1024);
            self.build(sums.min(self.most_sum.map_or(usize::MAX, |most| most + 1)).min(most_sums));
        }
        Ok(Some(wanted))
    }

    fn build(&mut self, sums: usize) {
        let (actions, totals) = (self.sizes.len(), self.totals.len());
        self.sums = sums;
        self.ways = vec![0; (actions + 1) * totals * sums];
        for total in 0..totals {
            let at = self.cell(actions, total, 0);
            self.set(at, 1);
        }
        for action in (0..actions).rev() {
            let size = self.sizes.get(action).copied().unwrap_or(usize::MAX);
            for sum in 0..sums {
                for total in 0..totals {
                    let passed = self.ways_from(action + 1, total, sum);
                    let taken = self.taken(action, total).zip(sum.checked_sub(size));
                    let taken = taken.map_or(0, |(total, sum)| self.ways_from(action, total, sum));
                    let at = self.cell(action, total, sum);
                    self.set(at, passed.saturating_add(taken));
                }
            }
        }
    }

    /// The number of actions.
    pub(crate) fn actions(&self) -> usize {
        self.sizes.len()
    }

    /// The bytes of one of an action.
    pub(crate) fn size(&self, action: usize) -> Option<usize> {
        self.sizes.get(action).copied()
    }

    /// The totals after one more of an action, where the inventory admits them.
    pub(crate) fn taken(&self, action: usize, total: usize) -> Option<usize> {
        self.totals.after(total, self.classes.get(action).copied()?)
    }

    /// How many ways make up `sum` from `action` on.
    pub(crate) fn ways_from(&self, action: usize, total: usize, sum: usize) -> u64 {
        self.ways.get(self.cell(action, total, sum)).copied().unwrap_or(0)
    }

    fn cell(&self, action: usize, total: usize, sum: usize) -> usize {
        (action * self.sums + sum) * self.totals.len() + total
    }

    fn set(&mut self, cell: usize, ways: u64) {
        if let Some(slot) = self.ways.get_mut(cell) {
            *slot = ways;
        }
    }
}

/// All totals of classes an inventory admits, numbered, with the steps between them.
#[derive(Debug, Clone)]
struct Totals {
    /// For each number and class, the number after one more of the class.
    after: Vec<Option<usize>>,
    classes: usize,
    count: usize,
}

impl Totals {
    /// The number of the totals in which no class has occurred.
    const NONE: usize = 0;

    /// Numbers all totals; `None` where there are more than [`MOST_TOTALS`].
    fn new(limits: &Limits) -> Option<Self> {
        let classes = limits.classes();
        if limits.is_free() {
            // One state: any number of anything is admitted.
            return Some(Self { after: vec![Some(Self::NONE); classes.max(1)], classes: classes.max(1), count: 1 });
        }
        let mut numbers = std::collections::HashMap::from([(vec![0_u32; classes], Self::NONE)]);
        let mut known = vec![vec![0_u32; classes]];
        let mut after = Vec::new();
        let mut at = 0;
        while let Some(totals) = known.get(at).cloned() {
            for class in 0..classes {
                let mut next = totals.clone();
                if let Some(total) = next.get_mut(class) {
                    *total += 1;
                }
                after.push(limits.admits_totals(&next).then(|| {
                    *numbers.entry(next.clone()).or_insert_with(|| {
                        known.push(next);
                        known.len() - 1
                    })
                }));
            }
            if known.len() > MOST_TOTALS {
                return None;
            }
            at += 1;
        }
        Some(Self { after, classes, count: known.len() })
    }

    fn len(&self) -> usize {
        self.count
    }

    fn after(&self, total: usize, class: usize) -> Option<usize> {
        self.after.get(total * self.classes + class).copied().flatten()
    }
}
