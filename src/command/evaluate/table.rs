//! An evaluation, a learning curve and a comparison of pipelines as human-readable tables, with their intervals.

use serde_json::json;
use sizeleak_evaluation::statistics::{Interval, percent_within};
use sizeleak_evaluation::{
    ActionScore, Comparison, Confusion, CurvePoint, DrawRemark, Evaluation, FIGURES, FigureDifference, FigureValue,
    LearningCurve, MedianScore, MedianShare, Misattribution, PipelineFigures, Score, Unit,
};
use sizeleak_learning::labels::MatchCounts;
use sizeleak_report::document::Value::{Number, Within};
use sizeleak_report::document::{Figure, NONE, Value};
use sizeleak_report::leak::calibration;
use sizeleak_text::{counted, escaped, percent};

use crate::command::document::{Document, figure, line, name_cell, numbers, paragraph, spaced};

const SHOWN: usize = 8;

pub(super) fn table(evaluation: &Evaluation) -> Document {
    let Evaluation { commands, matches, actions, .. } = evaluation;
    let MatchCounts { matched, missed, ambiguous, spurious } = matches;
    let found = format!(
        "{}: {matched} found, {missed} missed, {ambiguous} ambiguous; {} unlabelled",
        counted(*commands, "labelled command", "labelled commands"),
        counted(*spurious, "command", "commands")
    );
    spaced([
        paragraph(found, 0),
        [scores(evaluation), line("in brackets: intervals of 95 % (Wilson)")].concat(),
        action_scores(actions),
        misattributions(actions, &evaluation.confusion),
        calibration(evaluation).figures.iter().flat_map(figure).collect(),
    ])
}

