//! What one pipeline answered for the labelled commands.

use sizeleak_labels::{LabelFile, Matching, Tolerance};
use sizeleak_pipeline::{ModelFit, RunError};

use crate::error::EvaluationError;
use crate::judge::{JudgedLabel, Judgement};
use crate::judged_command::JudgedCommand;

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

    pub(crate) fn judged<'b>(&'b self, commands: &'b MatchedCommands) -> Vec<JudgedLabel<'b>> {
        let rows = self.labels.labels().rows.iter().zip(0..);
        rows.map(|(row, at)| JudgedLabel { truth: &row.counts, judgement: commands.judgement(at) }).collect()
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
