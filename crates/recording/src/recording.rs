//! What the captures of an experiment say so far: a model of the commands to learn from, and how those held back fit it.

use std::path::PathBuf;

use sizeleak_evaluation::{Evaluation, EvaluationError, Evaluator, JudgedRun};
use sizeleak_frame::Direction;
use sizeleak_labels::{Label, LabelFile, Labels, Tolerance};
use sizeleak_learning::{
    LearningError, LearningOutcome, LearningRun, LearningSettings, command_times, digest_captures, temporary_model,
};
use sizeleak_model::{Inventory, ModelSet};
use sizeleak_pipeline::{ConfigError, InputSource, Pipeline, PipelineInput};
use thiserror::Error;

use crate::journal::Step;
use crate::knowledge::{HeldOut, Knowledge};
use crate::turns::{Turn, cause};

/// The first stage that needs a model of sizes.
const CORRECTOR: &str = "epsilon-corrector";

/// The probability that a credible set holds.
const CREDIBLE: f64 = 0.95;

/// Why nothing can be said of a recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The options of the stages are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The captures cannot be learned from.
    #[error(transparent)]
    Learning(#[from] LearningError),
    /// The model cannot be tested.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}

/// The captures of an experiment.
#[derive(Debug)]
pub struct Recording {
    pipeline: Pipeline,
    input: PipelineInput,
    settings: LearningSettings,
    tolerance: Tolerance,
    turns: Vec<Turn>,
}

/// What was learned.
#[derive(Debug)]
pub struct Learned {
    /// The model.
    pub models: ModelSet,
    /// What it says of sizes.
    pub knowledge: Knowledge,
    /// The labels with the times of the commands that were found for them; those without one are left out.
    pub found: Labels,
    /// The commands' times, in nanoseconds since 1970.
    pub times: Vec<i64>,
}

/// How the commands held back fit.
#[derive(Debug)]
pub struct Tested {
    /// In numbers.
    pub held_out: HeldOut,
    /// All figures.
    pub evaluation: Evaluation,
}

impl Recording {
    /// Captures of a gateway with these devices; a command may be as far from its label as the longest of `steps` took.
    ///
    /// # Errors
    /// [`RecordingError`], if the options are wrong or a capture cannot be read.
    pub fn new(
        captures: &[PathBuf],
        gateway: &[String],
        inventory: &Inventory,
        steps: &[Step],
    ) -> Result<Self, RecordingError> {
        let mut pipeline = Pipeline::standard();
        pipeline.read_captures(captures)?;
        pipeline.set("flow-filter", "gateway", gateway.to_vec())?;
        let settings = LearningSettings {
            inventory: Some(inventory.clone()),
            captures: digest_captures(captures)?,
            ..LearningSettings::default()
        };
        let took = |step: &Step| step.returned_ns.map_or(0, |returned| returned - step.handed_over_ns);
        let longest = steps.iter().map(took).max().unwrap_or(0);
        let slack = Tolerance::USUAL.nanoseconds() / 2;
        // No message is later than the next command, however long that is waited for.
        let shortest = steps.windows(2).map(|pair| pair[1].start_ns().saturating_sub(pair[0].start_ns())).min();
        let tolerance = (longest / 2 + slack).max(shortest.unwrap_or(0)).max(Tolerance::USUAL.nanoseconds());
        let tolerance = Tolerance::of_nanoseconds(tolerance);
        Ok(Self {
            pipeline,
            input: PipelineInput::new(InputSource::Captures),
            settings,
            tolerance,
            turns: steps.iter().map(Turn::of).collect(),
        })
    }

    /// Learns from labels; `None` with the reason if they teach no model yet.
    pub fn learn(&self, labels: &LabelFile) -> Result<Result<Learned, LearningError>, RecordingError> {
        let run = LearningRun { labels, input: &self.input, tolerance: self.tolerance, settings: &self.settings };
        let outcome = run.learn(&self.pipeline.before(CORRECTOR), &mut |_| {});
        let LearningOutcome { learned, commands, labels: aligned, .. } = match outcome {
            Ok(outcome) => outcome,
            Err(error @ (LearningError::Input(_) | LearningError::Labels(_))) => return Ok(Err(error)),
            Err(error) => return Err(error.into()),
        };
        let sent = commands.iter().filter(|one| one.command.direction == Direction::ToGateway);
        let mut messages: Vec<i64> = sent.map(|one| one.command.time_ns).collect();
        messages.sort_unstable();
        if let Some(cause) = cause(&self.turns, &messages) {
            return Ok(Err(labels.fault(cause).into()));
        }
        let sections = match learned {
            Ok(sections) => sections,
            Err(error) => return Ok(Err(error)),
        };
        let Some(first) = sections.first() else { return Ok(Err(LearningError::NoSizes)) };
        let explained = usize::try_from(first.model.learned.commands).unwrap_or(usize::MAX);
        let actions = &labels.labels().actions;
        let knowledge = Knowledge::of(first, actions, labels.labels().rows.len().saturating_sub(explained));
        let models = ModelSet::new(sections.iter().map(|section| section.model.clone()).collect());
        let models = match models {
            Ok(models) => models,
            Err(fault) => return Ok(Err(labels.fault(fault.to_string()).into())),
        };
        let times = command_times(&commands);
        let found = found(&aligned, &times, self.tolerance);
        Ok(Ok(Learned { models, knowledge, found, times }))
    }

    /// Answers the commands that were held back, with a model that has not seen them; `None` if no message of them was
    /// seen. The others do not count.
    pub fn test(&self, learned: &Learned, labels: &LabelFile) -> Result<Option<Tested>, RecordingError> {
        let Ok(matching) = labels.matching(&learned.times, self.tolerance) else { return Ok(None) };
        let seen: Vec<usize> = matching.pairs.iter().map(|(row, _)| *row).collect();
        let (models, labels) = (&learned.models, &labels.subset(&seen));
        let file = temporary_model(models).map_err(LearningError::from)?;
        let mut pipeline = self.pipeline.clone();
        pipeline.use_models(&[file.path()])?;
        let evaluator = Evaluator::new(models.sections(), labels, self.tolerance, CREDIBLE, &self.input)?;
        let run = evaluator.judge(&pipeline, &mut |_| {}).and_then(JudgedRun::with_candidates)?;
        let evaluation = Evaluation::new(&run, evaluator.prior_bits(&pipeline));
        let score = &evaluation.after_pruning;
        Ok(Some(Tested { held_out: HeldOut { commands: score.commands, explained: score.among }, evaluation }))
    }

    /// The labels with the times of their commands; those without a command are left out.
    pub fn found(&self, labels: &LabelFile, times: &[i64]) -> Labels {
        found(labels, times, self.tolerance)
    }
}

/// The labels of these steps.
pub fn labels_of<'a>(actions: &[String], steps: impl Iterator<Item = &'a Step>) -> Labels {
    let rows = steps.zip(2..).map(|(step, line)| Label { time_ns: step.time_ns(), counts: step.counts.clone(), line });
    Labels { actions: actions.to_vec(), rows: rows.collect(), is_to_the_minute: false, notes: Vec::new() }
}

fn found(labels: &LabelFile, times: &[i64], tolerance: Tolerance) -> Labels {
    let pairs = labels.matching(times, tolerance).map_or_else(|_| Vec::new(), |matching| matching.pairs);
    let row = |(row, at): &(usize, usize)| {
        let label = labels.labels().rows.get(*row)?;
        Some(Label { time_ns: *times.get(*at)?, ..label.clone() })
    };
    Labels { rows: pairs.iter().filter_map(row).collect(), notes: Vec::new(), ..labels.labels().clone() }
}
