//! The figures of all pipelines, with their intervals and with their differences to the first one.

use serde::Serialize;

use super::figure::{FIGURES, Figure, Kind, Needs};
use super::sample::{Said, Sample};
use crate::command::evaluate::Evaluation;
use crate::command::labelled::LabelFile;
use crate::statistics::bootstrap::{Blocks, Ends, interval};
use crate::statistics::share::{Pairs, wilson};
use crate::statistics::{Confidence, Interval, count};

/// The version of the JSON keys.
const SCHEMA: u32 = 1;

const DAY_NS: f64 = 86_400e9;

/// How intervals are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Method {
    pub(super) confidence: Confidence,
    pub(super) seed: u64,
    pub(super) samples: u32,
}

/// Pipelines over the same labelled captures.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    schema: u32,
    /// Labelled commands.
    pub(super) commands: usize,
    /// From the first to the last label or command.
    days: f64,
    pub(super) confidence: Confidence,
    seed: u64,
    samples: u32,
    /// How many commands a block of the bootstrap has.
    block_length: usize,
    /// In the order they were given.
    pub(super) pipelines: Vec<Compared>,
}

/// What one pipeline came to.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    /// The pipeline as it was given.
    pub(super) pipeline: String,
    matched: u64,
    missed: u64,
    ambiguous: u64,
    spurious: u64,
    /// In the order of [`FIGURES`].
    pub(super) figures: Vec<Entry>,
    evaluation: Option<Evaluation>,
}

/// What a figure comes to.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    pub(super) figure: &'static str,
    /// `None` where the pipeline does not have it.
    pub(super) value: Option<f64>,
    #[serde(flatten, serialize_with = "ends")]
    pub(super) interval: Option<Interval>,
    /// `None` in the first pipeline, and where one of the two does not have the figure.
    pub(super) difference: Option<Difference>,
}

/// What a figure is more than in the first pipeline.
#[derive(Debug, Serialize)]
pub(super) struct Difference {
    pub(super) value: f64,
    #[serde(flatten, serialize_with = "ends")]
    pub(super) interval: Option<Interval>,
    /// Of shares and counts.
    pub(super) p_value: Option<f64>,
    pub(super) excludes_zero: bool,
}

/// Writes both ends of an interval, null where there is none.
#[expect(clippy::ref_option, reason = "serde calls it so")]
fn ends<S: serde::Serializer>(interval: &Option<Interval>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Ends {
        low: Option<f64>,
        high: Option<f64>,
    }
    let [low, high] = [interval.map(|it| it.low), interval.map(|it| it.high)];
    Ends { low, high }.serialize(serializer)
}

impl Difference {
    fn new(value: f64, interval: Option<Interval>, p_value: Option<f64>) -> Self {
        Self { value, interval, p_value, excludes_zero: interval.is_some_and(Interval::excludes_zero) }
    }
}

impl Comparison {
    /// Compares pipelines to the first one.
    pub(super) fn new(labels: &LabelFile, samples: Vec<Sample>, method: &Method) -> Self {
        let order = labels.in_time();
        let days = days(&labels.times(), &samples);
        let blocks = Blocks::new(order.len(), method.seed);
        let block_length = blocks.length();
        let scatter = Scatter::of(&samples, &order, blocks, method.samples);
        let judge = Judge { samples: &samples, scatter: &scatter, days, confidence: method.confidence };
        let figures: Vec<Vec<Entry>> = (0..samples.len()).map(|at| judge.figures(at)).collect();
        let compared = |(sample, figures): (Sample, Vec<Entry>)| Compared {
            pipeline: sample.name,
            matched: sample.counts.matched,
            missed: sample.counts.missed,
            ambiguous: sample.counts.ambiguous,
            spurious: sample.counts.spurious,
            figures,
            evaluation: sample.evaluation,
        };
        let Method { confidence, seed, samples: drawn } = *method;
        Self {
            schema: SCHEMA,
            commands: order.len(),
            days,
            confidence,
            seed,
            samples: drawn,
            block_length,
            pipelines: samples.into_iter().zip(figures).map(compared).collect(),
        }
    }
}

/// From the first to the last label or command.
fn days(labels: &[i64], samples: &[Sample]) -> f64 {
    let ends = samples.iter().filter_map(|sample| sample.span).flat_map(|(first, last)| [first, last]);
    let times = || labels.iter().copied();
    let (first, last) =
        ends.chain(times()).fold((i64::MAX, i64::MIN), |(first, last), time| (first.min(time), last.max(time)));
    if first > last { 0.0 } else { last.abs_diff(first) as f64 / DAY_NS }
}

/// What the figures of each pipeline came to in every sample of the bootstrap.
struct Scatter(Vec<Vec<Vec<Option<f64>>>>);

impl Scatter {
    /// Draws the samples, each for all pipelines; `order` are the labels' rows in order of time.
    fn of(samples: &[Sample], order: &[usize], mut blocks: Blocks, count: u32) -> Self {
        let mut scatter = vec![vec![Vec::new(); FIGURES.len()]; samples.len()];
        for _ in 0..count {
            let drawn = blocks.draw();
            for (sample, scatter) in samples.iter().zip(&mut scatter) {
                let said = drawn.iter().filter_map(|at| sample.said.get(*order.get(*at)?));
                let said: Vec<Said> = said.copied().collect();
                for (figure, scatter) in FIGURES.iter().zip(scatter) {
                    scatter.push(figure.of_some(sample, &said));
                }
            }
        }
        Self(scatter)
    }

