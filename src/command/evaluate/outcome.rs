//! What a model is worth in few figures, for another command that makes models.

use anyhow::anyhow;
use serde::Serialize;
use sizeleak_model::Model;

use super::findings::Findings;
use super::judge::Judge;
use super::judged_command::LabelIndex;
use super::score::Score;
use super::study::see;
use crate::command::Failure;
use crate::command::labelled::{LabelFile, Tolerance};
use crate::command::observation::Telling;
use sizeleak_pipeline::Pipeline;

/// How often the truth was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::command) struct Outcome {
    /// Labelled commands.
    pub(in crate::command) commands: u64,
    /// What the pruner was given; `None` where the pipeline has none.
    pub(in crate::command) before_pruning: Option<Found>,
    /// What came out of the pipeline.
    pub(in crate::command) after_pruning: Found,
}

/// The figures of an evaluation that matter most, as it names them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::command) struct Found {
    pub(in crate::command) precision: f64,
    pub(in crate::command) top_1: u64,
    pub(in crate::command) top_5: u64,
    /// Their mean number.
    pub(in crate::command) candidates: f64,
}

impl Outcome {
    /// What a pipeline that uses this model says of labelled commands.
    pub(in crate::command) fn of(
        pipeline: &Pipeline,
        model: &Model,
        labels: &LabelFile,
        tolerance: Tolerance,
    ) -> Result<Self, Failure> {
        let judge = Judge::new(model, &labels.labels().actions, 1.0).map_err(|error| anyhow!(error))?;
        let rows = labels.labels().rows.iter().map(|row| (row.time_ns, &*row.counts));
        let calendar = LabelIndex::new(judge, rows, tolerance.nanoseconds());
        let seen = see(pipeline, Telling::Nothing, &calendar)?.identified()?;
        let findings = Findings::new(labels, tolerance, &seen.after, seen.before.as_deref())?;
        let evaluation = findings.evaluation(None, None);
        Ok(Self {
            commands: evaluation.after_pruning.commands,
            before_pruning: evaluation.before_pruning.as_ref().map(Found::of),
            after_pruning: Found::of(&evaluation.after_pruning),
        })
    }
}

impl Found {
    fn of(score: &Score) -> Self {
        let Score { precision, top_1, top_5, candidates, .. } = score;
        Self { precision: *precision, top_1: *top_1, top_5: *top_5, candidates: candidates.mean }
    }
}
