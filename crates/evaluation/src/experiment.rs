//! The experiment that runs itself: which command of a home to record next, what is known after it, and when to stop.
//!
//! An [`Experiment`] is numbers and names alone: it chooses commands by what they would settle, and holds back every
//! second one for a test. [`Recording`] says what the captures so far tell: a model of the commands to learn from, and how
//! those held back fit it. A [`Journal`] (`record.json`) holds every step with its reason, and from it an experiment goes on
//! where it was stopped. Nothing here reads a clock, starts a process or captures.
//!
//! ```
//! use sizeleak_model::Inventory;
//! use sizeleak_evaluation::experiment::{Decision, Experiment, MAX_COMMANDS};
//!
//! let home = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\", \"off\"]";
//! let experiment = Experiment::new(Inventory::from_toml(home)?, MAX_COMMANDS, 1)?;
//! let Decision::Send(command) = experiment.next() else { panic!("nothing is known yet") };
//! assert_eq!(command.counts, [1, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod knowledge;
mod next_command;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sizeleak_frame::Direction;
use sizeleak_learning::labels::{Label, LabelFile, Labels, Tolerance};
use sizeleak_learning::{
    LearningError, LearningOutcome, LearningRun, LearningSettings, command_times, digest_captures,
};
use sizeleak_model::{Inventory, ModelSet};
use sizeleak_pipeline::{ConfigError, InputSource, Pipeline, PipelineInput};
use thiserror::Error;

use crate::evaluation::Evaluation;
use crate::evaluator::judge_model;
use crate::judged_run::EvaluationError;
use crate::score::prior_bits;

pub use knowledge::{ActionSize, HeldOut, Knowledge};
pub use next_command::{Decision, DeviceAction, Experiment, Half, MAX_COMMANDS, PlannedCommand, Stop};

/// The first stage that needs a model of sizes.
const CORRECTOR: &str = "epsilon-corrector";

/// The probability that a credible set holds.
const CREDIBLE: f64 = 0.95;

#[derive(Debug, Error)]
pub enum RecordingError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Learning(#[from] LearningError),
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
}

#[derive(Debug)]
pub struct Recording {
    pipeline: Pipeline,
    input: PipelineInput,
    settings: LearningSettings,
    tolerance: Tolerance,
    steps: Vec<Step>,
}

#[derive(Debug)]
pub struct Learned {
    pub models: ModelSet,
    pub knowledge: Knowledge,
    /// The labels with the times of the commands that were found for them; those without one are left out.
    pub found: Labels,
    /// The commands' times, in nanoseconds since 1970.
    pub times: Vec<i64>,
}

#[derive(Debug)]
pub struct Tested {
    pub held_out: HeldOut,
    pub evaluation: Evaluation,
}

impl Recording {
    /// Captures of a gateway with these devices; a command may be as far from its label as the longest of `steps` took.
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
        let longest = steps.iter().map(|step| step.end_ns() - step.start_ns()).max().unwrap_or(0);
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
            steps: steps.to_vec(),
        })
    }

    /// Learns from labels; `None` with the reason if they teach no model yet.
    pub fn learn(&self, labels: &LabelFile) -> Result<Result<Learned, LearningError>, RecordingError> {
        let run = LearningRun { labels, input: &self.input, tolerance: self.tolerance, settings: &self.settings };
        match run.learn(&self.pipeline.before(CORRECTOR), &mut |_| {}) {
            Ok(outcome) => Ok(self.learned(labels, outcome)),
            Err(error @ (LearningError::Input(_) | LearningError::Labels(_))) => Ok(Err(error)),
            Err(error) => Err(error.into()),
        }
    }

    fn learned(&self, labels: &LabelFile, outcome: LearningOutcome) -> Result<Learned, LearningError> {
        let LearningOutcome { learned, commands, labels: aligned, .. } = outcome;
        let sent = commands.iter().filter(|one| one.command.direction == Direction::ToGateway);
        let mut messages: Vec<i64> = sent.map(|one| one.command.time_ns).collect();
        messages.sort_unstable();
        if let Some(cause) = cause(&self.steps, &messages) {
            return Err(labels.fault(cause).into());
        }
        let sections = learned?;
        let first = sections.first().ok_or(LearningError::NoSizes)?;
        let explained = usize::try_from(first.model.learned.commands).unwrap_or(usize::MAX);
        let actions = &labels.labels().actions;
        let knowledge = Knowledge::of(first, actions, labels.labels().rows.len().saturating_sub(explained));
        let models = ModelSet::new(sections.into_iter().map(|section| section.model).collect());
        let models = models.map_err(|fault| labels.fault(fault.to_string()))?;
        let times = command_times(&commands);
        let found = self.found(&aligned, &times);
        Ok(Learned { models, knowledge, found, times })
    }

    /// Answers the commands that were held back, with a model that has not seen them; `None` if no message of them was
    /// seen. The others do not count.
    pub fn test(&self, learned: &Learned, labels: &LabelFile) -> Result<Option<Tested>, RecordingError> {
        let Ok(matching) = labels.matching(&learned.times, self.tolerance) else { return Ok(None) };
        let seen: Vec<usize> = matching.pairs.iter().map(|(row, _)| *row).collect();
        let (models, labels) = (&learned.models, &labels.subset(&seen));
        let run = judge_model(models, &self.pipeline, labels, self.tolerance, CREDIBLE, &self.input)?;
        let evaluation = Evaluation::new(&run, prior_bits(&self.pipeline, models.sections()));
        let score = &evaluation.after_pruning;
        Ok(Some(Tested { held_out: HeldOut { commands: score.commands, explained: score.among }, evaluation }))
    }

    /// The labels with the times of their commands; those without a command are left out.
    pub fn found(&self, labels: &LabelFile, times: &[i64]) -> Labels {
        let matching = labels.matching(times, self.tolerance);
        let pairs = matching.map_or_else(|_| Vec::new(), |matching| matching.pairs);
        let row = |(row, at): &(usize, usize)| {
            let label = labels.labels().rows.get(*row)?;
            Some(Label { time_ns: *times.get(*at)?, ..label.clone() })
        };
        Labels { rows: pairs.iter().filter_map(row).collect(), notes: Vec::new(), ..labels.labels().clone() }
    }
}

