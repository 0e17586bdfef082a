//! The figures of several pipelines, with their intervals and their differences to the first pipeline.

mod calculation;
mod figure;

use serde::Serialize;
use sizeleak_labels::{LabelFile, MatchCounts};

use crate::evaluation::Evaluation;
use crate::judged_run::JudgedRun;
use crate::statistics::Confidence;
use crate::statistics::bootstrap::BlockBootstrap;
use calculation::{BootstrapFigures, CONFIDENCE, figures};
use figure::RunOutcomes;
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
