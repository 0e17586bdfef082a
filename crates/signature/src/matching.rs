//! Which label belongs to which command.

/// Labels and commands put together by time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matching {
    /// Pairs of a label and a command, by their places in the lists, in the order of the labels.
    pub pairs: Vec<(usize, usize)>,
    /// Labels no command is near to: commands that were missed.
    pub missed: Vec<usize>,
    /// Labels whose nearest command belongs to a label that is nearer to it.
    pub contested: Vec<usize>,
    /// Commands no label is near to: commands that were not given, or not labelled.
    pub unlabelled: Vec<usize>,
}

/// Gives every label the command nearest to it in time, within `tolerance_ns`; a command has one label, the nearest.
/// Pairs are made in order of their distance, equal ones in order of time, so a label whose nearest command is taken
/// gets the next nearest one that is free.
pub fn match_labels(label_times: &[i64], command_times: &[i64], tolerance_ns: i64) -> Matching {
    let mut by_time: Vec<(i64, usize)> = command_times.iter().copied().zip(0..).collect();
    by_time.sort_unstable();
    let mut near: Vec<(u64, i64, usize, usize)> = Vec::new();
    let mut has_near = vec![false; label_times.len()];
    for (label, &time) in label_times.iter().enumerate() {
        let first = by_time.partition_point(|(other, _)| *other < time.saturating_sub(tolerance_ns));
        let within = by_time.iter().skip(first).take_while(|(other, _)| *other <= time.saturating_add(tolerance_ns));
        for (other, command) in within {
            near.push((time.abs_diff(*other), time, label, *command));
            if let Some(has_near) = has_near.get_mut(label) {
                *has_near = true;
            }
        }
    }
    near.sort_unstable();
    let mut command_of: Vec<Option<usize>> = vec![None; label_times.len()];
    let mut taken = vec![false; command_times.len()];
    for (_, _, label, command) in near {
        if let (Some(slot @ None), Some(taken @ false)) = (command_of.get_mut(label), taken.get_mut(command)) {
            *slot = Some(command);
            *taken = true;
        }
    }
    let mut matching = Matching::default();
    for (label, (command, has_near)) in command_of.into_iter().zip(has_near).enumerate() {
        match command {
            Some(command) => matching.pairs.push((label, command)),
            None if has_near => matching.contested.push(label),
            None => matching.missed.push(label),
        }
    }
    matching.unlabelled = taken.iter().enumerate().filter(|(_, taken)| !**taken).map(|(command, _)| command).collect();
    matching
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nearest_pairs_first() {
        let matching = match_labels(&[0, 10, 100, 205], &[11, 101, 102, 300], 20);
        assert_eq!(matching.pairs, [(1, 0), (2, 1)]);
        assert_eq!((matching.contested, matching.missed, matching.unlabelled), (vec![0], vec![3], vec![2, 3]));
    }

    #[test]
    fn a_label_whose_command_is_taken_gets_the_next() {
        assert_eq!(match_labels(&[10, 12], &[12, 20], 20).pairs, [(0, 1), (1, 0)]);
    }

    proptest! {
        #[test]
        fn everything_is_accounted_for(labels in prop::collection::vec(0i64..500, 0..30), commands in prop::collection::vec(0i64..500, 0..30)) {
            let matching = match_labels(&labels, &commands, 15);
            prop_assert_eq!(matching.pairs.len() + matching.missed.len() + matching.contested.len(), labels.len());
            prop_assert_eq!(matching.pairs.len() + matching.unlabelled.len(), commands.len());
            for (label, command) in &matching.pairs {
                prop_assert!(labels[*label].abs_diff(commands[*command]) <= 15);
            }
            for label in &matching.missed {
                prop_assert!(commands.iter().all(|command| command.abs_diff(labels[*label]) > 15));
            }
        }
    }
}
