//! Priors learned from simulated usage, and shares of actions where each action of a command uses up a device.

use proptest::prelude::*;

use super::*;
use crate::fit::testing::{TestRandom, actions, command, device, home};

fn learn(commands: &[LabelledCommand]) -> Option<Prior> {
    let actions = actions(&["on", "off", "red"]);
    learn_prior(commands, &actions, Some(&home()), &home().limits(&actions).unwrap())
}

fn free(commands: &[LabelledCommand]) -> Prior {
    learn_prior(commands, &actions(&["on", "off", "red"]), None, &Limits::free(3)).unwrap()
}

/// Commands of up to 12 actions, of which `on` is six in ten, `red` one in ten.
fn usual_commands(commands: usize) -> Vec<LabelledCommand> {
    let mut random = TestRandom(3);
    let mut made = Vec::new();
    for _ in 0..commands {
        let mut counts = [0; 3];
        let mut more = true;
        while more && counts.iter().sum::<u32>() < 12 {
            counts[[0, 0, 0, 0, 0, 0, 1, 1, 1, 2][random.below(10) as usize]] += 1;
            more = random.below(4) > 0;
        }
        made.push(command(100, &counts));
    }
    made
}

#[test]
fn shares_numbers_and_concentration_are_learned() {
    let prior = learn(&usual_commands(2000)).unwrap();
    for (share, expected) in prior.shares.iter().zip([0.6, 0.3, 0.1]) {
        assert!((share - expected).abs() < 0.03, "{prior:?}");
    }
    assert!((prior.numbers[0] - 0.25).abs() < 0.03 && (prior.decay - 0.75).abs() < 0.05, "{prior:?}");
    assert!(prior.concentration > 50.0, "devices are commanded independently: {prior:?}");
}

#[test]
fn shares_make_up_for_devices_that_are_used_up() {
    // Each device is as likely, and each of its actions: of sixteen devices, four lamps have `red` as one of three.
    let mut random = TestRandom(8);
    let mut made = Vec::new();
    for _ in 0..3000 {
        let mut devices: Vec<u64> = (0..16).collect();
        let mut counts = [0; 3];
        let number = 1 + random.below(12);
        for _ in 0..number {
            let device = devices.swap_remove(random.below(devices.len() as u64) as usize);
            counts[random.below(if device < 4 { 3 } else { 2 }) as usize] += 1;
        }
        made.push(command(0, &counts));
    }
    let prior = learn(&made).unwrap();
    assert!(
        prior.shares[2] > 1.08 * 4.0 / 3.0 / 16.0 && (prior.shares.iter().sum::<f64>() - 1.0).abs() < 1e-5,
        "{prior:?}"
    );
    assert!((prior.shares[0] / prior.shares[1] - 1.0).abs() < 0.1 && prior.concentration > 100.0, "{prior:?}");
}

#[test]
fn commands_with_one_action_for_all_devices_have_a_small_concentration() {
    let same: Vec<_> = (0..60).map(|at| command(0, &[[6, 0, 0], [0, 5, 0], [0, 0, 4]][at % 3])).collect();
    let prior = free(&same);
    assert!(prior.concentration < 1.0, "{prior:?}");
    let together = prior.ln_next(0, 1) + prior.ln_next(0, 2);
    assert!(together > prior.ln_next(0, 1) + prior.ln_next(1, 1));
}

#[test]
fn few_labels_change_the_base_little() {
    let base = learn(&[command(0, &[1, 0, 0])]).unwrap();
    // Plugs never have red; lamps have it as often as on and off.
    let expected = [22.0 / 3.0, 22.0 / 3.0, 4.0 / 3.0];
    for (share, expected) in base.shares.iter().zip(expected) {
        assert!((share - expected / 16.0).abs() < 0.01, "{base:?}");
    }
    assert!(base.ln_number(16) > 1e-8_f64.ln() && base.concentration < 10.0, "{base:?}");
}

#[test]
fn rounds_of_experiments_are_ignored() {
    let experiments: Vec<_> = (0..3)
        .flat_map(|action| (1..=2).map(move |times| (action, times)))
        .map(|(action, times)| {
            let mut counts = [0; 3];
            counts[action] = times;
            command(0, &counts)
        })
        .collect();
    assert_eq!(learn(&experiments), None);
    assert_eq!(learn(&[]), None);
    for incomplete in 1..6 {
        let second = [&experiments, &experiments[..incomplete]].concat();
        assert_eq!(learn(&second), None, "a second round that ends after {incomplete}");
    }
    let twice = [&experiments[..], &experiments[..1], &experiments[..1]].concat();
    assert!(learn(&twice).is_some(), "one of them more often than in a round");
    let five = (0..5).flat_map(|_| experiments.clone()).collect();
    let both = [five, usual_commands(40)].concat();
    let has_no_round = usual_commands(40).iter().all(|command| command.counts != [0, 0, 2]);
    assert!(has_no_round);
    assert_eq!(learn(&both), learn(&usual_commands(40)));
}

