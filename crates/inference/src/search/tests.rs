//! The heaviest ways and all their weights against brute force, and the bounds of tables.

mod varying_sizes;

use std::collections::BTreeMap;

use proptest::prelude::*;
use sizeleak_model::{Action, Device, Inventory, Limits, Prior};

use super::*;
use crate::space::{CommandSpace, Home, Premises, PriorName};

#[derive(Debug)]
struct OwnedWay {
    sum: usize,
    actions: Vec<(u32, u32)>,
    ln_weight: f64,
}

/// The heaviest ways of single sizes, with the logarithms of sums' weights.
fn heaviest_ways(table: &WayWeights, sums: &[(usize, f64)], count: u64, most: usize) -> Vec<OwnedWay> {
    let sums: Vec<(i64, f64)> =
        sums.iter().map(|(bytes, ln_weight)| (bytes.cast_signed() as i64, ln_weight.exp())).collect();
    let found = HeaviestWays::find(table, &sums, count, most);
    let owned = |way: Way<'_>| OwnedWay {
        sum: way.sum,
        actions: way.actions.to_vec(),
        ln_weight: way.probability.ln() + found.ln_total(),
    };
    found.iter().map(owned).collect()
}

fn ln_total(table: &WayWeights, sum: usize) -> f64 {
    HeaviestWays::find(table, &[(sum.cast_signed() as i64, 1.0)], 1, 1).ln_total()
}

/// Tables for actions of single sizes.
fn tables(sizes: &[usize], limits: &Limits, prior: WalkPrior<'_>) -> Vec<WayWeights> {
    let action = |(at, size): (usize, &usize)| Action::new(at.to_string(), size.cast_signed() as i64);
    WayWeights::tables(&sizes.iter().enumerate().map(action).collect::<Vec<_>>(), limits, prior)
}

fn actions(number: usize) -> Vec<Action> {
    (0..number).map(|at| Action::new(at.to_string(), 1)).collect()
}

fn limits(kinds: &[(u32, Vec<usize>)], number: usize) -> Limits {
    let device = |(at, (count, actions)): (usize, &(u32, Vec<usize>))| Device {
        name: at.to_string(),
        count: *count,
        actions: actions.iter().map(usize::to_string).collect(),
        safe: true,
    };
    let devices = kinds.iter().enumerate().map(device).collect();
    Inventory { devices }.limits(&actions(number)).unwrap()
}

/// The weights of every multiset of up to `most` actions within the limits, computed one by one.
fn weights(prior: &Prior, limits: &Limits, devices: &[f64], most: u32) -> BTreeMap<Vec<u32>, f64> {
    let mut all = vec![vec![0; devices.len()]];
    for action in 0..devices.len() {
        let grown = all.into_iter().flat_map(|counts| {
            (0..=most).map(move |count| {
                let mut counts = counts.clone();
                counts[action] = count;
                counts
            })
        });
        all = grown.filter(|counts| counts.iter().sum::<u32>() <= most && limits.admits(counts)).collect();
    }
    let of_actions = |counts: &Vec<u32>| -> f64 {
        counts
            .iter()
            .enumerate()
            .flat_map(|(at, count)| (1..=*count).map(move |nth| prior.ln_next(at, nth).exp()))
            .product()
    };
    // One kind of device takes every action: d (d − 1) … of d devices are free.
    let falling = |n: u32| (0..n).map(|used| 1.0 - f64::from(used) / devices[0]).product::<f64>();
    let number = |counts: &[u32]| counts.iter().sum::<u32>();
    let mut by_number = vec![0.0; most as usize + 1];
    for counts in &all {
        by_number[number(counts) as usize] += of_actions(counts) * falling(number(counts));
    }
    let weight = |counts: &Vec<u32>| {
        let n = number(counts);
        of_actions(counts) * falling(n) / by_number[n as usize] * prior.ln_number(n).exp()
    };
    all.iter().map(|counts| (counts.clone(), weight(counts))).collect()
}

fn dense(way: &OwnedWay, actions: usize) -> Vec<u32> {
    let mut counts = vec![0; actions];
    for (action, count) in &way.actions {
        counts[*action as usize] = *count;
    }
    counts
}

