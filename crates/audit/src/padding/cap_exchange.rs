//! Improves tables by exchange; buckets then need not hold neighbouring sizes, which can be better.
//!
//! With commands of 1, 2 and 3 bytes and priors of .30, .05 and .65, the buckets {1, 3} and {2} have a vulnerability of
//! .70 for .60 bytes; neighbouring buckets with as few bytes have .95. The rare size 2 need not go where the more
//! probable size 1 must.
//!
//! A bucket's cap is the greatest prior of a command that it may hold, so the vulnerability is the sum of the caps. Given
//! all caps, each size goes to the smallest bucket that is no smaller and whose cap is no less. A table is improved one
//! cap at a time, as long as that helps: not all best tables are found in this way. For other leakages than the
//! vulnerability, caps are but a way to open, move and close buckets.

use sizeleak_inference::space::SizeRow;

use crate::padding::bucket_table::{TableSearch, Weights};
use crate::padding::table_goal::Goal;

/// Changes of caps, at most.
const MOST_CHANGES: usize = 10_000;

/// To which size each size of an inventory is padded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment {
    /// By place of a size, the place of that which it is padded to.
    pub(crate) to: Vec<usize>,
    /// By place of a size, the greatest prior of the commands that are padded to it; 0 without any.
    caps: Vec<f64>,
    /// The leakage, by the objective.
    pub(crate) leakage: f64,
    /// The expected bytes added to a command.
    pub(crate) added_bytes: f64,
}

impl TableSearch<'_> {
    /// The table with buckets of neighbouring sizes.
    pub(crate) fn assignment_of(&self, buckets: &[u64]) -> Option<Assignment> {
        let place = |row: &SizeRow| {
            let bucket = buckets.get(buckets.partition_point(|bucket| *bucket < row.bytes))?;
            self.rows.binary_search_by_key(bucket, |row| row.bytes).ok()
        };
        self.filled(self.rows.iter().map(place).collect::<Option<Vec<usize>>>()?)
    }

    /// Improves a table by changes that lower the weighted sum.
    pub(crate) fn descend(&self, from: Assignment, weights: Weights) -> Assignment {
        let sum = |table: &Assignment| weights.of(table.leakage, table.added_bytes);
        self.improved(from, (0..self.rows.len()).rev(), |found, table| sum(found) < sum(table) * (1.0 - 1e-9))
    }

    /// Improves a table that meets a goal by changes that still meet it, of the greatest sizes first and of the smallest
    /// first.
    pub(crate) fn within(&self, from: Assignment, goal: Goal) -> Assignment {
        let value = |table: &Assignment| goal.value(table.leakage, table.added_bytes);
        let is_better = |found: &Assignment, table: &Assignment| {
            goal.is_met(found.leakage, found.added_bytes) && value(found) < value(table) * (1.0 - 1e-9)
        };
        let from_greatest = self.improved(from.clone(), (0..self.rows.len()).rev(), is_better);
        let from_smallest = self.improved(from, 0..self.rows.len(), is_better);
        if value(&from_smallest) < value(&from_greatest) { from_smallest } else { from_greatest }
    }

    /// Changes caps in the order of these places, again and again, as long as one change is better.
    fn improved(
        &self,
        from: Assignment,
        places: impl Iterator<Item = usize> + Clone,
        is_better: impl Fn(&Assignment, &Assignment) -> bool,
    ) -> Assignment {
        let mut table = from;
        let mut unchanged = 0;
        let mut changes = 0;
        for place in places.cycle() {
            let mut candidates: Vec<Assignment> = Vec::new();
            for cap in self.caps_to_try(&table, place) {
                candidates.extend(self.with_cap(&table, place, cap).filter(|found| is_better(found, &table)));
            }
            // The last that is better than those before.
            let better =
                candidates.into_iter().reduce(|best, found| if is_better(&found, &best) { found } else { best });
            unchanged += 1;
            if let Some(better) = better {
                (table, unchanged) = (better, 0);
                changes += 1;
            }
            if unchanged > self.rows.len() || changes > MOST_CHANGES {
                return table;
            }
        }
        table
    }

    /// Caps of the bucket at a place that change the table: none, that of each size in it, and that of each smaller size
    /// which now passes it by.
    fn caps_to_try(&self, table: &Assignment, place: usize) -> Vec<f64> {
        let now = table.caps.get(place).copied().unwrap_or(0.0);
        let sizes = self.rows.iter().zip(&table.to).take(place + 1).filter(|(_, to)| **to >= place);
        let mut caps: Vec<f64> = sizes.map(|(row, _)| row.greatest).collect();
        caps.push(0.0);
        caps.sort_by(f64::total_cmp);
        caps.dedup();
        caps.retain(|cap| cap.total_cmp(&now).is_ne());
        caps
    }

    /// The table with another cap at a place; `None` if it leaves a size without a bucket, or breaks the rules.
    fn with_cap(&self, table: &Assignment, place: usize, cap: f64) -> Option<Assignment> {
        // Buckets that are still open for a size, the nearest last: each has a greater cap than all nearer ones.
        let mut open: Vec<(usize, f64)> = Vec::new();
        let mut to = vec![0; self.rows.len()];
        for (at, ((row, to), own)) in self.rows.iter().zip(&mut to).zip(&table.caps).enumerate().rev() {
            let own = if at == place { cap } else { *own };
            if own > 0.0 {
                while open.last().is_some_and(|(_, cap)| *cap <= own) {
                    open.pop();
                }
                open.push((at, own));
            }
            let above = open.partition_point(|(_, cap)| *cap >= row.greatest);
            *to = open.get(above.checked_sub(1)?)?.0;
        }
        self.filled(to)
    }

    /// Fills buckets; `None` if one breaks the rules.
    fn filled(&self, to: Vec<usize>) -> Option<Assignment> {
        let empty = SizeRow { bytes: 0, commands: 0.0, probability: 0.0, greatest: 0.0, plogp: 0.0 };
        let mut buckets = vec![empty; self.rows.len()];
        let mut added_bytes = 0.0;
        for (row, to) in self.rows.iter().zip(&to) {
            buckets.get_mut(*to)?.add(row);
            added_bytes += row.probability * (self.rows.get(*to)?.bytes - row.bytes) as f64;
        }
        let is_allowed = |bucket: &SizeRow| bucket.commands == 0.0 || self.rules.allow(bucket);
        if !buckets.iter().all(is_allowed) {
            return None;
        }
        let caps: Vec<f64> = buckets.iter().map(|bucket| bucket.greatest).collect();
        let held = buckets.iter().filter(|bucket| bucket.commands > 0.0);
        let leakage = held.map(|bucket| self.objective.of_bucket(bucket)).sum();
        Some(Assignment { to, caps, leakage, added_bytes })
    }
}
