//! Runs pipelines over labelled captures and judges their answers.

use sizeleak_frame::{Frame, Notice};
use sizeleak_model::Model;
use sizeleak_pipeline::{Pipeline, RunError};

use crate::error::EvaluationError;
use crate::information::prior_bits;
use crate::judge::CandidateJudge;
use crate::judged_command::{JudgedCommand, LabelIndex, after_pruning};
use crate::judged_run::{JudgedRun, MatchedCommands};
use crate::label_file::{LabelFile, Tolerance};
use crate::model_fit::ModelFit;
use crate::observe::observe;

/// Judges pipelines by the same model and labels.
#[derive(Debug)]
pub struct Evaluator<'a> {
    /// The sections of the model.
    models: &'a [Model],
    labels: &'a LabelFile,
    tolerance: Tolerance,
    index: LabelIndex<'a>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator of pipelines that use these sections of a model; `credible` is the probability that a credible set holds.
    ///
    /// # Errors
    /// [`EvaluationError::Inventory`], if the inventory of the model contradicts itself.
    pub fn new(
        models: &'a [Model],
        labels: &'a LabelFile,
        tolerance: Tolerance,
        credible: f64,
    ) -> Result<Self, EvaluationError> {
        let judge = CandidateJudge::new(models, &labels.labels().actions, credible)?;
        let rows = labels.labels().rows.iter().map(|row| (row.time_ns, &*row.counts));
        let index = LabelIndex::new(judge, rows, tolerance.nanoseconds());
        Ok(Self { models, labels, tolerance, index })
    }

    /// Runs a pipeline and judges its commands. A pipeline with a pruner runs twice, the second time without the pruner
    /// and without notices.
    ///
    /// # Errors
    /// If the pipeline does not run, or finds no command near any label.
    pub fn judge(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<JudgedRun<'a>, EvaluationError> {
        let matched = |commands| MatchedCommands::new(commands, self.labels, self.tolerance);
        let FoundCommands { mut commands, has_candidates, damage, fit } = self.find(pipeline, on_notice)?;
        if commands.is_empty() {
            return Err(damage.map_or(EvaluationError::NoCommands, EvaluationError::from));
        }
        let mut before = None;
        if pipeline.has("pruner") {
            let unpruned = self.find(&pipeline.before("pruner"), &mut |_| {})?.commands;
            commands = after_pruning(commands, &unpruned);
            before = Some(unpruned);
        }
        let after = matched(commands)?;
        let before = before.map(matched).transpose()?;
        Ok(JudgedRun { labels: self.labels, tolerance: self.tolerance, after, before, has_candidates, damage, fit })
    }

    /// The entropy of what a pipeline knows of a command before its size is seen, in bits; `None` if nothing bounds
    /// it, or where each of several sections knows something else.
    pub fn prior_bits(&self, pipeline: &Pipeline) -> Option<f64> {
        let [only] = self.models else { return None };
        prior_bits(pipeline, only)
    }

    fn find(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<FoundCommands, EvaluationError> {
        let (mut identified, mut unidentified, mut fit) = (Vec::new(), Vec::new(), ModelFit::All);
        let damage = observe(pipeline, on_notice, |frame| match &frame {
            Frame::Identification(identification) => identified.push(self.index.judge(identification)),
            Frame::Correction(correction) => unidentified.push(JudgedCommand::unidentified(&correction.command)),
            Frame::Command(command) => unidentified.push(JudgedCommand::unidentified(command)),
            Frame::Summary(summary) => fit = ModelFit::of(summary),
            _ => {}
        })?;
        let has_candidates = !identified.is_empty();
        let commands = if has_candidates { identified } else { unidentified };
        Ok(FoundCommands { commands, has_candidates, damage, fit })
    }
}

/// The commands at the end of a pipeline.
struct FoundCommands {
    commands: Vec<JudgedCommand>,
    has_candidates: bool,
    damage: Option<RunError>,
    fit: ModelFit,
}
