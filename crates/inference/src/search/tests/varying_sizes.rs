//! Ways of varying sizes against brute force: every multiset, with every size of each of its occurrences.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sizeleak_model::{Action, Device, Inventory, Limits, Prior};

use crate::search::{HeaviestWays, RangeCount, WalkPrior, Way, WayWeights};

/// Actions with these sizes, each with its share, and the limits of `devices` that all take every action.
fn home(sizes: &[Vec<(i64, f64)>], devices: Option<u32>) -> (Vec<Action>, Limits) {
    let action = |(at, sizes): (usize, &Vec<(i64, f64)>)| Action::of_sizes(at.to_string(), sizes).unwrap();
    let actions: Vec<Action> = sizes.iter().enumerate().map(action).collect();
    let names = actions.iter().map(|action| action.name.clone()).collect();
    let limits = match devices {
        Some(count) => {
            let plugs = Device { name: "plug".into(), count, actions: names, safe: true };
            Inventory { devices: vec![plugs] }.limits(&actions).unwrap()
        }
        None => Limits::free(actions.len()),
    };
    (actions, limits)
}

/// The probability of each number of bytes of some counts of actions.
fn bytes_of(actions: &[Vec<(i64, f64)>], counts: &[u32]) -> BTreeMap<i64, f64> {
    let mut bytes = BTreeMap::from([(0, 1.0)]);
    for (sizes, count) in actions.iter().zip(counts) {
        let all: f64 = sizes.iter().map(|(_, share)| share).sum();
        for _ in 0..*count {
            let mut longer = BTreeMap::new();
            for (sum, p) in &bytes {
                for (size, share) in sizes {
                    *longer.entry(sum + size).or_insert(0.0) += p * share / all;
                }
            }
            bytes = longer;
        }
    }
    bytes
}

/// Every multiset of up to `most` actions with P(A), for devices that all take every action; 1 each without a prior.
fn prior_weights(prior: Option<&Prior>, actions: usize, devices: Option<u32>, most: u32) -> Vec<(Vec<u32>, f64)> {
    let mut all = vec![vec![]];
    for _ in 0..actions {
        all = all
            .into_iter()
            .flat_map(|counts: Vec<u32>| (0..=most).map(move |n| [counts.clone(), vec![n]].concat()))
            .filter(|counts| counts.iter().sum::<u32>() <= most)
            .collect();
    }
    let Some(prior) = prior else { return all.into_iter().map(|counts| (counts, 1.0)).collect() };
    let number = |counts: &[u32]| counts.iter().sum::<u32>();
    let walk = |counts: &[u32]| -> f64 {
        let of_action = |(at, count): (usize, &u32)| (1..=*count).map(|nth| prior.ln_next(at, nth)).sum::<f64>();
        let ln: f64 = counts.iter().enumerate().map(of_action).sum();
        let free = |used: u32| devices.map_or(1.0, |all| 1.0 - f64::from(used) / f64::from(all));
        ln.exp() * (0..number(counts)).map(free).product::<f64>()
    };
    let mut by_number = BTreeMap::new();
    for counts in &all {
        *by_number.entry(number(counts)).or_insert(0.0) += walk(counts);
    }
    let weight = |counts: &Vec<u32>| {
        let n = number(counts);
        walk(counts) / by_number[&n] * prior.ln_number(n).exp()
    };
    all.iter().map(|counts| (counts.clone(), weight(counts))).collect()
}