pub(super) type ScoreRow = (&'static str, fn(&Score) -> Value);

pub(super) const ROWS: [ScoreRow; 18] = [
    ("commands", |score| score.commands.into()),
    ("truth among the candidates", |score| Within(score.precision, score.intervals.precision)),
    ("  not decided, list cut", |score| score.undecided.into()),
    ("truth the first candidate", |score| part(score.top_1, score, score.intervals.top_1)),
    ("truth among the first five", |score| part(score.top_5, score, score.intervals.top_5)),
    ("exactly one candidate", |score| part(score.unique, score, score.intervals.unique)),
    ("  and that the truth", |score| part(score.unique_correct, score, score.intervals.unique_correct)),
    ("no candidate", |score| score.unexplained.into()),
    ("candidates, mean", |score| Number(score.candidates.mean, 1)),
    ("candidates, median", |score| Number(score.candidates.median, usize::from(score.candidates.median.fract() > 0.0))),
    ("candidates, most", |score| score.candidates.max.into()),
    ("truth in the credible set", |score| Within(score.credible_set.coverage, score.intervals.coverage)),
    ("credible set, mean size", |score| Number(score.credible_set.size.mean, 1)),
    ("calibration error", |score| decimals(score.calibration.expected_error, 3)),
    ("  with missed commands as certain and wrong", |score| decimals(score.calibration.expected_error_with_missed, 3)),
    ("  of perfect answers, by chance", |score| decimals(score.calibration.by_chance, 3)),
    ("bits unknown without the size", |score| decimals(score.information.prior_bits, 2)),
    ("bits given away", |score| match score.information.leaked_bits {
        Some(bits) if score.information.is_bound => format!("≥ {bits:.2}").into(),
        bits => decimals(bits, 2),
    }),
];

fn part(part: u64, score: &Score, interval: Interval) -> Value {
    (score.commands > 0).then(|| Within(part as f64 / score.commands as f64, interval)).into()
}

fn decimals(figure: Option<f64>, digits: usize) -> Value {
    figure.map(|figure| Number(figure, digits)).into()
}

fn scores(evaluation: &Evaluation) -> Document {
    let Evaluation { before_pruning, after_pruning, .. } = evaluation;
    let row =
        |(name, value): &ScoreRow| [(*name).into(), before_pruning.as_ref().map(value).into(), value(after_pruning)];
    figure(&Figure::new("scores", " | before pruning | after pruning", ROWS.iter().map(row)))
}

fn action_scores(actions: &[ActionScore]) -> Document {
    let row = |score: &ActionScore| {
        let ActionScore { precision, top_1_recall, top_1_precision, intervals, .. } = score;
        let within = |share: &Option<f64>, interval| Value::from(share.map(|share| Within(share, interval)));
        vec![
            score.action.as_str().into(),
            score.commands.into(),
            within(precision, intervals.precision),
            score.count.into(),
            within(top_1_recall, intervals.top_1_recall),
            within(top_1_precision, intervals.top_1_precision),
        ]
    };
    let columns = [
        "\naction",
        "commands\nwith it",
        "truth among\nthe candidates",
        "\noccurs",
        "found in the\nfirst candidate",
        "right in the\nfirst candidate",
    ];
    figure(&Figure::of("actions", columns.map(str::to_owned).to_vec(), actions.iter().map(row).collect()))
}

fn misattributions(actions: &[ActionScore], confusion: &Confusion) -> Document {
    let action = |at: Option<usize>| at.and_then(|at| actions.get(at));
    let name = |at| action(at).map_or("nothing".into(), |score| name_cell(&score.action));
    let mistaken = |Misattribution { truth, answer, times }: &Misattribution| {
        line(format!("{times:>8.1} × {} for {}", name(*answer), name(*truth)))
    };
    let lines: Document = confusion.most_frequent(SHOWN).iter().flat_map(mistaken).collect();
    if lines.is_empty() { lines } else { [line("most often mistaken, in the first candidate"), lines].concat() }
}

/// The table, after a sentence on what was done, and with what its rows were learned from and why not.
pub(super) fn curve_table(curve: &LearningCurve) -> Document {
    let most = curve.points.iter().map(|point| point.draws).max().unwrap_or(1);
    let done = format!(
        "How good models of fewer labels are. Each row is of models learned from so many of {} labels, which were drawn at \
         random {}; every model answers the same {}. Shares of them, in percent, are the \
         median of the models, in brackets from the lowest to the highest end of the models' intervals of 95 % (Wilson).",
        curve.drawn_from,
        counted(most, "time", "times"),
        counted(curve.tested, "other command", "other commands"),
    );
    let meaning = "models: those that could be learned, of the samples drawn; only kinds: those without a size for any \
                   action, which answer nothing but the kinds of command that were labelled; with warnings: those whose \
                   labels left something uncertain; right sizes: actions with the same size as in the model of all \
                   labels; candidates: their mean number";
    let remarks = curve.points.iter().flat_map(remarks).flat_map(|remark| paragraph(remark, 2));
    let table = numbers(CURVE_HEADER, curve.points.iter().map(curve_row));
    spaced([paragraph(done, 0), table, remarks.collect(), paragraph(meaning, 0)])
}

const CURVE_HEADER: [&str; 8] = [
    "\nlabels",
    "\nmodels",
    "only\nkinds",
    "with\nwarnings",
    "right\nsizes",
    "truth among\ncandidates",
    "truth the\nfirst",
    "\ncandidates",
];

fn curve_row(point: &CurvePoint) -> [String; 8] {
    let figure = |figure: fn(&MedianScore) -> String| point.after_pruning.as_ref().map_or(NONE.to_owned(), figure);
    let of_models = |count: usize| if point.learned == 0 { NONE.to_owned() } else { count.to_string() };
    [
        point.labels.to_string(),
        format!("{} of {}", point.learned, point.draws),
        of_models(point.of_kinds),
        of_models(point.warned),
        point.sizes.map_or(NONE.to_owned(), |sizes| sizes.to_string()),
        figure(|score| median_share(score.precision)),
        figure(|score| median_share(score.top_1)),
        figure(|score| format!("{:.1}", score.candidates)),
    ]
}

fn median_share(MedianShare { median, interval }: MedianShare) -> String {
    percent_within(median, interval).replace(" %", "")
}

/// Why samples gave no model, and what models were learned with: the most frequent of each.
fn remarks(point: &CurvePoint) -> impl Iterator<Item = String> {
    let first = |remarks: &[DrawRemark], word: &str| {
        let DrawRemark { sentence, draws } = remarks.first()?;
        let others = if remarks.len() > 1 { " (the others are in the JSON)" } else { "" };
        let (labels, all, sentence) = (point.labels, point.draws, escaped(sentence));
        let labels = counted(labels, "label", "labels");
        Some(format!("{labels}, {draws} of {}: {word}: {sentence}{others}", counted(all, "sample", "samples")))
    };
    [first(&point.refusals, "no model"), first(&point.warnings, "warning")].into_iter().flatten()
}

/// A row for each pipeline and figure; the keys are the columns.
pub(super) fn csv_rows(pipelines: &[PipelineFigures]) -> Vec<serde_json::Value> {
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

pub(super) fn comparison_table(comparison: &Comparison) -> Document {
    let Comparison { commands, confidence, pipelines, .. } = comparison;
    let names =
        (1..).zip(pipelines).map(|(number, compared)| line(format!("[{number}] {}", escaped(&compared.pipeline))));
    let level = 100.0 * confidence.share();
    let labelled = counted(*commands, "labelled command", "labelled commands");
    let explained = format!("{labelled}; intervals of {level} %; * marks a difference whose interval excludes 0");
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
    for (index, sizeleak_evaluation::Figure { title, unit, .. }) in FIGURES.iter().enumerate() {
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
