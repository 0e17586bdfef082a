//! Distributions of ε from labelled commands.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sizeleak_model::{EpsilonDistribution, EpsilonTuple, Neighbours, Smoothing, WeightedEpsilon};

use super::samples::TestRandom;

fn neighbours(tuples: &[(i64, i64)]) -> Neighbours {
    Neighbours::new(tuples.iter().map(|(size, epsilon)| EpsilonTuple::new(*size, *epsilon))).unwrap()
}

#[test]
fn nearer_tuples_have_greater_weights() {
    let estimate = neighbours(&[(100, 0), (103, 1), (103, 1), (200, 5)]).estimate(100, 3);
    assert_eq!(estimate.iter().map(|value| value.epsilon).collect::<Vec<_>>(), [0, 1]);
    assert!((estimate[0].weight - 1.0 / 1.5).abs() < 1e-12);
    assert_eq!(neighbours(&[(1, 7)]).estimate(i64::MAX, 9)[0], WeightedEpsilon { epsilon: 7, weight: 1.0 });
    assert_eq!(neighbours(&[(i64::MIN, 7)]).estimate(i64::MAX, usize::MAX)[0].epsilon, 7);
    assert_eq!(Neighbours::new([]), None);
    assert_eq!(Neighbours::new([EpsilonTuple { size: 1, epsilon: 1, times: 0 }]), None);
}

#[test]
fn equal_weights_are_in_ascending_order_of_epsilon() {
    let estimate = neighbours(&[(100, 3), (100, -1)]).estimate(90, 1);
    assert_eq!(estimate.iter().map(|value| value.epsilon).collect::<Vec<_>>(), [-1, 3]);
}

proptest! {
    #[test]
    fn nearest_agrees_with_a_linear_search(
        tuples in prop::collection::vec((-50i64..50, -3i64..4), 1..40),
        size in -60i64..60,
        k in 1usize..12,
    ) {
        let neighbours = neighbours(&tuples);
        let mut distances: Vec<u64> = tuples.iter().map(|(other, _)| other.abs_diff(size)).collect();
        distances.sort_unstable();
        let farthest = distances[k.min(distances.len()) - 1];
        let mut expected: Vec<(i64, i64)> =
            tuples.iter().filter(|(other, _)| other.abs_diff(size) <= farthest).copied().collect();
        expected.sort_unstable();
        let nearest = neighbours.nearest(size, k);
        let each: Vec<(i64, i64)> = nearest
            .iter()
            .flat_map(|near| std::iter::repeat_n((near.size, near.epsilon), near.times as usize))
            .collect();
        prop_assert_eq!(each, expected);
        let sum: f64 = neighbours.estimate(size, k).iter().map(|value| value.weight).sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
    }
}

/// Commands of a gateway whose length field takes two more bytes from 150 bytes on, and whose id has a digit less in
/// one of ten commands.
fn stepped(commands: usize) -> Neighbours {
    let mut random = TestRandom(11);
    let tuples = (0..commands).map(|_| {
        let explained = 60 + random.below(300).cast_signed();
        let shorter = i64::from(random.below(10) == 0);
        let epsilon = if explained - shorter < 150 { -2 } else { 0 } - shorter;
        EpsilonTuple::new(explained + epsilon, epsilon)
    });
    Neighbours::new(tuples).unwrap()
}

fn weight(estimate: &[WeightedEpsilon], epsilon: i64) -> f64 {
    estimate.iter().find(|value| value.epsilon == epsilon).map_or(0.0, |value| value.weight)
}

#[test]
fn a_rare_epsilon_has_its_overall_share_at_every_size() {
    let neighbours = stepped(1000);
    let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
    for (size, level) in [(100, -2), (220, 0), (330, 0)] {
        let estimate = variation.estimate(size);
        assert_eq!(estimate[0].epsilon, level);
        assert!((weight(&estimate, level - 1) - 0.1).abs() < 0.03, "{size}: {estimate:?}");
        assert!(weight(&estimate, level + 1) < 0.01, "{size}: {estimate:?}");
    }
}

#[test]
fn near_a_step_the_level_follows_from_the_size() {
    let neighbours = stepped(1000);
    let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
    // x = 150 with a digit less stays below the step.
    let estimate = variation.estimate(147);
    assert!((weight(&estimate, -3) - 0.1).abs() < 0.03 && weight(&estimate, -1) < 0.01, "{estimate:?}");
}

