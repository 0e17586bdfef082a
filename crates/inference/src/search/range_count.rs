//! How many multisets of actions can have a size in a range, by their least and their greatest sizes.
//!
//! A multiset A has sizes from lo(A) to hi(A), the sums of its actions' least and greatest sizes. It can have one
//! between `least` and `most` unless lo(A) > most or hi(A) < least, which exclude each other. So the number is
//!
//! ```text
//! #(A: lo(A) ≤ most) − #(A: hi(A) < least)
//! ```
//!
//! and both are sums of what [`WayCounts`] counts.

use sizeleak_model::{Action, Limits};

use super::way_counts::{SearchError, SumTooLarge, WayCounts};

#[derive(Debug)]
pub struct RangeCount {
    by_least: WayCounts,
    by_most: WayCounts,
}

impl RangeCount {
    /// A counter for these actions within these limits.
    ///
    /// # Errors
    /// [`SearchError`] if the actions and limits cannot be looked for.
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
    ///
    /// # Errors
    /// [`SumTooLarge`].
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
