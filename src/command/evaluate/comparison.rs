//! Several pipelines over the same labelled captures, and how certain their differences are.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sizeleak_evaluation::statistics::Interval;
use sizeleak_evaluation::{
    ComparedRun, Comparison, Evaluation, FIGURES, Figure, FigureDifference, FigureValue, JudgedRun, PipelineFigures,
    Unit,
};
use sizeleak_labels::LabelFile;
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;
use sizeleak_report::document::NONE;
use sizeleak_text::{escaped, percent};

use crate::command::document::{Document, line, numbers, paragraph, spaced};
use crate::command::evaluation_input::{COVERED, EvaluationInput, PipelineVariant};
use crate::command::failure::check_damage;
use crate::command::notices::NoticeReport;
use crate::command::report_format::ReportForm;
use crate::command::session::Session;

/// Runs several pipelines over the same captures, and compares the others with the first.
pub(super) fn compare(
    input: &EvaluationInput,
    variants: &[PipelineVariant],
    form: ReportForm<'_>,
    session: &mut Session,
) -> Result<()> {
    let with = |variant: &PipelineVariant| format!("with `{variant}`");
    let mut pipelines = Vec::new();
    for variant in variants {
        let pipeline = input.pipeline(variant, true).with_context(|| with(variant))?;
        session.check(&pipeline)?;
        pipelines.push(pipeline);
    }
    let Some(first) = pipelines.first() else { return Ok(()) };
    let traffic = input.captures.input(first)?;
    let (_, labels) = input.read(&traffic, first)?;
    let (mut runs, mut first_damage) = (Vec::new(), None);
    for (number, (variant, pipeline)) in (1..).zip(variants.iter().zip(&pipelines)) {
        let judged = judge(input, (&traffic, &labels), number, pipeline);
        let (run, evaluation) = judged.with_context(|| with(variant))?;
        first_damage = first_damage.or_else(|| run.damage.clone());
        runs.push(ComparedRun { pipeline: variant.to_string(), run, evaluation });
    }
    let comparison = Comparison::new(&labels, runs);
    if form.is_csv() {
        form.write(&csv_rows(&comparison.pipelines), None, Document::new)?;
    } else {
        form.write(&comparison, None, || table(&comparison))?;
    }
    check_damage(first_damage.as_ref(), COVERED)
}

/// Runs a pipeline. Notices are reported for the first one only: the captures are the same.
fn judge(
    input: &EvaluationInput,
    (traffic, labels): (&PipelineInput, &LabelFile),
    number: usize,
    pipeline: &Pipeline,
) -> Result<(JudgedRun, Option<Evaluation>)> {
    let models = EvaluationInput::models(pipeline)?;
    let evaluator = input.evaluator(&models, labels, traffic)?;
    let mut notices = NoticeReport::default();
    let run = evaluator.judge(pipeline, &mut |notice| {
        if number == 1 {
            notices.add(notice);
        }
    });
    notices.print(&run, |run: &JudgedRun| run.damage.as_ref());
    let run = run?;
    if number == 1 {
        run.check_use()?;
    }
    run.remarks().iter().for_each(|remark| say("note", &format!("[{number}] {remark}")));
    let evaluation = run.has_candidates.then(|| Evaluation::new(&run, evaluator.prior_bits(pipeline)));
    Ok((run, evaluation))
}

/// A row for each pipeline and figure; the keys are the columns.
fn csv_rows(pipelines: &[PipelineFigures]) -> Vec<Value> {
    let ends = |interval: Option<Interval>| interval.map(|it| (it.low, it.high)).unzip();
    let row = |compared: &PipelineFigures, of_pipeline: &FigureValue| {
        let FigureValue { figure, value, interval, difference } = of_pipeline;
        let ((low, high), difference) = (ends(*interval), difference.as_ref());
        let (difference_low, difference_high) = ends(difference.and_then(|it| it.interval));
        json!({
            "pipeline": compared.pipeline,
            "figure": figure,
            "value": value,
            "low": low,
            "high": high,
            "difference": difference.map(|it| it.value),
            "difference_low": difference_low,
            "difference_high": difference_high,
            "p_value": difference.and_then(|it| it.p_value),
        })
    };
    pipelines.iter().flat_map(|compared| compared.figures.iter().map(|figure| row(compared, figure))).collect()
}

