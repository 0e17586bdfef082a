//! Commands judged by the labels near them, as they arrive: candidate lists are too long to keep.

use std::collections::{BTreeMap, VecDeque};

use sizeleak_frame::{Command, Identification};

use crate::judge::{CandidateJudge, Judgement};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JudgedCommand {
    pub(crate) time_ns: i64,
    pub(crate) size: u64,
    pub(crate) replies: u32,
    /// The label rows near the command, each with the judgement by it.
    judgements: Vec<(usize, Judgement)>,
}

impl JudgedCommand {
    pub(crate) fn unidentified(command: &Command) -> Self {
        Self { time_ns: command.time_ns, size: command.size, replies: command.replies, judgements: Vec::new() }
    }

    /// The judgement by a label; `None` if the label is not near.
    pub(crate) fn judgement(&self, row: usize) -> Option<&Judgement> {
        self.judgements.iter().find(|(judged, _)| *judged == row).map(|(_, judgement)| judgement)
    }

    fn after_pruning(self, before: &Self) -> Self {
        let judged = |(row, judgement): (usize, Judgement)| match before.judgement(row) {
            Some(before) => (row, judgement.after_pruning(before)),
            None => (row, judgement),
        };
        Self { judgements: self.judgements.into_iter().map(judged).collect(), ..self }
    }

    fn identity(&self) -> (i64, u64, u32) {
        (self.time_ns, self.size, self.replies)
    }
}

#[derive(Debug)]
pub(crate) struct LabelIndex<'a> {
    judge: CandidateJudge<'a>,
    /// Time, row and true actions, in order of time.
    rows: Vec<(i64, usize, &'a [u32])>,
    tolerance_ns: i64,
}

impl<'a> LabelIndex<'a> {
    /// An index of rows given by time and true actions, in the order of the file.
    pub(crate) fn new(
        judge: CandidateJudge<'a>,
        rows: impl Iterator<Item = (i64, &'a [u32])>,
        tolerance_ns: i64,
    ) -> Self {
        let mut rows: Vec<_> = rows.enumerate().map(|(row, (time_ns, truth))| (time_ns, row, truth)).collect();
        rows.sort_unstable();
        Self { judge, rows, tolerance_ns }
    }

    /// Judges an identification by every label within the tolerance.
    pub(crate) fn judge(&self, identification: &Identification) -> JudgedCommand {
        let command = &identification.command;
        let first = command.time_ns.saturating_sub(self.tolerance_ns);
        let start = self.rows.partition_point(|(time_ns, ..)| *time_ns < first);
        let is_near = |row: &&(i64, usize, &[u32])| row.0.abs_diff(command.time_ns) <= self.tolerance_ns.unsigned_abs();
        let near = self.rows.iter().skip(start).take_while(is_near);
        let judgements = near.map(|(_, row, truth)| (*row, self.judge.judge(identification, truth))).collect();
        JudgedCommand { judgements, ..JudgedCommand::unidentified(command) }
    }
}

/// Completes the judgements of a pruner's output by those of its input. Commands are paired by identity, in order; a
/// foreign stage may have dropped or reordered some.
pub(crate) fn after_pruning(after: Vec<JudgedCommand>, before: &[JudgedCommand]) -> Vec<JudgedCommand> {
    let mut waiting: BTreeMap<_, VecDeque<&JudgedCommand>> = BTreeMap::new();
    for command in before {
        waiting.entry(command.identity()).or_default().push_back(command);
    }
    let complete = |command: JudgedCommand| match waiting.get_mut(&command.identity()).and_then(VecDeque::pop_front) {
        Some(before) => command.after_pruning(before),
        None => command,
    };
    after.into_iter().map(complete).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{ProbabilitySummary, TruthRank};

    fn command(time_ns: i64, rank: TruthRank, is_truncated: bool) -> JudgedCommand {
        let probabilities = ProbabilitySummary::default();
        let judgement = Judgement { rank, candidates: 9, is_truncated, first: None, probabilities };
        JudgedCommand { time_ns, size: 100, replies: 2, judgements: vec![(4, judgement)] }
    }

    #[test]
    fn equal_commands_are_paired_in_order() {
        let before = [
            command(1, TruthRank::Listed(3), true),
            command(1, TruthRank::Unlisted, true),
            command(7, TruthRank::Unlisted, true),
            command(8, TruthRank::Unlisted, true),
        ];
        let ranks = |after: Vec<JudgedCommand>| -> Vec<TruthRank> {
            after_pruning(after, &before).iter().map(|command| command.judgement(4).unwrap().rank).collect()
        };
        let undecided = |time_ns| command(time_ns, TruthRank::Undecided, true);
        let found = [TruthRank::Absent, TruthRank::Unlisted, TruthRank::Unlisted, TruthRank::Undecided];
        assert_eq!(ranks(vec![undecided(1), undecided(1), undecided(8), undecided(9)]), found);
        assert_eq!(command(1, TruthRank::Absent, false).judgement(5), None);
    }
}