/// Of a home where few commands are possible, nearly all that people do looks like an experiment.
#[test]
fn usage_that_looks_like_experiments_is_learned() {
    let usual = |commands: &[([u32; 2], u64)], seed: u64| {
        let mut random = TestRandom(seed);
        let all: u64 = commands.iter().map(|(_, share)| share).sum();
        let mut draw = || {
            let mut at = random.below(all);
            let drawn = commands.iter().find(|(_, share)| at.checked_sub(*share).map(|rest| at = rest).is_none());
            command(0, &drawn.unwrap().0)
        };
        (0..300).map(|_| draw()).collect::<Vec<_>>()
    };
    let lamps = Inventory { devices: vec![device("lamp", 3, &["on", "off"])] };
    let actions = actions(&["on", "off"]);
    let learn = |commands: &[LabelledCommand]| {
        learn_prior(commands, &actions, Some(&lamps), &lamps.limits(&actions).unwrap()).unwrap()
    };
    let experiments: Vec<LabelledCommand> =
        (0..12).map(|at| command(0, &[[1, 0], [2, 0], [0, 1], [0, 2]][at % 4])).collect();
    for (commands, seed) in [
        (&[([1, 0], 30), ([0, 1], 30), ([2, 0], 15), ([0, 2], 15), ([1, 1], 10)][..], 1),
        (&[([1, 0], 40), ([0, 1], 20), ([2, 0], 20), ([0, 2], 20)], 2),
        (&[([1, 0], 20), ([0, 1], 20), ([2, 0], 20), ([0, 2], 20), ([3, 0], 10), ([0, 3], 10)], 3),
    ] {
        let usual = usual(commands, seed);
        let single = usual.iter().filter(|command| command.total() == 1).count() as f64 / usual.len() as f64;
        for (labelled, what) in [(usual.clone(), "alone"), ([&experiments[..], &usual].concat(), "after experiments")] {
            let prior = learn(&labelled);
            assert!((prior.numbers[0] - single).abs() < 0.05, "{what}, {single} of one action: {prior:?}");
        }
    }
}

#[test]
fn a_command_recurs_if_commands_that_were_held_back_show_it_too() {
    let scene = command(0, &[5, 2, 1]);
    let spread: Vec<_> =
        usual_commands(200).chunks(4).flat_map(|few| [few, std::slice::from_ref(&scene)].concat()).collect();
    assert_eq!(learn(&spread).unwrap().recurring.len(), 1);
    let at_once = [usual_commands(200), vec![scene; 12]].concat();
    assert_eq!(learn(&at_once).unwrap().recurring, []);
}

#[test]
fn numbers_beyond_the_list_share_the_rest() {
    let prior = free(&usual_commands(100));
    let all: f64 = (1..2000).map(|number| prior.ln_number(number).exp()).sum();
    assert!((all - 1.0).abs() < 1e-3, "{all}");
    assert!(prior.ln_number(0) < -1e300 && prior.ln_number(u32::MAX) < prior.ln_number(400));
}

#[test]
fn rising_factorials_equal_the_sum_of_their_terms() {
    for (x, n) in [(0.3, 65_u32), (7.0, 200), (1e5, 1000)] {
        let terms: f64 = (0..n).map(|at| (x + f64::from(at)).ln()).sum();
        assert!((ln_rising(x, f64::from(n)) - terms).abs() < 1e-6);
    }
}

proptest! {
    #[test]
    fn any_learned_prior_is_valid(
        counts in prop::collection::vec([0u32..4, 0..3, 0..200_000], 1..12),
        with_inventory: bool,
    ) {
        let commands: Vec<_> = counts.iter().map(|counts| command(0, counts)).collect();
        let prior = if with_inventory { learn(&commands) } else {
            learn_prior(&commands, &actions(&["on", "off", "red"]), None, &Limits::free(3))
        };
        if let Some(prior) = prior {
            prop_assert_eq!(prior.fault(3), None, "{:?}", prior);
            prop_assert!((prior.shares.iter().sum::<f64>() - 1.0).abs() < 1e-4);
        }
    }

    /// The factors of all multisets of n actions, times n!, are Pólya's distribution, which sums to 1.
    #[test]
    fn factors_sum_to_those_of_polyas_urn(first in 0.05f64..0.9, concentration in 0.1f64..100.0, n in 1u32..12) {
        let prior = Prior { numbers: vec![], decay: 0.5, shares: vec![first, 1.0 - first], concentration, recurring: Vec::new() };
        let factor = |action, times: u32| (1..=times).map(|nth| prior.ln_next(action, nth)).sum::<f64>();
        let all: f64 = (0..=n).map(|times| (factor(0, times) + factor(1, n - times)).exp()).sum();
        let urn = (0..n).map(|at| (1.0 + f64::from(at) / concentration) / (f64::from(at) + 1.0)).product::<f64>();
        prop_assert!((all / urn - 1.0).abs() < 1e-9, "{} {}", all, urn);
    }
}

