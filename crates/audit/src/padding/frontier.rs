//! The frontier of tables: those of which no other that is found has as few bytes and as little leakage.
//!
//! A budget and a target look in the same frontier, which depends on neither: so a target never costs more than a table
//! that a budget finds.
//!
//! It begins with the convex hull of tables of neighbouring sizes. Between two of its corners, beginnings of tables are
//! extended bucket by bucket: of two with the same sizes, the one that is worse in both leakage and bytes is dropped, and
//! so is one that cannot end inside the triangle of the corners, whatever follows.

use crate::padding::bucket_table::{Bucket, BucketTable, Goal, TableSearch, Weights, buckets_from};

/// Beginnings of tables that are kept for each number of sizes. Fewer are all kept, so that the tables between two corners
/// are exact for small inventories.
const MAX_BEGINNINGS: usize = 32;

/// Gaps between corners of the hull, the widest first, in which tables are looked for: others are narrower than reports of
/// three digits show.
const MAX_GAPS: usize = 32;

/// Beginnings that are extended, at most, over all gaps: about a second of work.
const MAX_EXTENDED: usize = 100_000_000;

/// Tables with ever more bytes and ever less leakage.
#[derive(Debug, Clone, Default)]
pub struct Frontier {
    tables: Vec<BucketTable>,
}

#[derive(Debug, Clone, Copy)]
struct Beginning {
    leakage: f64,
    added_bytes: f64,
    /// The beginning without the last bucket, by the number of its sizes and its place among those.
    before: (usize, usize),
}

impl TableSearch<'_> {
    /// The frontier; empty if no table obeys the rules.
    pub fn frontier(&self) -> Frontier {
        Frontier { tables: self.best_first(Goal::Target(f64::INFINITY)).collect() }
    }

    /// The tables of the frontier that meet a goal, the best first. What is between two corners of the hull is looked for when
    /// it is asked for.
    pub fn best_first(&self, goal: Goal) -> impl Iterator<Item = BucketTable> {
        let hull = self.hull();
        let share = |left: &BucketTable, right: &BucketTable| right.leakage / left.leakage;
        let mut widest: Vec<f64> =
            hull.iter().zip(hull.iter().skip(1)).map(|(left, right)| share(left, right)).collect();
        widest.sort_by(f64::total_cmp);
        let narrowest = widest.get(MAX_GAPS - 1).copied().unwrap_or(f64::INFINITY);
        let next = hull.iter().skip(1).cloned().map(Some).chain([None]);
        let mut gaps: Vec<(BucketTable, Option<BucketTable>)> = hull.iter().cloned().zip(next).collect();
        if let Goal::Budget(_) = goal {
            gaps.reverse();
        }
        let mut extended = 0;
        gaps.into_iter().flat_map(move |(left, right)| {
            let meets = |table: &BucketTable| goal.is_met(table.leakage, table.added_bytes);
            let mut tables = vec![left.clone()];
            // All that are between two corners are so in leakage and in bytes.
            let is_asked = |right: &BucketTable| share(&left, right) <= narrowest && (meets(&left) || meets(right));
            if let Some(right) = right.as_ref().filter(|right| is_asked(right) && extended <= MAX_EXTENDED) {
                tables.extend(self.between(&left, right, &mut extended));
                tables.sort_by(|a, b| a.added_bytes.total_cmp(&b.added_bytes).then(a.leakage.total_cmp(&b.leakage)));
                let mut least = f64::INFINITY;
                tables.retain(|table| {
                    let is_better = least.is_infinite() || table.leakage < least - least.abs() * 1e-9;
                    least = if is_better { table.leakage } else { least };
                    is_better
                });
                // What hardly differs from the next corner is that corner.
                tables.retain(|table| right.leakage < table.leakage - table.leakage.abs() * 1e-9);
            }
            tables.retain(meets);
            if let Goal::Budget(_) = goal {
                tables.reverse();
            }
            tables
        })
    }

    /// Tables of neighbouring sizes in the triangle below the line between two corners of the hull.
    fn between(&self, left: &BucketTable, right: &BucketTable, extended: &mut usize) -> Vec<BucketTable> {
        self.ends_between(left, right, extended).unwrap_or_default().iter().map(|ends| self.table(ends)).collect()
    }

    fn ends_between(&self, left: &BucketTable, right: &BucketTable, extended: &mut usize) -> Option<Vec<Vec<usize>>> {
        let weights = Weights::between(left, right)?;
        let bound = weights.of(left.leakage, right.added_bytes) * (1.0 + 1e-12);
        let completions = self.completions(weights);
        let width = (right.added_bytes - left.added_bytes) / MAX_BEGINNINGS as f64;
        let mut beginnings: Vec<Vec<Beginning>> = vec![Vec::new(); self.rows.len() + 1];
        beginnings.first_mut()?.push(Beginning { leakage: 0.0, added_bytes: 0.0, before: (0, 0) });
        for first in 0..self.rows.len() {
            let here = beginnings.get_mut(first).map(std::mem::take).map(|all| thinned(all, width)).unwrap_or_default();
            for bucket in buckets_from(self.rows, first, self.objective) {
                let beyond = completions.get(bucket.end)?.0;
                let is_allowed = self.rules.allow(&bucket.row);
                let (at_end, mut is_extended) = (beginnings.get_mut(bucket.end)?, false);
                *extended += here.len();
                for (place, beginning) in here.iter().enumerate() {
                    let next = beginning.with(&bucket, (first, place));
                    is_extended |= next.added_bytes <= right.added_bytes;
                    let may_end_between = weights.of(next.leakage, next.added_bytes) + beyond <= bound
                        && next.added_bytes <= right.added_bytes
                        && next.leakage <= left.leakage;
                    if is_allowed && may_end_between {
                        at_end.push(next);
                    }
                }
                if at_end.len() > 8 * MAX_BEGINNINGS {
                    *at_end = thinned(std::mem::take(at_end), width);
                }
                if !is_extended {
                    break;
                }
            }
            *beginnings.get_mut(first)? = here;
        }
        let whole = beginnings.last_mut().map(std::mem::take)?;
        let ends = thinned(whole, width).into_iter().map(|end| {
            let (mut ends, mut before) = (vec![self.rows.len()], end.before);
            while before.0 > 0 {
                ends.push(before.0);
                before = beginnings.get(before.0)?.get(before.1)?.before;
            }
            ends.reverse();
            Some(ends)
        });
        ends.collect()
    }
}

