//! Tables of buckets that hold neighbouring sizes: the best one for given weights, and all on the convex hull.
//!
//! The best table of the sizes from i on is a bucket of the sizes i to j and the best table of those beyond:
//! f(i) = minⱼ a · leakage(i..j) + b · bytes(i..j) + f(j + 1). Each ratio of the weights a and b gives a corner of the
//! convex hull of all pairs of leakage and bytes; between two corners, the weights for which both are as good tell
//! whether there is another.

use sizeleak_inference::space::SizeRow;

use crate::padding::bucket::{Bucket, buckets_from};
use crate::padding::table_rules::{Objective, TableRules};

/// Improvements below this share are not looked for.
const LEAST_IMPROVEMENT: f64 = 1e-5;

/// A padding table whose buckets hold neighbouring sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketTable {
    /// The sizes of the buckets in bytes, ascending; the last is the greatest size of all.
    pub buckets: Vec<u64>,
    /// The leakage, by the objective.
    pub leakage: f64,
    /// The expected bytes added to a command.
    pub added_bytes: f64,
}

/// The sizes of an inventory and what a table of them is to achieve.
#[derive(Debug, Clone, Copy)]
pub struct TableSearch<'a> {
    /// The commands of each size, by ascending size.
    pub rows: &'a [SizeRow],
    /// Which leakage is to be small.
    pub objective: Objective,
    /// What must hold for each bucket.
    pub rules: TableRules,
}

/// The weights of leakage and bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    pub(crate) leakage: f64,
    pub(crate) bytes: f64,
}

impl Weights {
    /// Weights for which two tables are as good; `right` adds more bytes.
    pub(crate) fn between(left: &BucketTable, right: &BucketTable) -> Option<Self> {
        let leakage = right.added_bytes - left.added_bytes;
        let bytes = left.leakage - right.leakage;
        (leakage > 0.0 && bytes > 0.0).then_some(Self { leakage, bytes })
    }

    pub(crate) fn of(self, leakage: f64, added_bytes: f64) -> f64 {
        self.leakage * leakage + self.bytes * added_bytes
    }
}

impl BucketTable {
    fn weighed(&self, weights: Weights) -> f64 {
        weights.of(self.leakage, self.added_bytes)
    }
}

impl TableSearch<'_> {
    /// The tables on the lower convex hull of leakage and expected bytes, by ascending bytes; none if no table obeys the
    /// rules.
    pub fn hull(&self) -> Vec<BucketTable> {
        // The smallest of one kind, and of these about the smallest of the other.
        let greatest = self.rows.last().map_or(1.0, |row| row.bytes as f64).max(1.0);
        let cheapest = self.best(Weights { leakage: 1e-9, bytes: 1.0 });
        let tightest = self.best(Weights { leakage: 1.0, bytes: 1e-9 / greatest });
        let (Some(cheapest), Some(tightest)) = (cheapest, tightest) else { return Vec::new() };
        let mut hull = vec![cheapest];
        // Corners that are known to be on the hull, those with the fewest bytes last.
        let mut ahead = vec![tightest];
        while let (Some(left), Some(right)) = (hull.last(), ahead.last()) {
            let between = Weights::between(left, right).and_then(|weights| {
                let least = left.weighed(weights) * (1.0 - LEAST_IMPROVEMENT);
                self.best(weights).filter(|table| table.weighed(weights) < least)
            });
            match between {
                Some(table) => ahead.push(table),
                None => hull.extend(ahead.pop().filter(|right| right.leakage < left.leakage)),
            }
        }
        hull
    }

    /// The best table for these weights; `None` if none obeys the rules.
    fn best(&self, weights: Weights) -> Option<BucketTable> {
        let completions = self.completions(weights);
        completions.first().filter(|(sum, _)| sum.is_finite())?;
        let mut ends = Vec::new();
        let mut first = 0;
        while first < self.rows.len() {
            first = completions.get(first)?.1;
            ends.push(first);
        }
        Some(self.table(&ends))
    }

    /// Of the sizes from each one on: the least weighted sum, which is infinite if the rules cannot be obeyed, and the
    /// number of sizes up to the end of the first bucket. After the last size it is 0.
    pub(crate) fn completions(&self, weights: Weights) -> Vec<(f64, usize)> {
        let mut best = vec![(f64::INFINITY, 0); self.rows.len()];
        best.push((0.0, 0));
        for first in (0..self.rows.len()).rev() {
            let mut least = (f64::INFINITY, 0);
            for bucket in buckets_from(self.rows, first, self.objective) {
                if weights.bytes * bucket.added_bytes >= least.0 {
                    break;
                }
                let beyond = best.get(bucket.end).map_or(f64::INFINITY, |(beyond, _)| *beyond);
                let sum = weights.of(bucket.leakage, bucket.added_bytes) + beyond;
                if sum < least.0 && self.rules.allow(&bucket.row) {
                    least = (sum, bucket.end);
                }
            }
            if let Some(best) = best.get_mut(first) {
                *best = least;
            }
        }
        best
    }

    /// The table whose buckets end after these numbers of sizes.
    pub(crate) fn table(&self, ends: &[usize]) -> BucketTable {
        let mut table = BucketTable { buckets: Vec::with_capacity(ends.len()), leakage: 0.0, added_bytes: 0.0 };
        let mut first = 0;
        for end in ends {
            let is_it = |bucket: &Bucket| bucket.end == *end;
            let Some(bucket) = buckets_from(self.rows, first, self.objective).find(is_it) else { continue };
            table.buckets.push(bucket.row.bytes);
            table.leakage += bucket.leakage;
            table.added_bytes += bucket.added_bytes;
            first = *end;
        }
        table
    }
}
