//! Comparisons with all multisets of actions of small homes, one by one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use sizeleak_model::{Action, Component, Limits, Model, Prior, RecurringCommand, SeenReplies};

use crate::command_class::CommandClasses;
use crate::{Beyond, ReplyInference, WeightedSum};

/// Actions with their sizes and replies: `on` and `off` send the same class, `dim` another, `white` both, `quiet` none.
fn home(missing: f64, unseen: f64, inventory: &str) -> Model {
    let text = format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
         [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n[[action]]\nname = \"dim\"\nsize = 47\n\
         [[action]]\nname = \"white\"\nsize = 45\n[[action]]\nname = \"quiet\"\nsize = 43\n{inventory}\
         [prior]\nnumbers = [0.4, 0.25, 0.15]\ndecay = 0.5\nshares = [0.3, 0.2, 0.2, 0.2, 0.1]\nconcentration = 4.0\n\
         [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.02\n\
         [single_replies]\nmerged = 0.03\nshared = 0\nforeign = 0.02\nforeign_sizes = [[160, 3]]\nper_command = [0, 0]\n\
         per_action = [[1, 0], [1, 0], [0, 1], [1, 1], [0, 0]]\n\
         [[single_replies.class]]\nmissing = {missing}\nunseen = {unseen}\nsizes = [[90, 50], [91, 4]]\n\
         [[single_replies.class]]\nmissing = {missing}\nunseen = {unseen}\nsizes = [[95, 30], [96, 10]]\n\
         [learned]\nmethod = \"robust\"\ncommands = 100\nversion = \"0\"\nbasis = \"wire\"\n"
    );
    Model::from_toml(&text).unwrap()
}

/// Three plugs and two lamps; only lamps can be dimmed.
const PLUGS_AND_LAMPS: &str = "[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\", \"quiet\"]\n\
    [[device]]\nname = \"lamp\"\ncount = 2\nactions = [\"on\", \"off\", \"dim\", \"white\", \"quiet\"]\n";

/// Kinds without a common action, and one action that both have.
const APART: &str = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\", \"off\"]\n\
    [[device]]\nname = \"lamp\"\ncount = 3\nactions = [\"dim\", \"white\", \"quiet\"]\n";

/// A multiset with P(A) and its sum.
struct KnownActions {
    counts: Vec<u32>,
    prior: f64,
    bytes: i64,
}

/// [`all_actions`] of both homes; they do not depend on replies.
static ALL: LazyLock<[Vec<KnownActions>; 2]> =
    LazyLock::new(|| [PLUGS_AND_LAMPS, APART].map(|inventory| all_actions(&home(0.01, 0.0, inventory))));

/// All multisets that the inventory allows, with P(A) and their sums.
fn all_actions(model: &Model) -> Vec<KnownActions> {
    let (limits, prior) = (model.limits().unwrap(), model.prior.as_ref().unwrap());
    let mut all = vec![Vec::new()];
    for _ in 0..model.actions.len() {
        all =
            all.iter().flat_map(|counts: &Vec<u32>| (0..=5).map(move |n| [counts.clone(), vec![n]].concat())).collect();
    }
    all.retain(|counts| counts.iter().sum::<u32>() > 0 && limits.admits(counts));
    let weights: Vec<f64> = all.iter().map(|counts| weight(counts, &limits, prior)).collect();
    let of_number = |number: u32| -> f64 {
        all.iter()
            .zip(&weights)
            .filter(|(counts, _)| counts.iter().sum::<u32>() == number)
            .map(|(_, weight)| weight)
            .sum()
    };
    let of_numbers: Vec<f64> = (0..=limits.max_actions()).map(of_number).collect();
    let with_probability = |(counts, weight): (&Vec<u32>, &f64)| {
        let number: u32 = counts.iter().sum();
        let bytes = counts.iter().zip(&model.actions).map(|(count, action)| i64::from(*count) * action.size).sum();
        let prior = prior.ln_number(number).exp() * weight / of_numbers[number as usize];
        KnownActions { counts: counts.clone(), prior, bytes }
    };
    all.iter().zip(&weights).map(with_probability).collect()
}

