//! From what a pipeline said of the commands to the figures of an evaluation.

use serde::Serialize;
use sizeleak_model::Matching;
use sizeleak_simulator::BayesLimit;

use super::confusion::Confusion;
use super::judge::Judgement;
use super::judged_command::JudgedCommand;
use super::limits::Limits;
use super::score::{ActionScore, Judged, Score};
use crate::command::labelled::{LabelFile, Tolerance};

/// The version of the JSON keys.
pub(in crate::command) const SCHEMA: u32 = 1;

/// The figures of an evaluation.
#[derive(Debug, PartialEq, Serialize)]
pub(in crate::command) struct Evaluation {
    pub(in crate::command) schema: u32,
    /// Labelled commands.
    pub(in crate::command) commands: usize,
    /// Those a command was found for.
    pub(in crate::command) matched: usize,
    /// Those no command is near to.
    pub(in crate::command) missed: usize,
    /// Those that are near to commands of other labels alone.
    pub(in crate::command) ambiguous: usize,
    /// Commands without a label.
    pub(in crate::command) spurious: usize,
    /// What the pruner was given; `None` where the pipeline has none.
    pub(in crate::command) before_pruning: Option<Score>,
    /// What came out of the pipeline.
    pub(in crate::command) after_pruning: Score,
    /// What came out of the pipeline, by action.
    pub(in crate::command) actions: Vec<ActionScore>,
    pub(in crate::command) confusion: Confusion,
    /// `None` without a scenario.
    pub(in crate::command) bayes_limit: Option<Limits>,
    pub(in crate::command) paper: Paper,
}

/// The paper's own figures: 12 plugs with 4 actions and 4 lamps with 7, behind one gateway.
#[derive(Debug, PartialEq, Serialize)]
pub(in crate::command) struct Paper {
    pub(in crate::command) commands: u64,
    pub(in crate::command) precision_before_pruning: f64,
    pub(in crate::command) precision_after_pruning: f64,
}

const PAPER: Paper = Paper { commands: 307, precision_before_pruning: 0.984, precision_after_pruning: 0.912 };

/// What was said of the labelled commands.
pub(in crate::command) struct Findings<'a> {
    labels: &'a LabelFile,
    pub(super) after: &'a [JudgedCommand],
    pub(in crate::command) matching: Matching,
    /// Of each label what the pipeline said of its command, in the end and before pruning.
    said: Vec<Option<&'a Judgement>>,
    pub(in crate::command) said_before: Vec<Option<&'a Judgement>>,
    has_pruner: bool,
}

impl<'a> Findings<'a> {
    /// Puts what a pipeline said together with the labels.
    pub(super) fn new(
        labels: &'a LabelFile,
        tolerance: Tolerance,
        after: &'a [JudgedCommand],
        before: Option<&'a [JudgedCommand]>,
    ) -> anyhow::Result<Self> {
        let matching = labels.matching(&times(after), tolerance)?;
        let said_before = match before {
            Some(before) => said(labels, before, &labels.matching(&times(before), tolerance)?),
            None => Vec::new(),
        };
        let said = said(labels, after, &matching);
        Ok(Self { labels, after, matching, said, said_before, has_pruner: before.is_some() })
    }

    /// The figures; `prior_bits` is the entropy of what is known without sizes, `limit` what is possible at all.
    pub(in crate::command) fn evaluation(&self, prior_bits: Option<f64>, limit: Option<BayesLimit>) -> Evaluation {
        let (after, before) = (self.judged(&self.said), self.judged(&self.said_before));
        let labels = self.labels.labels();
        let before_pruning = self.has_pruner.then(|| Score::of(&before, prior_bits));
        let after_pruning = Score::of(&after, prior_bits);
        Evaluation {
            schema: SCHEMA,
            commands: labels.rows.len(),
            matched: self.matching.pairs.len(),
            missed: self.matching.missed.len(),
            ambiguous: self.matching.ambiguous.len(),
            spurious: self.matching.spurious.len(),
            bayes_limit: limit.map(|limit| Limits::new(limit, before_pruning.as_ref(), &after_pruning)),
            before_pruning,
            after_pruning,
            actions: ActionScore::of_each(&labels.actions, &after),
            confusion: Confusion::of(labels.actions.len(), &after),
            paper: PAPER,
        }
    }

    /// How many labels there are.
    pub(in crate::command) fn rows(&self) -> usize {
        self.said.len()
    }

    /// What the pipeline said of a label's command, if it has one.
    pub(in crate::command) fn said(&self, row: usize) -> Option<&Judgement> {
        self.said.get(row).copied().flatten()
    }

    /// The same before pruning.
    pub(in crate::command) fn said_before(&self, row: usize) -> Option<&Judgement> {
        self.said_before.get(row).copied().flatten()
    }

    fn judged(&self, said: &[Option<&'a Judgement>]) -> Vec<Judged<'a>> {
        let rows = self.labels.labels().rows.iter().zip(said);
        rows.map(|(row, judgement)| Judged { truth: &row.counts, judgement: *judgement }).collect()
    }
}

/// What was said of each label's command; `None` where it has none.
fn said<'a>(labels: &LabelFile, sightings: &'a [JudgedCommand], matching: &Matching) -> Vec<Option<&'a Judgement>> {
    let mut said = vec![None; labels.labels().rows.len()];
    for (row, command) in &matching.pairs {
        if let Some(said) = said.get_mut(*row) {
            *said = sightings.get(*command).and_then(|sighting| sighting.judgement(*row));
        }
    }
    said
}

/// When the commands were given.
pub(in crate::command) fn times(sightings: &[JudgedCommand]) -> Vec<i64> {
    sightings.iter().map(|sighting| sighting.time_ns).collect()
}