    fn at(&self, pipeline: usize, figure: usize) -> &[Option<f64>] {
        self.0.get(pipeline).and_then(|figures| figures.get(figure)).map_or(&[], Vec::as_slice)
    }
}

impl Figure {
    /// What it comes to of some of a pipeline's commands; `None` where it is none of the bootstrap's, the pipeline lacks it,
    /// or these commands do.
    fn of_some(&self, sample: &Sample, said: &[Said]) -> Option<f64> {
        match self.kind {
            Kind::Share(holds, needs) => needs.are_met(sample).then(|| share(said, holds))?,
            Kind::Summary { of, .. } => Needs::Candidates.are_met(sample).then(|| of(&mut said.iter()))?,
            Kind::Count | Kind::Rate => None,
        }
    }
}

fn share(said: &[Said], holds: fn(&Said) -> bool) -> Option<f64> {
    (!said.is_empty()).then(|| said.iter().filter(|said| holds(said)).count() as f64 / said.len() as f64)
}

/// Makes figures.
struct Judge<'a> {
    samples: &'a [Sample],
    scatter: &'a Scatter,
    days: f64,
    confidence: Confidence,
}

impl Judge<'_> {
    /// The figures of a pipeline.
    fn figures(&self, at: usize) -> Vec<Entry> {
        let (Some(first), Some(sample)) = (self.samples.first(), self.samples.get(at)) else { return Vec::new() };
        let figures = FIGURES.iter().enumerate();
        figures
            .map(|(place, figure)| {
                let own = self.own(figure, place, at, sample);
                let difference = if at == 0 { None } else { self.difference(figure, place, at, [first, sample]) };
                let (value, interval) = own.unzip();
                Entry { figure: figure.key, value, interval: interval.flatten(), difference }
            })
            .collect()
    }

    /// A figure of a pipeline by itself.
    fn own(&self, figure: &Figure, place: usize, at: usize, sample: &Sample) -> Option<(f64, Option<Interval>)> {
        match figure.kind {
            Kind::Share(holds, needs) => {
                let value = needs.are_met(sample).then(|| share(&sample.said, holds))??;
                let part = sample.said.iter().filter(|said| holds(said)).count() as u64;
                Some((value, Some(wilson(part, sample.said.len() as u64, self.confidence))))
            }
            Kind::Summary { of_all, ends, .. } => {
                let value = sample.evaluation.as_ref().and_then(of_all)?;
                let scatter = self.scatter.at(at, place).iter().copied().flatten().collect();
                let interval = interval(value, scatter, ends, self.confidence);
                // The mirror may show what is less than nothing.
                let is_from_zero = ends == Ends::Mirrored;
                let from_zero = |it: Interval| Interval { low: it.low.max(0.0), high: it.high.max(0.0) };
                Some((value, if is_from_zero { interval.map(from_zero) } else { interval }))
            }
            Kind::Count => Some(self.counted(sample, 1.0)),
            Kind::Rate => (self.days > 0.0).then(|| self.counted(sample, 1.0 / self.days)),
        }
    }

    fn counted(&self, sample: &Sample, factor: f64) -> (f64, Option<Interval>) {
        let spurious = sample.counts.spurious;
        (spurious as f64 * factor, Some(count::interval(spurious, self.confidence).scaled(factor)))
    }

    /// What a figure is more than in the first pipeline.
    fn difference(&self, figure: &Figure, place: usize, at: usize, samples: [&Sample; 2]) -> Option<Difference> {
        match figure.kind {
            Kind::Share(holds, needs) => {
                let pairs = samples.iter().all(|sample| needs.are_met(sample)).then(|| pairs(samples, holds))?;
                let drawn = self.drawn(place, at, pairs.difference(), Ends::Percentile);
                let paired = pairs.interval(self.confidence);
                let interval = drawn.map_or(paired, |drawn| paired.hull(drawn));
                Some(Difference::new(pairs.difference(), Some(interval), Some(pairs.p_value())))
            }
            Kind::Summary { of_all, ends, .. } => {
                let [first, own] = samples.map(|sample| sample.evaluation.as_ref().and_then(of_all));
                let difference = own? - first?;
                Some(Difference::new(difference, self.drawn(place, at, difference, ends), None))
            }
            Kind::Count => Some(self.more(samples, 1.0)),
            Kind::Rate => (self.days > 0.0).then(|| self.more(samples, 1.0 / self.days)),
        }
    }

    /// The bootstrap's interval of a difference: of samples in which both have the figure.
    fn drawn(&self, place: usize, at: usize, difference: f64, ends: Ends) -> Option<Interval> {
        let both = self.scatter.at(0, place).iter().zip(self.scatter.at(at, place));
        let scatter = both.filter_map(|(first, own)| Some((*own)? - (*first)?)).collect();
        interval(difference, scatter, ends, self.confidence)
    }

    fn more(&self, samples: [&Sample; 2], factor: f64) -> Difference {
        let [first, own] = samples.map(|sample| sample.counts.spurious);
        let interval = count::difference(first, own, self.confidence).scaled(factor);
        Difference::new((own as f64 - first as f64) * factor, Some(interval), Some(count::p_value(first, own)))
    }
}

fn pairs([first, own]: [&Sample; 2], holds: fn(&Said) -> bool) -> Pairs {
    Pairs::of(first.said.iter().zip(&own.said).map(|(first, own)| (holds(first), holds(own))))
}
