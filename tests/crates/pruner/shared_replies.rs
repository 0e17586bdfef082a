//! Replies that may be to several commands, against giving every reply to every command that it may be to.

use proptest::prelude::*;
use sizeleak_frame::{Command, Frame, Identification};
use sizeleak_model::Model;
use sizeleak_platform::runtime::Stage;
use sizeleak_pruner::{Pruner, PruningMode};

use super::replies::{SINGLE, identification, likelihood, model, with_single_replies};

/// The candidates of each command, with their probabilities by the size.
const CANDIDATES: [[(&str, u32, f64); 3]; 3] = [
    [("on", 1, 0.6), ("off", 1, 0.3), ("on", 2, 0.1)],
    [("on", 1, 0.2), ("off", 1, 0.5), ("off", 2, 0.3)],
    [("on", 1, 0.3), ("off", 1, 0.3), ("on", 2, 0.4)],
];

/// What is left of commands that follow each other. Each has replies of these lengths, and of how many of them they may also be
/// to the commands before it, the last one first.
fn shared_out(commands: &[(Vec<u32>, Vec<u32>)]) -> (Vec<Identification>, Vec<(&'static str, u64)>) {
    let mut pruner = Pruner::new(&model(16, SINGLE), PruningMode::Learned, 1.0).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    for ((lengths, shared), at) in commands.iter().zip(0_u8..) {
        let command = Command {
            time_ns: i64::from(at),
            overlapped: usize::from(at) + 1 < commands.len(),
            shared_replies: shared.iter().copied().collect(),
            ..with_single_replies(lengths.iter().copied())
        };
        pruner.process(identification(command, &CANDIDATES[usize::from(at)], 0).into(), &mut out).unwrap();
    }
    let answers =
        out.into_iter().filter_map(|frame| Box::<Identification>::try_from(frame).ok()).map(|answer| *answer).collect();
    (answers, pruner.counters())
}

/// P(replies of a command | its candidates) in any order, by candidate.
fn of_candidates(model: &Model, command: usize, lengths: &[u32]) -> [f64; 3] {
    let orders: f64 = (1..=lengths.len()).map(|number| number as f64).product();
    CANDIDATES[command].map(|(name, count, probability)| probability * orders * likelihood(model, lengths, name, count))
}

/// The probability of each candidate of each command, over all ways to give every reply to a command.
fn by_enumeration(commands: &[(Vec<u32>, Vec<u32>)]) -> Vec<[f64; 3]> {
    let model = model(16, SINGLE);
    let mut ways = vec![vec![Vec::new(); commands.len()]];
    for ((lengths, shared), last) in commands.iter().zip(0..) {
        for (length, number) in lengths.iter().zip(0..) {
            let first = last - shared.iter().take_while(|shared| number < **shared).count();
            let given = |way: &Vec<Vec<u32>>, to: usize| {
                let mut way = way.clone();
                way[to].push(*length);
                way
            };
            ways = ways.iter().flat_map(|way| (first..=last).map(move |to| given(way, to))).collect();
        }
    }
    let mut found = vec![[0.0; 3]; commands.len()];
    for way in ways {
        let own: Vec<[f64; 3]> =
            way.iter().enumerate().map(|(at, lengths)| of_candidates(&model, at, lengths)).collect();
        for (at, found) in found.iter_mut().enumerate() {
            let others = own.iter().enumerate().filter(|(other, _)| *other != at);
            let of_others: f64 = others.map(|(_, own)| own.iter().sum::<f64>()).product();
            found.iter_mut().zip(own[at]).for_each(|(sum, own)| *sum += own * of_others);
        }
    }
    found.into_iter().map(|own| own.map(|one| one / own.iter().sum::<f64>())).collect()
}

proptest! {
    #[test]
    fn candidates_are_as_probable_as_over_all_ways_to_give_replies_to_commands(
        lengths in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![50_u32, 55, 60]), 0..3), 3),
        shared in [0u32..3, 0..3, 0..3],
    ) {
        let within = |shared: u32, lengths: &[u32]| shared.min(lengths.len() as u32);
        let with_first = within(shared[0], &lengths[1]);
        let with_second = within(shared[1], &lengths[2]);
        let with_both = within(shared[2], &lengths[2]).min(with_second);
        let shared = [vec![], vec![with_first], vec![with_second, with_both]];
        let commands: Vec<(Vec<u32>, Vec<u32>)> = lengths.into_iter().zip(shared).collect();
        let (answers, counters) = shared_out(&commands);
        prop_assert!(counters.contains(&("shared_replies", 3)), "{counters:?}");
        for ((answer, wanted), candidates) in answers.iter().zip(by_enumeration(&commands)).zip(CANDIDATES) {
            for ((name, count, _), wanted) in candidates.into_iter().zip(wanted) {
                let own = answer.candidates.iter().find(|one| one.actions.count(name) == count).unwrap().probability;
                prop_assert!((own - wanted).abs() < 1e-6, "{own} {wanted}");
            }
        }
    }
}

#[test]
fn too_many_ways_are_not_shared_out() {
    let counters = |replies: u32| shared_out(&[(vec![], vec![]), ((50..50 + replies).collect(), vec![replies])]).1;
    assert!(counters(20).contains(&("unknown_replies", 2)), "{:?}", counters(20));
    assert!(counters(6).contains(&("shared_replies", 2)), "{:?}", counters(6));
}
