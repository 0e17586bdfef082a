//! The figures of several pipelines, with their intervals and their differences to the first pipeline, as they are
//! computed; what they are is in `figure`.

mod figure;

use figure::{CommandOutcome, FigureKind, RunOutcomes, has_candidates, judged};
use serde::Serialize;
use sizeleak_learning::labels::{LabelFile, MatchCounts};

use crate::calibration::Calibration;
use crate::evaluation::Evaluation;
use crate::judged_run::JudgedRun;
use crate::statistics::{
    BlockBootstrap, Confidence, Interval, IntervalMethod, PairedJudgements, count_difference, count_interval, interval,
    interval_of_absolute_sum, sign_test, wilson,
};

pub use figure::{FIGURES, Figure, FigureDifference, FigureValue, Unit};

const SCHEMA: u32 = 1;

const DAY_NS: f64 = 86_400e9;

/// How many samples the bootstrap draws, from the seed.
const SAMPLES: u32 = 2000;
const SEED: u64 = 1;

#[derive(Debug)]
pub struct ComparedRun {
    pub pipeline: String,
    pub run: JudgedRun,
    /// `None` if the pipeline ends before candidates are made.
    pub evaluation: Option<Evaluation>,
}

/// Several pipelines over the same labelled captures.
#[derive(Debug, Serialize)]
pub struct Comparison {
    schema: u32,
    pub commands: usize,
    days: f64,
    pub confidence: Confidence,
    seed: u64,
    samples: u32,
    block_length: usize,
    pub pipelines: Vec<PipelineFigures>,
}

#[derive(Debug, Serialize)]
pub struct PipelineFigures {
    pub pipeline: String,
    #[serde(flatten)]
    matches: MatchCounts,
    /// In the order of [`FIGURES`](figure::FIGURES).
    pub figures: Vec<FigureValue>,
    evaluation: Option<Evaluation>,
}

impl Comparison {
    /// Compares runs with the first of them.
    pub fn new(labels: &LabelFile, runs: Vec<ComparedRun>) -> Self {
        let order = labels.order_by_time();
        let days = days(&labels.times(), &runs);
        let mut blocks = BlockBootstrap::new(order.len(), SEED);
        let mut outcomes: Vec<RunOutcomes<'_>> =
            runs.iter().map(|one| RunOutcomes::new(&one.run, one.evaluation.as_ref())).collect();
        for _ in 0..SAMPLES {
            // The same sample of all pipelines.
            let drawn: Vec<usize> = blocks.draw().iter().filter_map(|at| order.get(*at).copied()).collect();
            for run in &mut outcomes {
                run.add_sample(&drawn);
            }
        }
        let others = || outcomes.iter().zip(std::iter::once(None).chain(std::iter::repeat(outcomes.first())));
        let figures: Vec<_> = others().map(|(run, first)| (run.matches, run.figures(first, days))).collect();
        let pipelines = runs.into_iter().zip(figures).map(|(run, (matches, figures))| PipelineFigures {
            pipeline: run.pipeline,
            matches,
            figures,
            evaluation: run.evaluation,
        });
        Self {
            schema: SCHEMA,
            commands: order.len(),
            days,
            confidence: CONFIDENCE,
            seed: SEED,
            samples: SAMPLES,
            block_length: blocks.length(),
            pipelines: pipelines.collect(),
        }
    }
}

fn days(labels: &[i64], runs: &[ComparedRun]) -> f64 {
    let times = runs.iter().flat_map(|one| one.run.after.times()).chain(labels.iter().copied());
    let (first, last) = times.fold((i64::MAX, i64::MIN), |(first, last), time| (first.min(time), last.max(time)));
    if first > last { 0.0 } else { last.abs_diff(first) as f64 / DAY_NS }
}

const CONFIDENCE: Confidence = Confidence::USUAL;