#[test]
fn frequencies_of_commands_do_not_change_the_estimate() {
    // x = 120 is twenty times as frequent as any other; everywhere ε is −1 or 0, equally often.
    let times = |explained: i64| if explained == 120 { 200 } else { 10 };
    let tuples = (100..140).flat_map(|explained| {
        [0, -1].map(|epsilon| EpsilonTuple { size: explained + epsilon, epsilon, times: times(explained) })
    });
    let neighbours = Neighbours::new(tuples).unwrap();
    let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
    let estimate = variation.estimate(120);
    assert!((weight(&estimate, 0) - weight(&estimate, -1)).abs() < 0.05, "{estimate:?}");
}

#[test]
fn few_commands_suffice_for_an_estimate() {
    for tuples in [vec![EpsilonTuple::new(100, 0)], vec![EpsilonTuple::new(100, 0), EpsilonTuple::new(140, 1)]] {
        let neighbours = Neighbours::new(tuples).unwrap();
        let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
        let estimate = variation.estimate(100);
        assert_eq!(estimate[0].epsilon, 0, "{estimate:?}");
        assert!(weight(&estimate, 1) > 0.0 && weight(&estimate, -1) > 0.0, "{estimate:?}");
    }
}

#[test]
fn unseen_values_share_what_was_not_seen_so_far() {
    // Ids of as many digits as possible, and in four of forty commands of one less; of two less none was seen.
    let tuples = (0..40).map(|at| EpsilonTuple::new(100 + at, -i64::from(at % 10 == 0)));
    let neighbours = Neighbours::new(tuples).unwrap();
    let variation = EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours));
    let estimate = variation.estimate(120);
    assert!((0.003..0.02).contains(&weight(&estimate, -2)), "{estimate:?}");
    assert!(weight(&estimate, -3) > 0.0005 && weight(&estimate, -3) < weight(&estimate, -2), "{estimate:?}");
    assert!((weight(&estimate, -1) - 0.1).abs() < 0.03, "{estimate:?}");
}

#[test]
fn neighbours_count_only_where_they_clearly_tell_more() {
    // ε does not depend on the size: that three neighbours would do as well is chance.
    let mut random = TestRandom(5);
    let tuples = (0..150).map(|_| EpsilonTuple::new(random.below(600).cast_signed(), -i64::from(random.below(8) == 0)));
    let chosen = Smoothing::choose(&Neighbours::new(tuples).unwrap());
    assert_eq!(chosen, Smoothing { k: 3, strength: 3000.0 });
}

#[test]
fn without_strength_only_seen_values_are_estimated() {
    let neighbours = stepped(40);
    let variation = EpsilonDistribution::new(&neighbours, Smoothing { k: 5, strength: 0.0 });
    let seen: Vec<i64> = neighbours.tuples().iter().map(|tuple| tuple.epsilon).collect();
    assert!(variation.estimate(200).iter().all(|value| seen.contains(&value.epsilon)));
}

