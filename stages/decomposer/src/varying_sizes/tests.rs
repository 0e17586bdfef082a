//! Candidates of varying sizes against brute force: every multiset, with every size of each of its occurrences.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sizeleak_model::Prior;

use super::*;
use crate::prior_walk::WalkPrior;

const LEARNED: &str = "[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
    [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n";

/// A model with these sizes of each action, each with its share; `devices` of one kind take all actions.
fn model(actions: &[Vec<(i64, f64)>], devices: Option<u32>, prior: Option<Prior>) -> Model {
    let head = "schema = 2\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n";
    let names: Vec<String> = (0..actions.len()).map(|at| at.to_string()).collect();
    let action = |(name, sizes): (&String, &Vec<(i64, f64)>)| {
        let action = Action::of_sizes(name, sizes).unwrap();
        let shares: Vec<String> = action.sizes().map(|(size, share)| format!("[{size}, {share:?}]")).collect();
        let sizes = if action.varies() { format!("sizes = [{}]\n", shares.join(", ")) } else { String::new() };
        format!("[[action]]\nname = \"{name}\"\nsize = {}\n{sizes}", action.size)
    };
    let list: String = names.iter().zip(actions).map(action).collect();
    let device = |count: u32| format!("[[device]]\nname = \"plug\"\ncount = {count}\nactions = {names:?}\n");
    let text = format!("{head}{list}{}", devices.map(device).unwrap_or_default());
    Model { prior, ..Model::from_toml(&(text + LEARNED)).unwrap() }
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

fn sums(targets: &[(i64, f64)]) -> Vec<TargetSum> {
    targets.iter().map(|(bytes, weight)| TargetSum { bytes: *bytes, epsilon: 100 - bytes, weight: *weight }).collect()
}

fn names(model: &Model) -> SharedList<Arc<str>> {
    model.action_names().into_iter().map(Arc::from).collect()
}

fn found(model: &Model, targets: &[(i64, f64)], limit: usize) -> VaryingCandidates {
    let mut varying = VaryingSizes::new(model, &model.limits().unwrap(), model.prior.as_ref().map(WalkPrior::Habit))
        .unwrap()
        .unwrap();
    varying.candidates(&sums(targets), &names(model), limit).unwrap()
}

fn counts(candidate: &Candidate, actions: usize) -> Vec<u32> {
    (0..actions).map(|at| candidate.actions.count(&at.to_string())).collect()
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
    fn candidates_agree_with_brute_force(
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
        let model = model(&actions, devices, prior.clone());
        // The shares as the model has them, rounded.
        let actions: Vec<Vec<(i64, f64)>> = model.actions.iter().map(|action| action.sizes().collect()).collect();
        let targets: Vec<(i64, f64)> = (first..).zip(epsilons).collect();
        let found = found(&model, &targets, limit);

        let range = [first, targets.last().unwrap().0];
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
        prop_assert_eq!(found.count, expected.len() as u64);
        let possible = expected.values().filter(|by_sum| weight(by_sum) > 2e-9 * total).count();
        prop_assert!((possible.min(limit)..=expected.len().min(limit)).contains(&found.listed.len()));
        if let Some(ln_total) = found.ln_total.filter(|_| !expected.is_empty()) {
            prop_assert!((ln_total - total.ln()).abs() < 1e-9, "{ln_total} is not {}", total.ln());
        }
        let mut greatest: Vec<f64> = expected.values().map(weight).collect();
        greatest.sort_by(|a, b| b.total_cmp(a));
        for (candidate, greatest) in found.listed.iter().zip(greatest) {
            let by_sum = &expected[&counts(candidate, 3)];
            prop_assert!((candidate.probability - weight(by_sum) / total).abs() < 1e-9);
            prop_assert!((candidate.probability - greatest / total).abs() < 1e-9, "the most probable ones come first");
            let best = by_sum.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
            let own = by_sum.iter().find(|(sum, _)| 100 - sum == candidate.epsilon).unwrap().1;
            prop_assert!(own >= best * (1.0 - 1e-9), "the most probable ε of a candidate is given");
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
        let model = model(&actions, None, Some(prior.clone()));
        let actions: Vec<Vec<(i64, f64)>> = model.actions.iter().map(|action| action.sizes().collect()).collect();
        let targets: Vec<(i64, f64)> = targets.into_iter().collect();
        let mut tables = BranchWeights::tables(&model.actions, &model.limits().unwrap(), Some(WalkPrior::Habit(&prior)));
        prop_assert_eq!(tables.len(), 2);
        let table = &mut tables[1];
        prop_assert!(table.prepare(20));
        let given = Targets::new(&sums(&targets), table);
        let found = heaviest_commands(table, &given, 10_000);
        let factor = |(share, count): (&f64, &u32)| (share * prior.decay).powf(f64::from(*count));
        let total = (found.total.ln() + given.ln_scale()).exp();
        let mut all = 0.0;
        for (counts, _) in prior_weights(None, 3, None, 10) {
            let bytes = bytes_of(&actions, &counts);
            let of_sizes: f64 =
                targets.iter().map(|(sum, target)| target * bytes.get(sum).copied().unwrap_or(0.0)).sum();
            let weight = of_sizes * prior.shares.iter().zip(&counts).map(factor).product::<f64>();
            all += weight;
            let taken: Vec<(u32, u32)> = (0..).zip(counts).filter(|(_, count)| *count > 0).collect();
            let own = found.commands.iter().find(|command| command.actions == taken);
            let own = own.map_or(0.0, |command| (command.weight.ln() + given.ln_scale()).exp());
            prop_assert!((own - weight).abs() <= 2e-9 * total, "{taken:?}: {own} is not {weight}");
        }
        prop_assert!(all == 0.0 || (total / all - 1.0).abs() < 1e-9, "{total} is not {all}");
    }
}

#[test]
fn a_range_that_no_command_has_is_unexplained() {
    let model = model(&[vec![(40, 0.5), (41, 0.5)]], Some(2), None);
    for target in [39, 42, 79, 83, 1 << 40] {
        let found = found(&model, &[(target, 1.0)], 10);
        assert_eq!((found.count, found.listed.len()), (0, 0), "{target}");
    }
    assert_eq!(found(&model, &[(81, 1.0)], 10).count, 1);
}

#[test]
fn sums_beyond_the_table_are_refused() {
    let model = model(&[vec![(40, 0.5), (41, 0.5)]], None, None);
    let mut varying = VaryingSizes::new(&model, &model.limits().unwrap(), None).unwrap().unwrap();
    let refused = varying.candidates(&sums(&[(1 << 40, 1.0)]), &names(&model), 10);
    assert_eq!(refused.unwrap_err().sum, 1 << 40);
}

#[test]
fn single_sizes_take_the_way_of_single_sizes() {
    let model = model(&[vec![(40, 1.0)]], None, None);
    assert!(VaryingSizes::new(&model, &model.limits().unwrap(), None).unwrap().is_none());
}
