//! Cross-validation: models of all labels but a part, each tested on that part, over the same commands.
//!
//! The commands are found once, with the noise that all labels teach, as [`LearningCurve`](crate::LearningCurve) does;
//! sizes, kinds, ε, replies and priors are learned from the other parts alone.

use std::str::FromStr;

use serde::Serialize;
use sizeleak_learning::labels::{LabelFile, LabelFileError};
use sizeleak_learning::{LearningOutcome, LearningRun, command_times};
use sizeleak_pipeline::{InputPart, Pipeline};

use crate::evaluation::Evaluation;
use crate::evaluator::judge_model;
use crate::judged_run::{EvaluationError, JudgedRun};
use crate::statistics::{Confidence, Interval, wilson};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldCount {
    Parts(usize),
    Captures,
}

impl FromStr for FoldCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "captures" {
            return Ok(Self::Captures);
        }
        let parts = text.parse().ok().filter(|parts| *parts >= 2);
        parts.map(Self::Parts).ok_or_else(|| "write a number from 2 on, or `captures`".to_owned())
    }
}

/// The figures of all labels, each tested on a model that did not see it.
#[derive(Debug, Serialize)]
pub struct FoldedEvaluation {
    #[serde(flatten)]
    pub evaluation: Evaluation,
    pub folds: Vec<Fold>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fold {
    /// How many labels it has; they are tested.
    pub labels: usize,
    /// How many labels its model was learned from.
    pub learned: usize,
    /// Those whose first candidate is the truth.
    pub top_1: u64,
    pub interval: Interval,
    /// Why there is no model, if there is none: then nothing is found out.
    pub fault: Option<String>,
}

impl FoldCount {
    /// The parts that labels are divided into, as indices of rows; no part is empty.
    ///
    /// # Errors
    /// If there are fewer labels than parts, or fewer than two captures with labels.
    pub fn folds(self, labels: &LabelFile, captures: &[InputPart]) -> Result<Vec<Vec<usize>>, LabelFileError> {
        let mut rows = labels.order_by_time();
        // Each belongs to another part than the one before with the same actions, so that every part has some of each.
        rows.sort_by_key(|row| labels.labels().rows.get(*row).map(|row| &row.counts));
        let parts = match self {
            Self::Parts(parts) => parts,
            Self::Captures => captures.len(),
        };
        let fold_of = |at: usize, row: usize| match self {
            Self::Captures => nearest(captures, labels.labels().rows.get(row).map_or(0, |row| row.time_ns)),
            Self::Parts(_) => at % parts,
        };
        let mut folds: Vec<Vec<usize>> = vec![Vec::new(); parts.min(rows.len().max(captures.len()))];
        for (at, row) in rows.iter().enumerate() {
            if let Some(fold) = folds.get_mut(fold_of(at, *row)) {
                fold.push(*row);
            }
        }
        folds.retain(|fold| !fold.is_empty());
        match self {
            Self::Parts(parts) if rows.len() < parts => {
                let fault = "labels cannot be divided into";
                Err(labels.fault(format!("{} {fault} {parts} parts: name fewer with `--folds`", rows.len())))
            }
            Self::Captures if folds.len() < 2 => Err(labels.fault(
                "the labels are those of one capture: name several captures or saved streams, or divide the labels \
                 with `--folds 5`"
                    .to_owned(),
            )),
            _ => Ok(folds),
        }
    }
}

impl FoldedEvaluation {
    /// Learns from all labels but one part, and tests on that part, for each part. `outcome` is what all labels teach;
    /// `credible` is the probability that a credible set holds.
    ///
    /// # Errors
    /// If a pipeline does not run, or no part has a model.
    pub fn new(
        learning: &LearningRun<'_>,
        pipeline: &Pipeline,
        outcome: &LearningOutcome,
        folds: &[Vec<usize>],
        credible: f64,
    ) -> Result<Self, EvaluationError> {
        let (labels, tolerance) = (&outcome.labels, learning.tolerance);
        let all = labels.labels().rows.len();
        let (mut parts, mut results, mut first_error) = (Vec::new(), Vec::new(), None);
        for rows in folds {
            let others: Vec<usize> = (0..all).filter(|row| !rows.contains(row)).collect();
            let (run, fault) = match learning.learn_from(&labels.subset(&others), outcome) {
                Ok(models) => {
                    let run = judge_model(&models, pipeline, labels, tolerance, credible, learning.input)?;
                    (Some(run), None)
                }
                Err(error) => {
                    let fault = error.cause();
                    first_error = first_error.or(Some(error));
                    (None, Some(fault))
                }
            };
            let top_1 = run.as_ref().map_or(0, |run: &JudgedRun| run.first_is_truth(rows));
            let interval = wilson(top_1, rows.len() as u64, Confidence::USUAL);
            results.push(Fold { labels: rows.len(), learned: others.len(), top_1, interval, fault });
            parts.extend(run.map(|run| (rows, run)));
        }
        if let Some(error) = first_error.filter(|_| results.iter().all(|fold| fold.fault.is_some())) {
            return Err(error.into());
        }
        let matching = labels.matching(&command_times(&outcome.commands), tolerance)?;
        let parts: Vec<(&[usize], &JudgedRun)> = parts.iter().map(|(rows, run)| (rows.as_slice(), run)).collect();
        Ok(Self { evaluation: Evaluation::pooled(labels, &matching, &parts, None), folds: results })
    }
}

/// The index of the capture that holds a time, or is nearest to it.
fn nearest(captures: &[InputPart], time_ns: i64) -> usize {
    let distance = |part: &InputPart| match part.span {
        Some([first, _]) if time_ns < first => first.abs_diff(time_ns),
        Some([_, last]) if time_ns > last => time_ns.abs_diff(last),
        Some(_) => 0,
        None => u64::MAX,
    };
    (0..).zip(captures).min_by_key(|(_, part)| distance(part)).map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_folds_are_two_or_more() {
        assert_eq!("5".parse(), Ok(FoldCount::Parts(5)));
        assert_eq!("captures".parse(), Ok(FoldCount::Captures));
        assert!("1".parse::<FoldCount>().is_err() && "all".parse::<FoldCount>().is_err());
    }
}
