//! Tests of `experiment_design`.

use proptest::prelude::*;
use sizeleak_model::{FitMethod, Inventory};

use super::*;
use crate::fit::Fit;
use crate::fit::sizes::fitted_sizes::action_bytes;
use crate::fit::testing::{actions, command, device, home};

fn missing(counts: &[[u32; 3]]) -> ExperimentDesign {
    let counts = counts.iter().map(<[u32; 3]>::as_slice);
    ExperimentDesign::missing(3, counts, &home().limits(&actions(&["on", "off", "red"])).unwrap())
}

#[test]
fn actions_in_fixed_proportions_are_undetermined() {
    let commands = [[1, 2, 0], [2, 4, 1], [3, 6, 0], [0, 0, 3]].map(|counts| command(100, &counts));
    assert_eq!(undetermined_actions(3, &commands), [0, 1]);
    let same_total = [[1, 2, 0], [2, 1, 0], [0, 3, 0]].map(|counts| command(100, &counts));
    assert_eq!(undetermined_actions(3, &same_total), [0, 1, 2], "three actions in every command: |ac| could be theirs");
}

#[test]
fn one_command_is_proposed_for_each_missing_dimension() {
    assert_eq!(missing(&[]).commands, [vec![1, 0, 0], vec![0, 1, 0], vec![0, 0, 1], vec![2, 0, 0]]);
    assert_eq!(missing(&[[1, 0, 0], [2, 0, 0], [0, 3, 1]]).commands, [[0, 1, 0]]);
    assert_eq!(missing(&[[1, 1, 0], [2, 2, 0], [0, 0, 1]]).commands, [[1, 0, 0]], "two that always occur together");
    assert_eq!(missing(&[[1, 0, 0], [0, 1, 0], [0, 0, 1]]).commands, [[2, 0, 0]], "one action in every command");
    assert_eq!(missing(&[[1, 0, 0], [2, 0, 0], [0, 1, 0], [1, 1, 1]]).commands, Vec::<Vec<u32>>::new());
}

#[test]
fn only_commands_that_the_inventory_allows_are_proposed() {
    let actions = actions(&["open", "shut"]);
    let design = |devices: &[(u32, &[&str])]| {
        let kinds = devices.iter().zip(["a", "b"]).map(|((count, actions), name)| device(name, *count, actions));
        let limits = Inventory { devices: kinds.collect() }.limits(&actions).unwrap();
        ExperimentDesign::missing(2, std::iter::empty(), &limits)
    };
    let two_doors = design(&[(1, &["open"]), (1, &["shut"])]);
    assert_eq!(two_doors.commands, [[1, 0], [0, 1], [1, 1]], "never the same twice");
    assert_eq!(two_doors.undeterminable, Vec::<usize>::new());
    let one_door = design(&[(1, &["open", "shut"])]);
    assert_eq!(
        (one_door.commands.len(), one_door.undeterminable),
        (2, vec![0, 1]),
        "one action in every command leaves |ac| undetermined"
    );
}

