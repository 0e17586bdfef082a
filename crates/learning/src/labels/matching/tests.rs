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
fn the_sum_of_distances_decides() {
    let matching = match_labels(&[0, 10, 100, 205], &[11, 101, 102, 300], 20);
    assert_eq!(matching.pairs, [(1, 0), (2, 1)]);
    assert_eq!((matching.ambiguous, matching.missed, matching.spurious), (vec![0], vec![3], vec![2, 3]));
    assert_eq!(match_labels(&[10, 13], &[12, 20], 20).pairs, [(0, 0), (1, 1)], "both labels have a command");
    assert_eq!(match_labels(&[10, 13], &[12, 35], 20).pairs, [(1, 0)], "one that is far is better missed");
}

/// Three commands a third of a second apart, whose times were written down with an error of half a second.
#[test]
fn rows_keep_their_order_where_times_go_back_by_less_than_the_tolerance() {
    let commands = [1_000, 1_300, 1_600, 9_000];
    assert_eq!(match_labels(&[900, 1_700, 1_450, 9_100], &commands, 2_000).pairs, [(0, 0), (1, 1), (2, 2), (3, 3)]);
    assert_eq!(match_labels(&[9_100, 900, 1_250, 1_650], &commands, 2_000).pairs, [(0, 3), (1, 0), (2, 1), (3, 2)]);
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

/// The least cost of the labels, by trying all that the first of them may have.
fn least_cost(labels: &[i64], commands: &[i64], tolerance: u64) -> u64 {
    let Some((first, others)) = labels.split_first() else { return 0 };
    let alone = 2 * (tolerance + 1) + least_cost(others, commands, tolerance);
    let with = commands.iter().enumerate().filter(|(_, command)| command.abs_diff(*first) <= tolerance);
    let with = with.map(|(at, command)| cost(*first, *command) + least_cost(others, &commands[at + 1..], tolerance));
    with.fold(alone, u64::min)
}

fn cost(label: i64, command: i64) -> u64 {
    2 * command.abs_diff(label) + u64::from(command < label)
}

proptest! {
    #[test]
    fn pairs_cost_as_little_as_any_and_do_not_cross(
        labels in prop::collection::vec(0i64..90, 0..8),
        commands in prop::collection::btree_set(0i64..90, 0..8),
        tolerance in 0u64..30,
    ) {
        let commands = Vec::from_iter(commands);
        let near = |(time, _): &(i64, usize)| commands.iter().any(|command| command.abs_diff(*time) <= tolerance);
        let order = in_order(labels.iter().copied().zip(0..).filter(near).collect(), tolerance);
        let ordered: Vec<i64> = order.iter().map(|(time, _)| *time).collect();
        let matching = match_labels(&labels, &commands, tolerance.cast_signed());
        let paired: u64 = matching.pairs.iter().map(|(label, at)| cost(labels[*label], commands[*at])).sum();
        let alone = 2 * (tolerance + 1) * matching.ambiguous.len() as u64;
        prop_assert_eq!(paired + alone, least_cost(&ordered, &commands, tolerance));
        let own = |row: usize| matching.pairs.iter().find(|pair| pair.0 == row).map(|pair| pair.1);
        let in_turn: Vec<usize> = order.iter().filter_map(|(_, row)| own(*row)).collect();
        prop_assert!(in_turn.is_sorted_by(|one, next| one < next), "{in_turn:?}");
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

#[test]
fn a_message_belongs_to_the_command_in_whose_turn_it_was_sent() {
    let starts = [0, 100, 200, 300];
    // The second and the last were dropped; a poll follows in the turn of the first, and one comes before all.
    let found = match_turns(&[2, 102, 202, 302], &[-50, 4, 60, 206], &starts, 90);
    assert_eq!((found.pairs, found.missed), (vec![(0, 1), (2, 3)], vec![1, 3]));
    assert_eq!(found.spurious, [0, 2]);
    // Labels of one half: the other's messages are not for them.
    assert_eq!(match_turns(&[102, 302], &[4, 206], &starts, 1_000).pairs, []);
    assert_eq!(match_turns(&[2, 102], &[99, 100], &starts, 1_000).pairs, [(0, 0), (1, 1)]);
    // Without a limit by the next command, the tolerance is one.
    assert_eq!(match_turns(&[302], &[900], &starts, 90).missed, [0]);
}
