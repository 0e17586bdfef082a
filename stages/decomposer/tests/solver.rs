//! Counts and solutions against brute force on small cases and an independent dynamic programme on large ones.
#![allow(missing_docs, clippy::unwrap_used, clippy::cast_possible_wrap, clippy::needless_range_loop)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sizeleak_decomposer::{Solver, SolverError};
use sizeleak_signature::{Action, Device, Inventory, Limits};

fn actions(sizes: &[i64]) -> Vec<Action> {
    sizes.iter().zip('a'..).map(|(size, name)| Action { name: name.into(), size: *size }).collect()
}

fn inventory(kinds: &[(u32, Vec<&str>)]) -> Inventory {
    let device = |(at, (count, actions)): (usize, &(u32, Vec<&str>))| Device {
        name: at.to_string(),
        count: *count,
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
    };
    Inventory { devices: kinds.iter().enumerate().map(device).collect() }
}

/// Every multiset that some assignment of at most one action to each device makes, with its sum: by trying them all.
fn brute_force(sizes: &[i64], kinds: &[(u32, Vec<&str>)]) -> BTreeMap<i64, BTreeSet<Vec<u32>>> {
    let mut made = BTreeSet::from([vec![0; sizes.len()]]);
    for (count, names) in kinds {
        for _ in 0..*count {
            let before: Vec<Vec<u32>> = made.iter().cloned().collect();
            for counts in before {
                for name in names {
                    let mut counts = counts.clone();
                    counts[(name.as_bytes()[0] - b'a') as usize] += 1;
                    made.insert(counts);
                }
            }
        }
    }
    let mut by_sum: BTreeMap<i64, BTreeSet<Vec<u32>>> = BTreeMap::new();
    for counts in made {
        let sum = counts.iter().zip(sizes).map(|(count, size)| i64::from(*count) * size).sum();
        by_sum.entry(sum).or_default().insert(counts);
    }
    by_sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn agrees_with_brute_force(
        sizes in prop::collection::vec(1i64..9, 4),
        kinds in prop::collection::vec((1u32..4, prop::sample::subsequence(vec!["a", "b", "c", "d"], 1..=4)), 1..4),
    ) {
        let inventory = inventory(&kinds);
        let names: Vec<&str> = ["a", "b", "c", "d"].into_iter().filter(|name| inventory.action_names().contains(name)).collect();
        let all = actions(&sizes);
        let known: Vec<Action> = all.iter().filter(|action| names.contains(&action.name.as_str())).cloned().collect();
        let limits = inventory.limits(names.iter().copied()).unwrap();
        let mut solver = Solver::new(&known, &limits).unwrap();
        let expected = brute_force(&sizes, &kinds);
        for sum in -1..100 {
            let solutions: Vec<Vec<u32>> = solver.solutions(sum).unwrap().collect();
            // Brute force has a column for every action, also for those no device has.
            let widened: BTreeSet<Vec<u32>> = solutions.iter().map(|counts| {
                all.iter().map(|action| {
                    known.iter().position(|known| known.name == action.name).map_or(0, |at| counts[at])
                }).collect()
            }).collect();
            prop_assert_eq!(widened.len(), solutions.len(), "each once");
            prop_assert_eq!(solver.count(sum).unwrap(), solutions.len() as u64);
            prop_assert_eq!(widened, expected.get(&sum).cloned().unwrap_or_default());
        }
    }

    /// Without limits: coefficients of the product of 1 / (1 − x^size), multiplied out coin by coin in 128 bits.
    #[test]
    fn free_counts_are_those_of_the_generating_function(
        sizes in prop::collection::btree_set(3i64..80, 1..8),
        sum in 0usize..3000,
    ) {
        let sizes: Vec<i64> = sizes.into_iter().collect();
        let mut coefficients = vec![0_u128; sum + 1];
        coefficients[0] = 1;
        for size in &sizes {
            for at in *size as usize..=sum {
                coefficients[at] += coefficients[at - *size as usize];
            }
        }
        let mut solver = Solver::new(&actions(&sizes), &Limits::free(sizes.len())).unwrap();
        let expected = u64::try_from(coefficients[sum]).unwrap_or(u64::MAX);
        prop_assert_eq!(solver.count(sum as i64).unwrap(), expected);
    }
}

/// The paper's gateway: 12 plugs with 4 actions, 4 lamps with those and 3 more. The independent count goes by number of
/// actions: for each number of lamp-only actions l ≤ 4 and others p ≤ 16 − l, the compositions by generating functions.
#[test]
fn the_papers_gateway_agrees_with_an_independent_programme() {
    let sizes = [43, 44, 46, 47, 49, 52, 55];
    let kinds = [(12, vec!["a", "b", "c", "d"]), (4, vec!["a", "b", "c", "d", "e", "f", "g"])];
    let limits = inventory(&kinds).limits(["a", "b", "c", "d", "e", "f", "g"]).unwrap();
    let mut solver = Solver::new(&actions(&sizes), &limits).unwrap();

    let most_sum = 16 * 55;
    // by_number[n][s]: multisets of exactly n of these coins with sum s.
    let by_number = |coins: &[i64], most: usize| {
        let mut table = vec![vec![0_u128; most_sum + 1]; most + 1];
        table[0][0] = 1;
        for coin in coins {
            for number in 1..=most {
                for sum in *coin as usize..=most_sum {
                    let with_one_more = table[number - 1][sum - *coin as usize];
                    table[number][sum] += with_one_more;
                }
            }
        }
        table
    };
    let (shared, lamp_only) = (by_number(&sizes[..4], 16), by_number(&sizes[4..], 4));
    let mut total = 0;
    for sum in 0..=most_sum {
        let mut expected = 0;
        for lamps in 0..=4 {
            for others in 0..=16 - lamps {
                for part in 0..=sum {
                    expected += lamp_only[lamps][part] * shared[others][sum - part];
                }
            }
        }
        assert_eq!(u128::from(solver.count(sum as i64).unwrap()), expected, "sum {sum}");
        total += expected;
    }
    let listed: usize = (0..=most_sum).map(|sum| solver.solutions(sum as i64).unwrap().count()).sum();
    assert_eq!(listed as u128, total);
    assert!(total > 50_000, "{total}");
    assert_eq!(solver.count(most_sum as i64 + 1), Ok(0));
}

#[test]
fn counts_beyond_64_bits_saturate() {
    let sizes: Vec<i64> = (1..=12).collect();
    let mut solver = Solver::new(&actions(&sizes), &Limits::free(12)).unwrap();
    assert_eq!(solver.count(20_000), Ok(u64::MAX));
    assert_eq!(solver.solutions(20_000).unwrap().take(1000).count(), 1000);
}

#[test]
fn tables_are_bounded() {
    let mut solver = Solver::new(&actions(&[1, 2]), &Limits::free(2)).unwrap();
    assert!(matches!(solver.count(i64::MAX), Err(SolverError::TooLarge { .. })));
    assert_eq!(solver.count(i64::MIN), Ok(0));
    assert!(matches!(Solver::new(&actions(&[0]), &Limits::free(1)), Err(SolverError::NoSize(_))));
    let kinds: Vec<(u32, Vec<&str>)> = ["a", "b", "c", "d", "e", "f"].map(|name| (100, vec![name])).into();
    let limits = inventory(&kinds).limits(["a", "b", "c", "d", "e", "f"]).unwrap();
    let error = Solver::new(&actions(&[1, 2, 3, 4, 5, 6]), &limits).unwrap_err();
    assert!(error.to_string().contains("fewer kinds"), "{error}");
}
