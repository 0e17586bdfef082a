//! The steps of an experiment with their reasons: `record.json`, from which an experiment goes on.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::device_choice::DeviceAction;
use crate::experiment::{Experiment, Half, PlannedCommand};

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

    /// When its message was seen, halfway between both stamps, by the clock of the capture.
    pub fn time_ns(&self) -> i64 {
        let returned = self.returned_ns.unwrap_or(self.handed_over_ns);
        self.handed_over_ns + (returned - self.handed_over_ns) / 2 - self.clock_ahead_ns
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
pub enum JournalError {
    #[error("this is no record.json of `sizeleak record`: {0}")]
    Syntax(String),
    #[error("it is of the actions {recorded}, and the inventory has {named}: name another folder")]
    OtherActions { recorded: String, named: String },
}

impl Journal {
    pub fn new(actions: &[String], seed: u64) -> Self {
        Self { schema: SCHEMA, seed, actions: actions.to_vec(), steps: Vec::new(), end: None }
    }

    /// Takes a journal that was read, and tells the experiment its steps. Steps that were pending do not count.
    pub fn resume(mut self, experiment: &mut Experiment) -> Result<Self, JournalError> {
        if self.schema != SCHEMA {
            return Err(JournalError::Syntax(format!("its schema is {}, not {SCHEMA}", self.schema)));
        }
        if self.actions != experiment.actions() {
            let (recorded, named) = (self.actions.join(", "), experiment.actions().join(", "));
            return Err(JournalError::OtherActions { recorded, named });
        }
        if let Some(step) = self.steps.iter().find(|step| step.counts.len() != self.actions.len()) {
            return Err(JournalError::Syntax(format!("step {} has not as many counts as actions", step.number)));
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
