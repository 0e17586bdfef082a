//! What a pipeline said of each command, judged as it comes: lists of candidates are too long to keep.

use sizeleak_frame::Identification;

use super::judge::{Judge, Judgement};

/// A command as a pipeline saw it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sighting {
    pub(super) time_ns: i64,
    /// On the wire, in bytes.
    pub(super) size: u64,
    pub(super) replies: u32,
    /// How it is judged by each label near to it: the label's row and the judgement.
    judgements: Vec<(usize, Judgement)>,
}

impl Sighting {
    /// How it is judged by a label; `None` where that is not near.
    pub(super) fn judgement(&self, row: usize) -> Option<&Judgement> {
        self.judgements.iter().find(|(judged, _)| *judged == row).map(|(_, judgement)| judgement)
    }

    /// The same, of a stream that a pruner made from the one before: see [`Judgement::after`].
    pub(super) fn after(self, before: &Self) -> Self {
        let judged = |(row, judgement): (usize, Judgement)| match before.judgement(row) {
            Some(before) => (row, judgement.after(before)),
            None => (row, judgement),
        };
        Self { judgements: self.judgements.into_iter().map(judged).collect(), ..self }
    }

    fn is_same_command(&self, other: &Self) -> bool {
        (self.time_ns, self.size, self.replies) == (other.time_ns, other.size, other.replies)
    }
}

/// Rows of labels by time.
#[derive(Debug)]
pub(super) struct Calendar<'a> {
    judge: Judge<'a>,
    /// Time, row and true actions, in order of time.
    rows: Vec<(i64, usize, &'a [u32])>,
    tolerance_ns: i64,
}

impl<'a> Calendar<'a> {
    /// A calendar of rows given by time and true actions, in the order of the file.
    pub(super) fn new(judge: Judge<'a>, rows: impl Iterator<Item = (i64, &'a [u32])>, tolerance_ns: i64) -> Self {
        let mut rows: Vec<_> = rows.enumerate().map(|(row, (time_ns, truth))| (time_ns, row, truth)).collect();
        rows.sort_unstable();
        Self { judge, rows, tolerance_ns }
    }

    /// Judges an identification by every label that may be its own.
    pub(super) fn sight(&self, identification: &Identification) -> Sighting {
        let command = &identification.command;
        let first = command.time_ns.saturating_sub(self.tolerance_ns);
        let start = self.rows.partition_point(|(time_ns, ..)| *time_ns < first);
        let near = self
            .rows
            .iter()
            .skip(start)
            .take_while(|(time_ns, ..)| time_ns.abs_diff(command.time_ns) <= self.tolerance_ns.unsigned_abs());
        let judgements = near.map(|(_, row, truth)| (*row, self.judge.judge(identification, truth))).collect();
        Sighting { time_ns: command.time_ns, size: command.size, replies: command.replies, judgements }
    }
}

/// What a pruner left, with what stood in the lists it was given.
///
/// Both streams have the same commands in the same order, unless somebody's own stage drops some; then those that are
/// the same are put together.
pub(super) fn pruned(after: Vec<Sighting>, before: &[Sighting]) -> Vec<Sighting> {
    let mut rest = before.iter();
    let mut pruned = Vec::new();
    for sighting in after {
        let mut ahead = rest.clone();
        let found = ahead.find(|other| sighting.is_same_command(other));
        if found.is_some() {
            rest = ahead;
        }
        pruned.push(match found {
            Some(found) => sighting.after(found),
            None => sighting,
        });
    }
    pruned
}
