//! Charts of what other commands write: of reports as JSON, and of how long the stages took.

use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use sizeleak_evaluation::{Calibration, CurvePoint, LearningCurve, MedianScore, MedianShare};
use sizeleak_frame::StageSummary;
use sizeleak_report::document::{ChartKind, Figure, Value};
use sizeleak_report::{leak, quantiles};
use sizeleak_text::{counted, percent};

use super::content::PictureKind;

/// An evaluation, as far as it is drawn: what `sizeleak evaluate` writes as JSON.
#[derive(Deserialize)]
struct Evaluated {
    after_pruning: Score,
}

#[derive(Deserialize)]
struct Score {
    commands: u64,
    calibration: Calibration,
}

/// Policies against their cost, as far as they are drawn: what `sizeleak pad` writes as JSON.
#[derive(Deserialize)]
struct Policies {
    prior: String,
    guessing: f64,
    points: Vec<PolicyPoint>,
}

#[derive(Deserialize)]
struct PolicyPoint {
    policy: String,
    added_share: f64,
    named: f64,
}

/// What a report says of a figure.
pub(super) fn read<F: DeserializeOwned>(kind: PictureKind, report: Json, name: &str) -> Result<F> {
    let (wanted, source) = kind.in_words();
    serde_json::from_value(report).map_err(|error| anyhow!("{name}: {error}; a {wanted} is drawn from {source}"))
}

pub(super) fn calibration(report: Json, name: &str) -> Result<Figure> {
    let Evaluated { after_pruning: Score { commands, calibration } } = read(PictureKind::Calibration, report, name)?;
    let share = |share: Option<f64>| share.map_or_else(|| "unknown".to_owned(), percent);
    let [error, chance] = [calibration.expected_error, calibration.by_chance].map(share);
    let commands = counted(commands, "command", "commands");
    let about = format!("{commands}; mean error {error}, {chance} is expected by chance");
    Ok(leak::reliability(&calibration).titled("Are stated probabilities right?", about))
}

pub(super) fn learning_curve(report: Json, name: &str) -> Result<Figure> {
    let LearningCurve { drawn_from, tested, points, .. } = read(PictureKind::Curve, report, name)?;
    let row = |CurvePoint { labels, after_pruning: score, .. }: &CurvePoint| {
        let share = |share: fn(&MedianScore) -> MedianShare| {
            let within = |MedianShare { median, interval }| Value::Within(median, interval);
            Value::from(score.as_ref().map(|score| within(share(score))))
        };
        let count = Value::Count(*labels as f64);
        [count, share(|score| score.precision), share(|score| score.top_5), share(|score| score.top_1)]
    };
    let columns = "labels | truth among the candidates | among the first five | the first candidate";
    let tested = counted(tested, "other command", "other commands");
    let about = format!(
        "models of so many of {drawn_from} labels, drawn at random, answer {tested}; bars are intervals of 95 %"
    );
    let figure = Figure::new("curve", columns, points.iter().map(row));
    Ok(figure.titled("How many labels are enough?", about).drawn(ChartKind::Growth, &[0, 1, 2, 3]))
}

pub(super) fn padding(report: Json, name: &str) -> Result<Figure> {
    let Policies { prior, guessing, points } = read(PictureKind::Padding, report, name)?;
    let row = |it: &PolicyPoint| [it.policy.as_str().into(), Value::Share(it.added_share), Value::Share(it.named)];
    let about = format!("commands as probable as {prior}");
    let figure = Figure::new("padding", "policy | more | named", points.iter().map(row));
    let figure = figure.titled("What padding hides, and what it costs", about);
    Ok(figure.drawn(ChartKind::Points, &[0, 1, 2]).beside_guessing(guessing))
}

/// How long each stage works on a frame, and how long a frame waits for it, as far as summaries say; no rows if none does.
pub(super) fn latency(stages: &[StageSummary]) -> Figure {
    let row = |stage: &StageSummary| {
        let times = [&stage.latency, &stage.queue].map(|histogram| quantiles(histogram));
        let is_known = times.iter().any(Option::is_some);
        let [[work, most_work, longest_work], [wait, most_wait, longest_wait]] =
            times.map(|times| times.unwrap_or([const { Value::Unknown }; 3]));
        is_known.then(|| [stage.stage.as_str().into(), work, most_work, longest_work, wait, most_wait, longest_wait])
    };
    let rows: Vec<_> = stages.iter().filter_map(row).collect();
    let about = format!("{} stages; times of single frames, in microseconds", rows.len());
    let figure = Figure::new("latency", "stage | work | 99 % | longest | wait | 99 % | longest", rows);
    figure.titled("How long the stages take for a frame", about).drawn(ChartKind::Ranges, &[0, 1, 2, 3, 4, 5, 6])
}
