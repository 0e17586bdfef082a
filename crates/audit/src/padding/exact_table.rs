//! The best table where ε makes sizes of a command vary.

use sizeleak_model::policies::PaddingPolicy;

use crate::padding::bucket_table::{BucketTable, Goal, TableRules, TableSearch};
use crate::padding::padded_home::{JudgedPolicy, PaddedHome};

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
        let corners = frontier.corners();
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
