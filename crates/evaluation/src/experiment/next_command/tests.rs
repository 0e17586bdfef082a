//! Tests of `experiment`.

use std::cell::Cell;

use rand::SeedableRng;
use sizeleak_model::Device;

use super::*;
use crate::experiment::knowledge::ActionSize;

const HOME: &str = "[[device]]\nname = \"plug\"\ncount = 6\nactions = [\"on\", \"off\"]\n\
                    [[device]]\nname = \"lamp\"\ncount = 3\nactions = [\"on\", \"off\", \"red\"]\n";

fn experiment(max_commands: usize) -> Experiment {
    Experiment::new(Inventory::from_toml(HOME).unwrap(), max_commands, 7).unwrap()
}

fn knowledge(certainty: f64) -> Knowledge {
    let size = |(name, size): (&str, i64)| ActionSize { action: name.to_owned(), size, interval: [size, size] };
    let sizes = [("on", 30), ("off", 31), ("red", 40)].map(size).to_vec();
    Knowledge {
        overhead: 70,
        sizes,
        certainty,
        spread: 0.5,
        longer: Vec::new(),
        unexplained: 0,
        without_sums: None,
        warnings: Vec::new(),
    }
}

/// Sends what is decided until the end; `check` says what each check finds. Returns the commands and the end.
fn played(
    mut experiment: Experiment,
    check: impl Fn(&Experiment) -> Knowledge,
    fit: bool,
) -> (Vec<PlannedCommand>, Stop) {
    let mut sent = Vec::new();
    loop {
        match experiment.next() {
            Decision::Stop(stop) => return (sent, stop),
            Decision::Send(command) => {
                experiment.add(command.half, Some(&command.counts));
                if command.half == Half::Learn && experiment.wants_check() {
                    let found = check(&experiment);
                    experiment.learned(Some(found));
                }
                if experiment.wants_test() {
                    let commands = experiment.held_back as u64;
                    experiment.tested(HeldOut { commands, explained: if fit { commands } else { 0 } });
                }
                sent.push(command);
            }
        }
    }
}

#[test]
fn commands_are_enough_when_sizes_stay_and_those_held_back_fit() {
    let (sent, stop) = played(experiment(MAX_COMMANDS), |_| knowledge(0.999), true);
    assert_eq!(stop, Stop::Settled);
    let learned: Vec<&Vec<u32>> =
        sent.iter().filter(|sent| sent.half == Half::Learn).map(|sent| &sent.counts).collect();
    assert_eq!(learned[..4], [&[1, 0, 0], &[0, 1, 0], &[0, 0, 1], &[2, 0, 0]], "what the sizes need comes first");
    assert!((20..=24).contains(&sent.len()), "{} commands", sent.len());
    let halves = sent
        .chunks(2)
        .all(|pair| pair.iter().map(|sent| sent.half).eq([Half::Learn, Half::Test][..pair.len()].iter().copied()));
    assert!(halves, "every second command is held back");
}

#[test]
fn no_end_without_a_fit_or_certainty_but_for_want_of_gain() {
    let (_, stop) = played(experiment(MAX_COMMANDS), |_| knowledge(0.999), false);
    assert_eq!(stop, Stop::NoGain { tied: Vec::new() });
    let open = |_: &Experiment| {
        let mut open = knowledge(0.4);
        open.sizes[2].interval = [39, 41];
        open
    };
    let (sent, stop) = played(experiment(MAX_COMMANDS), open, true);
    assert_eq!(stop, Stop::NoGain { tied: vec!["red".to_owned()] });
    assert!(sent.len() < 80, "{} commands", sent.len());
    let (sent, stop) = played(experiment(9), open, true);
    assert_eq!((sent.len(), stop), (9, Stop::MaxCommands));
}

#[test]
fn longer_commands_are_sent_where_length_fields_are_open() {
    let longer = |experiment: &Experiment| {
        let times = experiment.learned_from.iter().filter(|counts| **counts == [2, 2, 2]).count();
        let longer = if times < 3 { vec![vec![2, 2, 2]] } else { Vec::new() };
        Knowledge { longer, ..knowledge(0.999) }
    };
    let (sent, stop) = played(experiment(MAX_COMMANDS), longer, true);
    assert_eq!(sent.iter().filter(|sent| sent.half == Half::Learn && sent.counts == [2, 2, 2]).count(), 3);
    assert_eq!(stop, Stop::Settled);
}

#[test]
fn sizes_that_may_be_off_together_are_not_called_settled() {
    let open = |_: &Experiment| Knowledge { longer: vec![vec![2, 2, 2]], ..knowledge(0.999) };
    let (_, stop) = played(experiment(MAX_COMMANDS), open, true);
    assert_eq!(stop, Stop::OffTogether);
}

