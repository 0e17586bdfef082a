//! The figures of several pipelines, with their intervals and their differences to the first pipeline, as they are
//! computed; what they are is in `figure`.

mod figure;

use figure::{CommandOutcome, FigureKind, RunOutcomes, has_candidates, judged};
use serde::Serialize;
use sizeleak_learning::labels::{LabelFile, MatchCounts};

use crate::calibration::{BINS, Calibration};
use crate::evaluation::Evaluation;
use crate::judged_run::JudgedRun;
use crate::statistics::bootstrap::{BlockBootstrap, IntervalMethod, interval, interval_of_absolute_sum};
use crate::statistics::{Confidence, Interval, PairedJudgements, count_difference, count_interval, sign_test, wilson};

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
    /// The probability that an interval holds the truth.
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
        let blocks = BlockBootstrap::new(order.len(), SEED);
        let block_length = blocks.length();
        let outcomes: Vec<RunOutcomes<'_>> =
            runs.iter().map(|one| RunOutcomes::new(&one.run, one.evaluation.as_ref())).collect();
        let bootstrap = BootstrapFigures::draw(&outcomes, &order, blocks, SAMPLES);
        let figures: Vec<_> =
            outcomes.iter().zip(0..).map(|(run, at)| (run.matches, figures(&outcomes, &bootstrap, days, at))).collect();
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
            block_length,
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

/// The figures of each pipeline in every sample of the bootstrap.
struct BootstrapFigures {
    figures: Vec<Vec<Vec<Option<f64>>>>,
    /// What the bins of the reliability table add to the calibration error.
    deviations: Vec<Vec<[f64; BINS]>>,
}

impl BootstrapFigures {
    /// Draws samples, the same for all pipelines; `order` are the labels' rows in order of time.
    fn draw(runs: &[RunOutcomes<'_>], order: &[usize], mut blocks: BlockBootstrap, samples: u32) -> Self {
        let mut figures = vec![vec![Vec::new(); FIGURES.len()]; runs.len()];
        let mut deviations = vec![Vec::new(); runs.len()];
        for _ in 0..samples {
            let drawn = blocks.draw();
            for ((run, figures), deviations) in runs.iter().zip(&mut figures).zip(&mut deviations) {
                let outcomes = drawn.iter().filter_map(|at| run.outcomes.get(*order.get(*at)?));
                let outcomes: Vec<CommandOutcome<'_>> = outcomes.copied().collect();
                for (figure, values) in FIGURES.iter().zip(figures) {
                    values.push(sampled(figure.kind, run, &outcomes));
                }
                deviations.push(Calibration::over(judged(&outcomes)).deviations());
            }
        }
        Self { figures, deviations }
    }

    fn of(&self, run: usize, figure: usize) -> &[Option<f64>] {
        self.figures.get(run).and_then(|figures| figures.get(figure)).map_or(&[], Vec::as_slice)
    }
}

/// A figure over some or all of a pipeline's commands; `None` if it is not over commands, or the pipeline or these
/// commands lack it.
fn sampled(kind: FigureKind, run: &RunOutcomes<'_>, outcomes: &[CommandOutcome<'_>]) -> Option<f64> {
    match kind {
        FigureKind::Share(holds, has_it) => has_it(run).then(|| share(outcomes, holds))?,
        FigureKind::Summary(over) => has_candidates(run).then(|| over(outcomes, run.prior_bits))?,
        FigureKind::CalibrationError => {
            has_candidates(run).then(|| Calibration::over(judged(outcomes)).expected_error)?
        }
        FigureKind::Spurious(_) => None,
    }
}

fn share(outcomes: &[CommandOutcome<'_>], holds: fn(&CommandOutcome<'_>) -> bool) -> Option<f64> {
    (!outcomes.is_empty()).then(|| count(outcomes, holds) as f64 / outcomes.len() as f64)
}

fn count(outcomes: &[CommandOutcome<'_>], holds: fn(&CommandOutcome<'_>) -> bool) -> u64 {
    outcomes.iter().filter(|outcome| holds(outcome)).count() as u64
}

/// A figure of a pipeline beside that of the first.
struct ComparedFigure<'a> {
    kind: FigureKind,
    /// The first one and the one that is compared, and the figure of each in the samples of the bootstrap.
    runs: [&'a RunOutcomes<'a>; 2],
    samples: [&'a [Option<f64>]; 2],
    deviations: &'a [[f64; BINS]],
    days: f64,
}

