//! Computes figures, their intervals and their differences.

use super::figure::{
    CommandOutcome, FIGURES, Figure, FigureDifference, FigureKind, FigureValue, Requirement, RunOutcomes, judged,
};
use crate::calibration::{BINS, Calibration};
use crate::statistics::bootstrap::{BlockBootstrap, IntervalMethod, interval, interval_of_absolute_sum};
use crate::statistics::share::{PairedJudgements, wilson};
use crate::statistics::{Confidence, Interval, poisson, sign_test};

pub(super) const CONFIDENCE: Confidence = Confidence::USUAL;

/// The figures of each pipeline in every sample of the bootstrap.
pub(super) struct BootstrapFigures {
    figures: Vec<Vec<Vec<Option<f64>>>>,
    /// What the bins of the reliability table add to the calibration error.
    deviations: Vec<Vec<[f64; BINS]>>,
}

impl BootstrapFigures {
    /// Draws samples, the same for all pipelines; `order` are the labels' rows in order of time.
    pub(super) fn draw(runs: &[RunOutcomes<'_>], order: &[usize], mut blocks: BlockBootstrap, samples: u32) -> Self {
        let mut figures = vec![vec![Vec::new(); FIGURES.len()]; runs.len()];
        let mut deviations = vec![Vec::new(); runs.len()];
        for _ in 0..samples {
            let drawn = blocks.draw();
            for ((run, figures), deviations) in runs.iter().zip(&mut figures).zip(&mut deviations) {
                let outcomes = drawn.iter().filter_map(|at| run.outcomes.get(*order.get(*at)?));
                let outcomes: Vec<CommandOutcome<'_>> = outcomes.copied().collect();
                for (figure, values) in FIGURES.iter().zip(figures) {
                    values.push(sampled(figure, run, &outcomes));
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
fn sampled(figure: &Figure, run: &RunOutcomes<'_>, outcomes: &[CommandOutcome<'_>]) -> Option<f64> {
    match figure.kind {
        FigureKind::Share(holds, requirement) => requirement.is_met(run).then(|| share(outcomes, holds))?,
        FigureKind::Summary(over) => Requirement::Candidates.is_met(run).then(|| over(outcomes, run.prior_bits))?,
        FigureKind::CalibrationError => {
            Requirement::Candidates.is_met(run).then(|| Calibration::over(judged(outcomes)).expected_error)?
        }
        FigureKind::SpuriousCount | FigureKind::SpuriousRate => None,
    }
}

fn share(outcomes: &[CommandOutcome<'_>], holds: fn(&CommandOutcome<'_>) -> bool) -> Option<f64> {
    (!outcomes.is_empty()).then(|| count(outcomes, holds) as f64 / outcomes.len() as f64)
}

fn count(outcomes: &[CommandOutcome<'_>], holds: fn(&CommandOutcome<'_>) -> bool) -> u64 {
    outcomes.iter().filter(|outcome| holds(outcome)).count() as u64
}

pub(super) struct Calculation<'a> {
    pub(super) runs: &'a [RunOutcomes<'a>],
    pub(super) bootstrap: &'a BootstrapFigures,
    pub(super) days: f64,
}

impl Calculation<'_> {
    pub(super) fn figures(&self, at: usize) -> Vec<FigureValue> {
        let (Some(first), Some(run)) = (self.runs.first(), self.runs.get(at)) else { return Vec::new() };
        let figures = FIGURES.iter().enumerate();
        figures
            .map(|(index, figure)| {
                let (value, interval) = self.value(figure, index, at, run).unzip();
                let difference = if at == 0 { None } else { self.difference(figure, index, at, [first, run]) };
                FigureValue { figure: figure.key, value, interval: interval.flatten(), difference }
            })
            .collect()
    }

    fn value(
        &self,
        figure: &Figure,
        index: usize,
        at: usize,
        run: &RunOutcomes<'_>,
    ) -> Option<(f64, Option<Interval>)> {
        match figure.kind {
            FigureKind::Share(holds, requirement) => {
                let value = requirement.is_met(run).then(|| share(&run.outcomes, holds))??;
                let interval = wilson(count(&run.outcomes, holds), run.outcomes.len() as u64, CONFIDENCE);
                Some((value, Some(interval)))
            }
            FigureKind::Summary(_) => {
                let value = sampled(figure, run, &run.outcomes)?;
                let sampled = self.bootstrap.of(at, index).iter().copied().flatten().collect();
                Some((value, interval(value, sampled, IntervalMethod::Percentile, CONFIDENCE)))
            }
            FigureKind::CalibrationError => {
                let value = sampled(figure, run, &run.outcomes)?;
                let deviations = Calibration::over(judged(&run.outcomes)).deviations();
                let samples = self.bootstrap.deviations.get(at).map_or(&[][..], Vec::as_slice);
                Some((value, interval_of_absolute_sum(&deviations, samples, CONFIDENCE)))
            }
            FigureKind::SpuriousCount => Some(spurious(run, 1.0)),
            FigureKind::SpuriousRate => (self.days > 0.0).then(|| spurious(run, 1.0 / self.days)),
        }
    }

    fn difference(
        &self,
        figure: &Figure,
        index: usize,
        at: usize,
        runs: [&RunOutcomes<'_>; 2],
    ) -> Option<FigureDifference> {
        match figure.kind {
            FigureKind::Share(holds, requirement) => {
                let pairs = runs.iter().all(|run| requirement.is_met(run)).then(|| pairs(runs, holds))?;
                let bootstrap = self.bootstrap_interval(index, at, pairs.difference(), IntervalMethod::Percentile);
                let paired = pairs.interval(CONFIDENCE);
                let interval = bootstrap.map_or(paired, |bootstrap| paired.hull(bootstrap));
                Some(FigureDifference::new(pairs.difference(), Some(interval), Some(pairs.p_value())))
            }
            FigureKind::Summary(_) => self.summary_difference(figure, index, at, runs, IntervalMethod::Percentile),
            FigureKind::CalibrationError => self.summary_difference(figure, index, at, runs, IntervalMethod::Mirrored),
            FigureKind::SpuriousCount => Some(spurious_difference(runs, 1.0)),
            FigureKind::SpuriousRate => (self.days > 0.0).then(|| spurious_difference(runs, 1.0 / self.days)),
        }
    }

    fn summary_difference(
        &self,
        figure: &Figure,
        index: usize,
        at: usize,
        runs: [&RunOutcomes<'_>; 2],
        method: IntervalMethod,
    ) -> Option<FigureDifference> {
        let [first, own] = runs.map(|run| sampled(figure, run, &run.outcomes));
        let difference = own? - first?;
        Some(FigureDifference::new(difference, self.bootstrap_interval(index, at, difference, method), None))
    }

    /// The bootstrap's interval of a difference, over samples in which both pipelines have the figure.
    fn bootstrap_interval(&self, index: usize, at: usize, difference: f64, method: IntervalMethod) -> Option<Interval> {
        let both = self.bootstrap.of(0, index).iter().zip(self.bootstrap.of(at, index));
        let sampled = both.filter_map(|(first, own)| Some((*own)? - (*first)?)).collect();
        interval(difference, sampled, method, CONFIDENCE)
    }
}

fn spurious(run: &RunOutcomes<'_>, factor: f64) -> (f64, Option<Interval>) {
    let interval = poisson::interval(run.matches.spurious, CONFIDENCE).scaled(factor);
    (run.matches.spurious as f64 * factor, Some(interval))
}

fn spurious_difference(runs: [&RunOutcomes<'_>; 2], factor: f64) -> FigureDifference {
    let [first, own] = runs.map(|run| run.matches.spurious);
    let interval = poisson::difference(first, own, CONFIDENCE).scaled(factor);
    FigureDifference::new((own as f64 - first as f64) * factor, Some(interval), Some(sign_test(first, own)))
}

fn pairs([first, own]: [&RunOutcomes<'_>; 2], holds: fn(&CommandOutcome<'_>) -> bool) -> PairedJudgements {
    PairedJudgements::count(first.outcomes.iter().zip(&own.outcomes).map(|(first, own)| (holds(first), holds(own))))
}
