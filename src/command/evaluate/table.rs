//! An evaluation as human-readable tables, with the intervals of shares.

use sizeleak_evaluation::{ActionScore, CalibrationBin, Confusion, Evaluation, LimitComparison, Misattribution, Score};
use sizeleak_labels::MatchCounts;

use sizeleak_evaluation::statistics::Interval;
use sizeleak_text::escaped;

use crate::command::document::{Document, blank, line, name_cell, numbers, paragraph};
use crate::command::figures::{
    NONE, optional_decimals, optional_percent_within, percent, percent_of_within, percent_within,
};

/// How many misattributions are shown.
const SHOWN: usize = 8;

/// What an evaluation says, as a paragraph.
pub(super) fn conclusion(evaluation: &Evaluation) -> Document {
    [paragraph(escaped(&evaluation.conclusion.sentence), 0), blank()].concat()
}

/// The tables of an evaluation.
pub(super) fn table(evaluation: &Evaluation) -> Document {
    let Evaluation { commands, matches, actions, after_pruning, .. } = evaluation;
    let MatchCounts { matched, missed, ambiguous, spurious } = matches;
    [
        paragraph(
            format!(
                "{commands} labelled commands: {matched} found, {missed} missed, {ambiguous} ambiguous; {spurious} commands \
                 unlabelled"
            ),
            0,
        ),
        blank(),
        scores(evaluation),
        line("in brackets: intervals of 95 % (Wilson)"),
        blank(),
        action_scores(actions),
        misattributions(actions, &evaluation.confusion),
        blank(),
        calibration(&after_pruning.calibration.bins),
        evaluation.bayes_limit.as_ref().map_or_else(Document::new, limits),
    ]
    .concat()
}

/// A figure of a score: its name, and how it is shown.
pub(super) struct ScoreRow(pub(super) &'static str, pub(super) fn(&Score) -> String);

/// The figures of a score.
pub(super) const ROWS: [ScoreRow; 16] = [
    ScoreRow("  not decided, list cut", |score| score.undecided.to_string()),
    ScoreRow("truth the first candidate", |score| {
        percent_of_within(score.top_1, score.commands, score.intervals.top_1)
    }),
    ScoreRow("truth among the first five", |score| {
        percent_of_within(score.top_5, score.commands, score.intervals.top_5)
    }),
    ScoreRow("exactly one candidate", |score| percent_of_within(score.unique, score.commands, score.intervals.unique)),
    ScoreRow("  and that the truth", |score| {
        percent_of_within(score.unique_correct, score.commands, score.intervals.unique_correct)
    }),
    ScoreRow("no candidate", |score| score.unexplained.to_string()),
    ScoreRow("candidates, mean", |score| format!("{:.1}", score.candidates.mean)),
    ScoreRow("candidates, median", |score| score.candidates.median.to_string()),
    ScoreRow("candidates, most", |score| score.candidates.max.to_string()),
    ScoreRow("truth in the credible set", |score| {
        percent_within(score.credible_set.coverage, score.intervals.coverage)
    }),
    ScoreRow("credible set, mean size", |score| format!("{:.1}", score.credible_set.size.mean)),
    ScoreRow("calibration error", |score| optional_decimals(score.calibration.expected_error, 3)),
    ScoreRow("  with missed commands as certain and wrong", |score| {
        optional_decimals(score.calibration.expected_error_with_missed, 3)
    }),
    ScoreRow("  of perfect answers, by chance", |score| optional_decimals(score.calibration.by_chance, 3)),
    ScoreRow("bits unknown without the size", |score| optional_decimals(score.information.prior_bits, 2)),
    ScoreRow("bits given away", |score| {
        let bound = if score.information.is_bound { "≥ " } else { "" };
        score.information.leaked_bits.map_or_else(|| NONE.to_owned(), |bits| format!("{bound}{bits:.2}"))
    }),
];

fn scores(evaluation: &Evaluation) -> Document {
    let Evaluation { before_pruning, after_pruning, .. } = evaluation;
    let row = |name: &str, figure: &dyn Fn(&Score) -> String| {
        let before = before_pruning.as_ref().map_or_else(|| NONE.to_owned(), figure);
        [name.to_owned(), before, figure(after_pruning)]
    };
    let commands = row("commands", &|score| score.commands.to_string());
    let precision =
        row("truth among the candidates", &|score| percent_within(score.precision, score.intervals.precision));
    let others = ROWS.iter().map(|ScoreRow(name, figure)| row(name, figure));
    let rows = [commands, precision].into_iter().chain(others);
    numbers(["", "before pruning", "after pruning"], rows)
}

fn action_scores(actions: &[ActionScore]) -> Document {
    let row = |score: &ActionScore| {
        let between = &score.intervals;
        let among = optional_percent_within(score.precision, between.precision);
        let recall = optional_percent_within(score.top_1_recall, between.top_1_recall);
        let right = optional_percent_within(score.top_1_precision, between.top_1_precision);
        [score.action.clone(), score.commands.to_string(), among, score.count.to_string(), recall, right]
    };
    let header = [
        "\naction",
        "commands\nwith it",
        "truth among\nthe candidates",
        "\noccurs",
        "found in the\nfirst candidate",
        "right in the\nfirst candidate",
    ];
    numbers(header, actions.iter().map(row))
}

/// The most frequent misattributions; the whole matrix is in the JSON.
fn misattributions(actions: &[ActionScore], confusion: &Confusion) -> Document {
    let name = |at: Option<usize>| {
        at.and_then(|at| actions.get(at)).map_or("nothing".into(), |score| name_cell(&score.action))
    };
    let mistaken = |Misattribution { truth, answer, times }: &Misattribution| {
        line(format!("{times:>8.1} × {} for {}", name(*answer), name(*truth)))
    };
    let lines: Document = confusion.most_frequent(SHOWN).iter().flat_map(mistaken).collect();
    if lines.is_empty() {
        lines
    } else {
        [blank(), line("most often mistaken, in the first candidate"), lines].concat()
    }
}

fn calibration(bins: &[CalibrationBin]) -> Document {
    let row = |CalibrationBin { from, to, answers, probability, right, interval }: &CalibrationBin| {
        let right = decimals_within(*right, *interval);
        [format!("{from:.1} to {to:.1}"), answers.to_string(), format!("{probability:.3}"), right]
    };
    numbers(["probability", "answers", "mean probability", "right"], bins.iter().map(row))
}

/// A share with its interval.
fn decimals_within(share: f64, Interval { low, high }: Interval) -> String {
    format!("{share:.3} ({low:.2}–{high:.2})")
}

fn limits(limits: &LimitComparison) -> Document {
    let LimitComparison { top_1, top_1_with_replies, leaked_bits, leaked_bits_with_replies, .. } = *limits;
    let row = |name: &str, [size, replies]: [String; 2]| [name.to_owned(), size, replies];
    let reached = [
        limits.reached.zip(limits.reached_interval),
        Some((limits.reached_in_the_end, limits.reached_in_the_end_interval)),
    ];
    let reached = reached
        .map(|reached| reached.map_or_else(|| NONE.to_owned(), |(share, interval)| decimals_within(share, interval)));
    let rows = [
        row("truth the first candidate", [top_1, top_1_with_replies].map(percent)),
        row("  share of it reached", reached),
        row("bits given away", [leaked_bits, leaked_bits_with_replies].map(|bits| format!("{bits:.2}"))),
    ];
    [blank(), numbers(["best possible", "by the size", "and the replies"], rows)].concat()
}
