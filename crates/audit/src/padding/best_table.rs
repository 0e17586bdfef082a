//! The best deterministic padding policy for a goal: the best table of neighbouring sizes, improved by self.

use sizeleak_inference::space::SizeRow;

use crate::padding::bucket_table::{BucketTable, TableSearch, Weights};
use crate::padding::cap_exchange::Assignment;
use crate::padding::table_goal::Goal;
use sizeleak_model::policies::PaddingPolicy;

/// Prices of bytes at which a table beyond the budget is improved, in that of the hull there.
const PRICES: [f64; 7] = [1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0];

/// The share of a table's leakage or bytes that a map must be below: a map is longer and harder to read.
const WORTH_A_MAP: f64 = 0.995;

/// Corners of the hull with fewer bytes from which tables are improved.
const CORNERS: usize = 2;

/// A padding policy for a goal.
#[derive(Debug, Clone, PartialEq)]
pub struct BestTable {
    /// A table, or a map where not all buckets hold neighbouring sizes.
    pub policy: PaddingPolicy,
    /// The leakage, by the objective.
    pub leakage: f64,
    /// The expected bytes added to a command.
    pub added_bytes: f64,
}

impl TableSearch<'_> {
    /// The best deterministic policy for a goal that is found, given the hull of tables; `None` if no table of
    /// neighbouring sizes meets it.
    ///
    /// It is no worse than the hull's best table, and for small inventories than the best of neighbouring sizes. A map is
    /// taken only where it is better by half a percent.
    pub fn best_policy(&self, goal: Goal, hull: &[BucketTable]) -> Option<BestTable> {
        let of_neighbours = self.best_for(goal, hull)?;
        let exchanged = self.exchanged(goal, hull, &of_neighbours);
        let least = goal.value(of_neighbours.leakage, of_neighbours.added_bytes);
        let exchanged = exchanged.map(|found| (policy_of(self.rows, &found), found)).filter(|(policy, found)| {
            let worth = if matches!(policy, PaddingPolicy::Map { .. }) { WORTH_A_MAP } else { 1.0 - 1e-9 };
            goal.value(found.leakage, found.added_bytes) < least * worth
        });
        match exchanged {
            Some((policy, found)) => Some(BestTable { policy, leakage: found.leakage, added_bytes: found.added_bytes }),
            None => Some(BestTable {
                policy: PaddingPolicy::Table { buckets: of_neighbours.buckets },
                leakage: of_neighbours.leakage,
                added_bytes: of_neighbours.added_bytes,
            }),
        }
    }

    /// The best table that exchanges lead to, from the best one of neighbouring sizes and from the hull on both sides.
    fn exchanged(&self, goal: Goal, hull: &[BucketTable], best: &BucketTable) -> Option<Assignment> {
        let above = hull.partition_point(|table| table.added_bytes <= best.added_bytes);
        let sides = [above.checked_sub(1).and_then(|at| hull.get(at)), hull.get(above)];
        let weights = match sides {
            [Some(left), Some(right)] => Weights::between(left, right),
            _ => None,
        };
        let mut found = vec![self.assignment_of(&best.buckets)?];
        // Changes within the goal from here lead elsewhere.
        let others = hull.iter().take(above.saturating_sub(1)).rev().take(CORNERS).chain(hull.first());
        let others = others.filter(|table| goal.is_met(table.leakage, table.added_bytes));
        found.extend(others.filter_map(|table| self.assignment_of(&table.buckets)));
        let of_sides = sides.into_iter().flatten().filter_map(|side| self.assignment_of(&side.buckets));
        for (mut table, weights) in of_sides.filter_map(|side| weights.map(|weights| (side, weights))) {
            for price in PRICES {
                let weights = match goal {
                    Goal::Budget(_) => Weights { bytes: weights.bytes * price, ..weights },
                    Goal::Target(_) => Weights { leakage: weights.leakage * price, ..weights },
                };
                table = self.descend(table, weights);
                if goal.is_met(table.leakage, table.added_bytes) {
                    found.push(table);
                    break;
                }
            }
        }
        let value = |table: &Assignment| goal.value(table.leakage, table.added_bytes);
        let improved = found.into_iter().map(|table| self.within(table, goal));
        improved.min_by(|a, b| value(a).total_cmp(&value(b)))
    }
}

/// The policy of an assignment: a table if each size goes to the next bucket.
fn policy_of(rows: &[SizeRow], assignment: &Assignment) -> PaddingPolicy {
    let bytes = |at: &usize| rows.get(*at).map_or(0, |row| row.bytes);
    let mut buckets: Vec<u64> = assignment.to.iter().map(bytes).collect();
    buckets.sort_unstable();
    buckets.dedup();
    let sizes: Vec<[u64; 2]> = rows.iter().zip(&assignment.to).map(|(row, to)| [row.bytes, bytes(to)]).collect();
    let table = PaddingPolicy::Table { buckets };
    if sizes.iter().all(|[from, to]| table.padded(*from) == Some(*to)) { table } else { PaddingPolicy::Map { sizes } }
}
