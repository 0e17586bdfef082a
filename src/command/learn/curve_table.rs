//! A learning curve as a table for people, with what its columns say.

use sizeleak_evaluation::statistics::percent_within;
use sizeleak_evaluation::{CurvePoint, DrawRemark, LearningCurve, MedianScore, MedianShare};
use sizeleak_report::document::NONE;
use sizeleak_text::escaped;

use crate::command::document::{Document, numbers, paragraph, spaced};

/// The table, after a sentence on what was done, and with what its rows were learned from and why not.
pub(super) fn table(curve: &LearningCurve) -> Document {
    let most = curve.points.iter().map(|point| point.draws).max().unwrap_or(1);
    let done = format!(
        "How good models of fewer labels are. Each row is of models learned from so many of {} labels, which were drawn at \
         random {most} times; every model answers the same {} other commands. Shares of them, in percent, are the \
         median of the models, in brackets from the lowest to the highest end of the models' intervals of 95 % (Wilson).",
        curve.drawn_from, curve.tested,
    );
    let meaning = "models: those that could be learned, of the samples drawn; only kinds: those without a size for any \
                   action, which answer nothing but the kinds of command that were labelled; with warnings: those whose \
                   labels left something uncertain; right sizes: actions with the same size as in the model of all \
                   labels; candidates: their mean number";
    let remarks = curve.points.iter().flat_map(remarks).flat_map(|remark| paragraph(remark, 2));
    let table = numbers(HEADER, curve.points.iter().map(row));
    spaced([paragraph(done, 0), table, remarks.collect(), paragraph(meaning, 0)])
}

const HEADER: [&str; 8] = [
    "\nlabels",
    "\nmodels",
    "only\nkinds",
    "with\nwarnings",
    "right\nsizes",
    "truth among\ncandidates",
    "truth the\nfirst",
    "\ncandidates",
];

fn row(point: &CurvePoint) -> [String; 8] {
    let figure = |figure: fn(&MedianScore) -> String| point.after_pruning.as_ref().map_or(NONE.to_owned(), figure);
    let of_models = |count: usize| if point.learned == 0 { NONE.to_owned() } else { count.to_string() };
    [
        point.labels.to_string(),
        format!("{} of {}", point.learned, point.draws),
        of_models(point.of_kinds),
        of_models(point.warned),
        point.sizes.map_or(NONE.to_owned(), |sizes| sizes.to_string()),
        figure(|score| share(score.precision)),
        figure(|score| share(score.top_1)),
        figure(|score| format!("{:.1}", score.candidates)),
    ]
}

fn share(MedianShare { median, interval }: MedianShare) -> String {
    percent_within(median, interval).replace(" %", "")
}

/// Why samples gave no model, and what models were learned with: the most frequent of each.
fn remarks(point: &CurvePoint) -> impl Iterator<Item = String> {
    let first = |remarks: &[DrawRemark], word: &str| {
        let DrawRemark { sentence, draws } = remarks.first()?;
        let others = if remarks.len() > 1 { " (the others are in the JSON)" } else { "" };
        Some(format!(
            "{} labels, {draws} of {} samples: {word}: {}{others}",
            point.labels,
            point.draws,
            escaped(sentence)
        ))
    };
    [first(&point.refusals, "no model"), first(&point.warnings, "warning")].into_iter().flatten()
}
