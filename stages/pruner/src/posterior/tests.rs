//! Order, probabilities and the share that is kept.

use std::ops::RangeInclusive;
use std::sync::Arc;

use proptest::prelude::*;
use sizeleak_frame::Actions;
use sizeleak_model::Inventory;

use super::*;
use crate::reply_evidence::ReplyModel;
use crate::testing::{command, model};

fn listed(candidates: &[(u32, f64)]) -> SharedList<Candidate> {
    let candidate = |(actions, probability): &(u32, f64)| Candidate {
        actions: Actions::from(vec![(Arc::from("on"), *actions)]),
        epsilon: 0,
        probability: *probability,
        likelihood: None,
    };
    candidates.iter().map(candidate).collect()
}

/// All candidates after the replies, best first.
fn weighed(listed: &SharedList<Candidate>, unlisted_count: u64, replies: u32) -> Posterior<'_> {
    let mut posterior = Posterior::new(listed, unlisted_count > 0);
    let model = ReplyModel::new(model("[replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.01\n"));
    let command = command(replies, 0);
    let evidence = ReplyEvidence::new(&model, &command, 16).unwrap();
    posterior.weigh(&evidence, None);
    assert!(!posterior.keep(1.0));
    posterior
}

fn totals(posterior: &Posterior<'_>) -> Vec<u32> {
    posterior.candidates().iter().map(|candidate| candidate.actions.count("on")).collect()
}

fn kept(candidates: &[(u32, f64)], replies: u32, keep: f64) -> Vec<u32> {
    let listed = listed(candidates);
    let mut posterior = weighed(&listed, 0, replies);
    posterior.keep(keep);
    totals(&posterior)
}

#[test]
fn replies_change_the_order_and_drop_unlikely_candidates() {
    let candidates = [(9, 0.5), (5, 0.25), (4, 0.25)];
    assert_eq!(kept(&candidates, 4, 0.5), [4]);
    assert_eq!(kept(&candidates, 4, 0.99), [4, 5]);
    assert_eq!(kept(&candidates, 4, 1.0), [4, 5, 9]);
}

#[test]
fn tiny_likelihoods_do_not_vanish() {
    assert_eq!(totals(&weighed(&listed(&[(1, 0.5), (5, 0.5)]), 0, 100)), [5, 1]);
    let listed = listed(&[(1, 0.75), (5, 0.25)]);
    let beyond = weighed(&listed, 0, 4_000_000);
    assert_eq!((totals(&beyond), beyond.candidates()[0].probability), (vec![1, 5], 0.75), "unchanged");
}

/// Likelihoods below the least number there is.
struct Hopeless;

impl ActionEvidence for Hopeless {
    fn ln_likelihood(&self, actions: &Actions) -> f64 {
        -900.0 - f64::from(actions.count("on"))
    }

    fn ln_greatest(&self) -> f64 {
        -901.0
    }

    fn learned_bounds(&self, _: f64) -> RangeInclusive<u32> {
        0..=u32::MAX
    }
}

#[test]
fn evidence_that_is_hardly_possible_tells_candidates_apart() {
    let both = listed(&[(1, 0.4), (2, 0.4)]);
    let mut posterior = Posterior::new(&both, true);
    posterior.weigh(&Hopeless, None);
    let e = 1_f64.exp();
    let whole = 0.4 * e + 0.4 + 0.2 * e;
    let found: Vec<f64> = posterior.left().map(|(_, probability)| probability).chain([posterior.unlisted]).collect();
    for (found, wanted) in found.iter().zip([0.4 * e, 0.4, 0.2 * e]) {
        assert!((found - wanted / whole).abs() < 1e-12, "{found} is not {}", wanted / whole);
    }
}

#[test]
fn equally_probable_candidates_stay_together_and_in_order() {
    assert_eq!(kept(&[(4, 0.2); 5], 4, 0.3).len(), 5);
    assert_eq!(kept(&[], 4, 0.9), [0_u32; 0]);
    assert_eq!(kept(&[(4, 0.0), (5, 0.0)], 4, 0.9).len(), 2);
}

#[test]
fn unlisted_candidates_keep_their_share() {
    let (half, nearly_all) = (listed(&[(4, 0.3), (5, 0.2)]), listed(&[(4, 0.9999), (5, 0.000_01)]));
    let mut cut = weighed(&half, 70, 4);
    assert!(cut.unlisted >= 0.5, "no evidence against it");
    let listed: f64 = cut.candidates().iter().map(|candidate| candidate.probability).sum();
    assert!((listed + cut.unlisted - 1.0).abs() < 1e-12);
    assert_eq!((cut.keep(0.9), cut.len()), (false, 2));
    let mut nearly_whole = weighed(&nearly_all, 1, 4);
    assert_eq!((nearly_whole.keep(0.9), nearly_whole.len()), (true, 1));
}

#[test]
fn invalid_probabilities_still_sum_to_one() {
    let invalid = [(4, f64::NAN), (4, f64::INFINITY), (4, -1.0), (4, f64::NEG_INFINITY)];
    let total: f64 = weighed(&listed(&invalid), 0, 4).candidates().iter().map(|candidate| candidate.probability).sum();
    assert!((total - 1.0).abs() < 1e-12);
    assert_eq!(kept(&invalid, 4, 0.9).len(), 1);
}

