//! Matching labels with commands by time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::SignedDuration;
use serde::Serialize;

/// How far a command may be from its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance(i64);

impl Tolerance {
    /// None: that of labels with the times of their commands.
    pub const EXACT: Self = Self(0);

    /// That of labels whose times have seconds: people write down what they do as they do it.
    pub const USUAL: Self = Self(2_000_000_000);

    /// That of labels to the minute: half a minute of rounding either way, and a minute because clocks without seconds
    /// are set by hand.
    pub const OF_MINUTES: Self = Self(90_000_000_000);

    pub fn of_nanoseconds(nanoseconds: i64) -> Self {
        Self(nanoseconds.max(0))
    }

    pub fn nanoseconds(self) -> i64 {
        self.0
    }
}

impl std::str::FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration: SignedDuration = text.parse().map_err(|_| "write it like 2s or 500ms".to_owned())?;
        match i64::try_from(duration.as_nanos()) {
            Ok(nanoseconds @ 0..) => Ok(Self(nanoseconds)),
            _ => Err("it must be from 0 s to 292 years".to_owned()),
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", SignedDuration::from_nanos(self.0))
    }
}

/// Labels matched with commands by time. All numbers are indices into the given lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matching {
    /// Pairs of label and command, in order of the labels.
    pub pairs: Vec<(usize, usize)>,
    /// Labels without any command nearby: missed commands.
    pub missed: Vec<usize>,
    /// Labels whose nearby commands all belong to other labels.
    pub ambiguous: Vec<usize>,
    /// Commands without a label: not commands, or not labelled.
    pub spurious: Vec<usize>,
}

impl Matching {
    /// How many labels have no command of their own.
    pub fn unmatched(&self) -> usize {
        self.missed.len() + self.ambiguous.len()
    }

