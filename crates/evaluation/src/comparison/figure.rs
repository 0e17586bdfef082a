//! The figures that pipelines are compared by, and how each is computed.

use super::run::{CommandOutcome, ComparedRun};
use crate::calibration::Calibration;
use crate::evaluation::Evaluation;
use crate::score::median;
use crate::statistics::bootstrap::IntervalMethod;

/// A figure of a pipeline.
pub struct Figure {
    /// The name in JSON and CSV.
    pub key: &'static str,
    /// The name in tables.
    pub title: &'static str,
    /// How it is shown.
    pub unit: Unit,
    pub(super) kind: FigureKind,
}

/// How a figure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// In percent; differences in percentage points.
    Percent,
    /// With this many decimals.
    Decimals(usize),
}

/// How a figure is computed.
#[derive(Clone, Copy)]
pub(super) enum FigureKind {
    /// The share of labelled commands for which a condition holds.
    Share(fn(&CommandOutcome) -> bool, Requirement),
    /// Another figure over labelled commands: its value in the evaluation, and over any of the commands.
    Summary {
        overall: fn(&Evaluation) -> Option<f64>,
        of: fn(&mut dyn Iterator<Item = &CommandOutcome>) -> Option<f64>,
        method: IntervalMethod,
    },
    /// The number of commands without a label.
    SpuriousCount,
    /// The same per day.
    SpuriousRate,
}

/// What a pipeline must produce so that shares of its commands can be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requirement {
    Commands,
    Candidates,
    Pruner,
}

impl Requirement {
    /// Whether the pipeline meets the requirement.
    pub(super) fn is_met(self, run: &ComparedRun) -> bool {
        match self {
            Self::Commands => true,
            Self::Candidates => run.evaluation.is_some(),
            Self::Pruner => run.evaluation.as_ref().is_some_and(|evaluation| evaluation.before_pruning.is_some()),
        }
    }
}

const fn share(
    key: &'static str,
    title: &'static str,
    holds: fn(&CommandOutcome) -> bool,
    requirement: Requirement,
) -> Figure {
    Figure { key, title, unit: Unit::Percent, kind: FigureKind::Share(holds, requirement) }
}

const fn summary(
    (key, title, decimals): (&'static str, &'static str, usize),
    overall: fn(&Evaluation) -> Option<f64>,
    of: fn(&mut dyn Iterator<Item = &CommandOutcome>) -> Option<f64>,
    method: IntervalMethod,
) -> Figure {
    Figure { key, title, unit: Unit::Decimals(decimals), kind: FigureKind::Summary { overall, of, method } }
}

/// All figures, in the order in which they are shown.
pub const FIGURES: [Figure; 13] = [
    share("missed", "no command of its own", |outcome| !outcome.is_found, Requirement::Commands),
    share(
        "among_before_pruning",
        "truth among, before pruning",
        |outcome| outcome.is_candidate_before,
        Requirement::Pruner,
    ),
    share("among", "truth among the candidates", CommandOutcome::is_candidate, Requirement::Candidates),
    share("top_1", "truth the first candidate", |outcome| outcome.position() == Some(1), Requirement::Candidates),
    share(
        "top_5",
        "truth among the first five",
        |outcome| outcome.position().is_some_and(|position| position <= 5),
        Requirement::Candidates,
    ),
    share("credible_coverage", "truth in the credible set", |outcome| outcome.is_credible, Requirement::Candidates),
    summary(
        ("candidates_mean", "candidates, mean", 1),
        |evaluation| Some(evaluation.after_pruning.candidates.mean),
        |outcomes| mean(outcomes.filter_map(|outcome| outcome.candidates).map(|count| count as f64)),
        IntervalMethod::Percentile,
    ),
    summary(
        ("candidates_median", "candidates, median", 1),
        |evaluation| Some(evaluation.after_pruning.candidates.median),
        |outcomes| median(outcomes.filter_map(|outcome| outcome.candidates).collect()),
        IntervalMethod::Percentile,
    ),
    summary(
        ("credible_size", "credible set, mean size", 1),
        |evaluation| Some(evaluation.after_pruning.credible_set.size.mean),
        |outcomes| mean(outcomes.filter_map(|outcome| outcome.credible_size).map(|count| count as f64)),
        IntervalMethod::Percentile,
    ),
    summary(
        ("calibration_error", "calibration error", 3),
        |evaluation| evaluation.after_pruning.calibration.expected_error,
        |outcomes| {
            let answer = |outcome: &CommandOutcome| Some((outcome.probability?, outcome.position() == Some(1)));
            Calibration::new(outcomes.filter_map(answer)).expected_error
        },
        IntervalMethod::Mirrored,
    ),
    summary(
        ("leaked_bits", "bits given away", 2),
        |evaluation| evaluation.after_pruning.information.leaked_bits,
        |outcomes| mean(outcomes.filter_map(|outcome| outcome.leaked_bits)),
        IntervalMethod::Percentile,
    ),
    Figure {
        key: "spurious",
        title: "commands without a label",
        unit: Unit::Decimals(0),
        kind: FigureKind::SpuriousCount,
    },
    Figure {
        key: "spurious_per_day",
        title: "  the same per day",
        unit: Unit::Decimals(2),
        kind: FigureKind::SpuriousRate,
    },
];

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}