/// The prior's factors of actions one after the other, in the order of their classes, with the share of free devices.
fn weight(counts: &[u32], limits: &Limits, prior: &Prior) -> f64 {
    let limits = limits.counting(64);
    let mut used: Vec<usize> = Vec::new();
    let mut weight = 1.0;
    for class in limits.class_order() {
        for (action, count) in counts.iter().enumerate().filter(|(action, _)| limits.class_of(*action) == class) {
            for nth in 1..=*count {
                let held = limits.conditions().iter().filter(|one| one.holds_class(class) && one.devices < u32::MAX);
                let (mut free, mut devices) = (f64::INFINITY, f64::INFINITY);
                for condition in held {
                    let taken = used.iter().filter(|class| condition.holds_class(**class)).count() as f64;
                    free = free.min(f64::from(condition.devices) - taken);
                    devices = devices.min(f64::from(condition.devices));
                }
                weight *= prior.ln_next(action, nth).exp() * if devices.is_finite() { free / devices } else { 1.0 };
                used.push(class);
            }
        }
    }
    weight
}

fn seen(model: &Model, records: &[[i64; 2]]) -> SeenReplies {
    SeenReplies::new(model.single_replies.as_ref().unwrap(), records)
}

/// P(A, replies) with the weight of its sum, for all actions that have one of the sums.
fn joint(model: &Model, all: &[KnownActions], seen: &SeenReplies, sums: &[WeightedSum]) -> Vec<(Vec<u32>, f64, f64)> {
    let replies = model.single_replies.as_ref().unwrap();
    let of = |KnownActions { counts, prior, bytes }: &KnownActions| {
        let sum = sums.iter().find(|sum| sum.bytes == *bytes)?;
        let class_counts = replies.class_counts(counts.iter().copied().enumerate());
        let weight = prior * sum.weight;
        Some((counts.clone(), weight, weight * seen.ln_likelihood(&class_counts).exp()))
    };
    all.iter().filter_map(of).collect()
}

fn is_near(found: f64, wanted: f64, share: f64) -> bool {
    (found - wanted).abs() <= share * wanted.abs()
}

/// What is left out is a share of the probability of all actions, not of these.
fn is_near_of_all(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-6 * wanted + 1e-7
}

#[test]
fn sizes_alone_have_the_probability_of_all_their_actions() {
    for inventory in [PLUGS_AND_LAMPS, APART] {
        let model = home(0.05, 0.0, inventory);
        let inference = ReplyInference::new(&model).unwrap();
        let all = all_actions(&model);
        let sums: Vec<i64> = (-3..250).collect();
        for sum in sums {
            let ln_size = |weight: f64| inference.ln_size(&[WeightedSum { bytes: sum, weight }]).unwrap();
            let found = ln_size(1.0);
            let wanted: f64 = all.iter().filter(|known| known.bytes == sum).map(|known| known.prior).sum();
            assert!(is_near(found.exp(), wanted, 1e-9), "{sum}: {} {wanted}", found.exp());
            assert!(is_near(ln_size(0.5).exp(), 0.5 * wanted, 1e-9), "{sum}");
        }
    }
}

#[test]
fn without_an_inventory_large_sums_are_refused() {
    let model = home(0.05, 0.0, "");
    let inference = ReplyInference::new(&model).unwrap();
    let ln_size = |bytes| inference.ln_size(&[WeightedSum { bytes, weight: 1.0 }]);
    assert!(ln_size(40 * 65 - 1).is_ok());
    assert_eq!(ln_size(40 * 65), Err(crate::Beyond::LargeSum(40 * 65)));
    let total: f64 = (0..40 * 60).map(|bytes| ln_size(bytes).unwrap().exp()).sum();
    assert!((total - 1.0).abs() < 1e-3, "{total}");
}

#[test]
fn kinds_and_models_without_a_prior_are_left_to_others() {
    let mut model = home(0.05, 0.0, APART);
    model.prior.as_mut().unwrap().concentration = 1e-6;
    let of_any_devices = Model { inventory: None, ..model.clone() };
    assert!(ReplyInference::new(&of_any_devices).is_none(), "weights are beyond numbers");
    model.prior = None;
    assert!(ReplyInference::new(&model).is_none());
}

