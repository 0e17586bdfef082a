//! What one pipeline answered for the labelled commands, the outcome of every single one as rows of a table, and why
//! pipelines cannot be evaluated. Commands are judged by the labels near them as they arrive: candidate lists are too
//! long to keep.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use serde::Serialize;
use sizeleak_frame::{Command, Identification};
use sizeleak_learning::LearningError;
use sizeleak_learning::labels::{LabelFile, LabelFileError, Matching, Tolerance};
use sizeleak_model::InventoryError;
use sizeleak_pipeline::{ConfigError, InputError, ModelFit, RunError};
use thiserror::Error;

use crate::judge::{CandidateJudge, Judgement, TruthRank};

/// The commands that a pipeline found in labelled captures, judged by their labels.
#[derive(Debug)]
pub struct JudgedRun {
    /// On the clock of the captures.
    pub labels: LabelFile,
    pub(crate) tolerance: Tolerance,
    /// The output of the pipeline.
    pub(crate) after: MatchedCommands,
    /// The input of the pruner, if the pipeline has one.
    pub(crate) before: Option<MatchedCommands>,
    /// Whether the pipeline makes candidates; otherwise it ends before the decomposer.
    pub has_candidates: bool,
    /// What is wrong with the captures. The run covers everything before the damage.
    pub damage: Option<RunError>,
    /// Whether the model fits what it was asked of.
    pub fit: ModelFit,
    /// Who answers, as the beginning of a sentence.
    pub(crate) subject: String,
}

impl JudgedRun {
    /// When each labelled command was sent, in nanoseconds since 1970.
    pub fn labelled_times(&self) -> impl Iterator<Item = i64> {
        let MatchedCommands { commands, matching } = &self.after;
        matching.pairs.iter().filter_map(|(_, at)| Some(commands.get(*at)?.time_ns))
    }

    /// The run, if the pipeline makes candidates.
    pub fn with_candidates(self) -> Result<Self, EvaluationError> {
        if self.has_candidates { Ok(self) } else { Err(EvaluationError::NoCandidates) }
    }

    /// Checks that most labels have a command.
    ///
    /// # Errors
    /// As [`LabelFile::check_use`]; damaged captures need not have the commands of all labels.
    pub fn check_use(&self) -> Result<(), EvaluationError> {
        if self.damage.is_some() {
            return Ok(());
        }
        Ok(self.labels.check_use(&self.after.matching, &self.after.times(), self.tolerance)?)
    }

    /// Of how many of these labels the first candidate is the truth.
    pub fn first_is_truth(&self, rows: &[usize]) -> u64 {
        let is_first =
            |row: &&usize| self.after.judgement(**row).is_some_and(|judgement| judgement.rank.position() == Some(1));
        rows.iter().filter(is_first).count() as u64
    }

    /// A sentence for each kind of label or command without a partner.
    pub fn remarks(&self) -> Vec<String> {
        self.labels.unmatched(&self.after.matching, &self.after.times(), self.tolerance)
    }
}

/// Commands at one point of a pipeline, and the labels they belong to.
#[derive(Debug)]
pub(crate) struct MatchedCommands {
    pub(crate) commands: Vec<JudgedCommand>,
    pub(crate) matching: Matching,
}

impl MatchedCommands {
    pub(crate) fn new(
        commands: Vec<JudgedCommand>,
        labels: &LabelFile,
        tolerance: Tolerance,
    ) -> Result<Self, EvaluationError> {
        let matching = labels.matching(&times(&commands), tolerance)?;
        Ok(Self { commands, matching })
    }

    pub(crate) fn times(&self) -> Vec<i64> {
        times(&self.commands)
    }

    pub(crate) fn command(&self, row: usize) -> Option<&JudgedCommand> {
        let pair = self.matching.pairs.binary_search_by_key(&row, |(label, _)| *label).ok()?;
        let (_, command) = self.matching.pairs.get(pair)?;
        self.commands.get(*command)
    }

    pub(crate) fn judgement(&self, row: usize) -> Option<&Judgement> {
        self.command(row)?.judgement(row)
    }
}

fn times(commands: &[JudgedCommand]) -> Vec<i64> {
    commands.iter().map(|command| command.time_ns).collect()
}

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

