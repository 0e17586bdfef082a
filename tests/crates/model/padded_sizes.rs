//! What padding policies do to sizes.

use proptest::prelude::*;
use sizeleak_model::policies::{Draw, PaddedSize, PaddingPolicy, RandomRow};

fn padded(policy: &PaddingPolicy, sizes: impl IntoIterator<Item = u64>) -> Vec<u64> {
    sizes.into_iter().map(|size| policy.padded(size).unwrap()).collect()
}

#[test]
fn sizes_are_padded_to_multiples_and_powers() {
    assert_eq!(padded(&PaddingPolicy::None, [0, 7]), [0, 7]);
    assert_eq!(padded(&PaddingPolicy::Multiple { bytes: 16 }, [0, 1, 16, 17]), [0, 16, 16, 32]);
    assert_eq!(padded(&PaddingPolicy::PowersOfTwo, [1, 5, 8, 9]), [1, 8, 8, 16]);
    assert_eq!(padded(&PaddingPolicy::Constant { bytes: 500 }, [1, 500, 501]), [500, 500, 1000]);
}

#[test]
fn padme_keeps_as_many_bits_as_the_exponent_has() {
    assert_eq!(
        padded(&PaddingPolicy::Padme, [0, 1, 2, 3, 9, 17, 100, 200, 1000]),
        [0, 1, 2, 3, 10, 18, 104, 208, 1024]
    );
}

#[test]
fn records_are_padded_with_their_content_type() {
    let policy = PaddingPolicy::Tls13Multiple { bytes: 128 };
    assert_eq!(padded(&policy, [1, 127, 128, 16_383, 16_384]), [127, 127, 255, 16_383, 16_384]);
    assert_eq!(padded(&policy, [16_385]), [16_384 + 127], "the second record");
    assert_eq!(padded(&PaddingPolicy::Tls13Multiple { bytes: 10_000 }, [5, 12_000]), [9_999, 16_383]);
}

#[test]
fn sizes_beyond_a_table_are_multiples_of_its_last() {
    let table = PaddingPolicy::Table { buckets: vec![10, 30] };
    assert_eq!(padded(&table, [0, 10, 11, 30, 31, 61]), [10, 10, 30, 30, 60, 90]);
    let map = PaddingPolicy::Map { sizes: vec![[1, 3], [2, 2], [3, 3]] };
    assert_eq!(padded(&map, [0, 1, 2, 3, 4]), [3, 3, 2, 3, 6]);
}

#[test]
fn random_padding_is_drawn_in_its_proportions() {
    let row = |probabilities: [f64; 2]| {
        let padded = [8, 12].into_iter().zip(probabilities);
        let padded = padded.map(|(bytes, probability)| PaddedSize { bytes, probability }).collect();
        PaddingPolicy::RandomTable { rows: vec![RandomRow { size: 8, padded }], draw: Draw::Independent }
    };
    let drawn = |policy: &PaddingPolicy, size| {
        [0, u64::MAX / 8 * 2 - 5000, u64::MAX / 8 * 2 + 5000, u64::MAX].map(|at| policy.drawn(size, at))
    };
    assert_eq!(drawn(&row([0.25, 0.75]), 5), [8, 8, 12, 12]);
    assert_eq!(drawn(&row([0.25, 0.749_999_9]), 8), [8, 8, 12, 12], "the rest goes to the last");
    assert_eq!(drawn(&row([0.25, 0.75]), 9), [12; 4], "beyond the table");
    assert_eq!(drawn(&PaddingPolicy::Random { most: 3, draw: Draw::Keyed }, 5), [5, 5, 6, 8]);
}

fn policy() -> impl Strategy<Value = PaddingPolicy> {
    let draw = prop_oneof![Just(Draw::Independent), Just(Draw::Keyed)];
    let buckets = prop::collection::btree_set(1_u64..5000, 1..6).prop_map(|sizes| sizes.into_iter().collect());
    prop_oneof![
        Just(PaddingPolicy::None),
        Just(PaddingPolicy::PowersOfTwo),
        Just(PaddingPolicy::Padme),
        (1_u64..40_000).prop_map(|bytes| PaddingPolicy::Multiple { bytes }),
        (1_u64..40_000).prop_map(|bytes| PaddingPolicy::Tls13Multiple { bytes }),
        (1_u64..40_000).prop_map(|bytes| PaddingPolicy::Constant { bytes }),
        (0_u64..50, draw).prop_map(|(most, draw)| PaddingPolicy::Random { most, draw }),
        buckets.prop_map(|buckets| PaddingPolicy::Table { buckets }),
    ]
}

