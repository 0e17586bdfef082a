//! Tables against all tables of small inventories.

use proptest::prelude::*;
use sizeleak_audit::padding::{BucketTable, Goal, PaddingPolicy, TableRules, TableSearch};
use sizeleak_inference::space::SizeRow;

/// The leakage and bytes of a policy, and whether it obeys the rules; written anew, bucket by bucket.
fn measured(search: &TableSearch<'_>, to: &[usize]) -> Option<(f64, f64)> {
    let (mut leakage, mut bytes) = (0.0, 0.0);
    for place in 0..search.rows.len() {
        let inside: Vec<&SizeRow> =
            search.rows.iter().zip(to).filter(|(_, to)| **to == place).map(|(row, _)| row).collect();
        let greatest = inside.iter().map(|row| row.greatest).fold(0.0, f64::max);
        let all: f64 = inside.iter().map(|row| row.probability).sum();
        let commands: f64 = inside.iter().map(|row| row.commands).sum();
        if inside.is_empty() {
            continue;
        }
        if commands < search.rules.fewest_commands || greatest > search.rules.most_posterior * all + 1e-12 {
            return None;
        }
        bytes += inside.iter().map(|row| row.probability * (search.rows[place].bytes - row.bytes) as f64).sum::<f64>();
        leakage += greatest;
    }
    Some((leakage, bytes))
}

/// All tables whose buckets hold neighbouring sizes.
fn tables_of_neighbours(sizes: usize) -> Vec<Vec<usize>> {
    let ends = |bits: usize| move |at: usize| at + 1 == sizes || bits >> at & 1 == 1;
    (0..1 << (sizes - 1))
        .map(|bits| (0..sizes).map(|at| (at..sizes).find(|at| ends(bits)(*at)).unwrap_or(at)).collect())
        .collect()
}

fn places(rows: &[SizeRow], policy: &PaddingPolicy) -> Vec<usize> {
    let place = |row: &SizeRow| rows.iter().position(|to| Some(to.bytes) == policy.padded(row.bytes));
    rows.iter().filter_map(place).collect()
}

/// Rows of commands with any priors, which sum to 1.
fn rows(most: usize) -> impl Strategy<Value = Vec<SizeRow>> {
    prop::collection::vec((1_u64..9, prop::collection::vec(1_u32..100, 1..4)), 1..most).prop_map(|sizes| {
        let all: u32 = sizes.iter().flat_map(|(_, weights)| weights).sum();
        let mut bytes = 0;
        let row = |(gap, weights): &(u64, Vec<u32>)| {
            bytes += gap;
            let priors: Vec<f64> = weights.iter().map(|weight| f64::from(*weight) / f64::from(all)).collect();
            SizeRow {
                bytes,
                commands: priors.len() as f64,
                probability: priors.iter().sum(),
                greatest: priors.iter().copied().fold(0.0, f64::max),
                plogp: priors.iter().map(|prior| prior * prior.log2()).sum(),
            }
        };
        sizes.iter().map(row).collect()
    })
}

fn rules() -> impl Strategy<Value = TableRules> {
    prop_oneof![
        3 => Just(TableRules::default()),
        2 => (0.2_f64..1.0, 1_u32..5).prop_map(|(most_posterior, fewest)| TableRules {
            most_posterior,
            fewest_commands: f64::from(fewest),
        }),
    ]
}

