//! The best table of neighbouring sizes within a budget of bytes or of leakage, also where it is not on the hull.
//!
//! Tables of the first sizes are extended bucket by bucket. Of two with the same sizes, the one that is worse in both
//! leakage and bytes is dropped; so is one that cannot end better than the best table known, whatever follows: the
//! completions for the weights of the hull's two nearest corners bound that. What is left is mostly little, and the
//! result is exact. Where too much is left, the best table of the hull is the result.

use crate::padding::bucket::{Bucket, buckets_from};
use crate::padding::bucket_table::{BucketTable, TableSearch, Weights};

/// Beginnings of tables that are kept, at most.
const MOST_BEGINNINGS: usize = 50_000;

/// What must be kept within, while the other of leakage and bytes is made small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The least leakage with at most so many expected bytes added to a command.
    Budget(f64),
    /// The fewest bytes with at most so much leakage.
    Target(f64),
}

/// The first buckets of a table.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    leakage: f64,
    added_bytes: f64,
    /// The beginning without the last bucket, by the number of its sizes and its place among those.
    before: (usize, usize),
}

impl Goal {
    /// Whether a table is within the goal. One that exceeds it by rounding alone is.
    pub fn is_met(self, leakage: f64, added_bytes: f64) -> bool {
        match self {
            Self::Budget(most) => added_bytes <= most + most.abs() * 1e-12,
            Self::Target(most) => leakage <= most + most.abs() * 1e-12,
        }
    }

    /// What is to be small.
    pub(crate) fn value(self, leakage: f64, added_bytes: f64) -> f64 {
        match self {
            Self::Budget(_) => leakage,
            Self::Target(_) => added_bytes,
        }
    }

    /// The weighted sum that tables within the goal that are better than `value` do not reach.
    fn bound(self, weights: Weights, value: f64) -> f64 {
        match self {
            Self::Budget(most) => weights.of(value, most),
            Self::Target(most) => weights.of(most, value),
        }
    }
}

impl TableSearch<'_> {
    /// The best table of neighbouring sizes for a goal, of which `hull` is the hull; `None` if none meets it.
    pub fn best_for(&self, goal: Goal, hull: &[BucketTable]) -> Option<BucketTable> {
        let meets = |table: &BucketTable| goal.is_met(table.leakage, table.added_bytes);
        let (at, known) = match goal {
            Goal::Budget(_) => hull.iter().enumerate().rfind(|(_, table)| meets(table))?,
            Goal::Target(_) => hull.iter().enumerate().find(|(_, table)| meets(table))?,
        };
        let other = match goal {
            Goal::Budget(_) => hull.get(at + 1),
            Goal::Target(_) => at.checked_sub(1).and_then(|at| hull.get(at)),
        };
        let weights = other.and_then(|other| match goal {
            Goal::Budget(_) => Weights::between(known, other),
            Goal::Target(_) => Weights::between(other, known),
        });
        let better = weights.and_then(|weights| self.better(goal, known, weights));
        Some(better.unwrap_or_else(|| known.clone()))
    }

    /// The best table that is better than a known one; `None` if there is none, or the search is too long.
    fn better(&self, goal: Goal, known: &BucketTable, weights: Weights) -> Option<BucketTable> {
        let value = goal.value(known.leakage, known.added_bytes);
        let bound = goal.bound(weights, value) * (1.0 + 1e-12);
        let completions = self.completions(weights);
        let mut beginnings: Vec<Vec<Beginning>> = vec![Vec::new(); self.rows.len() + 1];
        beginnings.first_mut()?.push(Beginning { leakage: 0.0, added_bytes: 0.0, before: (0, 0) });
        let mut kept = 0;
        for first in 0..self.rows.len() {
            let here = beginnings.get_mut(first).map(std::mem::take).map(undominated).unwrap_or_default();
            kept += here.len();
            if kept > MOST_BEGINNINGS {
                return None;
            }
            for bucket in buckets_from(self.rows, first, self.objective) {
                let beyond = completions.get(bucket.end)?.0;
                let is_allowed = self.rules.allow(&bucket.row);
                let (at_end, mut is_extended) = (beginnings.get_mut(bucket.end)?, false);
                for (place, beginning) in here.iter().enumerate() {
                    let next = beginning.with(&bucket, (first, place));
                    is_extended |= weights.bytes * next.added_bytes <= bound;
                    let may_end_better = weights.of(next.leakage, next.added_bytes) + beyond <= bound;
                    if is_allowed && may_end_better && goal.is_met(next.leakage, next.added_bytes) {
                        at_end.push(next);
                    }
                }
                if !is_extended {
                    break;
                }
            }
            *beginnings.get_mut(first)? = here;
        }
        let better = |end: &&Beginning| {
            goal.is_met(end.leakage, end.added_bytes) && goal.value(end.leakage, end.added_bytes) < value
        };
        let by_value = |a: &&Beginning, b: &&Beginning| {
            goal.value(a.leakage, a.added_bytes).total_cmp(&goal.value(b.leakage, b.added_bytes))
        };
        let best = beginnings.last()?.iter().filter(better).min_by(by_value)?;
        let (mut ends, mut before) = (vec![self.rows.len()], best.before);
        while before.0 > 0 {
            ends.push(before.0);
            before = beginnings.get(before.0)?.get(before.1)?.before;
        }
        ends.reverse();
        Some(self.table(&ends))
    }
}

impl Beginning {
    fn with(&self, bucket: &Bucket, before: (usize, usize)) -> Self {
        Self { leakage: self.leakage + bucket.leakage, added_bytes: self.added_bytes + bucket.added_bytes, before }
    }
}

/// Without those that have at least the bytes and the leakage of another.
fn undominated(mut beginnings: Vec<Beginning>) -> Vec<Beginning> {
    beginnings.sort_by(|a, b| a.added_bytes.total_cmp(&b.added_bytes).then(a.leakage.total_cmp(&b.leakage)));
    let mut least = f64::INFINITY;
    beginnings.retain(|beginning| {
        let is_better = beginning.leakage < least * (1.0 - 1e-12);
        if is_better {
            least = beginning.leakage;
        }
        is_better
    });
    beginnings
}