impl RunOutcomes<'_> {
    /// Adds the figures of a sample of the bootstrap: labels by their rows.
    fn add_sample(&mut self, rows: &[usize]) {
        let outcomes: Vec<CommandOutcome<'_>> =
            rows.iter().filter_map(|row| self.outcomes.get(*row).copied()).collect();
        let figures = FIGURES.iter().map(|figure| self.figure(figure.kind, &outcomes)).collect();
        self.samples.push(figures);
        self.deviations.push(Calibration::over(judged(&outcomes)).deviations());
    }

    /// A figure over some or all of the pipeline's commands; `None` if it is not over commands, or the pipeline or these
    /// commands lack it.
    fn figure(&self, kind: FigureKind, outcomes: &[CommandOutcome<'_>]) -> Option<f64> {
        match kind {
            FigureKind::Share(holds, has_it) => has_it(self).then(|| share(outcomes, holds))?,
            FigureKind::Summary(over) => has_candidates(self).then(|| over(outcomes, self.prior_bits))?,
            FigureKind::CalibrationError => {
                has_candidates(self).then(|| Calibration::over(judged(outcomes)).expected_error)?
            }
            FigureKind::Spurious(_) => None,
        }
    }

    /// All figures in as many days, beside those of the first pipeline if this is another one.
    fn figures(&self, first: Option<&Self>, days: f64) -> Vec<FigureValue> {
        let value = |(at, figure): (usize, &Figure)| {
            let (value, interval) = self.value(at, figure.kind, days).unzip();
            let difference = first.and_then(|first| self.difference(first, at, figure.kind, days));
            FigureValue { figure: figure.key, value, interval: interval.flatten(), difference }
        };
        FIGURES.iter().enumerate().map(value).collect()
    }

    fn value(&self, at: usize, kind: FigureKind, days: f64) -> Option<(f64, Option<Interval>)> {
        let value = || self.figure(kind, &self.outcomes);
        Some(match kind {
            FigureKind::Share(holds, _) => {
                let interval = wilson(count(&self.outcomes, holds), self.outcomes.len() as u64, CONFIDENCE);
                (value()?, Some(interval))
            }
            FigureKind::Summary(_) => {
                let (value, samples) = (value()?, self.samples_of(at).flatten().collect());
                (value, interval(value, samples, IntervalMethod::Percentile, CONFIDENCE))
            }
            FigureKind::CalibrationError => {
                let deviations = Calibration::over(judged(&self.outcomes)).deviations();
                (value()?, interval_of_absolute_sum(&deviations, &self.deviations, CONFIDENCE))
            }
            FigureKind::Spurious(factor) => {
                let (spurious, factor) = (self.matches.spurious, factor(days)?);
                (spurious as f64 * factor, Some(count_interval(spurious, CONFIDENCE).scaled(factor)))
            }
        })
    }

    /// The same less that of the first pipeline.
    fn difference(&self, first: &Self, at: usize, kind: FigureKind, days: f64) -> Option<FigureDifference> {
        // Over the samples in which both pipelines have the figure.
        let by_samples = |difference: f64, method: IntervalMethod| {
            let both = first.samples_of(at).zip(self.samples_of(at));
            interval(difference, both.filter_map(|(first, own)| Some(own? - first?)).collect(), method, CONFIDENCE)
        };
        let of_summary = |method: IntervalMethod| {
            let difference = self.figure(kind, &self.outcomes)? - first.figure(kind, &first.outcomes)?;
            Some(FigureDifference::new(difference, by_samples(difference, method), None))
        };
        match kind {
            FigureKind::Share(holds, has_it) => {
                let outcomes = first.outcomes.iter().zip(&self.outcomes);
                let both = outcomes.map(|(first, own)| (holds(first), holds(own)));
                let pairs = (has_it(first) && has_it(self)).then(|| PairedJudgements::count(both))?;
                let bootstrap = by_samples(pairs.difference(), IntervalMethod::Percentile);
                let paired = pairs.interval(CONFIDENCE);
                let interval = bootstrap.map_or(paired, |bootstrap| paired.hull(bootstrap));
                Some(FigureDifference::new(pairs.difference(), Some(interval), Some(pairs.p_value())))
            }
            FigureKind::Summary(_) => of_summary(IntervalMethod::Percentile),
            FigureKind::CalibrationError => of_summary(IntervalMethod::Mirrored),
            FigureKind::Spurious(factor) => {
                let ([first, own], factor) = ([first, self].map(|run| run.matches.spurious), factor(days)?);
                let interval = count_difference(first, own, CONFIDENCE).scaled(factor);
                let difference = (own as f64 - first as f64) * factor;
                Some(FigureDifference::new(difference, Some(interval), Some(sign_test(first, own))))
            }
        }
    }

    fn samples_of(&self, figure: usize) -> impl Iterator<Item = Option<f64>> {
        self.samples.iter().map(move |figures| figures.get(figure).copied().flatten())
    }
}

fn share(outcomes: &[CommandOutcome<'_>], holds: fn(&CommandOutcome<'_>) -> bool) -> Option<f64> {
    (!outcomes.is_empty()).then(|| count(outcomes, holds) as f64 / outcomes.len() as f64)
}

fn count(outcomes: &[CommandOutcome<'_>], holds: fn(&CommandOutcome<'_>) -> bool) -> u64 {
    outcomes.iter().filter(|outcome| holds(outcome)).count() as u64
}