pub fn labels_of<'a>(actions: &[String], steps: impl Iterator<Item = &'a Step>) -> Labels {
    let rows = steps.zip(2..).map(|(step, line)| Label { time_ns: step.time_ns(), counts: step.counts.clone(), line });
    Labels { actions: actions.to_vec(), rows: rows.collect(), is_to_the_minute: false, notes: Vec::new() }
}

/// Fewer turns say nothing.
const MIN_TURNS: usize = 8;

/// With fewer turns than this share that have a message, the others are no accident.
const MIN_SEEN: f64 = 2.0 / 3.0;

/// A message is sent at once within this time of its command, in nanoseconds.
const CLOSE_NS: i64 = 200_000_000;

/// Why the commands that were found are not those of the steps, if that shows. `messages` have the time of each, in order.
fn cause(steps: &[Step], messages: &[i64]) -> Option<String> {
    let ends = steps.iter().skip(1).map(Step::start_ns).chain([i64::MAX]);
    let at = |time: i64| messages.partition_point(|other| *other < time);
    // A step has the turn until the next one begins.
    let of_turn = |(step, end): (_, i64)| (step, messages.get(at(Step::start_ns(step))..at(end)).unwrap_or_default());
    let was_sent = |(step, _): &(&Step, i64)| matches!(step.outcome, Outcome::Sent | Outcome::NotSeen);
    let of_turns: Vec<(&Step, &[i64])> = steps.iter().zip(ends).filter(was_sent).map(of_turn).collect();
    let sent = of_turns.len();
    if sent < MIN_TURNS || messages.is_empty() {
        return None;
    }
    let seen = of_turns.iter().filter(|(_, messages)| !messages.is_empty()).count();
    if (seen as f64) < MIN_SEEN * sent as f64 {
        let late = of_turns.iter().filter_map(|(step, messages)| Some(messages.first()? - step.end_ns()));
        let mut late: Vec<i64> = late.collect();
        late.sort_unstable();
        let longest = late.last().copied().unwrap_or(0) as f64 / 1e9;
        return Some(if late.get(late.len() / 2).is_some_and(|median| *median > CLOSE_NS) {
            format!(
                "only {seen} of {sent} commands have a message of their own, up to {longest:.1} s after the command: the \
                 gateway gathers commands in one message; leave more time between them (`--pause {:.0}s`)",
                (2.0 * longest).ceil() + 1.0
            )
        } else {
            format!(
                "only {seen} of {sent} commands have a message: the gateway or its service drops the others, or the \
                 capture does not see them"
            )
        });
    }
    None
}

const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was handed over, and nothing more is known: a recording that was killed here does not count it.
    Pending,
    Sent,
    /// It was sent, and the capture has no message of it in its turn: it does not count.
    NotSeen,
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    pub half: Half,
    pub why: String,
    /// How often each action occurs, in the order of [`Journal::actions`].
    pub counts: Vec<u32>,
    pub devices: Vec<DeviceAction>,
    /// When it was handed over, in nanoseconds since 1970 on the clock of this machine.
    pub handed_over_ns: i64,
    /// When the program that sends commands was done; `None` while it is not.
    pub returned_ns: Option<i64>,
    /// How far this clock is ahead of the capture's, in nanoseconds; 0 while that is not known.
    pub clock_ahead_ns: i64,
    pub outcome: Outcome,
}