proptest! {
    #[test]
    fn padding_never_cuts_and_drawn_sizes_are_possible(
        policy in policy(), size in prop_oneof![0_u64..40_000, any::<u64>()], draw: u64,
    ) {
        policy.check().unwrap();
        let all = policy.padded_sizes(size);
        prop_assert!(all.iter().all(|padded| padded.bytes >= size));
        prop_assert!((all.iter().map(|padded| padded.probability).sum::<f64>() - 1.0).abs() < 1e-9);
        let drawn = policy.drawn(size, draw);
        prop_assert!(all.iter().any(|padded| padded.bytes == drawn));
    }

    #[test]
    fn padme_is_the_formula_of_its_paper(size in 2_u64..1 << 40) {
        let exponent = (size as f64).log2().floor() as u32;
        let bits = f64::from(exponent).log2().floor() as u32 + 1;
        let mask = (1_u64 << (exponent - bits)) - 1;
        prop_assert_eq!(PaddingPolicy::Padme.padded(size).unwrap(), (size + mask) & !mask);
    }
}

fn policies() -> Vec<PaddingPolicy> {
    let padded = |sizes: &[(u64, f64)]| {
        sizes.iter().map(|(bytes, probability)| PaddedSize { bytes: *bytes, probability: *probability }).collect()
    };
    let rows = vec![
        RandomRow { size: 7, padded: padded(&[(7, 0.25), (60, 0.75)]) },
        RandomRow { size: 40, padded: padded(&[(50, 1.0)]) },
        RandomRow { size: 45, padded: padded(&[(60, 1.0)]) },
    ];
    vec![
        PaddingPolicy::None,
        PaddingPolicy::Multiple { bytes: 16 },
        PaddingPolicy::PowersOfTwo,
        PaddingPolicy::Padme,
        PaddingPolicy::Tls13Multiple { bytes: 100 },
        PaddingPolicy::Random { most: 9, draw: Draw::Keyed },
        PaddingPolicy::Constant { bytes: 70 },
        PaddingPolicy::Table { buckets: vec![10, 30, 31] },
        PaddingPolicy::Map { sizes: vec![[4, 30], [9, 20], [20, 30], [28, 28]] },
        PaddingPolicy::RandomTable { rows, draw: Draw::Independent },
    ]
}

#[test]
fn sizes_before_are_exactly_those_that_are_padded_to_a_size() {
    for policy in policies() {
        for padded in 0..200 {
            let leads = |size: &u64| policy.padded_sizes(*size).iter().any(|possible| possible.bytes == padded);
            let found: Vec<u64> = (0..=padded).filter(leads).collect();
            let hull = found.first().zip(found.last()).map(|(first, last)| [*first, *last]);
            assert_eq!(policy.sizes_before(padded), hull, "{policy:?} to {padded}");
        }
    }
}

#[test]
fn probabilities_are_those_of_padded_sizes() {
    for policy in policies() {
        for size in 0..100 {
            let sum: f64 = (0..400).map(|padded| policy.probability(size, padded)).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{policy:?} of {size}: {sum}");
            for PaddedSize { bytes, probability } in policy.padded_sizes(size) {
                assert!((policy.probability(size, bytes) - probability).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn large_sizes_are_found_at_once() {
    assert_eq!(PaddingPolicy::Constant { bytes: 1 << 30 }.sizes_before(1 << 30), Some([1, 1 << 30]));
    assert_eq!(PaddingPolicy::Padme.sizes_before(1 << 40), Some([(1 << 40) - (1 << 33) + 1, 1 << 40]));
    assert_eq!(PaddingPolicy::None.sizes_before(1 << 60), Some([1 << 60; 2]));
}
