//! What padding leaves of what is seen, and what random padding gives away over time.

use std::collections::BTreeMap;

use sizeleak_audit::padding::{PaddedOutputs, PaddingPolicy, named_after, named_with_known_key};
use sizeleak_audit::tunnel::{Burst, Tunnel};
use sizeleak_inference::channel::{EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandGroup, CommandSpace, Premises, PriorName, SizeRow};
use sizeleak_model::Model;
use sizeleak_model::policies::Draw;
use support::joint::rows_of_groups;

#[test]
fn padded_outputs_are_the_sums_of_those_that_look_alike() {
    let model = Model::from_toml(include_str!("../../../examples/home/model.toml")).unwrap();
    let space = CommandSpace::new(&model, &Premises { prior: PriorName::Devices, decay: Some(0.6) }).unwrap();
    let knowledge = EpsilonKnowledge::Distribution;
    let seen = Observation::new(&space, &model, Observer::Sizes, knowledge).unwrap().unwrap();
    let tunnel = Tunnel::new("wireguard".parse().unwrap(), &model);
    let policy = PaddingPolicy::Random { most: 3, draw: Draw::Independent };
    let (outputs, bursts) = PaddedOutputs::through_tunnel(&seen, &policy, &tunnel);
    let padded = outputs.channel(&seen.command);
    assert_eq!((padded.rows.len(), padded.outputs), (seen.command.rows.len(), bursts.len()));
    for (row, before) in padded.rows.iter().zip(&seen.command.rows) {
        let mut wanted: BTreeMap<Burst, f64> = BTreeMap::new();
        for (output, probability) in &before.outputs {
            for more in 0..=3 {
                let burst = tunnel.message(seen.output(*output).size + more);
                *wanted.entry(burst).or_default() += probability / 4.0;
            }
        }
        assert!(row.outputs.is_sorted_by(|one, next| one.0 < next.0) && row.outputs.len() == wanted.len());
        for (output, probability) in &row.outputs {
            assert!((wanted[&bursts[*output as usize]] - probability).abs() < 1e-12);
        }
    }
}

fn groups() -> Vec<CommandGroup> {
    let group = |bytes, commands, probability| CommandGroup { bytes, commands, probability };
    vec![group(5, 1.0, 0.2), group(5, 2.0, 0.1), group(6, 1.0, 0.25), group(9, 1.0, 0.35)]
}

#[test]
fn commands_of_one_size_are_in_one_row() {
    let group = |bytes, commands, probability| CommandGroup { bytes, commands, probability };
    let rows = rows_of_groups(&[group(7, 1.0, 0.5), group(5, 1.0, 0.25), group(7, 2.0, 0.125)]);
    let of_seven = SizeRow { bytes: 7, commands: 3.0, probability: 0.75, greatest: 0.5, plogp: -1.25 };
    let of_five = SizeRow { bytes: 5, commands: 1.0, probability: 0.25, greatest: 0.25, plogp: -0.5 };
    assert_eq!(rows, [of_five, of_seven]);
}

/// All sequences of `length` numbers below `base`.
fn sequences(base: u64, length: u32) -> impl Iterator<Item = Vec<u64>> {
    (0..base.pow(length)).map(move |code| (0..length).map(|at| code / base.pow(at) % base).collect())
}

#[test]
fn repeated_sizes_name_what_all_their_sequences_name() {
    let rows = rows_of_groups(&groups());
    for (most, observations) in [(0, 1), (0, 3), (3, 1), (3, 2), (2, 4), (7, 2)] {
        let mut joint: BTreeMap<Vec<u64>, f64> = BTreeMap::new();
        for row in &rows {
            for added in sequences(most + 1, observations) {
                let seen = added.iter().map(|added| added + row.bytes).collect();
                let probability = row.greatest / ((most + 1) as f64).powf(f64::from(observations));
                let joint = joint.entry(seen).or_default();
                *joint = joint.max(probability);
            }
        }
        let named: f64 = joint.values().sum();
        let found = named_after(&rows, most, observations);
        assert!((found - named).abs() < 1e-12, "{most} {observations}: {found} is not {named}");
    }
}

#[test]
fn a_known_key_names_what_all_ways_to_draw_name_on_average() {
    let policy = PaddingPolicy::Random { most: 3, draw: Draw::Keyed };
    let commands = [(5, 0.2), (5, 0.1), (5, 0.1), (6, 0.25), (9, 0.35)];
    let mut sum = 0.0;
    for added in sequences(4, 5) {
        for size in 0..13 {
            let sent = commands.iter().zip(&added).filter(|((bytes, _), added)| bytes + **added == size);
            sum += sent.map(|((_, prior), _)| *prior).fold(0.0, f64::max);
        }
    }
    let found = named_with_known_key(&groups(), &policy);
    assert!((found - sum / 1024.0).abs() < 1e-12, "{found} is not {}", sum / 1024.0);
}