impl Frontier {
    /// The best table for a goal; `None` if none meets it.
    pub fn best(&self, goal: Goal) -> Option<&BucketTable> {
        let mut met = self.tables.iter().filter(|table| goal.is_met(table.leakage, table.added_bytes));
        if let Goal::Budget(_) = goal { met.next_back() } else { met.next() }
    }

    /// All tables, by ascending bytes.
    pub fn tables(&self) -> &[BucketTable] {
        &self.tables
    }
}

impl Beginning {
    fn with(&self, bucket: &Bucket, before: (usize, usize)) -> Self {
        Self { leakage: self.leakage + bucket.leakage, added_bytes: self.added_bytes + bucket.added_bytes, before }
    }
}

/// Without those that have at least the bytes and the leakage of another; where still too many are left, without those
/// that have nearly the bytes of another.
fn thinned(mut beginnings: Vec<Beginning>, width: f64) -> Vec<Beginning> {
    beginnings.sort_by(|a, b| a.added_bytes.total_cmp(&b.added_bytes).then(a.leakage.total_cmp(&b.leakage)));
    let mut least = f64::INFINITY;
    beginnings.retain(|beginning| {
        let is_better = beginning.leakage < least * (1.0 - 1e-12);
        if is_better {
            least = beginning.leakage;
        }
        is_better
    });
    if beginnings.len() > MAX_BEGINNINGS {
        // The last of each width has the least leakage.
        let in_width = |beginning: &Beginning| (beginning.added_bytes / width).floor();
        let widths: Vec<f64> = beginnings.iter().map(in_width).collect();
        let mut next = widths.iter().skip(1).chain([&f64::INFINITY]).zip(&widths);
        beginnings.retain(|_| next.next().is_none_or(|(next, here)| next.total_cmp(here).is_ne()));
    }
    beginnings
}
