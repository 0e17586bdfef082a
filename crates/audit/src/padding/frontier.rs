//! The frontier of tables: those of which no other that is found has as few bytes and as little leakage.
//!
//! A budget and a target look in the same frontier, which depends on neither: so a target never costs more than a table
//! that a budget finds.
//!
//! It begins with the convex hull of tables of neighbouring sizes. Between two of its corners, beginnings of tables are
//! extended bucket by bucket: of two with the same sizes, the one that is worse in both leakage and bytes is dropped, and
//! so is one that cannot end inside the triangle of the corners, whatever follows.

use sizeleak_model::policies::PaddingPolicy;

use crate::padding::bucket_table::{BucketTable, Goal, TableRules, TableSearch, Weights, buckets_from};
use crate::padding::{JudgedPolicy, PaddedHome};

/// Beginnings of tables that are kept for each number of sizes. Fewer are all kept, so that the tables between two corners
/// are exact for small inventories.
const MAX_BEGINNINGS: usize = 32;

/// The most beginnings that are extended between two corners: about a second of work. Where they are more, there are only
/// the corners.
const MAX_EXTENDED: usize = 100_000_000;

/// Tables with ever more bytes and ever less leakage. What is between two corners of the hull is looked for when it is asked
/// for.
#[derive(Debug, Clone)]
pub struct Frontier<'a> {
    search: TableSearch<'a>,
    /// Those on the convex hull; none if no table obeys the rules.
    corners: Vec<BucketTable>,
}

#[derive(Debug, Clone, Copy)]
struct Beginning {
    leakage: f64,
    added_bytes: f64,
    /// The beginning without the last bucket, by the number of its sizes and its place among those.
    before: (usize, usize),
}

impl<'a> TableSearch<'a> {
    /// The frontier; empty if no table obeys the rules.
    pub fn frontier(&self) -> Frontier<'a> {
        Frontier { search: *self, corners: self.hull() }
    }
}