/// All figures of the pipeline at an index, in as many days.
fn figures(runs: &[RunOutcomes<'_>], bootstrap: &BootstrapFigures, days: f64, at: usize) -> Vec<FigureValue> {
    let (Some(first), Some(run)) = (runs.first(), runs.get(at)) else { return Vec::new() };
    let deviations = bootstrap.deviations.get(at).map_or(&[][..], Vec::as_slice);
    let value = |(index, figure): (usize, &Figure)| {
        let samples = [0, at].map(|run| bootstrap.of(run, index));
        let compared = ComparedFigure { kind: figure.kind, runs: [first, run], samples, deviations, days };
        let (value, interval) = compared.value().unzip();
        let difference = if at == 0 { None } else { compared.difference() };
        FigureValue { figure: figure.key, value, interval: interval.flatten(), difference }
    };
    FIGURES.iter().enumerate().map(value).collect()
}

impl ComparedFigure<'_> {
    fn value(&self) -> Option<(f64, Option<Interval>)> {
        let [_, run] = self.runs;
        let value = || sampled(self.kind, run, &run.outcomes);
        Some(match self.kind {
            FigureKind::Share(holds, _) => {
                let interval = wilson(count(&run.outcomes, holds), run.outcomes.len() as u64, CONFIDENCE);
                (value()?, Some(interval))
            }
            FigureKind::Summary(_) => {
                let (value, samples) = (value()?, self.samples[1].iter().copied().flatten().collect());
                (value, interval(value, samples, IntervalMethod::Percentile, CONFIDENCE))
            }
            FigureKind::CalibrationError => {
                let deviations = Calibration::over(judged(&run.outcomes)).deviations();
                (value()?, interval_of_absolute_sum(&deviations, self.deviations, CONFIDENCE))
            }
            FigureKind::Spurious(factor) => {
                let (spurious, factor) = (run.matches.spurious, factor(self.days)?);
                (spurious as f64 * factor, Some(count_interval(spurious, CONFIDENCE).scaled(factor)))
            }
        })
    }

    fn difference(&self) -> Option<FigureDifference> {
        match self.kind {
            FigureKind::Share(holds, has_it) => {
                let pairs = self.runs.iter().all(|run| has_it(run)).then(|| pairs(self.runs, holds))?;
                let bootstrap = self.bootstrap_interval(pairs.difference(), IntervalMethod::Percentile);
                let paired = pairs.interval(CONFIDENCE);
                let interval = bootstrap.map_or(paired, |bootstrap| paired.hull(bootstrap));
                Some(FigureDifference::new(pairs.difference(), Some(interval), Some(pairs.p_value())))
            }
            FigureKind::Summary(_) => self.summary_difference(IntervalMethod::Percentile),
            FigureKind::CalibrationError => self.summary_difference(IntervalMethod::Mirrored),
            FigureKind::Spurious(factor) => {
                let ([first, own], factor) = (self.runs.map(|run| run.matches.spurious), factor(self.days)?);
                let interval = count_difference(first, own, CONFIDENCE).scaled(factor);
                let difference = (own as f64 - first as f64) * factor;
                Some(FigureDifference::new(difference, Some(interval), Some(sign_test(first, own))))
            }
        }
    }

    fn summary_difference(&self, method: IntervalMethod) -> Option<FigureDifference> {
        let [first, own] = self.runs.map(|run| sampled(self.kind, run, &run.outcomes));
        let difference = own? - first?;
        Some(FigureDifference::new(difference, self.bootstrap_interval(difference, method), None))
    }

    /// The bootstrap's interval of a difference, over samples in which both pipelines have the figure.
    fn bootstrap_interval(&self, difference: f64, method: IntervalMethod) -> Option<Interval> {
        let [first, own] = self.samples;
        let sampled = first.iter().zip(own).filter_map(|(first, own)| Some((*own)? - (*first)?)).collect();
        interval(difference, sampled, method, CONFIDENCE)
    }
}

fn pairs([first, own]: [&RunOutcomes<'_>; 2], holds: fn(&CommandOutcome<'_>) -> bool) -> PairedJudgements {
    PairedJudgements::count(first.outcomes.iter().zip(&own.outcomes).map(|(first, own)| (holds(first), holds(own))))
}