    fn of(pairs: Vec<(usize, usize)>, commands: usize) -> Self {
        let labelled: BTreeSet<usize> = pairs.iter().map(|(_, command)| *command).collect();
        let spurious = (0..commands).filter(|command| !labelled.contains(command)).collect();
        Self { pairs, spurious, ..Self::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MatchCounts {
    pub matched: u64,
    pub missed: u64,
    pub ambiguous: u64,
    pub spurious: u64,
}

impl MatchCounts {
    pub fn new(matching: &Matching) -> Self {
        Self {
            matched: matching.pairs.len() as u64,
            missed: matching.missed.len() as u64,
            ambiguous: matching.ambiguous.len() as u64,
            spurious: matching.spurious.len() as u64,
        }
    }
}

/// The most pairs of a label and a command nearby that are compared; with more, fewer commands around each label are.
/// A byte is kept for each.
const MAX_PAIRS: usize = 1 << 25;

/// Assigns commands to labels: at most one to each, at most `tolerance_ns` away, in the same order.
///
/// Of all such assignments it is the one with the least sum of distances, where a label without a command counts as one
/// that is as far away as the tolerance. Commands are sent in the order in which they are given, so pairs never cross.
/// That order is the one of the labels' rows unless their times go back by more than the tolerance, and of their times
/// then: the clock by which people write down what they did seconds apart is less exact than the order in which they
/// do. At equal distances a command after its label comes first, since users' logs hold the time of sending. The result
/// depends only on times and indices.
pub fn match_labels(label_times: &[i64], command_times: &[i64], tolerance_ns: i64) -> Matching {
    let commands = CommandTimes::new(command_times, tolerance_ns);
    let matching = Matching::of(commands.pairs(label_times), command_times.len());
    let is_alone = |row: &usize| matching.pairs.binary_search_by_key(row, |(row, _)| *row).is_err();
    let alone = (0..label_times.len()).filter(is_alone);
    let (ambiguous, missed) = alone.partition(|row| commands.has_near(label_times[*row]));
    Matching { missed, ambiguous, ..matching }
}

/// The same where it is known when each command was handed over, also those of other labels: one that is sent after the
/// next was handed over is another's. Of several in its turn a label has the nearest.
pub(crate) fn match_turns(label_times: &[i64], command_times: &[i64], starts: &[i64], tolerance_ns: i64) -> Matching {
    let turn = |time: i64| starts.partition_point(|start| *start <= time);
    let mut of_turn: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (command, time) in command_times.iter().enumerate() {
        of_turn.entry(turn(*time)).or_default().push(command);
    }
    let (mut pairs, mut missed, mut free) = (Vec::new(), Vec::new(), vec![true; command_times.len()]);
    for (row, time) in label_times.iter().enumerate() {
        let distance = |command: &usize| command_times.get(*command).map_or(u64::MAX, |other| other.abs_diff(*time));
        let is_near =
            |command: &usize| free.get(*command) == Some(&true) && distance(command) <= tolerance_ns.unsigned_abs();
        match of_turn.get(&turn(*time)).into_iter().flatten().copied().filter(is_near).min_by_key(distance) {
            Some(command) => {
                pairs.push((row, command));
                free[command] = false;
            }
            None => missed.push(row),
        }
    }
    Matching { missed, ..Matching::of(pairs, command_times.len()) }
}

pub(crate) fn matching_pairs(label_times: &[i64], command_times: &[i64], tolerance_ns: i64) -> Vec<(usize, usize)> {
    CommandTimes::new(command_times, tolerance_ns).pairs(label_times)
}

/// The times of commands with their indices, in order, and how far a label may be from one.
struct CommandTimes {
    commands: Vec<(i64, usize)>,
    tolerance: u64,
}

impl CommandTimes {
    fn new(command_times: &[i64], tolerance_ns: i64) -> Self {
        let mut commands: Vec<(i64, usize)> = command_times.iter().copied().zip(0..).collect();
        commands.sort_unstable();
        Self { commands, tolerance: u64::try_from(tolerance_ns).unwrap_or(0) }
    }

    fn has_near(&self, time: i64) -> bool {
        let after = self.commands.partition_point(|(other, _)| *other < time);
        let around = [after.checked_sub(1), Some(after)].into_iter().flatten();
        around.filter_map(|at| self.commands.get(at)).any(|(other, _)| other.abs_diff(time) <= self.tolerance)
    }

    /// The pairs of label and command, in order of the labels.
    fn pairs(&self, label_times: &[i64]) -> Vec<(usize, usize)> {
        let Self { commands, tolerance } = self;
        let near = label_times.iter().copied().zip(0..).filter(|(time, _)| self.has_near(*time));
        let labels = in_order(near.collect(), *tolerance);
        let nearby = nearby(&labels, commands, *tolerance);
        let found = chosen_pairs(&nearby, &choices(&labels, commands, &nearby, *tolerance));
        let mut pairs: Vec<(usize, usize)> =
            found.into_iter().map(|(label, at)| (labels[label].1, commands[at].1)).collect();
        pairs.sort_unstable();
        pairs
    }
}

/// The times of labels with their rows, in the order in which the commands were given.
fn in_order(mut labels: Vec<(i64, usize)>, tolerance: u64) -> Vec<(i64, usize)> {
    let mut latest = i64::MIN;
    let goes_back = |(time, _): &(i64, usize)| {
        latest = latest.max(*time);
        latest.abs_diff(*time) > tolerance
    };
    if labels.iter().any(goes_back) {
        labels.sort_unstable();
    }
    labels
}

/// For each label the commands that may be its own, a range of indices. Neither end of the ranges goes back.
fn nearby(labels: &[(i64, usize)], commands: &[(i64, usize)], tolerance: u64) -> Vec<Range<usize>> {
    // A label and as many commands before it as behind it.
    let most = MAX_PAIRS / labels.len().max(1) / 2;
    let mut ranges: Vec<Range<usize>> = labels
        .iter()
        .map(|(time, _)| {
            let first = |bound: i64| commands.partition_point(|(other, _)| *other < bound);
            let after = first(*time);
            let start = first(time.saturating_sub_unsigned(tolerance)).max(after.saturating_sub(most));
            let end = commands.partition_point(|(other, _)| *other <= time.saturating_add_unsigned(tolerance));
            start..end.min(after.saturating_add(most)).max(start)
        })
        .collect();
    let mut end = 0;
    for range in &mut ranges {
        end = end.max(range.end);
        range.end = end;
    }
    let mut start = commands.len();
    for range in ranges.iter_mut().rev() {
        start = start.min(range.start);
        range.start = start;
    }
    ranges
}

/// What is best for the labels up to one, if they may have the commands before a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Pair,
    NoCommand,
    Before,
}

/// The best choices for all labels, each with the places around its nearby commands.
fn choices(labels: &[(i64, usize)], commands: &[(i64, usize)], nearby: &[Range<usize>], tolerance: u64) -> Vec<Choice> {
    // Doubled, so that the side of the label can decide between equal ones.
    let alone = 2 * (u128::from(tolerance) + 1);
    let mut choices = Vec::with_capacity(nearby.iter().map(|range| range.len() + 1).sum());
    // The costs of the label before, by place from `first` on; beyond the last one they stay the same.
    let (mut costs, mut own, mut first) = (vec![0_u128], Vec::new(), 0);
    for ((time, _), range) in labels.iter().zip(nearby) {
        let before = |place: usize| costs[(place - first).min(costs.len() - 1)];
        own.clear();
        for place in range.start..=range.end {
            let mut best = (before(place) + alone, Choice::NoCommand);
            if place > range.start {
                let (other, _) = commands[place - 1];
                let distance = other.abs_diff(*time);
                let pair = before(place - 1) + 2 * u128::from(distance) + u128::from(other < *time);
                if distance <= tolerance && pair <= best.0 {
                    best = (pair, Choice::Pair);
                }
                best = own.last().filter(|cost| **cost <= best.0).map_or(best, |cost| (*cost, Choice::Before));
            }
            own.push(best.0);
            choices.push(best.1);
        }
        (costs, own, first) = (own, costs, range.start);
    }
    choices
}

/// The pairs of label and command that the choices lead to, the last label first.
fn chosen_pairs(nearby: &[Range<usize>], mut choices: &[Choice]) -> Vec<(usize, usize)> {
    let (mut pairs, mut place) = (Vec::new(), usize::MAX);
    for (label, range) in nearby.iter().enumerate().rev() {
        let (before, own) = choices.split_at(choices.len() - range.len() - 1);
        choices = before;
        place = place.min(range.end);
        while own[place - range.start] == Choice::Before {
            place -= 1;
        }
        if own[place - range.start] == Choice::Pair {
            place -= 1;
            pairs.push((label, place));
        }
    }
    pairs
}

#[cfg(test)]
mod tests;
