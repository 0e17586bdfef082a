//! The figures that pipelines are compared by: how each is computed from the outcomes of labelled commands, and what it is.

use serde::Serialize;
use serde::ser::SerializeStruct;
use sizeleak_learning::labels::MatchCounts;

use crate::calibration::BINS;
use crate::evaluation::Evaluation;
use crate::judge::Judgement;
use crate::judged_run::JudgedRun;
use crate::score::{CandidateCounts, Information};
use crate::statistics::Interval;

pub struct Figure {
    /// The name in JSON and CSV.
    pub key: &'static str,
    /// The name in tables.
    pub title: &'static str,
    pub unit: Unit,
    pub(super) kind: FigureKind,
}

/// How a figure is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// In percent; differences in percentage points.
    Percent,
    Decimals(usize),
}

#[derive(Clone, Copy)]
pub(super) enum FigureKind {
    /// The share of labelled commands for which a condition holds, of a pipeline that has what it is about.
    Share(fn(&CommandOutcome<'_>) -> bool, fn(&RunOutcomes<'_>) -> bool),
    /// Another figure over any of the labelled commands, given the entropy of what is known without sizes, in bits.
    Summary(fn(&[CommandOutcome<'_>], Option<f64>) -> Option<f64>),
    CalibrationError,
    /// How many commands have no label, times a factor, given the days.
    Spurious(fn(f64) -> Option<f64>),
}

const fn figure(key: &'static str, title: &'static str, unit: Unit, kind: FigureKind) -> Figure {
    Figure { key, title, unit, kind }
}

const fn share(
    key: &'static str,
    title: &'static str,
    holds: fn(&CommandOutcome<'_>) -> bool,
    has_it: fn(&RunOutcomes<'_>) -> bool,
) -> Figure {
    figure(key, title, Unit::Percent, FigureKind::Share(holds, has_it))
}

const fn summary(
    (key, title, decimals): (&'static str, &'static str, usize),
    over: fn(&[CommandOutcome<'_>], Option<f64>) -> Option<f64>,
) -> Figure {
    figure(key, title, Unit::Decimals(decimals), FigureKind::Summary(over))
}

/// All figures, in the order in which they are shown.
pub const FIGURES: [Figure; 13] = [
    share("missed", "no command of its own", |outcome| !outcome.is_found, |_| true),
    share(
        "among_before_pruning",
        "truth among, before pruning",
        |outcome| outcome.before.is_some_and(|before| before.rank.is_candidate()),
        has_pruner,
    ),
    share(
        "among",
        "truth among the candidates",
        |outcome| outcome.after.is_some_and(|after| after.rank.is_candidate()),
        has_candidates,
    ),
    share("top_1", "truth the first candidate", |outcome| outcome.is_within(1), has_candidates),
    share("top_5", "truth among the first five", |outcome| outcome.is_within(5), has_candidates),
    share(
        "credible_coverage",
        "truth in the credible set",
        |outcome| outcome.after.is_some_and(Judgement::is_credible),
        has_candidates,
    ),
    summary(("candidates_mean", "candidates, mean", 1), |outcomes, _| {
        Some(CandidateCounts::new(judged(outcomes).map(|one| one.candidates))?.mean)
    }),
    summary(("candidates_median", "candidates, median", 1), |outcomes, _| {
        Some(CandidateCounts::new(judged(outcomes).map(|one| one.candidates))?.median)
    }),
    summary(("credible_size", "credible set, mean size", 1), |outcomes, _| {
        Some(CandidateCounts::new(judged(outcomes).map(|one| one.probabilities.credible_size))?.mean)
    }),
    figure("calibration_error", "calibration error", Unit::Decimals(3), FigureKind::CalibrationError),
    summary(("leaked_bits", "bits given away", 2), |outcomes, prior_bits| {
        Information::new(outcomes.iter().map(|one| one.after), prior_bits).leaked_bits
    }),
    figure("spurious", "commands without a label", Unit::Decimals(0), FigureKind::Spurious(|_| Some(1.0))),
    figure(
        "spurious_per_day",
        "  the same per day",
        Unit::Decimals(2),
        FigureKind::Spurious(|days| (days > 0.0).then(|| 1.0 / days)),
    ),
];

pub(super) fn judged<'a>(outcomes: &'a [CommandOutcome<'_>]) -> impl Iterator<Item = &'a Judgement> {
    outcomes.iter().filter_map(|outcome| outcome.after)
}

pub(super) struct RunOutcomes<'a> {
    pub(super) matches: MatchCounts,
    /// `None` if the pipeline ends before candidates are made.
    evaluation: Option<&'a Evaluation>,
    /// For each label, in the order of the file.
    pub(super) outcomes: Vec<CommandOutcome<'a>>,
    /// The entropy of what is known of a command without its size.
    pub(super) prior_bits: Option<f64>,
    /// Each of [`FIGURES`] in each sample of the bootstrap.
    pub(super) samples: Vec<Vec<Option<f64>>>,
    /// What the bins of the reliability table add to the calibration error in each sample.
    pub(super) deviations: Vec<[f64; BINS]>,
}

impl<'a> RunOutcomes<'a> {
    pub(super) fn new(run: &'a JudgedRun, evaluation: Option<&'a Evaluation>) -> Self {
        let outcome = |row| CommandOutcome {
            is_found: run.after.command(row).is_some(),
            before: run.before.as_ref().and_then(|before| before.judgement(row)),
            after: run.after.judgement(row),
        };
        Self {
            matches: MatchCounts::new(&run.after.matching),
            evaluation,
            outcomes: (0..run.labels.labels().rows.len()).map(outcome).collect(),
            prior_bits: evaluation.and_then(|evaluation| evaluation.after_pruning.information.prior_bits),
            samples: Vec::new(),
            deviations: Vec::new(),
        }
    }
}

pub(super) fn has_candidates(run: &RunOutcomes<'_>) -> bool {
    run.evaluation.is_some()
}

fn has_pruner(run: &RunOutcomes<'_>) -> bool {
    run.evaluation.is_some_and(|evaluation| evaluation.before_pruning.is_some())
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CommandOutcome<'a> {
    is_found: bool,
    before: Option<&'a Judgement>,
    /// `None` if no command was found.
    after: Option<&'a Judgement>,
}

impl CommandOutcome<'_> {
    fn is_within(&self, candidates: u64) -> bool {
        self.after.and_then(|after| after.rank.position()).is_some_and(|position| position <= candidates)
    }
}

#[derive(Debug, Serialize)]
pub struct FigureValue {
    pub figure: &'static str,
    /// `None` if the pipeline does not have the figure.
    pub value: Option<f64>,
    #[serde(flatten, serialize_with = "interval_ends")]
    pub interval: Option<Interval>,
    /// `None` in the first pipeline, and if one of the two does not have the figure.
    pub difference: Option<FigureDifference>,
}

#[derive(Debug, Serialize)]
pub struct FigureDifference {
    /// The figure less that of the first pipeline.
    pub value: f64,
    #[serde(flatten, serialize_with = "interval_ends")]
    pub interval: Option<Interval>,
    /// Only for shares and counts.
    pub p_value: Option<f64>,
    pub excludes_zero: bool,
}

#[expect(clippy::ref_option, reason = "serde's signature")]
fn interval_ends<S: serde::Serializer>(interval: &Option<Interval>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut ends = serializer.serialize_struct("Interval", 2)?;
    ends.serialize_field("low", &interval.map(|it| it.low))?;
    ends.serialize_field("high", &interval.map(|it| it.high))?;
    ends.end()
}

impl FigureDifference {
    pub(super) fn new(value: f64, interval: Option<Interval>, p_value: Option<f64>) -> Self {
        Self { value, interval, p_value, excludes_zero: interval.is_some_and(Interval::excludes_zero) }
    }
}