#[test]
fn long_commands_stay_within_the_inventory() {
    let limits = home().limits(&actions(&["on", "off", "red"])).unwrap();
    assert_eq!(ExperimentDesign::long_commands(3, &limits, 16).commands, [[1, 1, 1], [2, 2, 2], [4, 4, 4]]);
    assert_eq!(ExperimentDesign::long_commands(3, &limits, 6).commands.len(), 2);
    let free = ExperimentDesign::long_commands(2, &Limits::free(2), 12).commands;
    assert_eq!(free, [[2, 1], [3, 3], [6, 6]], "each action in turn");
    let few = Inventory { devices: vec![device("plug", 3, &["on"]), device("lamp", 1, &["red"])] };
    let few = few.limits(&actions(&["on", "red"])).unwrap();
    assert_eq!(ExperimentDesign::long_commands(2, &few, 16).commands, [[2, 1]]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// For any labelled commands, the proposed commands determine every size, and none of them is superfluous.
    #[test]
    fn proposed_commands_determine_all_sizes(
        sizes in prop::collection::vec(20i64..60, 1..7),
        labelled in prop::collection::vec(prop::collection::vec(0u32..3, 6), 0..6),
        plugs in 2u32..5,
        lamps in 1u32..3,
    ) {
        let names: Vec<String> = (0..sizes.len()).map(|at| format!("a{at}")).collect();
        let refs: Vec<&str> = names.iter().map(String::as_str).collect();
        let half = &refs[..refs.len().div_ceil(2)];
        let inventory = Inventory { devices: vec![device("plug", plugs, half), device("lamp", lamps, &refs)] };
        let limits = inventory.limits(&actions(&refs)).unwrap();
        let recorded = |counts: &[u32]| command(70 + action_bytes(&sizes, counts), counts);
        let labelled = labelled.iter().map(|counts| &counts[..sizes.len()]).filter(|counts| limits.admits(counts));
        let mut commands: Vec<_> = labelled.map(recorded).collect();
        let design = ExperimentDesign::missing(sizes.len(), commands.iter().map(|one| &one.counts[..]), &limits);
        prop_assert_eq!(&design.undeterminable, &[] as &[usize]);
        prop_assert!(design.commands.len() <= sizes.len() + 1);
        for counts in &design.commands {
            prop_assert!(limits.admits(counts) && counts.iter().sum::<u32>() <= 2);
            commands.extend([recorded(counts), recorded(counts), recorded(counts)]);
        }
        let fit = Fit::learn(FitMethod::Robust, &names, &commands).unwrap();
        prop_assert_eq!(fit.actions.iter().map(|action| action.size).collect::<Vec<_>>(), sizes.clone());
        prop_assert_eq!(fit.overhead, 70);
        prop_assert!(ExperimentDesign::missing(sizes.len(), commands.iter().map(|one| &one.counts[..]), &limits).commands.is_empty());
        for left_out in &design.commands {
            let fewer: Vec<_> = commands.iter().filter(|command| command.counts != *left_out).cloned().collect();
            prop_assert!(!undetermined_actions(sizes.len(), &fewer).is_empty());
        }
    }
}

fn separation(counts: &[&[u32]]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let commands: Vec<LabelledCommand> = counts.iter().map(|counts| command(100, counts)).collect();
    let Separation { separate, tied, absent } = Separation::of(counts[0].len(), &commands);
    (separate, tied, absent)
}

#[test]
fn single_actions_separate_nothing() {
    assert_eq!(separation(&[&[1, 0, 0], &[0, 1, 0]]), (vec![], vec![0, 1], vec![2]));
    assert_eq!(separation(&[&[2, 0], &[0, 2]]), (vec![], vec![0, 1], vec![]));
}

#[test]
fn one_double_separates_all_singles() {
    assert_eq!(separation(&[&[1, 0], &[0, 1], &[0, 2]]), (vec![0, 1], vec![], vec![]));
    assert_eq!(separation(&[&[1, 0], &[0, 1], &[1, 1]]), (vec![0, 1], vec![], vec![]));
}

#[test]
fn actions_that_always_occur_together_stay_tied_and_the_rest_is_separate() {
    assert_eq!(separation(&[&[1, 0, 0], &[2, 0, 0], &[0, 1, 1], &[1, 1, 1]]), (vec![0], vec![1, 2], vec![]));
}

#[test]
fn sizes_that_only_tied_commands_determine_are_tied_too() {
    // The size of action 0 is determined, but |ac| only together with action 1.
    assert_eq!(separation(&[&[1, 1], &[2, 1]]), (vec![], vec![0, 1], vec![]));
}

#[test]
fn messages_without_actions_do_not_stand_for_the_overhead() {
    assert_eq!(separation(&[&[1, 0], &[0, 1], &[0, 0]]), (vec![], vec![0, 1], vec![]));
}

#[test]
fn commands_are_projected_to_the_separate_actions() {
    let separation = Separation { separate: vec![1], ..Separation::default() };
    assert_eq!(separation.project(&command(9, &[0, 2])).map(|command| command.counts), Some(vec![2]));
    assert_eq!(separation.project(&command(9, &[1, 2])), None);
    assert_eq!(separation.project(&command(9, &[0, 0])), None);
}
