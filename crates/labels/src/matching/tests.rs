//! Tests of `matching`.

use proptest::prelude::*;

use super::*;

fn tolerance(text: &str) -> Result<Tolerance, String> {
    text.parse()
}

#[test]
fn tolerance_needs_a_unit_and_no_sign() {
    assert_eq!(tolerance("500ms").unwrap().nanoseconds(), 500_000_000);
    assert!(tolerance("2").is_err() && tolerance("-1s").is_err() && tolerance("99999999999999h").is_err());
}

#[test]
fn nearest_pairs_are_formed_first() {
    let matching = match_labels(&[0, 10, 100, 205], &[11, 101, 102, 300], 20);
    assert_eq!(matching.pairs, [(1, 0), (2, 1)]);
    assert_eq!((matching.ambiguous, matching.missed, matching.spurious), (vec![0], vec![3], vec![2, 3]));
}

#[test]
fn a_label_whose_command_is_taken_gets_one_on_its_other_side_only() {
    assert_eq!(
        match_labels(&[10, 13], &[12, 20], 20).pairs,
        [(1, 0)],
        "the pair of label 0 would cross that of label 1"
    );
    assert_eq!(match_labels(&[10, 13], &[11, 20], 20).pairs, [(0, 0), (1, 1)]);
}

#[test]
fn labels_with_equal_times_keep_their_order() {
    assert_eq!(match_labels(&[10, 10, 10], &[13, 11, 12], 5).pairs, [(0, 1), (1, 2), (2, 0)]);
    assert_eq!(match_labels(&[10, 10], &[8, 11], 5).pairs, [(0, 0), (1, 1)]);
}

#[test]
fn an_unlimited_tolerance_stays_fast_and_does_not_overflow() {
    let times: Vec<i64> = (0..20_000).collect();
    let matching = match_labels(&times, &times, i64::MAX);
    assert_eq!(matching.pairs.len(), times.len());
    assert_eq!(match_labels(&[i64::MIN], &[i64::MAX], i64::MAX).missed, [0]);
    assert_eq!(match_labels(&[5], &[5], -1).pairs, [(0, 0)]);
}

/// All pairs, nearest first, of a free label and a free command that cross no earlier pair.
fn nearest_first(labels: &[i64], commands: &[i64], tolerance: i64) -> Vec<(usize, usize)> {
    let all_pairs = (0..labels.len()).flat_map(|label| (0..commands.len()).map(move |command| (label, command)));
    let distance = |(label, command): &(usize, usize)| (commands[*command] - labels[*label]).abs();
    let mut all: Vec<(usize, usize)> = all_pairs.filter(|pair| distance(pair) <= tolerance).collect();
    all.sort_by_key(|pair| (distance(pair), commands[pair.1] < labels[pair.0], labels[pair.0], pair.1));
    let mut made: Vec<(usize, usize)> = Vec::new();
    for (label, command) in all {
        let crosses = |(l, c): &(usize, usize)| (labels[*l] < labels[label]) != (commands[*c] < commands[command]);
        if !made.iter().any(|pair| pair.0 == label || pair.1 == command || crosses(pair)) {
            made.push((label, command));
        }
    }
    made.sort_unstable();
    made
}

proptest! {
    #[test]
    fn pairs_agree_with_trying_all_pairs(
        labels in prop::collection::btree_set(0i64..120, 0..14),
        commands in prop::collection::btree_set(0i64..120, 0..14),
    ) {
        let [labels, commands] = [labels, commands].map(Vec::from_iter);
        prop_assert_eq!(match_labels(&labels, &commands, 15).pairs, nearest_first(&labels, &commands, 15));
    }

    #[test]
    fn every_label_and_command_is_reported_once(
        labels in prop::collection::vec(0i64..200, 0..30),
        commands in prop::collection::vec(0i64..200, 0..30),
    ) {
        let matching = match_labels(&labels, &commands, 15);
        let mut all: Vec<usize> = matching.pairs.iter().map(|(label, _)| *label).collect();
        all.extend(matching.missed.iter().chain(&matching.ambiguous));
        all.sort_unstable();
        prop_assert_eq!(all, (0..labels.len()).collect::<Vec<_>>());
        let mut all: Vec<usize> = matching.pairs.iter().map(|(_, command)| *command).collect();
        all.extend(&matching.spurious);
        all.sort_unstable();
        prop_assert_eq!(all, (0..commands.len()).collect::<Vec<_>>());
        for (label, command) in &matching.pairs {
            prop_assert!(labels[*label].abs_diff(commands[*command]) <= 15);
        }
        for label in &matching.missed {
            prop_assert!(commands.iter().all(|command| command.abs_diff(labels[*label]) > 15));
        }
    }
}
