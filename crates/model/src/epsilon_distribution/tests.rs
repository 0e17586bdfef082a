//! Estimates for simulated gateways, and cross-validation against its definition.

use proptest::prelude::*;

use super::*;
use crate::testing::TestRandom;

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
    assert_eq!(chosen, Smoothing { k: K_TRIED[0], strength: STRENGTHS_TRIED[7] });
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

    /// Leaving a command out equals never having had it.
    #[test]
    fn leaving_a_command_out_equals_its_absence(
        tuples in prop::collection::vec((0i64..30, 0i64..3), 2..20),
        k in 1usize..6,
    ) {
        let tuples: Vec<EpsilonTuple> =
            tuples.iter().map(|(size, epsilon)| EpsilonTuple::new(*size, *epsilon)).collect();
        for at in 0..tuples.len() {
            let own = tuples[at];
            let mut others = tuples.clone();
            others.remove(at);
            let all = LevelledTuples::new(&Neighbours::new(tuples.clone()).unwrap());
            let rest = LevelledTuples::new(&Neighbours::new(others).unwrap());
            let explained = own.size - own.epsilon;
            let left_out = all.nearest_counts(explained, k + 1).without(own.epsilon);
            let absent = rest.nearest_counts(explained, k);
            prop_assert!((left_out.all - absent.all).abs() < 1e-9);
            for epsilon in 0..3 {
                let times = |counts: &Counts| counts.times.get(&epsilon).copied().unwrap_or(0.0);
                prop_assert!((times(&left_out) - times(&absent)).abs() < 1e-9);
            }
        }
    }
}