/// All tables of the frontier, by ascending bytes.
fn tables(search: &TableSearch<'_>) -> Vec<BucketTable> {
    search.frontier().best_first(Goal::Target(f64::INFINITY)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_table_of_neighbours_is_below_the_hull(rows in rows(9), rules in rules()) {
        let search = TableSearch { rows: &rows, rules };
        let hull = search.hull();
        let all: Vec<_> = tables_of_neighbours(rows.len()).iter().filter_map(|to| measured(&search, to)).collect();
        prop_assert_eq!(hull.is_empty(), all.is_empty());
        for table in &hull {
            let policy = PaddingPolicy::Table { buckets: table.buckets.clone() };
            let (leakage, bytes) = measured(&search, &places(&rows, &policy)).expect("it obeys the rules");
            prop_assert!((leakage - table.leakage).abs() < 1e-9 && (bytes - table.added_bytes).abs() < 1e-9);
        }
        for pair in hull.windows(2) {
            let (a, b) = (pair[1].added_bytes - pair[0].added_bytes, pair[0].leakage - pair[1].leakage);
            prop_assert!(a > 0.0 && b > 0.0);
            let line = a * pair[0].leakage + b * pair[0].added_bytes;
            prop_assert!(all.iter().all(|(leakage, bytes)| a * leakage + b * bytes >= line * (1.0 - 2e-5)));
        }
        let least = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
        if let (Some(first), Some(last)) = (hull.first(), hull.last()) {
            prop_assert!(first.added_bytes < least(|table| table.1) + 1e-6);
            prop_assert!(last.leakage < least(|table| table.0) + 1e-6);
        }
    }

    #[test]
    fn no_table_of_neighbours_is_better_than_the_best_of_the_frontier(
        rows in rows(9), rules in rules(), share in 0.0_f64..1.0, is_target: bool,
    ) {
        let search = TableSearch { rows: &rows, rules };
        let all: Vec<_> = tables_of_neighbours(rows.len()).iter().filter_map(|to| measured(&search, to)).collect();
        let greatest = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).fold(0.0, f64::max);
        let goal = if is_target {
            Goal::Target(share * greatest(|table| table.0))
        } else {
            Goal::Budget(share * greatest(|table| table.1))
        };
        let value = |(leakage, bytes): (f64, f64)| if is_target { bytes } else { leakage };
        let met = all.iter().copied().filter(|(leakage, bytes)| goal.is_met(*leakage, *bytes)).map(value);
        let least = met.min_by(f64::total_cmp);
        let frontier = search.frontier();
        let found = frontier.best(goal);
        prop_assert!(found.is_some() || least.is_none());
        if let (Some(found), Some(least)) = (found, least) {
            prop_assert!(goal.is_met(found.leakage, found.added_bytes));
            prop_assert!(value((found.leakage, found.added_bytes)) <= least * (1.0 + 1e-6) + 1e-9, "{:?} {}", found, least);
        }
    }

    #[test]
    fn a_target_costs_no_more_than_the_table_of_any_budget_that_reaches_it(
        rows in rows(16), rules in rules(),
    ) {
        let search = TableSearch { rows: &rows, rules };
        let frontier = search.frontier();
        let most = tables(&search).last().map_or(0.0, |table| table.added_bytes);
        for step in 0..=100 {
            let Some(of_budget) = frontier.best(Goal::Budget(most * f64::from(step) / 100.0)) else { continue };
            let of_target = frontier.best(Goal::Target(of_budget.leakage)).expect("the table of the budget reaches it");
            prop_assert!(of_target.added_bytes <= of_budget.added_bytes, "{:?} {:?}", of_target, of_budget);
        }
    }

    #[test]
    fn the_frontier_obeys_rules_and_has_no_better_table_than_there_is(
        rows in rows(8), rules in rules(),
    ) {
        let search = TableSearch { rows: &rows, rules };
        let all: Vec<_> = tables_of_neighbours(rows.len()).iter().filter_map(|to| measured(&search, to)).collect();
        let frontier = tables(&search);
        for pair in frontier.windows(2) {
            prop_assert!(pair[0].added_bytes < pair[1].added_bytes && pair[0].leakage > pair[1].leakage);
        }
        for found in frontier {
            let policy = PaddingPolicy::Table { buckets: found.buckets.clone() };
            let (leakage, bytes) = measured(&search, &places(&rows, &policy)).expect("it obeys the rules");
            prop_assert!((leakage - found.leakage).abs() < 1e-9 && (bytes - found.added_bytes).abs() < 1e-9);
            let met = all.iter().filter(|(_, bytes)| *bytes <= found.added_bytes + 1e-9);
            let least = met.map(|(leakage, _)| *leakage).fold(f64::INFINITY, f64::min);
            prop_assert!(leakage >= least - 1e-9, "{} {}", leakage, least);
        }
    }
}

/// Sizes 1, 2 and 3 with priors of .30, .05 and .65.
fn unequal() -> Vec<SizeRow> {
    let row = |(bytes, prior): (u64, f64)| SizeRow {
        bytes,
        commands: 1.0,
        probability: prior,
        greatest: prior,
        plogp: prior * prior.log2(),
    };
    [(1, 0.30), (2, 0.05), (3, 0.65)].map(row).to_vec()
}

#[test]
fn rules_that_no_table_obeys_give_none() {
    let rows = unequal();
    let rules = TableRules { fewest_commands: 4.0, ..TableRules::default() };
    let search = TableSearch { rows: &rows, rules };
    assert!(search.hull().is_empty() && search.frontier().best(Goal::Budget(9.0)).is_none());
    let nothing = TableSearch { rows: &[], ..search };
    assert!(nothing.frontier().best(Goal::Budget(9.0)).is_none_or(|table| table.leakage == 0.0));
}