proptest! {
    /// Fewest: no set with one candidate fewer holds as much, ties aside.
    #[test]
    fn kept_candidates_are_the_fewest_with_enough_probability(
        candidates in prop::collection::vec((1u32..8, 0.01f64..1.0), 1..30),
        replies in 0u32..8,
        keep in 0.01f64..0.9999,
    ) {
        let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        let candidates = candidates.iter().map(|(actions, weight)| (*actions, weight / total));
        let candidates: Vec<(u32, f64)> = candidates.collect();
        let listed = listed(&candidates);
        let whole = weighed(&listed, 0, replies).candidates();
        let mut kept = weighed(&listed, 0, replies);
        prop_assert!(kept.keep(keep));
        let (number, kept) = (kept.len(), kept.candidates());
        prop_assert_eq!(&kept[..], &whole[..number]);
        let held: f64 = kept.iter().map(|candidate| candidate.probability).sum();
        prop_assert!(held >= keep);
        let least = kept[number - 1].probability;
        let above: f64 = kept.iter().map(|candidate| candidate.probability)
            .filter(|probability| *probability > least * (1.0 + 1e-6)).sum();
        prop_assert!(above < keep);
        if let Some(next) = whole.get(number) {
            prop_assert!(next.probability < least);
        }
    }
}

#[test]
fn unlisted_candidates_have_the_rest_of_the_given_probability() {
    let model = ReplyModel::new(model("[replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.01\n"));
    let command = command(4, 0);
    let evidence = ReplyEvidence::new(&model, &command, 16).unwrap();
    let all = listed(&[(4, 0.2), (5, 0.1), (9, 0.3), (2, 0.4)]);
    let likelihood = |candidate: &Candidate| candidate.probability * evidence.ln_likelihood(&candidate.actions).exp();
    let given: f64 = all.iter().map(likelihood).sum();
    for listed in 1..=all.len() {
        let cut: SharedList<Candidate> = all.iter().take(listed).cloned().collect();
        let mut posterior = Posterior::new(&cut, true);
        posterior.weigh(&evidence, Some(given));
        for (found, candidate) in posterior.candidates().iter().zip(&*all) {
            let wanted = likelihood(candidate) / given;
            assert!((found.probability - wanted).abs() < 1e-12, "{listed}: {} is not {wanted}", found.probability);
        }
    }
    for hostile in [f64::NAN, -1.0, 0.0, 2.0, f64::INFINITY] {
        let cut: SharedList<Candidate> = all.iter().take(1).cloned().collect();
        let (mut given, mut without) = (Posterior::new(&cut, true), Posterior::new(&cut, true));
        given.weigh(&evidence, Some(hostile));
        without.weigh(&evidence, None);
        assert_eq!(given.candidates(), without.candidates(), "{hostile}");
    }
}

fn candidate(actions: &[(&str, u32)], probability: f64) -> Candidate {
    let actions: Vec<(Arc<str>, u32)> = actions.iter().map(|(name, count)| (Arc::from(*name), *count)).collect();
    Candidate { actions: Actions::from(actions), epsilon: 0, probability, likelihood: None }
}

#[test]
fn probabilities_are_summed_over_candidates() {
    let inventory = "[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\"]\n\
                     [[device]]\nname = \"lamp\"\ncount = 1\nactions = [\"on\", \"red\"]\n";
    let mut types = DeviceTypes::new(&Inventory::from_toml(inventory).unwrap());
    let candidates = [candidate(&[("on", 2)], 0.5), candidate(&[("red", 1)], 0.25), candidate(&[("on", 1)], 0.125)];
    let CandidateSums { numbers, device_types } = CandidateSums::of(&candidates, Some(&mut types)).weighed(0.5);
    let numbers: Vec<(u64, f64)> = numbers.iter().map(|number| (number.actions, number.probability)).collect();
    assert_eq!(numbers, [(1, 0.1875), (2, 0.25)]);
    // Two of four devices are on: the lamp is one of them in half of the ways, a plug in all. One: in a quarter.
    let expected = [("plug", 0.5 * (0.5 + 0.125 * 0.75)), ("lamp", 0.5 * (0.5 * 0.5 + 0.25 + 0.125 * 0.25))];
    for (found, (device, probability)) in device_types.iter().zip(expected) {
        assert!(&*found.device == device && (found.probability - probability).abs() < 1e-12, "{found:?}");
    }
}

#[test]
fn nothing_is_said_of_types_where_an_action_is_of_no_device() {
    let inventory = Inventory::from_toml("[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\"]\n").unwrap();
    let sums = CandidateSums::of(&[candidate(&[("dim", 1)], 1.0)], Some(&mut DeviceTypes::new(&inventory)));
    assert!(sums.device_types.is_empty() && sums.numbers.len() == 1);
    assert!(CandidateSums::of(&[], None).numbers.is_empty());
}
