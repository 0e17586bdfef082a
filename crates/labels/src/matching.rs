//! Matching labels with commands by time.

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

    /// In nanoseconds.
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
}

/// How labels and commands match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MatchCounts {
    /// Labels with a command.
    pub matched: u64,
    /// Labels without a command nearby.
    pub missed: u64,
    /// Labels that are only near commands of other labels.
    pub ambiguous: u64,
    /// Commands without a label.
    pub spurious: u64,
}

impl MatchCounts {
    /// How many there are of each.
    pub fn new(matching: &Matching) -> Self {
        Self {
            matched: matching.pairs.len() as u64,
            missed: matching.missed.len() as u64,
            ambiguous: matching.ambiguous.len() as u64,
            spurious: matching.spurious.len() as u64,
        }
    }
}

/// A label time and a command that may belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CandidatePair {
    distance: u64,
    /// At equal distance a command before its label ranks behind one after it: users' logs hold the time of sending.
    is_before: bool,
    /// Index of the label time.
    label_time: usize,
    /// Index of the command, in order of time.
    command: usize,
}

/// Assigns to every label the nearest command in time, at most `tolerance_ns` away; a command has at most one label.
///
/// Pairs are formed nearest first. If two labels have the same nearest command, the nearer label gets it, and the other
/// label the nearest free command on its other side. Pairs never cross, since commands are sent in the order in which
/// they are given. Labels with the same time (a clock of whole seconds) get their commands in order of rows. The result
/// depends only on times and indices; the running time is O(n log n).
pub fn match_labels(label_times: &[i64], command_times: &[i64], tolerance_ns: i64) -> Matching {
    let tolerance = u64::try_from(tolerance_ns).unwrap_or(0);
    let label_times = LabelTime::group(label_times);
    let mut commands: Vec<(i64, usize)> = command_times.iter().copied().zip(0..).collect();
    commands.sort_unstable();
    let mut taken: Vec<Option<usize>> = vec![None; commands.len()];
    let mut free: Vec<usize> = label_times.iter().map(|time| time.labels.len()).collect();
    let candidates = candidates(&label_times, &commands, tolerance);
    for candidate in &candidates {
        if let (Some(taken @ None), Some(free @ 1..)) =
            (taken.get_mut(candidate.command), free.get_mut(candidate.label_time))
        {
            *taken = Some(candidate.label_time);
            *free -= 1;
        }
    }
    let mut matching = Matching::default();
    let mut rows = label_times.iter().map(|time| time.labels.iter()).collect::<Vec<_>>();
    for ((_, command), label_time) in commands.iter().zip(taken) {
        match label_time.and_then(|at| rows.get_mut(at)).and_then(Iterator::next) {
            Some(label) => matching.pairs.push((*label, *command)),
            None => matching.spurious.push(*command),
        }
    }
    for (label_time, unmatched) in label_times.iter().zip(rows) {
        let near = commands.partition_point(|(time, _)| *time < label_time.time);
        let is_near = |at: usize| commands.get(at).is_some_and(|(time, _)| time.abs_diff(label_time.time) <= tolerance);
        let has_near = is_near(near) || near.checked_sub(1).is_some_and(is_near);
        if has_near { &mut matching.ambiguous } else { &mut matching.missed }.extend(unmatched);
    }
    matching.pairs.sort_unstable();
    matching.missed.sort_unstable();
    matching.ambiguous.sort_unstable();
    matching.spurious.sort_unstable();
    matching
}

/// The labels with one time.
struct LabelTime {
    time: i64,
    /// Indices of the labels, in order.
    labels: Vec<usize>,
}

impl LabelTime {
    fn group(label_times: &[i64]) -> Vec<Self> {
        let mut sorted: Vec<(i64, usize)> = label_times.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let same_time = sorted.chunk_by(|(a, _), (b, _)| a == b);
        let label_time = |chunk: &[(i64, usize)]| {
            let time = chunk.first().map_or(0, |(time, _)| *time);
            Self { time, labels: chunk.iter().map(|(_, label)| *label).collect() }
        };
        same_time.map(label_time).collect()
    }
}

/// For each label time as many of the nearest commands on either side as it has labels, up to the adjacent label times.
/// Nearest first.
fn candidates(times: &[LabelTime], commands: &[(i64, usize)], tolerance: u64) -> Vec<CandidatePair> {
    let mut candidates = Vec::new();
    for (at, label_time) in times.iter().enumerate() {
        let first_after = |time: i64| commands.partition_point(|(other, _)| *other < time);
        let start = at.checked_sub(1).and_then(|at| times.get(at)).map_or(0, |before| first_after(before.time));
        let middle = first_after(label_time.time);
        let end = times.get(at + 1).map_or(commands.len(), |after| first_after(after.time));
        let labels = label_time.labels.len();
        let nearby = middle.saturating_sub(labels).max(start)..middle.saturating_add(labels).min(end);
        for command in nearby {
            let Some((time, _)) = commands.get(command) else { continue };
            let distance = time.abs_diff(label_time.time);
            if distance <= tolerance {
                candidates.push(CandidatePair {
                    distance,
                    is_before: *time < label_time.time,
                    label_time: at,
                    command,
                });
            }
        }
    }
    candidates.sort_unstable();
    candidates
}

#[cfg(test)]
mod tests;
