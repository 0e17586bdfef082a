//! Any observations end in a sane fit or in an error, and soon.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use sizeleak_learning::fit::blind::{BlindFit, BlindFitError, Observation, learn};

fn sane(fit: &BlindFit) {
    assert!(!fit.actions.is_empty());
    let shares: f64 = fit.actions.iter().map(|action| action.frequency).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{fit:#?}");
    for action in &fit.actions {
        assert!(action.size >= 1 && action.interval[0] >= 1, "{fit:#?}");
        assert!((action.interval[0]..=action.interval[1]).contains(&action.size), "{fit:#?}");
        assert!((0.0..=1.0).contains(&action.frequency), "{fit:#?}");
    }
    let epsilons: f64 = fit.epsilons.iter().map(|(_, probability)| probability).sum();
    assert!((epsilons - 1.0).abs() < 1e-3, "{fit:#?}");
    let most = fit.epsilons.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(epsilon, _)| *epsilon);
    assert_eq!(most, Some(0));
    assert!((0.0..=0.5).contains(&fit.outliers) && fit.log_likelihood.is_finite());
    assert!((0.0..=1.0).contains(&fit.lost));
}

fn check(observations: &[Observation], names: &[String], is_wire: bool) {
    let start = Instant::now();
    if let Ok(fit) = learn(observations, names, is_wire) {
        sane(&fit);
    }
    assert!(start.elapsed() < Duration::from_mins(2));
}

fn size() -> impl Strategy<Value = i64> {
    prop_oneof![
        20 => 60_i64..400,
        3 => -50_i64..2000,
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(1 << 20)],
    ]
}

fn observation(names: usize) -> impl Strategy<Value = Observation> {
    let reply = prop_oneof![20 => 28_i64..36, 1 => size()];
    let replies = proptest::option::weighted(0.9, proptest::collection::vec(reply, 0..6));
    let count = prop_oneof![8 => 0_u32..3, 1 => Just(u32::MAX)];
    let counts = proptest::option::weighted(0.3, proptest::collection::vec(count, names));
    (size(), replies, counts).prop_map(|(size, replies, counts)| Observation { size, replies, counts })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn any_observations_end(
        observations in proptest::collection::vec(observation(3), 0..60),
        is_wire in any::<bool>(),
    ) {
        let names = ["a", "b", "c"].map(str::to_owned);
        check(&observations, &names, is_wire);
    }

    #[test]
    fn any_lengths_alone_end(sizes in proptest::collection::vec(size(), 0..150)) {
        let alone = |size| Observation { size, replies: None, counts: None };
        let observations: Vec<Observation> = sizes.into_iter().map(alone).collect();
        check(&observations, &[], false);
    }
}

#[test]
fn thousands_of_replies_end() {
    let observations: Vec<Observation> = (0..200)
        .map(|number| Observation {
            size: 100 + number % 7 * 31,
            replies: Some((0..5000).map(|reply| 30 + reply % (number + 1)).collect()),
            counts: None,
        })
        .collect();
    check(&observations, &[], false);
}

#[test]
fn only_labels_end_and_contradictory_ones_too() {
    let names = ["on", "off"].map(str::to_owned);
    let labelled = |size, counts: [u32; 2]| Observation {
        size,
        replies: Some(vec![40; counts.iter().sum::<u32>() as usize]),
        counts: Some(counts.to_vec()),
    };
    let honest: Vec<Observation> = (0..60)
        .map(|number| (number % 3, number % 4))
        .filter(|(on, off)| on + off > 0)
        .map(|(on, off)| labelled(90 + 30 * i64::from(on) + 37 * i64::from(off), [on, off]))
        .collect();
    let fit = learn(&honest, &names, false).unwrap();
    sane(&fit);
    let size_of = |name: &str| fit.actions.iter().find(|action| action.name.as_deref() == Some(name)).map(|a| a.size);
    assert_eq!((fit.overhead, size_of("on"), size_of("off")), (90, Some(30), Some(37)), "{fit:#?}");
    let contradictory: Vec<Observation> =
        honest.iter().enumerate().map(|(number, seen)| labelled(seen.size, [number as u32 % 5, 1])).collect();
    check(&contradictory, &names, false);
}

#[test]
fn errors_say_what_is_missing() {
    let one = Observation { size: 100, replies: None, counts: None };
    assert!(matches!(learn(&[], &[], false), Err(BlindFitError::TooFewCommands { .. })));
    let same = vec![one.clone(); 100];
    assert!(matches!(learn(&same, &[], false), Err(BlindFitError::TooFewSizes { .. })));
    let wrong = vec![Observation { counts: Some(vec![1, 2]), ..one }];
    assert!(matches!(learn(&wrong, &[], false), Err(BlindFitError::LabelLength { .. })));
}
