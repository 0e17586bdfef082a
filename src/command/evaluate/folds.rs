//! `sizeleak evaluate --folds`: models of all labels but a part, tested on that part.

use sizeleak_evaluation::{Fold, FoldCount, FoldOrder, FoldedEvaluation};
use sizeleak_learning::{LearnedModel, LearningError, LearningRun};
use sizeleak_pipeline::{Pipeline, RunError};
use sizeleak_platform::telemetry::log::say;
use sizeleak_report::document::{Figure, Value};

use crate::command::document::{Document, blank, figure, line};
use crate::command::evaluation_input::EvaluationInput;
use crate::command::failure::Failure;
use crate::command::learning_options::LearningOptions;
use crate::command::notices::NoticeReport;

/// What is learned and tested part by part.
pub(super) struct FoldedRun<'a> {
    pub(super) input: &'a EvaluationInput,
    pub(super) learning: &'a LearningOptions,
    pub(super) count: FoldCount,
    pub(super) order: FoldOrder,
}

/// The figures of all parts, and what is wrong with the captures.
pub(super) struct FoldedFigures {
    pub(super) figures: FoldedEvaluation,
    pub(super) damage: Option<RunError>,
}

impl FoldedRun<'_> {
    /// Learns and tests; remarks on the model of all labels are printed.
    pub(super) fn evaluate(&self, pipeline: &Pipeline) -> Result<FoldedFigures, Failure> {
        let captures = &self.input.captures;
        let traffic = match self.count {
            FoldCount::Captures => captures.input_by_capture(pipeline)?,
            FoldCount::Parts(_) => captures.input(pipeline)?,
        };
        let settings = self.learning.settings(captures.digests(pipeline)?)?;
        let mut labels = captures.read_labels(&traffic, pipeline)?;
        if let Some(inventory) = &settings.inventory {
            labels = labels.within(inventory)?;
        }
        let tolerance = labels.tolerance(captures.tolerance);
        let learning = LearningRun { labels: &labels, input: &traffic, tolerance, settings: &settings };
        let mut notices = NoticeReport::default();
        let outcome = learning.learn(&pipeline.before("epsilon-corrector"), &mut |notice| notices.add(notice));
        notices.print(&outcome, |outcome| outcome.damage.as_ref());
        let outcome = outcome?;
        let folds = self.count.folds(&outcome.labels, &traffic.parts(pipeline)?, self.order)?;
        let figures = FoldedEvaluation::new(&learning, pipeline, &outcome, &folds, self.input.credible)?;
        report(&outcome.learned);
        Ok(FoldedFigures { figures, damage: outcome.damage })
    }
}

/// Prints what is said of the model of all labels.
fn report(learned: &Result<Vec<LearnedModel>, LearningError>) {
    for section in learned.iter().flatten() {
        section.remarks.iter().for_each(|remark| say("note", &format!("all labels together: {remark}")));
        section.warnings.iter().for_each(|warning| say("warning", &format!("all labels together: {warning}")));
    }
}

/// The parts as a human-readable table.
pub(super) fn table(folds: &[Fold]) -> Document {
    let row = |(at, fold): (usize, &Fold)| {
        let [at, learned, labels] = [at, fold.learned, fold.labels].map(|count| Value::Count(count as f64));
        let share = fold.top_1 as f64 / fold.labels as f64;
        [at, learned, labels, (fold.labels > 0).then_some(Value::Within(share, fold.interval)).into()]
    };
    let columns = "part | learned from | tested on | truth the first candidate";
    let faults = (1_usize..).zip(folds).filter_map(|(at, fold)| {
        let fault = fold.fault.as_deref()?;
        Some(line(format!("no model without part {at}: {fault}")))
    });
    [
        line("every label is tested with a model of the other parts, over the same commands"),
        blank(),
        figure(&Figure::new("folds", columns, (1..).zip(folds).map(row))),
        faults.flatten().collect(),
        blank(),
    ]
    .concat()
}