fn table(comparison: &Comparison) -> Document {
    let Comparison { commands, confidence, pipelines, .. } = comparison;
    let names =
        (1..).zip(pipelines).map(|(number, compared)| line(format!("[{number}] {}", escaped(&compared.pipeline))));
    let level = 100.0 * confidence.share();
    let explained =
        format!("{commands} labelled commands; intervals of {level} %; * marks a difference whose interval excludes 0");
    spaced([
        names.flatten().collect(),
        paragraph(explained, 0),
        numbers(["", "", "", "interval"], rows(pipelines, 1, value)),
        numbers(["less [1]", "", "", "", "interval", "p"], rows(pipelines, 2, difference)),
    ])
}

/// The rows of all figures for the pipelines from this number on; the first row of each figure has its title.
fn rows<const N: usize>(
    pipelines: &[PipelineFigures],
    from: usize,
    row: fn(Unit, [String; 2], &FigureValue) -> [String; N],
) -> Vec<[String; N]> {
    let mut rows = Vec::new();
    for (index, Figure { title, unit, .. }) in FIGURES.iter().enumerate() {
        for (number, compared) in (1_usize..).zip(pipelines).skip(from - 1) {
            let title = if number == from { *title } else { "" };
            let of_figure = compared.figures.get(index);
            rows.extend(of_figure.map(|figure| row(*unit, [title.to_owned(), format!("[{number}]")], figure)));
        }
    }
    rows
}

fn value(unit: Unit, [title, number]: [String; 2], figure: &FigureValue) -> [String; 4] {
    let value = figure.value.map_or_else(|| NONE.to_owned(), |value| show(unit, value));
    [title, number, value, show_interval(figure.interval, |end| show(unit, end))]
}

fn difference(unit: Unit, [title, number]: [String; 2], figure: &FigureValue) -> [String; 6] {
    let Some(FigureDifference { value, interval, p_value, excludes_zero }) = &figure.difference else {
        return [title, number, NONE.to_owned(), String::new(), String::new(), String::new()];
    };
    let star = if *excludes_zero { "*" } else { "" };
    let interval = show_interval(*interval, |end| show_difference(unit, end));
    let p_value = p_value.map_or_else(String::new, show_p_value);
    [title, number, show_difference(unit, *value), star.to_owned(), interval, p_value]
}

fn show(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Percent => percent(value),
        Unit::Decimals(digits) => format!("{value:.digits$}"),
    }
}

fn show_interval(interval: Option<Interval>, show: impl Fn(f64) -> String) -> String {
    let Some(Interval { low, high }) = interval else { return String::new() };
    let [low, high] = [low, high].map(show);
    format!("{} to {}", low.trim_end_matches(" %"), high.trim_end_matches(" %"))
}

/// A difference with its sign, in percentage points if the figure is in percent; no sign if it rounds to 0.
fn show_difference(unit: Unit, value: f64) -> String {
    let (value, digits) = match unit {
        Unit::Percent => (100.0 * value, 1),
        Unit::Decimals(digits) => (value, digits),
    };
    let shown = format!("{value:+.digits$}");
    let is_zero = shown.chars().all(|character| !matches!(character, '1'..='9'));
    if is_zero { shown.trim_start_matches(['+', '-']).to_owned() } else { shown }
}

fn show_p_value(value: f64) -> String {
    if value < 0.0001 { "<0.0001".to_owned() } else { format!("{value:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign_unless_they_round_to_zero() {
        let shown = [0.0311, -0.0004, 0.0, -0.25].map(|value| show_difference(Unit::Percent, value));
        assert_eq!(shown, ["+3.1", "0.0", "0.0", "-25.0"]);
        let interval = Interval { low: -1.26, high: 0.04 };
        assert_eq!(show_interval(Some(interval), |end| show_difference(Unit::Decimals(1), end)), "-1.3 to 0.0");
        let interval = Interval { low: 0.951, high: 0.9999 };
        assert_eq!(show_interval(Some(interval), |end| show(Unit::Percent, end)), "95.1 to 99.9");
    }

    #[test]
    fn small_p_values_are_never_shown_as_zero() {
        assert_eq!([1.0, 0.04999, 0.0001, 1e-9].map(show_p_value), ["1.0000", "0.0500", "0.0001", "<0.0001"]);
    }
}