prop_compose! {
    /// Up to three consecutive sizes with their shares.
    fn sizes()(first in 2i64..9, shares in prop::collection::vec(0.05f64..1.0, 1..4)) -> Vec<(i64, f64)> {
        (first..).zip(shares).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn ways_of_varying_sizes_agree_with_brute_force(
        mut actions in prop::collection::vec(sizes(), 3),
        devices in prop::option::of(1u32..6),
        usage in prop::option::of((prop::collection::vec(0.05f64..1.0, 3), 0.5f64..50.0)),
        first in 1i64..18,
        epsilons in prop::collection::vec(0.01f64..1.0, 1..5),
        limit in prop_oneof![1usize..8, Just(10_000)],
    ) {
        if actions.iter().all(|sizes| sizes.len() == 1) {
            actions[0] = vec![(4, 0.5), (5, 0.25)];
        }
        let prior = usage.map(|(shares, concentration)| {
            let all: f64 = shares.iter().sum();
            let shares = shares.into_iter().map(|share| share / all).collect();
            Prior { numbers: vec![0.4, 0.3, 0.1], decay: 0.6, shares, concentration, recurring: Vec::new() }
        });
        let most = devices.unwrap_or(12);
        let (home, limits) = home(&actions, devices);
        // The shares as the actions have them, rounded.
        let actions: Vec<Vec<(i64, f64)>> = home.iter().map(|action| action.sizes().collect()).collect();
        let targets: Vec<(i64, f64)> = (first..).zip(epsilons).collect();
        let range = [first, targets.last().unwrap().0];
        let mut ranges = RangeCount::new(&home, &limits).unwrap();
        let count = ranges.count(range).unwrap();
        let mut table = match &prior {
            Some(prior) => WayWeights::tables(&home, &limits, WalkPrior::Habit(prior)).remove(0),
            None => WayWeights::flat(&home, &limits).unwrap(),
        };
        prop_assert!(table.prepare(ranges.largest_sum().min(range[1] as usize)));
        let found = HeaviestWays::find(&table, &targets, count, limit);
        let listed: Vec<Way<'_>> = found.iter().collect();

        let mut expected = BTreeMap::new();
        for (counts, weight) in prior_weights(prior.as_ref(), 3, devices, most) {
            let bytes = bytes_of(&actions, &counts);
            let of_sum = |(sum, target): &(i64, f64)| (*sum, weight * target * bytes.get(sum).copied().unwrap_or(0.0));
            let by_sum: Vec<(i64, f64)> = targets.iter().map(of_sum).collect();
            let (least, greatest) = (*bytes.keys().next().unwrap(), *bytes.keys().last().unwrap());
            if least <= range[1] && greatest >= range[0] {
                expected.insert(counts, by_sum);
            }
        }
        let weight = |by_sum: &Vec<(i64, f64)>| by_sum.iter().map(|(_, weight)| weight).sum::<f64>();
        let total: f64 = expected.values().map(weight).sum();
        prop_assert_eq!(count, expected.len() as u64);
        let possible = expected.values().filter(|by_sum| weight(by_sum) > 2e-9 * total).count();
        prop_assert!((possible.min(limit)..=expected.len().min(limit)).contains(&listed.len()));
        let ln_total = found.ln_total();
        prop_assert!((ln_total.exp() - total).abs() <= 1e-9 * total, "{ln_total} is not {}", total.ln());
        let mut greatest: Vec<f64> = expected.values().map(weight).collect();
        greatest.sort_by(|a, b| b.total_cmp(a));
        for (way, greatest) in listed.iter().zip(greatest) {
            let mut counts = vec![0; 3];
            way.actions.iter().for_each(|(action, count)| counts[*action as usize] = *count);
            let by_sum = &expected[&counts];
            prop_assert!((way.probability - weight(by_sum) / total).abs() < 1e-9);
            prop_assert!((way.probability - greatest / total).abs() < 1e-9, "the most probable ones come first");
            let best = by_sum.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
            let own = by_sum[way.sum].1;
            prop_assert!(own >= best * (1.0 - 1e-9), "the most probable sum of a way is given");
        }
    }

    /// Without room to count actions: one factor for each action taken.
    #[test]
    fn geometric_weights_agree_with_brute_force(
        mut actions in prop::collection::vec(sizes(), 3),
        targets in prop::collection::btree_map(1i64..20, 0.01f64..1.0, 1..4),
    ) {
        actions[0] = vec![(4, 0.5), (5, 0.25)];
        let prior = Prior { numbers: Vec::new(), decay: 0.5, shares: vec![0.5, 0.25, 0.25], concentration: 9.0, recurring: Vec::new() };
        let (home, limits) = home(&actions, None);
        let actions: Vec<Vec<(i64, f64)>> = home.iter().map(|action| action.sizes().collect()).collect();
        let targets: Vec<(i64, f64)> = targets.into_iter().collect();
        let mut tables = WayWeights::tables(&home, &limits, WalkPrior::Habit(&prior));
        prop_assert_eq!(tables.len(), 2);
        let table = &mut tables[1];
        prop_assert!(table.prepare(20));
        let found = HeaviestWays::find(table, &targets, u64::MAX, 10_000);
        let total = found.ln_total().exp();
        let factor = |(share, count): (&f64, &u32)| (share * prior.decay).powf(f64::from(*count));
        let mut all = 0.0;
        for (counts, _) in prior_weights(None, 3, None, 10) {
            let bytes = bytes_of(&actions, &counts);
            let of_sizes: f64 =
                targets.iter().map(|(sum, target)| target * bytes.get(sum).copied().unwrap_or(0.0)).sum();
            let weight = of_sizes * prior.shares.iter().zip(&counts).map(factor).product::<f64>();
            all += weight;
            let taken: Vec<(u32, u32)> = (0..).zip(counts).filter(|(_, count)| *count > 0).collect();
            let own = found.iter().find(|way| way.actions == taken).map_or(0.0, |way| way.probability * total);
            prop_assert!((own - weight).abs() <= 2e-9 * total, "{taken:?}: {own} is not {weight}");
        }
        prop_assert!(all == 0.0 || (total / all - 1.0).abs() < 1e-9, "{total} is not {all}");
    }
}
