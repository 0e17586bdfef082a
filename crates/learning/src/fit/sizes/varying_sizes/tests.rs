//! Distributions of simulated gateways.

use sizeleak_model::FitMethod;

use super::*;
use crate::fit::testing::{SimulatedGateway, TestRandom, command};

const NAMES: [&str; 4] = ["on", "off", "dim", "colour"];

/// Commands of a simulated gateway whose actions have further bytes, each draw as likely.
fn commands(seed: u64, number: usize, further: [&[i64]; 4], ids: &[i64]) -> Vec<LabelledCommand> {
    let mut random = TestRandom(seed);
    let mut draw = |values: &[i64]| values[random.below(values.len() as u64) as usize];
    let mut made = Vec::new();
    for at in 0..number {
        let mut counts = [0_u32; 4];
        let mut body = 0;
        let total = if at < 32 { 1 + at / 16 } else { 1 + draw(&[0, 0, 0, 1, 1, 2, 3, 4, 6, 9]) as usize };
        for _ in 0..total {
            let action = if at < 32 { at % 4 } else { draw(&[0, 1, 2, 3]) as usize };
            counts[action] += 1;
            body += [28, 29, 36, 41][action] + draw(further[action]);
        }
        let payload = 67 + body + draw(ids);
        made.push(command(payload + if payload >= 126 { 2 } else { 0 }, &counts));
    }
    made
}

fn plain(commands: &[LabelledCommand]) -> Fit {
    Fit::learn(FitMethod::Robust, &NAMES.map(str::to_owned), commands).unwrap()
}

fn varying(fit: &Fit) -> Vec<&str> {
    fit.actions.iter().filter(|action| action.varies()).map(|action| action.name.as_str()).collect()
}

const IDS: [i64; 10] = [0, 0, 0, 0, 0, 0, 0, 0, 0, -1];
const DIGITS: [i64; 10] = [0, 1, 1, 1, 1, 1, 1, 1, 1, 2];

#[test]
fn digits_of_a_brightness_are_found_and_constant_actions_stay_constant() {
    for seed in 0..3 {
        let commands = commands(seed, 400, [&[0], &[0], &DIGITS, &[0]], &IDS);
        let fit = plain(&commands).with_varying_sizes(&commands).unwrap();
        assert_eq!(varying(&fit), ["dim"], "seed {seed}");
        assert_eq!(fit.actions.iter().map(|action| action.size).collect::<Vec<_>>(), [28, 29, 37, 41]);
        let share =
            |size: i64| fit.actions[2].sizes().find(|(other, _)| *other == size).map_or(0.0, |(_, share)| share);
        let shares = [36, 37, 38].map(share);
        assert!(shares.iter().zip([0.1, 0.8, 0.1]).all(|(share, truth)| (share - truth).abs() < 0.06), "{shares:?}");
        assert!(fit.certainty > 0.9, "{}", fit.certainty);
    }
}

#[test]
fn names_of_rooms_are_found_and_epsilon_holds_the_ids_alone() {
    let rooms = [3, 4, 5, 6, 6, 7, 8, 11, 13];
    for seed in 0..4 {
        let commands = commands(seed, 400, [&rooms, &rooms, &[0], &[0]], &IDS);
        let fit = plain(&commands).with_varying_sizes(&commands).unwrap();
        assert_eq!(varying(&fit), ["on", "off"], "seed {seed}");
        assert_eq!([fit.actions[2].size, fit.actions[3].size], [36, 41]);
        let mean = |action: &Action| action.sizes().map(|(size, share)| size as f64 * share).sum::<f64>();
        assert!((mean(&fit.actions[0]) - 35.0).abs() < 1.0 && (mean(&fit.actions[1]) - 36.0).abs() < 1.0, "{fit:?}");
        // Most commands are so long that the length field has grown by 2: ε is 0 or −1 in these, −2 or −3 in others.
        let tuples = fit.neighbours.tuples();
        let odd: u64 = tuples.iter().filter(|one| !(-3..=0).contains(&one.epsilon)).map(|one| one.times).sum();
        assert!(odd <= 40, "{odd} of 400 values of ε are beyond the ids in {tuples:?}");
    }
}

#[test]
fn variation_of_all_commands_alike_is_epsilon() {
    let wide = [0, 0, 0, 0, -1, -1, -2, -3, 4];
    for seed in 0..4 {
        let commands = commands(seed, 300, [&[0]; 4], &wide);
        let plain = plain(&commands);
        let varied = plain.with_varying_sizes(&commands);
        assert_eq!(varied.as_ref().map(varying), None, "seed {seed}");
    }
}

/// Bytes of any number between 0 and some that each message has are no sizes of actions; to look for these took minutes.
#[test]
fn random_padding_makes_no_sizes_that_vary() {
    for (seed, most) in [(0, 129), (1, 60), (2, 200), (3, 25)] {
        let mut random = TestRandom(seed + 5);
        let mut commands = commands(seed, 400, [&[0]; 4], &IDS);
        for command in &mut commands {
            command.sizes = [command.sizes[0] + random.below(most).cast_signed(); 2];
        }
        assert_eq!(plain(&commands).with_varying_sizes(&commands).as_ref().map(varying), None, "{most} bytes");
    }
}

#[test]
fn gateways_of_single_sizes_keep_them() {
    let names: Vec<String> = (0..7).map(|at| at.to_string()).collect();
    for seed in [0, 1, 4, 5] {
        let gateway = SimulatedGateway {
            seed,
            actions: vec![28, 29, 32, 34, 36, 35, 40],
            base: 67,
            steps: &[(126, 2)],
            ids: if seed % 2 == 0 { SimulatedGateway::MOSTLY_SIX_DIGITS } else { SimulatedGateway::SKEWED },
            wrong_percent: seed,
        };
        let commands = [gateway.singles_and_doubles(42), gateway.mixed(150)].concat();
        let fit = Fit::learn(FitMethod::Robust, &names, &commands).unwrap();
        assert_eq!(fit.with_varying_sizes(&commands), None, "seed {seed}");
    }
}

#[test]
fn sizes_not_seen_have_a_share() {
    let sizes = with_unseen(&Pmf::from_values([(10, 0.5), (12, 0.5)]), 98.0);
    let unseen: Vec<i64> = sizes.iter().filter(|(_, share)| **share < 0.1).map(|(size, _)| size).collect();
    assert_eq!(unseen, [9, 11, 13]);
    assert!((sizes.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(with_unseen(&Pmf::certain(4), 9.0), Pmf::certain(4));
}