fn prior(shares: &[f64], numbers: &[f64], concentration: f64) -> Prior {
    let sum: f64 = shares.iter().sum();
    let numbers = numbers.iter().map(|share| share / numbers.iter().sum::<f64>() * 0.9).collect();
    Prior {
        numbers,
        decay: 0.6,
        shares: shares.iter().map(|share| share / sum).collect(),
        concentration,
        recurring: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Order, weights and totals, compared with the weights of every multiset.
    #[test]
    fn ways_and_weights_agree_with_brute_force(
        sizes in prop::collection::vec(1usize..9, 3),
        shares in prop::collection::vec(0.05f64..1.0, 3),
        numbers in prop::collection::vec(0.01f64..1.0, 1..5),
        concentration in 0.5f64..50.0,
        devices in prop::option::of(1u32..6),
        sums in prop::collection::btree_map(1usize..30, 0.01f64..1.0, 1..4),
        most in 1usize..40,
        at_once: bool,
    ) {
        let limits = devices.map_or(Limits::free(3), |count| limits(&[(count, vec![0, 1, 2])], 3));
        let prior = prior(&shares, &numbers, concentration);
        let mut table = tables(&sizes, &limits, WalkPrior::Habit(&prior)).remove(0);
        let greatest = *sizes.iter().max().unwrap();
        prop_assert!(table.prepare(devices.map_or(30, |count| 30.min(count as usize * greatest))));
        let count = devices.map_or(f64::INFINITY, f64::from);
        let all = weights(&prior, &limits, &[count; 3], devices.unwrap_or(30));
        let sums: Vec<(usize, f64)> = sums.into_iter().map(|(sum, weight)| (sum, weight.ln())).collect();
        let mut expected: Vec<f64> = Vec::new();
        for (sum, weight) in &sums {
            let size = |counts: &[u32]| -> usize {
                counts.iter().zip(&sizes).map(|(count, size)| *count as usize * size).sum()
            };
            let of_sum = all.iter().filter(|(counts, _)| size(counts) == *sum);
            let of_sum: Vec<f64> = of_sum.map(|(_, own)| own * weight.exp()).collect();
            let mass: f64 = of_sum.iter().sum();
            prop_assert!((ln_total(&table, *sum).exp() * weight.exp() - mass).abs() <= 1e-9 * mass);
            expected.extend(of_sum);
        }
        expected.sort_by(|a, b| b.total_cmp(a));
        let all_ways = expected.len() as u64;
        // Whether all ways are found at once or those above a falling threshold.
        let ways = heaviest_ways(&table, &sums, if at_once { all_ways } else { u64::MAX }, most);
        prop_assert_eq!(ways.len(), most.min(expected.len()));
        let mut distinct = std::collections::BTreeSet::new();
        for (way, expected) in ways.iter().zip(&expected) {
            let counts = dense(way, 3);
            prop_assert!((way.ln_weight.exp() / expected - 1.0).abs() < 1e-9);
            prop_assert!((all[&counts] * sums[way.sum].1.exp() / expected - 1.0).abs() < 1e-9);
            prop_assert!(distinct.insert(counts), "each once");
        }
        prop_assert!(ways.is_sorted_by(|one, next| one.ln_weight >= next.ln_weight));
    }
}

#[test]
fn free_devices_are_part_of_the_weight() {
    // Two lamps among four devices: both kinds take action 0, lamps take 1 too.
    let limits = limits(&[(2, vec![0]), (2, vec![0, 1])], 2);
    let prior = prior(&[0.5, 0.5], &[0.1, 0.9], 1e9);
    let mut table = tables(&[10, 10], &limits, WalkPrior::Habit(&prior)).remove(0);
    assert!(table.prepare(20));
    let ways = heaviest_ways(&table, &[(20, 0.0)], 3, 9);
    let weights: Vec<(Vec<u32>, f64)> = ways.iter().map(|way| (dense(way, 2), way.ln_weight.exp() / 0.81)).collect();
    // 0 twice: ½ · 4/4 · 3/4; once each: 2/2 · 3/4; 1 twice: ½ · 2/2 · 1/2. In all 1.375.
    let expected = [(vec![1, 1], 0.75 / 1.375), (vec![2, 0], 0.375 / 1.375), (vec![0, 2], 0.25 / 1.375)];
    for ((counts, weight), (expected_counts, expected)) in weights.iter().zip(&expected) {
        assert!(counts == expected_counts && (weight - expected).abs() < 1e-9, "{weights:?}");
    }
    assert_eq!(weights.len(), 3);
}

#[test]
fn a_megabyte_without_limits_has_first_ways() {
    let sizes = [43, 44, 46, 47, 49, 52, 55];
    let prior = prior(&[3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0], &[1.0], 9.0);
    let [exact, mut table] = tables(&sizes, &Limits::free(7), WalkPrior::Habit(&prior)).try_into().unwrap();
    let sum = 1_000_000;
    assert!(table.prepare(sum));
    let ways = heaviest_ways(&table, &[(sum, 0.0)], u64::MAX, 5);
    assert_eq!(ways.len(), 5);
    for way in &ways {
        let made: usize = way.actions.iter().map(|(action, count)| sizes[*action as usize] * *count as usize).sum();
        assert_eq!(made, sum);
        assert!(way.ln_weight <= ln_total(&table, sum));
    }
    assert!(!table.prepare(1 << 40));
    assert!(!exact.clone().prepare(sum) && exact.clone().prepare(64 * 43));
}

#[test]
fn the_heaviest_of_many_ways_are_found_without_storing_the_others() {
    let sizes: Vec<usize> = (0..300).map(|at| 40 + at % 150).collect();
    let limits = limits(&[(16, (0..300).collect())], 300);
    let prior = prior(&vec![1.0; 300], &[1.0; 16], 300.0);
    let mut table = tables(&sizes, &limits, WalkPrior::Habit(&prior)).remove(0);
    assert!(table.prepare(1500));
    let [few, many] = [200, 2000].map(|most| heaviest_ways(&table, &[(1500, 0.0)], u64::MAX, most));
    assert_eq!((few.len(), many.len()), (200, 2000));
    assert!(many.is_sorted_by(|one, next| one.ln_weight >= next.ln_weight));
    assert!(few.iter().zip(&many).all(|(one, other)| (one.ln_weight - other.ln_weight).abs() < 1e-9));
}

#[test]
fn memory_is_bounded() {
    let free = |actions: usize| (0..actions).map(|at| Action::new(at.to_string(), 40)).collect::<Vec<_>>();
    let reach = |actions: usize| {
        WayCounts::new(&free(actions), &Limits::free(actions)).unwrap().count(i64::MAX).unwrap_err().reach
    };
    assert_eq!((reach(1), reach(1 << 14)), ((1 << 25) - 1, (1 << 11) - 1));
}

proptest! {
    /// The space is held to all ways to give actions to devices.
    #[test]
    fn where_devices_are_as_likely_ways_weigh_what_the_commands_of_the_space_do(
        types in prop::collection::vec((1..4_u32, 1..32_u32), 1..4),
        sizes in [1..9_i64, 1..9_i64, 1..9_i64, 1..9_i64, 1..9_i64],
        share in 0.1..0.9_f64,
    ) {
        let of_type = |(at, (count, bits)): (usize, &(u32, u32))| Device {
            name: at.to_string(),
            count: *count,
            actions: (0..5).filter(|action| bits >> action & 1 == 1).map(|action| action.to_string()).collect(),
            safe: true,
        };
        let inventory = Inventory { devices: types.iter().enumerate().map(of_type).collect() };
        let action = |name: &str| Action::new(name, sizes[name.parse::<usize>().unwrap()]);
        let actions: Vec<Action> = inventory.action_names().into_iter().map(action).collect();
        let prior = Prior {
            numbers: vec![share],
            decay: 0.5,
            shares: vec![1.0 / actions.len() as f64; actions.len()],
            concentration: 1.0,
            recurring: Vec::new(),
        };
        let home = Home {
            overhead: 0,
            actions: &actions,
            inventory: Some(&inventory),
            prior: Some(&prior),
            max_actions: u32::MAX,
        };
        let bytes: Vec<usize> = actions.iter().map(|action| action.size as usize).collect();
        let limits = Limits::of(home.inventory, home.actions).unwrap();
        let mut table = tables(&bytes, &limits, WalkPrior::Devices(home)).remove(0);
        let space = CommandSpace::new(home, &Premises { prior: PriorName::Devices, decay: None }).unwrap();
        for row in space.size_rows().unwrap() {
            let sum = row.bytes as usize;
            prop_assert!(table.prepare(sum));
            let best = heaviest_ways(&table, &[(sum, 0.0)], u64::MAX, 1)[0].ln_weight.exp();
            let total = ln_total(&table, sum).exp();
            prop_assert!((total - row.probability).abs() < 1e-12, "{sum}: {total} {row:?}");
            prop_assert!((best - row.greatest).abs() < 1e-12, "{sum}: {best} {row:?}");
        }
    }
}