#[test]
fn a_class_is_as_probable_as_its_commands_together() {
    for (inventory, all) in [PLUGS_AND_LAMPS, APART].iter().zip(ALL.iter()) {
        let model = home(0.01, 0.0, inventory);
        let inference = ReplyInference::new(&model).unwrap();
        let replies = model.single_replies.as_ref().unwrap();
        let mut wanted: BTreeMap<(Vec<u32>, i64), f64> = BTreeMap::new();
        for KnownActions { counts, prior, bytes } in all {
            *wanted.entry((replies.class_counts(counts.iter().copied().enumerate()), *bytes)).or_default() += prior;
        }
        let mut classes = CommandClasses::default();
        for ((class_counts, sum), prior) in wanted {
            let class = classes.find(&class_counts, sum, &inference, None).unwrap();
            assert!(is_near(class.prior, prior, 1e-6), "{class_counts:?} {sum}: {} {prior}", class.prior);
            let members: f64 = class.members.iter().map(|one| one.prior).sum();
            assert!(is_near(members, prior, 1e-6), "{class_counts:?} {sum}: {members} {prior}");
        }
    }
}

/// How probable each sum of a command's sizes is, occurrence by occurrence.
fn sums_of(counts: &[u32], model: &Model) -> BTreeMap<i64, f64> {
    let mut sums = BTreeMap::from([(0, 1.0)]);
    for (count, action) in counts.iter().zip(&model.actions) {
        for _ in 0..*count {
            let mut next: BTreeMap<i64, f64> = BTreeMap::new();
            for (sum, before) in sums {
                action.sizes().for_each(|(size, share)| *next.entry(sum + size).or_default() += before * share);
            }
            sums = next;
        }
    }
    sums
}

#[test]
fn actions_of_several_sizes_are_as_if_all_their_sums_were_listed() {
    let mut model = home(0.01, 0.0, PLUGS_AND_LAMPS);
    model.actions[0] = Action::of_sizes("on", &[(40, 0.6), (42, 0.3), (43, 0.1)]).unwrap();
    model.actions[4] = Action::of_sizes("quiet", &[(42, 0.5), (43, 0.5)]).unwrap();
    let recurring = RecurringCommand { counts: vec![2, 0, 1, 0, 0], share: 0.2 };
    model.prior.as_mut().unwrap().recurring = vec![recurring.clone()];
    let (inference, replies) = (ReplyInference::new(&model).unwrap(), model.single_replies.as_ref().unwrap());
    let mut of_sizes: BTreeMap<i64, f64> = BTreeMap::new();
    let mut of_classes: BTreeMap<(Vec<u32>, i64), Vec<f64>> = BTreeMap::new();
    for KnownActions { counts, prior, .. } in all_actions(&model) {
        for (sum, share) in sums_of(&counts, &model) {
            *of_sizes.entry(sum).or_default() += prior * share;
            let class = (replies.class_counts(counts.iter().copied().enumerate()), sum);
            of_classes.entry(class).or_default().push(prior * share);
        }
    }
    let of_recurring = sums_of(&recurring.counts, &model);
    for sum in 30..250 {
        let sums = [WeightedSum { bytes: sum, weight: 0.5 }];
        let wanted = 0.5 * of_sizes.get(&sum).copied().unwrap_or(0.0);
        let again = 0.5 * 0.2 * of_recurring.get(&sum).copied().unwrap_or(0.0);
        assert!(is_near(inference.ln_size(&sums).unwrap().exp(), wanted, 1e-9), "{sum}");
        assert!(is_near(inference.ln_learned_size(&sums).unwrap().exp(), 0.8 * wanted + again, 1e-9), "{sum}");
    }
    let mut classes = CommandClasses::default();
    for ((class_counts, sum), priors) in of_classes {
        let class = classes.find(&class_counts, sum, &inference, None).unwrap();
        let prior: f64 = priors.iter().sum();
        assert!(is_near(class.prior, prior, 1e-6), "{class_counts:?} {sum}: {} {prior}", class.prior);
        let again = replies.class_counts([(0, 2), (2, 1)]) == class_counts;
        let again = if again { 0.2 * of_recurring.get(&sum).copied().unwrap_or(0.0) } else { 0.0 };
        assert!(is_near(class.recurring, again, 1e-9), "{class_counts:?} {sum}: {} {again}", class.recurring);
        let mut found: Vec<f64> = class.members.iter().map(|one| one.prior).collect();
        let mut priors = priors;
        for all in [&mut found, &mut priors] {
            all.sort_by(|a, b| b.total_cmp(a));
        }
        assert!(found.len() <= priors.len(), "each command is a member once");
        assert!(found.iter().zip(&priors).all(|(found, prior)| is_near(*found, *prior, 0.02)), "{found:?} {priors:?}");
    }
}

