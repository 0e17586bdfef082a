//! What a pipeline said of each command, judged as it comes: lists of candidates are too long to keep.

use std::collections::{BTreeMap, VecDeque};

use sizeleak_frame::{Command, Identification};

use super::judge::{Judge, Judgement};

/// A command as a pipeline saw it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JudgedCommand {
    pub(super) time_ns: i64,
    /// On the wire, in bytes.
    pub(super) size: u64,
    pub(super) replies: u32,
    /// How it is judged by each label near to it: the label's row and the judgement.
    judgements: Vec<(usize, Judgement)>,
}

impl JudgedCommand {
    /// A command of which nothing is said.
    pub(super) fn of(command: &Command) -> Self {
        Self { time_ns: command.time_ns, size: command.size, replies: command.replies, judgements: Vec::new() }
    }

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

    /// What tells commands apart.
    fn command(&self) -> (i64, u64, u32) {
        (self.time_ns, self.size, self.replies)
    }
}

/// Rows of labels by time.
#[derive(Debug)]
pub(super) struct LabelIndex<'a> {
    judge: Judge<'a>,
    /// Time, row and true actions, in order of time.
    rows: Vec<(i64, usize, &'a [u32])>,
    tolerance_ns: i64,
}

impl<'a> LabelIndex<'a> {
    /// A calendar of rows given by time and true actions, in the order of the file.
    pub(super) fn new(judge: Judge<'a>, rows: impl Iterator<Item = (i64, &'a [u32])>, tolerance_ns: i64) -> Self {
        let mut rows: Vec<_> = rows.enumerate().map(|(row, (time_ns, truth))| (time_ns, row, truth)).collect();
        rows.sort_unstable();
        Self { judge, rows, tolerance_ns }
    }

    /// Judges an identification by every label that may be its own.
    pub(super) fn sight(&self, identification: &Identification) -> JudgedCommand {
        let command = &identification.command;
        let first = command.time_ns.saturating_sub(self.tolerance_ns);
        let start = self.rows.partition_point(|(time_ns, ..)| *time_ns < first);
        let near = self
            .rows
            .iter()
            .skip(start)
            .take_while(|(time_ns, ..)| time_ns.abs_diff(command.time_ns) <= self.tolerance_ns.unsigned_abs());
        let judgements = near.map(|(_, row, truth)| (*row, self.judge.judge(identification, truth))).collect();
        JudgedCommand { judgements, ..JudgedCommand::of(command) }
    }
}

/// What a pruner left, with what stood in the lists it was given. The same commands are put together, those that are
/// alike in their order; somebody's own stage may have dropped some, or changed their order.
pub(super) fn pruned(after: Vec<JudgedCommand>, before: &[JudgedCommand]) -> Vec<JudgedCommand> {
    let mut waiting: BTreeMap<_, VecDeque<&JudgedCommand>> = BTreeMap::new();
    for sighting in before {
        waiting.entry(sighting.command()).or_default().push_back(sighting);
    }
    let with_before = |sighting: JudgedCommand| match waiting.get_mut(&sighting.command()).and_then(VecDeque::pop_front)
    {
        Some(before) => sighting.after(before),
        None => sighting,
    };
    after.into_iter().map(with_before).collect()
}

#[cfg(test)]
mod tests {
    use super::super::belief::Belief;
    use super::super::judge::TruthRank;
    use super::*;

    fn sighting(time_ns: i64, standing: TruthRank, is_cut: bool) -> JudgedCommand {
        let judgement = Judgement { standing, candidates: 9, is_cut, first: None, belief: Belief::default() };
        JudgedCommand { time_ns, size: 100, replies: 2, judgements: vec![(4, judgement)] }
    }

    #[test]
    fn the_same_commands_are_put_together() {
        let before = [
            sighting(1, TruthRank::Listed(3), true),
            sighting(1, TruthRank::Unlisted, true),
            sighting(7, TruthRank::Unlisted, true),
            sighting(8, TruthRank::Unlisted, true),
        ];
        let standings = |after: Vec<JudgedCommand>| -> Vec<TruthRank> {
            pruned(after, &before).iter().map(|sighting| sighting.judgement(4).unwrap().standing).collect()
        };
        let undecided = |time_ns| sighting(time_ns, TruthRank::Undecided, true);
        let found = [TruthRank::Absent, TruthRank::Unlisted, TruthRank::Unlisted, TruthRank::Undecided];
        assert_eq!(standings(vec![undecided(1), undecided(1), undecided(8), undecided(9)]), found);
        assert_eq!(sighting(1, TruthRank::Absent, false).judgement(5), None);
    }
}
