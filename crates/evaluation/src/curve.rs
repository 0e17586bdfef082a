//! How precision grows with the number of labels: models of samples of the labels, tested on commands that none of them
//! was learned from.

mod label_counts;
mod point;

use serde::Serialize;
use sizeleak_labels::{LabelFile, Tolerance};
use sizeleak_learning::{LearnedModel, LearningOutcome, LearningRun, TrainingSet};
use sizeleak_model::{Action, Model, ModelSet};
use sizeleak_pipeline::{Pipeline, PipelineInput};

use crate::error::EvaluationError;
use crate::evaluation::Evaluation;
use crate::evaluator::judge_model;
pub use label_counts::LabelCounts;
use label_counts::draws;
use point::TestedModel;
pub use point::{CurvePoint, DrawRemark, MedianScore, MedianShare};

const SCHEMA: u32 = 2;

/// One in this many labels is held out, the last ones: models are tested on them.
const HELD_OUT: usize = 3;

struct CurveInput<'a> {
    training_set: TrainingSet<'a>,
    /// The model of all labels: sizes are compared with its sizes, and its noise is used.
    model: &'a Model,
    pipeline: &'a Pipeline,
    input: &'a PipelineInput,
    held_out: LabelFile,
    tolerance: Tolerance,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct LearningCurve {
    schema: u32,
    /// How many labels the samples were drawn from.
    pub drawn_from: usize,
    /// How many labelled commands every model is tested on.
    pub tested: usize,
    /// In ascending order of labels.
    pub points: Vec<CurvePoint>,
}

impl LearningCurve {
    /// Learns from more and more labels, each time from several samples of them. `outcome` is what all labels teach.
    ///
    /// # Errors
    /// If there are too few labels, nothing is learned from all, or a pipeline does not run. A sample that no model can
    /// be learned from is a refusal of its point.
    pub fn measure(
        learning: &LearningRun<'_>,
        pipeline: &Pipeline,
        outcome: LearningOutcome,
        counts: &LabelCounts,
    ) -> Result<Self, EvaluationError> {
        let LearningOutcome { learned, commands, labels, .. } = outcome;
        let Some(LearnedModel { model, .. }) = learned?.into_iter().next() else {
            return Err(labels.fault("nothing was learned".to_owned()).into());
        };
        let rows = labels.order_by_time();
        let (learned, held_out) = rows.split_at(rows.len() - rows.len() / HELD_OUT);
        if held_out.is_empty() {
            let fault = format!("too few labels to hold some out: label at least {HELD_OUT} commands");
            return Err(labels.fault(fault).into());
        }
        let input = CurveInput {
            training_set: learning.training_set(&labels, &commands),
            model: &model,
            pipeline,
            input: learning.input,
            held_out: labels.subset(held_out),
            tolerance: learning.tolerance,
        };
        let counts = counts.up_to(labels.labels().actions.len(), learned.len());
        let point = |count: usize| {
            let draws = draws(learned, count);
            let tried = draws.iter().map(|rows| input.tried(rows)).collect::<Result<Vec<_>, EvaluationError>>()?;
            Ok(CurvePoint::new(count, &tried))
        };
        let points = counts.into_iter().map(point).collect::<Result<_, EvaluationError>>()?;
        Ok(Self { schema: SCHEMA, drawn_from: learned.len(), tested: held_out.len(), points })
    }
}

impl CurveInput<'_> {
    fn tried(&self, rows: &[usize]) -> Result<Result<TestedModel, String>, EvaluationError> {
        let labels = self.training_set.labels.subset(rows);
        let (model, warnings) = match (TrainingSet { labels: &labels, ..self.training_set }).learn() {
            // The commands were found with the noise of all labels.
            Ok(learned) => (Model { noise: self.model.noise.clone(), ..learned.model }, learned.warnings),
            Err(error) => return Ok(Err(error.cause())),
        };
        let models = ModelSet::new(vec![model.clone()]).map_err(|fault| labels.fault(fault.to_string()))?;
        let run = judge_model(&models, self.pipeline, &self.held_out, self.tolerance, 1.0, self.input)?;
        // Actions of the name and the size that one of the model of all labels has.
        let is_known = |action: &&Action| {
            self.model.actions.iter().any(|known| known.name == action.name && known.size == action.size)
        };
        Ok(Ok(TestedModel {
            sizes: model.actions.iter().filter(is_known).count(),
            is_of_kinds: model.actions.is_empty(),
            warnings,
            evaluation: Evaluation::new(&run, None),
        }))
    }
}
