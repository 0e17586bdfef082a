//! Hard decompositions: hundreds of actions, no inventory, ranges of sizes, messages of a megabyte. What exceeds the
//! bounds of memory is reported, and never wrong.

use std::fmt::Write;

use sizeleak_decomposer::Decomposer;
use sizeleak_frame::Identification;
use sizeleak_inference::search::{HeaviestWays, WayCounts, WayWeights};
use sizeleak_model::{Action, Limits, Model, Prior};

use super::lists;
use super::oracle::Ways;

const ACTIONS: i64 = 200;

fn size(action: i64) -> i64 {
    40 + action * 37 % 160
}

/// Two hundred actions of 40 to 199 bytes, without an inventory.
fn model(prior: Option<Prior>) -> Model {
    let mut text = String::from("schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n");
    for action in 0..ACTIONS {
        writeln!(text, "[[action]]\nname = \"{action}\"\nsize = {}", size(action)).unwrap();
    }
    text += lists::LEARNED;
    Model { prior, ..Model::from_toml(&text).unwrap() }
}

fn prior() -> Prior {
    let shares = vec![1.0 / ACTIONS as f64; ACTIONS as usize];
    Prior { numbers: vec![0.5, 0.25], decay: 0.5, shares, concentration: 1e9, recurring: Vec::new() }
}

fn decompose(decomposer: &mut Decomposer, plaintext: [u64; 2]) -> (Identification, usize) {
    let (identification, said) = lists::decompose(decomposer, plaintext, &[(0, 1.0)]);
    (identification, said.len())
}

/// How many multisets of the actions make up each sum: coefficients of the generating function, saturating at 128 bits.
fn ways(most: usize) -> Vec<u128> {
    let mut ways = vec![0_u128; most + 1];
    ways[0] = 1;
    for size in (0..ACTIONS).map(|action| size(action) as usize) {
        for sum in size..=most {
            ways[sum] = ways[sum].saturating_add(ways[sum - size]);
        }
    }
    ways
}

#[test]
fn counts_over_ranges_are_exact_or_saturated() {
    let ways = ways(3000);
    for prior in [None, Some(prior())] {
        let mut decomposer = Decomposer::new(model(prior), 50).unwrap();
        // A CBC block each: a single action, a few actions, and more ways than 64 bits can count.
        for least in [96_u64, 160, 320, 480, 800, 1600, 2800] {
            let (identification, notices) = decompose(&mut decomposer, [least, least + 15]);
            let exact = (least..=least + 15).map(|size| ways[size as usize - 60]).fold(0, u128::saturating_add);
            let expected = u64::try_from(exact).unwrap_or(u64::MAX);
            assert_eq!((identification.candidate_count, notices), (expected, 0), "{least}");
            assert_eq!(identification.listed, expected.min(50));
            for candidate in &identification.candidates {
                let actions = candidate.actions.iter();
                let sum: i64 =
                    actions.map(|(name, count)| size(name.parse().unwrap()) * i64::from(count)).sum::<i64>() + 60;
                assert!((least..=least + 15).contains(&(sum as u64)), "{candidate:?}");
            }
            let probabilities: Vec<f64> = identification.candidates.iter().map(|one| one.probability).collect();
            assert!(probabilities.is_sorted_by(|more, less| *more >= *less - 1e-12), "{probabilities:?}");
            assert!(probabilities.iter().sum::<f64>() <= 1.0 + 1e-9);
        }
    }
}

/// A table of 256 MiB for two hundred actions does not reach a megabyte.
#[test]
fn a_megabyte_of_two_hundred_actions_is_reported_and_smaller_messages_still_explained() {
    let mut decomposer = Decomposer::new(model(Some(prior())), 20).unwrap();
    let (identification, notices) = decompose(&mut decomposer, [1 << 20; 2]);
    assert_eq!((identification.candidate_count, identification.listed, notices), (0, 0, 1));
    let (identification, notices) = decompose(&mut decomposer, [8_000, 8_015]);
    assert_eq!((identification.candidate_count, identification.listed, notices), (u64::MAX, 20, 0));
    let (identification, notices) = decompose(&mut decomposer, [100; 2]);
    assert!(identification.candidate_count > 0 && notices == 0, "{identification:?}");
}

/// A table for seven actions reaches a megabyte, and the first ways take no time, however many there are.
#[test]
fn a_megabyte_of_seven_actions_has_first_ways() {
    let actions: Vec<Action> =
        [43, 44, 46, 47, 49, 52, 55].iter().map(|size| Action::new(size.to_string(), *size)).collect();
    let mut counts = WayCounts::new(&actions, &Limits::free(7)).unwrap();
    let mut ways = Ways::new(&actions, &Limits::free(7));
    let sums = [1_048_576, 1_048_575, 999_999];
    for sum in sums {
        assert!(counts.count(sum).unwrap() > 1 << 60);
        for counts in ways.find(sum, 100) {
            let made: i64 = counts.iter().zip(&actions).map(|(count, action)| i64::from(*count) * action.size).sum();
            assert_eq!(made, sum);
        }
    }
}

/// More than are looked for at once, and fewer than are wanted.
#[test]
fn all_of_many_equal_ways_are_found() {
    let actions: Vec<Action> = [3, 5, 7, 11].iter().map(|size| Action::new(size.to_string(), *size)).collect();
    let limits = Limits::free(4);
    let count = WayCounts::new(&actions, &limits).unwrap().count(800).unwrap();
    assert!(count > 1 << 16, "{count}");
    let mut weights = WayWeights::flat(&actions, &limits).unwrap();
    assert!(weights.prepare(800));
    let found = HeaviestWays::find(&weights, &[(800, 1.0)], count, 2 * count as usize);
    assert_eq!(found.iter().count() as u64, count);
}