#[test]
fn commands_that_were_asked_for_come_first_and_devices_vary() {
    let asked = experiment(MAX_COMMANDS).asked_for([vec![0, 0, 3], vec![0, 0, 4], vec![5, 0, 0]]);
    let (sent, _) = played(asked, |_| knowledge(0.999), true);
    assert_eq!(sent[0].counts, [0, 0, 3]);
    assert_eq!(sent[1].counts, [5, 0, 0], "four lamps there are not");
    let single = |sent: &&PlannedCommand| sent.devices.len() == 1;
    let used: std::collections::BTreeSet<u32> = sent.iter().filter(single).map(|sent| sent.devices[0].index).collect();
    assert!(used.len() > 1, "{used:?}");
}

#[test]
fn a_command_that_failed_is_chosen_again() {
    let mut experiment = experiment(MAX_COMMANDS);
    let Decision::Send(first) = experiment.next() else { panic!() };
    experiment.add(first.half, None);
    let Decision::Send(second) = experiment.next() else { panic!() };
    assert_eq!((first.counts, first.half), (second.counts, second.half));
    assert_eq!(experiment.commands(), 0);
}

#[test]
fn sums_that_do_not_hold_end_an_experiment_after_several_checks() {
    let why = "compressed: sums of sizes do not hold for them";
    let never = |_: &Experiment| Knowledge { without_sums: Some(why.to_owned()), ..knowledge(0.0) };
    let (sent, stop) = played(experiment(MAX_COMMANDS), never, true);
    assert_eq!(stop, Stop::WithoutSums(why.to_owned()));
    let checks = Cell::new(0);
    // A cause that comes and goes is none.
    let at_times = |_: &Experiment| {
        checks.set(checks.get() + 1);
        Knowledge { without_sums: (checks.get() % 3 > 0).then(|| why.to_owned()), ..knowledge(0.999) }
    };
    let (settled, stop) = played(experiment(MAX_COMMANDS), at_times, true);
    assert_eq!(stop, Stop::Settled);
    assert!(sent.len() <= settled.len(), "{} and {}", sent.len(), settled.len());
}

#[test]
fn each_device_does_one_action_that_it_has() {
    let device = |name: &str, count, actions: &[&str]| Device {
        name: name.to_owned(),
        count,
        actions: actions.iter().map(|&action| action.to_owned()).collect(),
        safe: true,
    };
    let home = Inventory { devices: vec![device("plug", 2, &["on"]), device("lamp", 1, &["on", "red"])] };
    for seed in 0..20 {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let chosen = devices_for(&home, &["on", "on", "red"], &mut random).unwrap();
        let red = chosen.iter().find(|chosen| chosen.action == "red").unwrap();
        assert_eq!((red.device.as_str(), red.index, chosen.len()), ("lamp", 0, 3));
        assert_eq!(devices_for(&home, &["red", "red"], &mut random), None);
    }
}

#[test]
fn an_experiment_no_command_can_settle_is_expected_to_end_for_want_of_gain() {
    let of = |devices: &[(u32, &[&str])], max_commands| {
        let device = |(at, (count, actions)): (usize, &(u32, &[&str]))| Device {
            name: format!("device {at}"),
            count: *count,
            actions: actions.iter().map(|&action| action.to_owned()).collect(),
            safe: true,
        };
        let home = Inventory { devices: devices.iter().enumerate().map(device).collect() };
        Experiment::new(home, max_commands, 7).unwrap()
    };
    let open = |_: &Experiment| Knowledge { sizes: Vec::new(), ..knowledge(0.0) };
    let one_device: [&[&str]; 3] = [&["toggle"], &["lock", "unlock"], &["on", "off", "dim", "red"]];
    for actions in one_device {
        let experiment = of(&[(1, actions)], MAX_COMMANDS);
        let expected = experiment.expected_commands();
        let (sent, stop) = played(experiment, open, true);
        let all = actions.iter().map(|&action| action.to_owned()).collect();
        // The last one to learn from ends it, before one is held back.
        assert_eq!((sent.len() + 1, stop), (expected, Stop::NoGain { tied: all }));
        assert!(expected < 60, "{expected} commands for {actions:?}");
    }
    assert_eq!(of(&[(1, &["toggle"])], 12).expected_commands(), 12, "as many as are allowed");
    let [mut begun, several] = [of(&[(1, &["toggle"])], MAX_COMMANDS), of(&[(2, &["toggle"])], MAX_COMMANDS)];
    let before = begun.expected_commands();
    begun.add(Half::Learn, Some(&[1]));
    assert_eq!(begun.expected_commands(), before - 2, "one of each half is done");
    assert!(several.expected_commands() < 30, "two toggles in a command tell them from what all commands have");
    assert_eq!(of(&[(2, &["toggle"])], 3).expected_commands(), 3);
}
