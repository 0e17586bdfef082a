use sizeleak_model::{FitMethod, Neighbours, Smoothing};

use super::*;
use crate::fit::testing::{SimulatedGateway, TestRandom};

fn gateway(seed: u64) -> SimulatedGateway<'static> {
    let ids = SimulatedGateway::MOSTLY_SIX_DIGITS;
    SimulatedGateway { seed, actions: vec![28, 31, 35], base: 67, steps: &[(126, 2)], ids, wrong_percent: 0 }
}

/// Up to four actions, so that kinds repeat.
fn commands(seed: u64, n: usize) -> Vec<LabelledCommand> {
    let mut random = TestRandom(seed);
    let gateway = gateway(seed);
    let counts = (0..n).map(|_| {
        let mut counts = vec![0; 3];
        for _ in 0..=random.below(4) {
            counts[random.below(3) as usize] += 1;
        }
        counts
    });
    counts.map(|counts: Vec<u32>| gateway.command(&counts)).collect()
}

fn examine(commands: &[LabelledCommand]) -> Additivity {
    let names = ["a", "b", "c"].map(str::to_owned);
    Additivity::of(&Fit::learn(FitMethod::Robust, &names, commands).unwrap(), commands)
}

#[test]
fn additive_sizes_pass() {
    let mut rejected = 0;
    for seed in 0..40 {
        let mut random = TestRandom(seed + 100);
        let mut commands = commands(seed, 60);
        // Ids of varying width.
        for command in &mut commands {
            let id = i64::from(random.below(10) == 0);
            command.sizes = command.sizes.map(|size| size - id);
        }
        let found = examine(&commands);
        assert!(found.forms.is_none() && found.repeated_shorter.is_none(), "seed {seed}: {found:?}");
        rejected += usize::from(found.p_value < 0.01);
    }
    assert!(rejected <= 3, "{rejected} of 40");
}

#[test]
fn compressed_bodies_are_recognised_by_repeated_actions() {
    let mut commands = commands(1, 80);
    for command in &mut commands {
        let repeats: u32 = command.counts.iter().map(|n| n.saturating_sub(1)).sum();
        command.sizes = command.sizes.map(|size| size - 22 * i64::from(repeats));
    }
    let found = examine(&commands);
    assert!(found.repeated_shorter.is_some_and(|shorter| (shorter - 22.0).abs() < 3.0), "{found:?}");
    assert!(found.p_value < 0.01 && found.mean_deviation > 1.0, "{found:?}");
}

#[test]
fn two_forms_of_messages_are_recognised_by_their_distance() {
    let mut commands = commands(2, 80);
    for (at, command) in commands.iter_mut().enumerate() {
        command.sizes = command.sizes.map(|size| size + if at % 3 == 0 { 41 } else { 0 });
    }
    let (apart, share) = examine(&commands).forms.unwrap();
    assert!((40..=43).contains(&apart) && (share - 1.0 / 3.0).abs() < 0.02, "{apart} {share}");
}

#[test]
fn padded_sizes_are_alike_modulo_the_padding() {
    assert_eq!(padding([64, 128, 192, 320, 448].into_iter().map(|size| size + 5)), Some(64));
    assert_eq!(padding([100, 116, 132, 148].into_iter()), None, "four sizes may be so by chance");
    assert_eq!(padding((0..20).map(|at| 100 + 3 * at)), None, "three bytes may be an action");
    assert_eq!(padding([100, 116, 132, 148, 165].into_iter()), None);
    assert_eq!(padding(std::iter::empty()), None);
}

#[test]
fn few_commands_are_examined_without_a_verdict() {
    let fit = Fit {
        overhead: 60,
        actions: Vec::new(),
        intervals: Vec::new(),
        certainty: 1.0,
        neighbours: Neighbours::new([sizeleak_model::EpsilonTuple::new(60, 0)]).unwrap(),
        smoothing: Smoothing::NEAREST,
        outliers: Vec::new(),
        ambiguous_shifts: Vec::new(),
    };
    let found = Additivity::of(&fit, &[]);
    assert_eq!((found.p_value, found.forms, found.repeated_shorter), (1.0, None, None));
}

#[test]
fn sizes_that_vary_speak_against_sums_unless_distributions_explain_them() {
    let mut random = TestRandom(9);
    let mut commands = commands(7, 300);
    for command in &mut commands {
        let names: i64 = (0..command.counts[0]).map(|_| [3, 4, 6, 6, 9, 13][random.below(6) as usize]).sum();
        command.sizes = command.sizes.map(|size| size + names);
    }
    let names = ["a", "b", "c"].map(str::to_owned);
    let single = Fit::learn(FitMethod::Robust, &names, &commands).unwrap();
    assert!(Additivity::of(&single, &commands).mean_deviation > 1.0);
    let varying = single.with_varying_sizes(&commands).unwrap();
    let found = Additivity::of(&varying, &commands);
    assert!(found.mean_deviation < 1.0 && found.repeated_shorter.is_none(), "{found:?}");
    // The same distributions do not explain commands that grow less with each action.
    for command in &mut commands {
        let more = i64::try_from(command.total()).unwrap() - 1;
        command.sizes = command.sizes.map(|size| size - 6 * more);
    }
    let found = Additivity::of(&varying, &commands);
    assert!(found.mean_deviation > 1.0 && found.p_value < 0.01, "{found:?}");
}