fn commands(counts: &[(&[u32], usize)]) -> Vec<LabelledCommand> {
    counts.iter().flat_map(|(counts, times)| (0..*times).map(move |_| command(100, counts))).collect()
}

#[test]
fn tail_is_that_of_the_poisson_distribution() {
    // 1 − e⁻¹ (1 + 1 + 1/2) and 1 − e^−0.1.
    assert!((poisson_tail(3, 1.0) - 0.080_301_397).abs() < 1e-9);
    assert!((poisson_tail(1, 0.1) - 0.095_162_582).abs() < 1e-9);
    // Below the mean 1 − e⁻⁵ (1 + 5); what is never expected never happens.
    assert!((poisson_tail(2, 5.0) - 0.959_572_318).abs() < 1e-9);
    assert_eq!(poisson_tail(1, 0.0).to_bits(), 0.0_f64.to_bits());
    assert!(poisson_tail(1_000, 10.0) < 1e-300);
}

#[test]
fn commands_labelled_more_often_than_by_chance_recur() {
    let all = commands(&[(&[1, 0], 40), (&[0, 1], 40), (&[3, 2], 18), (&[1, 1], 2)]);
    let all: Vec<&LabelledCommand> = all.iter().collect();
    let found = recurring_commands(&all, |counts| if counts.iter().sum::<u32>() == 1 { 0.4 } else { 0.02 });
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].counts, [3, 2]);
    // Of 18, two are by habit if none recurs: habits have what recurs of it, too.
    assert!((found[0].share - 16.0 / 101.0 / 0.98).abs() < 1e-6, "{found:?}");
}

#[test]
fn commands_that_recur_are_as_probable_as_they_were_frequent() {
    let seen: [&[(&[u32], usize)]; 4] = [
        &[(&[1, 0], 40), (&[0, 1], 40), (&[3, 2], 18), (&[1, 1], 2)],
        &[(&[1, 0], 150), (&[0, 1], 20), (&[2, 0], 60), (&[1, 1], 9)],
        &[(&[1, 0], 60), (&[0, 1], 60), (&[2, 1], 30), (&[5, 5], 20)],
        &[(&[1, 0], 50), (&[2, 2], 50)],
    ];
    let habits = Prior {
        numbers: vec![0.5, 0.3],
        decay: 0.5,
        shares: vec![0.6, 0.4],
        concentration: 30.0,
        recurring: Vec::new(),
    };
    for seen in seen {
        let all = commands(seen);
        let all: Vec<&LabelledCommand> = all.iter().collect();
        let recurring = recurring_commands(&all, |counts| habits.probability(counts));
        assert!(!recurring.is_empty(), "{seen:?}");
        let prior = Prior { recurring, ..habits.clone() };
        assert_eq!(prior.fault(2), None);
        for one in &prior.recurring {
            let times = all.iter().filter(|command| command.counts == one.counts).count() as f64;
            // One further command is by habit.
            let wanted = (times + habits.probability(&one.counts)) / (all.len() as f64 + 1.0);
            assert!((prior.whole_probability(&one.counts) - wanted).abs() < 1e-5, "{one:?}: {wanted}");
        }
    }
}

#[test]
fn twice_is_not_often_however_improbable_it_is() {
    let all = commands(&[(&[1, 0], 2), (&[7, 7], 2)]);
    let all: Vec<&LabelledCommand> = all.iter().collect();
    assert_eq!(recurring_commands(&all, |_| 1e-12), []);
}

/// Shares with which `red`, which four of sixteen devices have, is a tenth of all actions.
fn shares_for(commands_of: &[f64]) -> Vec<f64> {
    let limits = home().limits(&actions(&["on", "off", "red"])).unwrap();
    shares_by_device_use(&[0.5, 0.4, 0.1], 1e9, &limits, commands_of)
}

#[test]
fn actions_of_few_devices_have_a_greater_share_where_commands_are_long() {
    let long = shares_for(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0]);
    assert!(long[2] > 0.11 && (long.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{long:?}");
    assert!((long[0] / long[1] - 5.0 / 4.0).abs() < 1e-9, "within a class nothing changes: {long:?}");
}

#[test]
fn single_actions_have_their_frequencies() {
    let single = shares_for(&[10.0]);
    assert!(single.iter().zip([0.5, 0.4, 0.1]).all(|(share, wanted)| (share - wanted).abs() < 1e-5), "{single:?}");
}

#[test]
fn without_an_inventory_shares_are_frequencies() {
    assert_eq!(shares_by_device_use(&[0.7, 0.3], 50.0, &Limits::free(2), &[1.0, 2.0]), [0.7, 0.3]);
}
