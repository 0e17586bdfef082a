//! Which label belongs to which command.

/// Labels and commands put together by time. All places are those in the lists given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matching {
    /// Pairs of a label and a command, in the order of the labels.
    pub pairs: Vec<(usize, usize)>,
    /// Labels no command is near to: commands that were missed.
    pub missed: Vec<usize>,
    /// Labels that have commands near, all of which belong to other labels.
    pub ambiguous: Vec<usize>,
    /// Commands no label went to: never given, or not labelled.
    pub spurious: Vec<usize>,
}

/// A label time and a command that may be its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    distance: u64,
    /// A command that comes before its label stands behind one that comes after it, at the same distance: users' logs
    /// name the time of sending.
    is_before: bool,
    /// The place of the label time.
    moment: usize,
    /// The command's place in order of time.
    command: usize,
}

/// Gives every label the command nearest to it in time, at most `tolerance_ns` away; a command has one label.
///
/// Pairs are made nearest first. Where two labels have the same nearest command, the nearer label gets it, and the other
/// the nearest one on its other side, if that is free; it gets none beyond a command of another label, since commands are
/// sent in the order in which they are given. Labels of one time (a clock of whole seconds) are given their commands
/// in the order of rows. The answer depends on times and places alone, and takes O(n log n).
pub fn match_labels(label_times: &[i64], command_times: &[i64], tolerance_ns: i64) -> Matching {
    let tolerance = u64::try_from(tolerance_ns).unwrap_or(0);
    let moments = Moment::of(label_times);
    let mut commands: Vec<(i64, usize)> = command_times.iter().copied().zip(0..).collect();
    commands.sort_unstable();
    let mut taken: Vec<Option<usize>> = vec![None; commands.len()];
    let mut free: Vec<usize> = moments.iter().map(|moment| moment.labels.len()).collect();
    let candidates = candidates(&moments, &commands, tolerance);
    for candidate in &candidates {
        if let (Some(taken @ None), Some(free @ 1..)) =
            (taken.get_mut(candidate.command), free.get_mut(candidate.moment))
        {
            *taken = Some(candidate.moment);
            *free -= 1;
        }
    }
    let mut matching = Matching::default();
    let mut rows = moments.iter().map(|moment| moment.labels.iter()).collect::<Vec<_>>();
    for ((_, command), moment) in commands.iter().zip(taken) {
        match moment.and_then(|moment| rows.get_mut(moment)).and_then(Iterator::next) {
            Some(label) => matching.pairs.push((*label, *command)),
            None => matching.spurious.push(*command),
        }
    }
    for (moment, unmatched) in moments.iter().zip(rows) {
        let near = commands.partition_point(|(time, _)| *time < moment.time);
        let is_near = |at: usize| commands.get(at).is_some_and(|(time, _)| time.abs_diff(moment.time) <= tolerance);
        let has_near = is_near(near) || near.checked_sub(1).is_some_and(is_near);
        if has_near { &mut matching.ambiguous } else { &mut matching.missed }.extend(unmatched);
    }
    matching.pairs.sort_unstable();
    matching.missed.sort_unstable();
    matching.ambiguous.sort_unstable();
    matching.spurious.sort_unstable();
    matching
}

/// The labels of one time.
struct Moment {
    time: i64,
    /// Their places, in order.
    labels: Vec<usize>,
}

impl Moment {
    fn of(label_times: &[i64]) -> Vec<Self> {
        let mut sorted: Vec<(i64, usize)> = label_times.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let same_time = sorted.chunk_by(|(a, _), (b, _)| a == b);
        let moment = |chunk: &[(i64, usize)]| {
            let time = chunk.first().map_or(0, |(time, _)| *time);
            Self { time, labels: chunk.iter().map(|(_, label)| *label).collect() }
        };
        same_time.map(moment).collect()
    }
}

/// For each moment as many of the nearest commands as it has labels, on either side up to the next moment; nearest first.
fn candidates(moments: &[Moment], commands: &[(i64, usize)], tolerance: u64) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (at, moment) in moments.iter().enumerate() {
        let first_after = |time: i64| commands.partition_point(|(other, _)| *other < time);
        let start = at.checked_sub(1).and_then(|at| moments.get(at)).map_or(0, |before| first_after(before.time));
        let middle = first_after(moment.time);
        let end = moments.get(at + 1).map_or(commands.len(), |after| first_after(after.time));
        let labels = moment.labels.len();
        let reach = middle.saturating_sub(labels).max(start)..middle.saturating_add(labels).min(end);
        for command in reach {
            let Some((time, _)) = commands.get(command) else { continue };
            let distance = time.abs_diff(moment.time);
            if distance <= tolerance {
                candidates.push(Candidate { distance, is_before: *time < moment.time, moment: at, command });
            }
        }
    }
    candidates.sort_unstable();
    candidates
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nearest_pairs_first() {
        let matching = match_labels(&[0, 10, 100, 205], &[11, 101, 102, 300], 20);
        assert_eq!(matching.pairs, [(1, 0), (2, 1)]);
        assert_eq!((matching.ambiguous, matching.missed, matching.spurious), (vec![0], vec![3], vec![2, 3]));
    }

    #[test]
    fn a_label_whose_command_is_taken_gets_the_next_on_its_other_side_alone() {
        assert_eq!(match_labels(&[10, 13], &[12, 20], 20).pairs, [(1, 0)], "0 would go past the command of 1");
        assert_eq!(match_labels(&[10, 13], &[11, 20], 20).pairs, [(0, 0), (1, 1)]);
    }

    #[test]
    fn labels_in_whole_seconds_keep_their_order() {
        assert_eq!(match_labels(&[10, 10, 10], &[13, 11, 12], 5).pairs, [(0, 1), (1, 2), (2, 0)]);
        assert_eq!(match_labels(&[10, 10], &[8, 11], 5).pairs, [(0, 0), (1, 1)]);
    }

    #[test]
    fn a_tolerance_without_end_costs_no_more() {
        let times: Vec<i64> = (0..20_000).collect();
        let matching = match_labels(&times, &times, i64::MAX);
        assert_eq!(matching.pairs.len(), times.len());
        assert_eq!(match_labels(&[i64::MIN], &[i64::MAX], i64::MAX).missed, [0]);
        assert_eq!(match_labels(&[5], &[5], -1).pairs, [(0, 0)]);
    }

    /// All pairs, nearest first, that take a free label and a free command and cross no pair made before.
    fn nearest_first(labels: &[i64], commands: &[i64], tolerance: i64) -> Vec<(usize, usize)> {
        let places = (0..labels.len()).flat_map(|label| (0..commands.len()).map(move |command| (label, command)));
        let distance = |(label, command): &(usize, usize)| (commands[*command] - labels[*label]).abs();
        let mut all: Vec<(usize, usize)> = places.filter(|pair| distance(pair) <= tolerance).collect();
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
        fn agrees_with_trying_all_pairs(
            labels in prop::collection::btree_set(0i64..120, 0..14),
            commands in prop::collection::btree_set(0i64..120, 0..14),
        ) {
            let (labels, commands): (Vec<i64>, Vec<i64>) = (labels.into_iter().collect(), commands.into_iter().collect());
            prop_assert_eq!(match_labels(&labels, &commands, 15).pairs, nearest_first(&labels, &commands, 15));
        }

        #[test]
        fn everything_is_accounted_for(labels in prop::collection::vec(0i64..200, 0..30), commands in prop::collection::vec(0i64..200, 0..30)) {
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
}