/// A home of two actions of any number of devices, each with a reply that is never missing but for what is assumed of any.
#[test]
fn replies_that_are_all_lost_are_as_improbable_as_they_are() {
    let mut model = home(0.0, 0.0, "");
    let replies = model.single_replies.as_mut().unwrap();
    replies.per_action = vec![vec![1, 0]; 5];
    let inference = ReplyInference::new(&model).unwrap();
    let seen = seen(&model, &[[90, 90]]);
    for number in [5, 20, 40, 60] {
        let sums = [WeightedSum { bytes: 40 * number, weight: 1.0 }];
        let found = inference.most_probable(&seen, &sums, 10).unwrap().ln_total;
        // Fewer actions of more bytes have fewer replies that are lost.
        let least = seen.ln_likelihood(&[number as u32, 0]) + inference.ln_size(&sums).unwrap() - 20.0;
        assert!(found > least && found < 0.0, "{number}: {found} {least}");
    }
}

proptest! {
    #[test]
    fn everything_is_as_if_all_actions_were_listed(
        missing in prop::sample::select(vec![0.01, 0.3]),
        unseen in prop::sample::select(vec![0.0, 0.01]),
        is_apart in any::<bool>(),
        records in prop::collection::vec(prop::sample::select(vec![90, 91, 92, 95, 96, 160, 185, 186]), 0..6),
        width in prop::sample::select(vec![0, 0, 5]),
        bytes in prop::collection::btree_map(-5i64..230, 0.01f64..1.0, 1..40),
        limit in prop::sample::select(vec![3, 1000]),
    ) {
        let model = home(missing, unseen, if is_apart { APART } else { PLUGS_AND_LAMPS });
        let all = &ALL[usize::from(is_apart)];
        let inference = ReplyInference::new(&model).unwrap();
        let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size, size + width]).collect();
        let seen = seen(&model, &ranges);
        let sums: Vec<WeightedSum> = bytes.iter().map(|(bytes, weight)| WeightedSum { bytes: *bytes, weight: *weight }).collect();
        let mut wanted = joint(&model, all, &seen, &sums);
        wanted.sort_by(|a, b| b.2.total_cmp(&a.2));
        let total: f64 = wanted.iter().map(|(.., joint)| joint).sum();
        let found = inference.most_probable(&seen, &sums, limit).unwrap();
        if total == 0.0 {
            prop_assert!(found.listed.is_empty() && found.ln_total == f64::NEG_INFINITY);
            return Ok(());
        }
        prop_assert!(is_near(found.ln_total.exp(), total, 1e-6), "{} {total}", found.ln_total.exp());
        let mattering = wanted.iter().filter(|(.., joint)| *joint > 1e-6 * total).count();
        prop_assert!(found.listed.len() >= mattering.min(limit) && found.listed.len() <= limit);
        for (found, (_, _, joint)) in found.listed.iter().zip(&wanted) {
            prop_assert!(is_near_of_all(found.probability, joint / total), "order: {} {}", found.probability, joint / total);
            let actions = |counts: &[u32]| -> Vec<(u32, u32)> {
                (0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
            };
            let own = wanted.iter().find(|(counts, ..)| actions(counts) == found.actions);
            prop_assert!(own.is_some(), "{found:?}");
            let (_, weight, joint) = own.unwrap();
            prop_assert!(is_near(found.ln_weight.exp(), *weight, 1e-6) && is_near_of_all(found.probability, joint / total));
        }
        let (most, rest) = sums.split_at(sums.len() / 2);
        let alternatives = [most.to_vec(), rest.to_vec(), Vec::new()];
        let range = [*bytes.keys().min().unwrap(), *bytes.keys().max().unwrap()];
        let explained = inference.explain(&seen, &sums, range, f64::NEG_INFINITY).unwrap();
        let found_alternatives = alternatives.each_ref().map(|sums| explained.ln_joint(sums));
        for (alternative, found) in alternatives.iter().zip(found_alternatives) {
            let wanted: f64 = joint(&model, all, &seen, alternative).iter().map(|(.., joint)| joint).sum();
            prop_assert!((found.exp() - wanted).abs() <= 1e-6 * wanted + 1e-6 * total / 0.01, "{} {wanted}", found.exp());
        }
        for sum in &sums {
            let found = explained.ln_joint(&[WeightedSum { weight: 1.0, ..*sum }]);
            let wanted: f64 = joint(&model, all, &seen, &[WeightedSum { weight: 1.0, ..*sum }]).iter().map(|(.., joint)| joint).sum();
            prop_assert!((found.exp() - wanted).abs() <= 1e-6 * wanted + 1e-6 * total / 0.01, "{sum:?} {} {wanted}", found.exp());
        }
    }
}

