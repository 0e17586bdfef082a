//! Measures of channels against their definitions, computed secret by secret.

use proptest::prelude::*;

use super::*;
use crate::channel::ChannelRow;
use crate::space::SecretSums;

/// A channel of secrets, each with its prior probability and a row of a matrix.
fn channel(secrets: &[(f64, Vec<f64>)]) -> Channel {
    let row = |(probability, row): &(f64, Vec<f64>)| ChannelRow {
        secrets: SecretSums::one(*probability),
        outputs: (0..).zip(row.iter().copied()).filter(|(_, probability)| *probability > 0.0).collect(),
    };
    Channel { rows: secrets.iter().map(row).collect(), outputs: secrets.first().map_or(0, |(_, row)| row.len()) }
}

/// Scales weights to probabilities; the first one gets all if there is none.
fn normalised(weights: &[u32]) -> Vec<f64> {
    let sum: f64 = weights.iter().copied().map(f64::from).sum();
    if sum == 0.0 {
        return (0..weights.len()).map(|at| if at == 0 { 1.0 } else { 0.0 }).collect();
    }
    weights.iter().map(|weight| f64::from(*weight) / sum).collect()
}

fn secrets() -> impl Strategy<Value = Vec<(f64, Vec<f64>)>> {
    (2..7_usize, 1..6_usize).prop_flat_map(|(secrets, outputs)| {
        let row = prop::collection::vec(0..4_u32, outputs);
        (prop::collection::vec(1..9_u32, secrets), prop::collection::vec(row, secrets)).prop_map(|(prior, rows)| {
            normalised(&prior).into_iter().zip(rows.iter().map(|row| normalised(row))).collect()
        })
    })
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

proptest! {
    #[test]
    fn measures_are_those_of_their_definitions(secrets in secrets()) {
        let measures = channel(&secrets).measures();
        let outputs = secrets[0].1.len();
        let joint = |output: usize| secrets.iter().map(move |(prior, row)| prior * row[output]);
        let of_output: Vec<f64> = (0..outputs).map(|output| joint(output).sum()).collect();
        let seen = || (0..outputs).filter(|output| of_output[*output] > 0.0);
        let greatest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let named: f64 = (0..outputs).map(|output| greatest(&mut joint(output))).sum();
        let guessing = greatest(&mut secrets.iter().map(|(prior, _)| *prior));
        prop_assert!(is_near(measures.guessing, guessing) && is_near(measures.named, named));
        let capacity: f64 = (0..outputs).map(|output| greatest(&mut secrets.iter().map(|(_, row)| row[output]))).sum();
        prop_assert!(is_near(measures.capacity, capacity));
        prop_assert!(measures.times_guessing <= capacity + 1e-9);
        let bits = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
        let prior_bits: f64 = secrets.iter().map(|(prior, _)| bits(*prior)).sum();
        // H(A | T), output by output.
        let remaining: f64 = seen()
            .map(|output| of_output[output] * joint(output).map(|joint| bits(joint / of_output[output])).sum::<f64>())
            .sum();
        prop_assert!(is_near(measures.prior_bits, prior_bits));
        prop_assert!(is_near(measures.remaining_bits, remaining), "{} is not {remaining}", measures.remaining_bits);
        prop_assert!(is_near(measures.information_bits, prior_bits - remaining));
        let distances = secrets.iter().flat_map(|(_, one)| secrets.iter().map(move |(_, other)| {
            0.5 * one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum::<f64>()
        }));
        prop_assert!(is_near(measures.least_security.unwrap(), 1.0 - greatest(&mut distances.into_iter())));
        prop_assert!(is_near(measures.security.unwrap(), (1.0 - named) / (1.0 - guessing)));
        prop_assert!(measures.least_security.unwrap() <= measures.security.unwrap() + 1e-9);
        for Tries { tries, named, .. } in &measures.tries {
            let within = |output| {
                let mut joint: Vec<f64> = joint(output).collect();
                joint.sort_by(|a, b| b.total_cmp(a));
                joint.iter().take(*tries).sum::<f64>()
            };
            prop_assert!(is_near(*named, (0..outputs).map(within).sum()));
        }
        let posterior = |output: usize| greatest(&mut joint(output)) / of_output[output];
        prop_assert!(is_near(measures.worst_posterior, greatest(&mut seen().map(posterior))));
        let possible = |output: usize| secrets.iter().filter(|(_, row)| row[output] > 0.0).count();
        prop_assert!(is_near(measures.smallest_set, seen().map(possible).min().unwrap() as f64));
        let alone: f64 = seen().filter(|output| possible(*output) == 1).map(|output| of_output[output]).sum();
        prop_assert!(is_near(measures.alone, alone));
        prop_assert!(is_near(measures.sets.iter().map(|set| set.probability).sum(), 1.0));
    }

    #[test]
    fn secrets_that_look_alike_count_the_same_in_one_row(secrets in secrets(), copies in 1..4_u32) {
        let copied: Vec<(f64, Vec<f64>)> = secrets
            .iter()
            .flat_map(|(prior, row)| (0..copies).map(move |_| (prior / f64::from(copies), row.clone())))
            .collect();
        let apart = channel(&copied);
        let (one, other) = (apart.measures(), apart.merged().measures());
        prop_assert!(is_near(one.named, other.named) && is_near(one.information_bits, other.information_bits));
        prop_assert!(is_near(one.smallest_set, other.smallest_set) && is_near(one.prior_bits, other.prior_bits));
    }
}

#[test]
fn a_channel_that_says_nothing_gives_nothing_away() {
    let measures = channel(&[(0.75, vec![0.5, 0.5]), (0.25, vec![0.5, 0.5])]).measures();
    assert!(is_near(measures.named, 0.75) && is_near(measures.capacity, 1.0) && measures.information_bits < 1e-9);
    assert_eq!((measures.security, measures.least_security), (Some(1.0), Some(1.0)));
}

#[test]
fn one_secret_alone_has_no_security_to_lose() {
    let measures = channel(&[(1.0, vec![1.0])]).measures();
    assert_eq!((measures.security, measures.named, measures.smallest_set), (None, 1.0, 1.0));
}