impl Frontier<'_> {
    /// The tables from the corner before this one up to it.
    pub(crate) fn up_to(&self, corner: usize) -> Vec<BucketTable> {
        let Some(right) = self.corners.get(corner) else { return Vec::new() };
        let left = corner.checked_sub(1).and_then(|before| self.corners.get(before));
        let mut tables = left.map_or_else(Vec::new, |left| self.between(left, right));
        tables.push(right.clone());
        tables
    }

    /// The best table for a goal; `None` if none meets it.
    pub fn best(&self, goal: Goal) -> Option<BucketTable> {
        self.best_first(goal).next()
    }

    /// The tables that meet a goal, the best first.
    pub fn best_first(&self, goal: Goal) -> impl Iterator<Item = BucketTable> {
        let is_met = move |table: &BucketTable| goal.is_met(table.leakage, table.added_bytes);
        // A corner and the next one: what is between them meets the goal only if one of them does.
        let mut gaps: Vec<&[BucketTable]> = (0..self.corners.len())
            .filter_map(|at| self.corners.get(at..self.corners.len().min(at + 2)))
            .filter(|corners| corners.iter().any(is_met))
            .collect();
        let is_budget = matches!(goal, Goal::Budget(_));
        if is_budget {
            gaps.reverse();
        }
        gaps.into_iter().flat_map(move |corners| {
            let mut tables = if let [left, right] = corners { self.between(left, right) } else { corners.to_vec() };
            tables.retain(is_met);
            if is_budget {
                tables.reverse();
            }
            tables
        })
    }

    /// The first of two corners of the hull, and the tables of neighbouring sizes in the triangle below the line between
    /// both.
    fn between(&self, left: &BucketTable, right: &BucketTable) -> Vec<BucketTable> {
        let mut tables = vec![left.clone()];
        let ends = self.ends_between(left, right).unwrap_or_default();
        tables.extend(ends.iter().map(|ends| self.search.table(ends)));
        tables.sort_by(|a, b| a.added_bytes.total_cmp(&b.added_bytes).then(a.leakage.total_cmp(&b.leakage)));
        let mut least = f64::INFINITY;
        tables.retain(|table| {
            let is_better = least.is_infinite() || table.leakage < least - least.abs() * 1e-9;
            least = if is_better { table.leakage } else { least };
            // What hardly differs from the next corner is that corner.
            is_better && right.leakage < table.leakage - table.leakage.abs() * 1e-9
        });
        tables
    }

    fn ends_between(&self, left: &BucketTable, right: &BucketTable) -> Option<Vec<Vec<usize>>> {
        let (rows, mut extended) = (self.search.rows, 0);
        let weights = Weights::between(left, right)?;
        let bound = weights.of(left.leakage, right.added_bytes) * (1.0 + 1e-12);
        let completions = self.search.completions(weights);
        let width = (right.added_bytes - left.added_bytes) / MAX_BEGINNINGS as f64;
        let mut beginnings: Vec<Vec<Beginning>> = vec![Vec::new(); rows.len() + 1];
        beginnings.first_mut()?.push(Beginning { leakage: 0.0, added_bytes: 0.0, before: (0, 0) });
        for first in 0..rows.len() {
            let here = thinned(std::mem::take(beginnings.get_mut(first)?), width);
            let cheapest = here.iter().map(|one| one.added_bytes).fold(f64::INFINITY, f64::min);
            for bucket in buckets_from(rows, first) {
                if cheapest + bucket.added_bytes > right.added_bytes {
                    break;
                }
                extended += here.len();
                if extended > MAX_EXTENDED {
                    return None;
                }
                if !self.search.rules.allow(&bucket.row) {
                    continue;
                }
                let beyond = completions.get(bucket.end)?.0;
                let next = here.iter().enumerate().map(|(place, one)| Beginning {
                    leakage: one.leakage + bucket.leakage(),
                    added_bytes: one.added_bytes + bucket.added_bytes,
                    before: (first, place),
                });
                let at_end = beginnings.get_mut(bucket.end)?;
                at_end.extend(next.filter(|next| {
                    weights.of(next.leakage, next.added_bytes) + beyond <= bound
                        && next.added_bytes <= right.added_bytes
                        && next.leakage <= left.leakage
                }));
                if at_end.len() > 8 * MAX_BEGINNINGS {
                    *at_end = thinned(std::mem::take(at_end), width);
                }
            }
            *beginnings.get_mut(first)? = here;
        }
        let whole = beginnings.last_mut().map(std::mem::take)?;
        let ends = thinned(whole, width).into_iter().map(|end| {
            let (mut ends, mut before) = (vec![rows.len()], end.before);
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

/// Without those that have at least the bytes and the leakage of another; where still too many are left, without those
/// that have nearly the bytes of another.
fn thinned(mut beginnings: Vec<Beginning>, width: f64) -> Vec<Beginning> {
    // They come in runs that are sorted already.
    beginnings.sort_by(|a, b| a.added_bytes.total_cmp(&b.added_bytes).then(a.leakage.total_cmp(&b.leakage)));
    let mut least = f64::INFINITY;
    beginnings.retain(|beginning| {
        let is_better = beginning.leakage < least * (1.0 - 1e-12);
        least = if is_better { beginning.leakage } else { least };
        is_better
    });
    if beginnings.len() > MAX_BEGINNINGS {
        // The last of each width has the least leakage.
        let in_width = |beginning: &Beginning| (beginning.added_bytes / width).floor();
        beginnings.reverse();
        beginnings.dedup_by(|one, kept| in_width(one).total_cmp(&in_width(kept)).is_eq());
        beginnings.reverse();
    }
    beginnings
}

/// By how much the rules are made stricter from one search to the next, and how often. The product, 7.6, is more than ε
/// was seen to need.
const STRICTER: f64 = 1.5;
const MAX_SEARCHES: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTable {
    Rules,
    Goal,
}

/// The best table for a goal. Where ε makes sizes vary, the search underestimates how often commands are named and
/// overestimates how many share a bucket. So tables of the frontier are judged, the best first, until one is what is
/// asked for; where rules are given, frontiers of stricter rules are looked at as well.
///
/// A target takes the cheapest table of all these frontiers, and a budget one of them: so no budget that finds a table
/// which reaches the target finds a cheaper one.
pub fn exact_table(
    home: &PaddedHome,
    search: &TableSearch<'_>,
    goal: Goal,
) -> Result<(PaddingPolicy, JudgedPolicy), NoTable> {
    let judged = |table: BucketTable| {
        let policy = home.inside(&table.buckets);
        let judged = JudgedPolicy::new(home, &policy);
        meets(&judged, goal, search.rules).then_some((policy, judged))
    };
    let searches = if search.rules == TableRules::default() { 1 } else { MAX_SEARCHES };
    let (mut rules, mut why) = (search.rules, NoTable::Rules);
    let mut best: Option<(PaddingPolicy, JudgedPolicy)> = None;
    for _ in 0..searches {
        let frontier = TableSearch { rules, ..*search }.frontier();
        let is_within = |table: &BucketTable| goal.is_met(table.leakage, table.added_bytes);
        let corners = &frontier.corners;
        if !corners.is_empty() && !corners.iter().any(is_within) {
            why = NoTable::Goal;
        }
        let is_enough = if let Goal::Budget(_) = goal {
            best = frontier.best_first(goal).find_map(judged);
            best.is_some()
        } else {
            // Corners give away ever less, so that the first that is what is asked for is found by halving.
            let met = corners.partition_point(|corner| !is_within(corner) || judged(corner.clone()).is_none());
            let most = best.as_ref().map_or(f64::INFINITY, |(_, best)| best.added_bytes);
            let mut tables = frontier.up_to(met).into_iter().filter(|one| is_within(one) && one.added_bytes < most);
            best = tables.find_map(judged).or(best);
            // Stricter rules have no table that is cheaper than those before the first corner.
            best.is_some() && met == corners.partition_point(|corner| !is_within(corner))
        };
        if is_enough {
            break;
        }
        rules.fewest_commands *= STRICTER;
        rules.most_posterior /= STRICTER;
    }
    // Where the target is so close to guessing that ε, or rounding alone, goes beyond it.
    let one_bucket = || judged(search.table(&[search.rows.len()]));
    best.or_else(one_bucket).ok_or(why)
}

/// Whether a policy is what is asked for, but for rounding.
fn meets(judged: &JudgedPolicy, goal: Goal, rules: TableRules) -> bool {
    let command = &judged.by_size.command;
    let is_goal_met = match goal {
        Goal::Budget(bytes) => judged.added_bytes <= bytes * (1.0 + 1e-9),
        Goal::Target(target) => command.named <= target * (1.0 + 1e-9),
    };
    is_goal_met
        && command.smallest_set >= rules.fewest_commands * (1.0 - 1e-9)
        && command.worst_posterior <= rules.most_posterior * (1.0 + 1e-9)
}