#[derive(Debug, Error)]
pub enum EvaluationError {
    #[error(transparent)]
    Labels(#[from] LabelFileError),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Learning(#[from] LearningError),
    #[error("a temporary file for the model cannot be written: {0}")]
    TemporaryFile(#[from] io::Error),
    #[error(
        "the bytes of plaintext in these commands are not known, and policies pad plaintext: capture a handshake, or \
         learn with `--cipher`"
    )]
    NoPlaintext,
    #[error("the model says that commands are padded already: they cannot be padded by another policy")]
    PaddedAlready,
    #[error(
        "the pipeline ends before candidates are made: answers start with the decomposer; `sizeleak evaluate` compares the stages \
         before it in several pipelines"
    )]
    NoCandidates,
}

impl From<ConfigError> for EvaluationError {
    fn from(error: ConfigError) -> Self {
        Self::Input(error.into())
    }
}

/// The outcome of a label or command; the fields are the columns.
#[derive(Debug, Default, Serialize)]
pub struct CommandDetails {
    line: Option<u64>,
    label_time_ns: Option<i64>,
    /// The true actions, like `on=2 off=1`.
    truth: String,
    /// `found`, `missed`, `ambiguous` or `spurious`.
    outcome: &'static str,
    command_time_ns: Option<i64>,
    /// On the wire, in bytes.
    size: Option<u64>,
    replies: Option<u32>,
    /// The rank of the truth before pruning: `listed`, `unlisted`, `absent` or `undecided`.
    before: &'static str,
    before_candidates: Option<u64>,
    after: &'static str,
    after_candidates: Option<u64>,
    first: String,
    /// The position of the truth in the list, from 1.
    rank: Option<u64>,
}

/// A row for each label, in the order of the file, then one for each command without a label.
pub fn details(run: &JudgedRun) -> Vec<CommandDetails> {
    let labels = (0..run.labels.labels().rows.len()).map(|row| label_details(run, row));
    let spurious = run.after.matching.spurious.iter().map(|command| {
        let details = CommandDetails { outcome: "spurious", ..CommandDetails::default() };
        details.with_command(run.after.commands.get(*command))
    });
    labels.chain(spurious).collect()
}

fn label_details(run: &JudgedRun, row: usize) -> CommandDetails {
    let labels = run.labels.labels();
    let label = labels.rows.get(row);
    let actions = |counts: &[u32]| {
        let named = labels.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
        named.map(|(action, count)| format!("{action}={count}")).collect::<Vec<_>>().join(" ")
    };
    let details = CommandDetails {
        line: label.map(|label| label.line),
        label_time_ns: label.map(|label| label.time_ns),
        truth: label.map_or_else(String::new, |label| actions(&label.counts)),
        ..CommandDetails::default()
    };
    let Some(command) = run.after.command(row) else {
        let is_missed = run.after.matching.missed.binary_search(&row).is_ok();
        return CommandDetails { outcome: if is_missed { "missed" } else { "ambiguous" }, ..details };
    };
    let before = run.before.as_ref().and_then(|before| before.judgement(row));
    let after = command.judgement(row);
    let judged = CommandDetails {
        outcome: "found",
        before: before.map_or("", |before| word(before.rank)),
        before_candidates: before.map(|before| before.candidates),
        after: after.map_or("", |after| word(after.rank)),
        after_candidates: after.map(|after| after.candidates),
        first: after.and_then(|after| after.first.as_ref()).map_or_else(String::new, |first| actions(first)),
        rank: after.and_then(|after| after.rank.position()),
        ..details
    };
    judged.with_command(Some(command))
}

impl CommandDetails {
    fn with_command(self, command: Option<&JudgedCommand>) -> Self {
        let Some(JudgedCommand { time_ns, size, replies, .. }) = command else { return self };
        Self { command_time_ns: Some(*time_ns), size: Some(*size), replies: Some(*replies), ..self }
    }
}

fn word(rank: TruthRank) -> &'static str {
    match rank {
        TruthRank::Listed(_) => "listed",
        TruthRank::Unlisted => "unlisted",
        TruthRank::Absent => "absent",
        TruthRank::Undecided => "undecided",
    }
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
