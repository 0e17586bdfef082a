//! The figures that are compared: what each is made of.

use super::sample::{Said, Sample};
use crate::command::evaluate::{Calibration, Evaluation, median};
use crate::statistics::bootstrap::Ends;

/// A figure of a pipeline.
pub(super) struct Figure {
    /// What programs know it by.
    pub(super) key: &'static str,
    /// What people do.
    pub(super) title: &'static str,
    pub(super) unit: Unit,
    pub(super) kind: Kind,
}

/// How a figure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// In percent; differences in points.
    Percent,
    /// With so many decimals.
    Decimals(usize),
}

/// What a figure is made of.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// The share of labelled commands of which this holds.
    Share(fn(&Said) -> bool, Needs),
    /// Something else that labelled commands come to together: what it is in the evaluation, and of any of them.
    Summary {
        of_all: fn(&Evaluation) -> Option<f64>,
        of: fn(&mut dyn Iterator<Item = &Said>) -> Option<f64>,
        ends: Ends,
    },
    /// How many commands have no label.
    Count,
    /// The same in a day.
    Rate,
}

/// What a pipeline must have for a share of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Commands,
    Candidates,
    Pruner,
}

impl Needs {
    /// Whether the pipeline has it.
    pub(super) fn are_met(self, sample: &Sample) -> bool {
        match self {
            Self::Commands => true,
            Self::Candidates => sample.evaluation.is_some(),
            Self::Pruner => sample.evaluation.as_ref().is_some_and(|evaluation| evaluation.before_pruning.is_some()),
        }
    }
}

const fn share(key: &'static str, title: &'static str, holds: fn(&Said) -> bool, needs: Needs) -> Figure {
    Figure { key, title, unit: Unit::Percent, kind: Kind::Share(holds, needs) }
}

pub(super) const FIGURES: [Figure; 13] = [
    share("missed", "no command of its own", |said| !said.is_found, Needs::Commands),
    share("among_before_pruning", "truth among, before pruning", |said| said.is_among_before, Needs::Pruner),
    share("among", "truth among the candidates", Said::is_among, Needs::Candidates),
    share("top_1", "truth the first candidate", |said| said.place() == Some(1), Needs::Candidates),
    share(
        "top_5",
        "truth among the first five",
        |said| said.place().is_some_and(|place| place <= 5),
        Needs::Candidates,
    ),
    share("credible_coverage", "truth in the credible set", |said| said.is_credible, Needs::Candidates),
    Figure {
        key: "candidates_mean",
        title: "candidates, mean",
        unit: Unit::Decimals(1),
        kind: Kind::Summary {
            of_all: |evaluation| Some(evaluation.after_pruning.candidates.mean),
            of: |said| mean(said.filter_map(|said| said.candidates).map(|count| count as f64)),
            ends: Ends::Percentile,
        },
    },
    Figure {
        key: "candidates_median",
        title: "candidates, median",
        unit: Unit::Decimals(1),
        kind: Kind::Summary {
            of_all: |evaluation| Some(evaluation.after_pruning.candidates.median),
            of: |said| median(said.filter_map(|said| said.candidates).collect()),
            ends: Ends::Percentile,
        },
    },
    Figure {
        key: "credible_size",
        title: "credible set, mean size",
        unit: Unit::Decimals(1),
        kind: Kind::Summary {
            of_all: |evaluation| Some(evaluation.after_pruning.credible_set.size.mean),
            of: |said| mean(said.filter_map(|said| said.credible).map(|count| count as f64)),
            ends: Ends::Percentile,
        },
    },
    Figure {
        key: "calibration_error",
        title: "calibration error",
        unit: Unit::Decimals(3),
        kind: Kind::Summary {
            of_all: |evaluation| evaluation.after_pruning.calibration.expected_error,
            of: |said| {
                Calibration::of(said.filter_map(|said| Some((said.first?, said.place() == Some(1))))).expected_error
            },
            ends: Ends::Mirrored,
        },
    },
    Figure {
        key: "leaked_bits",
        title: "bits given away",
        unit: Unit::Decimals(2),
        kind: Kind::Summary {
            of_all: |evaluation| evaluation.after_pruning.information.leaked_bits,
            of: |said| mean(said.filter_map(|said| said.leaked_bits)),
            ends: Ends::Percentile,
        },
    },
    Figure { key: "spurious", title: "commands without a label", unit: Unit::Decimals(0), kind: Kind::Count },
    Figure { key: "spurious_per_day", title: "  of them in a day", unit: Unit::Decimals(2), kind: Kind::Rate },
];

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}