impl Step {
    /// When it was handed over, by the clock of the capture.
    pub fn start_ns(&self) -> i64 {
        self.handed_over_ns - self.clock_ahead_ns
    }

    /// When the program that sends commands was done, as far as that is known, by the clock of the capture.
    fn end_ns(&self) -> i64 {
        self.returned_ns.unwrap_or(self.handed_over_ns) - self.clock_ahead_ns
    }

    /// When its message was seen, halfway between both stamps, by the clock of the capture.
    pub fn time_ns(&self) -> i64 {
        self.start_ns() + (self.end_ns() - self.start_ns()) / 2
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    schema: u32,
    pub seed: u64,
    /// The actions, in the order of counts.
    pub actions: Vec<String>,
    /// The commands, in the order in which they were handed over.
    pub steps: Vec<Step>,
    /// Why the experiment ended; `None` while it has not.
    pub end: Option<String>,
}

/// Why an experiment cannot go on from a journal.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct JournalError(String);

impl Journal {
    pub fn new(actions: &[String], seed: u64) -> Self {
        Self { schema: SCHEMA, seed, actions: actions.to_vec(), steps: Vec::new(), end: None }
    }

    /// Takes a journal that was read, and tells the experiment its steps. Steps that were pending do not count.
    pub fn resume(mut self, experiment: &mut Experiment) -> Result<Self, JournalError> {
        let is_none = |fault: String| JournalError(format!("this is no record.json of `sizeleak record`: {fault}"));
        if self.schema != SCHEMA {
            return Err(is_none(format!("its schema is {}, not {SCHEMA}", self.schema)));
        }
        if self.actions != experiment.actions() {
            let (recorded, named) = (self.actions.join(", "), experiment.actions().join(", "));
            let fault = format!("it is of the actions {recorded}, and the inventory has {named}: name another folder");
            return Err(JournalError(fault));
        }
        if let Some(step) = self.steps.iter().find(|step| step.counts.len() != self.actions.len()) {
            return Err(is_none(format!("step {} has not as many counts as actions", step.number)));
        }
        for step in &mut self.steps {
            if step.outcome == Outcome::Pending {
                step.outcome = Outcome::Failed("the recording was stopped while it was sent".to_owned());
            }
            experiment.add(step.half, (step.outcome == Outcome::Sent).then_some(&step.counts));
        }
        self.end = None;
        Ok(self)
    }

    /// Notes that a command is about to be handed over.
    pub fn begin(&mut self, command: &PlannedCommand, handed_over_ns: i64) {
        self.steps.push(Step {
            number: self.steps.len() as u64 + 1,
            half: command.half,
            why: command.why.clone(),
            counts: command.counts.clone(),
            devices: command.devices.clone(),
            handed_over_ns,
            returned_ns: None,
            clock_ahead_ns: 0,
            outcome: Outcome::Pending,
        });
    }

    pub fn sent(&self, half: Half) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.half == half && step.outcome == Outcome::Sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Commands every second, each done at once.
    fn steps() -> Vec<Step> {
        let step = |at: i64| Step {
            number: at.unsigned_abs() + 1,
            half: Half::Learn,
            why: String::new(),
            counts: Vec::new(),
            devices: Vec::new(),
            handed_over_ns: at * SECOND,
            returned_ns: Some(at * SECOND + 1_000),
            clock_ahead_ns: 0,
            outcome: Outcome::Sent,
        };
        (0..40).map(step).collect()
    }

    fn of(messages: impl IntoIterator<Item = i64>) -> Option<String> {
        cause(&steps(), &messages.into_iter().collect::<Vec<_>>())
    }

    #[test]
    fn gateways_that_gather_or_drop_commands_are_told_apart() {
        let at_once = |at: i64| at * SECOND + 5_000_000;
        assert_eq!(of((0..40).map(at_once)), None);
        assert_eq!(of((0..40).filter(|at| at % 6 > 0).map(at_once)), None);
        let dropped = of((0..40).filter(|at| at % 2 > 0).map(at_once)).unwrap();
        assert!(dropped.contains("only 20 of 40") && dropped.contains("drops"), "{dropped}");
        let gathered = of((0..13).map(|at| 3 * at * SECOND + 2 * SECOND + 600_000_000)).unwrap();
        assert!(gathered.contains("only 13 of 40") && gathered.contains("`--pause 3s`"), "{gathered}");
    }
}