/// Actions whose replies share their sizes: whose reply a record is takes a polynomial of all of them to weigh.
#[test]
fn replies_that_take_too_much_to_weigh_are_given_up_in_time() {
    let actions = 0..8;
    let action = |at| format!("[[action]]\nname = \"a{at}\"\nsize = {}\n", 40 + at);
    let class = |at| {
        format!(
            "[[single_replies.class]]\nmissing = 0.02\nunseen = 0.0\n\
             sizes = [[90, {}], [91, {}], [92, {}], [93, {}]]\n",
            3 + at,
            20 - at,
            9 + 2 * at,
            30 - 3 * at
        )
    };
    let per_action: Vec<String> = actions
        .clone()
        .map(|at| {
            format!("[{}]", actions.clone().map(|of| u32::from(of == at).to_string()).collect::<Vec<_>>().join(", "))
        })
        .collect();
    let names: Vec<String> = actions.clone().map(|at| format!("\"a{at}\"")).collect();
    let text = format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n{}\
         [[device]]\nname = \"lamp\"\ncount = 24\nactions = [{}]\n\
         [prior]\nnumbers = [0.1, 0.1, 0.1]\ndecay = 0.95\nshares = {:?}\nconcentration = 40.0\n\
         [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.02\n\
         [single_replies]\nmerged = 0.03\nshared = 0\nforeign = 0.02\nforeign_sizes = [[160, 3]]\n\
         per_command = {:?}\nper_action = [{}]\n{}\
         [learned]\nmethod = \"robust\"\ncommands = 100\nversion = \"0\"\nbasis = \"wire\"\n",
        actions.clone().map(action).collect::<String>(),
        names.join(", "),
        [0.125; 8],
        [0; 8],
        per_action.join(", "),
        actions.clone().map(class).collect::<String>(),
    );
    let model = Model::from_toml(&text).unwrap();
    let inference = ReplyInference::new(&model).unwrap();
    let explain = |replies: i64, bytes: i64| {
        let records: Vec<[i64; 2]> = (0..replies).map(|at| [90 + at % 4; 2]).collect();
        let (seen, sums) = (seen(&model, &records), [WeightedSum { bytes, weight: 1.0 }]);
        let found = inference.explain(&seen, &sums, [0, bytes], f64::NEG_INFINITY).map(|_| ());
        (found, seen.components.iter().map(Component::products).sum::<usize>())
    };
    assert_eq!(explain(2, 2 * 44).0, Ok(()));
    let (found, products) = explain(20, 20 * 44);
    assert_eq!(found, Err(Beyond::TooManyNumbers));
    assert!(products < 2 << 24, "{products}");
}