proptest! {
    #[test]
    fn estimates_of_any_tuples_are_distributions(
        tuples in prop::collection::vec((-1i64 << 40..1 << 40, -1i64 << 40..1 << 40, 1u64..1 << 40), 1..12),
        size: i64,
        k in 1usize..9,
        strength in prop::sample::select(vec![0.0, 1.0, 1e9]),
    ) {
        let tuples = tuples.into_iter().map(|(size, epsilon, times)| EpsilonTuple { size, epsilon, times });
        let neighbours = Neighbours::new(tuples).unwrap();
        let estimate = EpsilonDistribution::new(&neighbours, Smoothing { k, strength }).estimate(size);
        let sum: f64 = estimate.iter().map(|value| value.weight).sum();
        prop_assert!(estimate.is_empty() || (sum - 1.0).abs() < 1e-9, "{estimate:?}");
        prop_assert!(estimate.is_sorted_by(|a, b| a.weight >= b.weight));
        prop_assert!(Smoothing::choose(&neighbours).k > 0);
        let given = EpsilonDistribution::new(&neighbours, Smoothing { k, strength }).given_explained(size);
        prop_assert!((given.iter().map(|value| value.weight).sum::<f64>() - 1.0).abs() < 1e-9, "{given:?}");
        prop_assert!(given.is_sorted_by(|a, b| a.epsilon < b.epsilon));
    }

    /// ε of a command is possible given what is explained of it if and only if it is possible given its size.
    #[test]
    fn values_given_what_is_explained_are_those_given_the_size(
        tuples in prop::collection::vec((0i64..30, 0i64..3), 2..20),
        explained in 0i64..30,
    ) {
        let tuples = tuples.iter().map(|(size, epsilon)| EpsilonTuple::new(*size, *epsilon));
        let smoothing = Smoothing { k: 3, strength: 2.0 };
        let distribution = EpsilonDistribution::new(&Neighbours::new(tuples).unwrap(), smoothing);
        let given = distribution.given_explained(explained);
        for epsilon in -6..9 {
            let of_size = distribution.estimate(explained + epsilon);
            let is_estimated = of_size.iter().any(|value| value.epsilon == epsilon);
            prop_assert_eq!(is_estimated, given.iter().any(|value| value.epsilon == epsilon));
        }
    }

    /// Each command is judged by the others alone, as if it had never been there.
    #[test]
    fn choice_is_that_of_the_likeliest_commands_given_the_others(
        tuples in prop::collection::vec((0i64..30, 0i64..3), 2..20),
    ) {
        let tuples: Vec<EpsilonTuple> =
            tuples.iter().map(|(size, epsilon)| EpsilonTuple::new(*size, *epsilon)).collect();
        prop_assert_eq!(Smoothing::choose(&Neighbours::new(tuples.clone()).unwrap()), chosen_by_trial(&tuples));
    }
}

/// The probability of each distance from the level, seen or next to a seen one, given these and one at the level.
fn shares(distances: &[i64]) -> BTreeMap<i64, f64> {
    let mut times = BTreeMap::from([(0, 1.0)]);
    for distance in distances {
        *times.entry(*distance).or_default() += 1.0;
    }
    let nearness = |unseen: i64| match times.keys().map(|seen| seen.abs_diff(unseen)).min() {
        Some(1) => 1.0,
        Some(2) => 0.25,
        _ => 0.0,
    };
    let near = (-99..99).map(|distance| (distance, nearness(distance))).filter(|(_, weight)| *weight > 0.0);
    let near: BTreeMap<i64, f64> = near.collect();
    let all = distances.len() as f64 + 1.0;
    let once = times.values().filter(|times| **times < 1.5).count() as f64;
    let (unseen, weights) = (((once + 1.0) / (all + 2.0)).min(0.5), near.values().sum::<f64>());
    let near = near.into_iter().map(|(distance, weight)| (distance, unseen * weight / weights));
    near.chain(times.into_iter().map(|(distance, times)| (distance, (1.0 - unseen) * times / all))).collect()
}

/// The choice of the greatest likelihood of each command given the others, which are counted for each of them.
fn chosen_by_trial(tuples: &[EpsilonTuple]) -> Smoothing {
    let levels = EpsilonDistribution::new(&Neighbours::new(tuples.to_vec()).unwrap(), Smoothing::NEAREST);
    let distance = |tuple: &EpsilonTuple| tuple.epsilon - levels.level(tuple.size);
    let others = |at: usize| [&tuples[..at], &tuples[at + 1..]].concat();
    let mut best = (f64::NEG_INFINITY, Smoothing::NEAREST);
    for k in [3, 5, 9, 15, 25, 40, 65, 100] {
        for strength in [3000.0, 1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0] {
            let ln_likelihood = |at: usize| {
                let (own, others) = (&tuples[at], others(at));
                let share = shares(&others.iter().map(distance).collect::<Vec<_>>()).get(&distance(own)).copied();
                let explained = others.iter().map(|other| EpsilonTuple::new(other.size - other.epsilon, other.epsilon));
                let explained = Neighbours::new(explained).unwrap();
                let nearest = explained.nearest(own.size - own.epsilon, k);
                let times = |of_all: bool| -> f64 {
                    let counted = nearest.iter().filter(|near| of_all || near.epsilon == own.epsilon);
                    counted.map(|near| near.times as f64).sum()
                };
                let smoothed = times(false) + strength * share.unwrap_or(0.0);
                (smoothed / (times(true) + strength)).max(1e-6).ln()
            };
            let likelihood: f64 = (0..tuples.len()).map(ln_likelihood).sum();
            // Two nats are by chance.
            if likelihood > best.0 + 2.0 {
                best = (likelihood, Smoothing { k, strength });
            }
        }
    }
    best.1
}
