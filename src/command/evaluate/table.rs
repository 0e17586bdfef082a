//! An evaluation as human-readable tables: the paper's figures next to those of these captures.

use sizeleak_evaluation::{
    ActionScore, CalibrationBin, Confusion, Evaluation, LimitComparison, MatchCounts, Misattribution, Score,
};

use crate::command::text_table::{NONE, name_cell, numbers, optional_decimals, optional_percent, percent, percent_of};

/// How many misattributions are shown.
const SHOWN: usize = 8;

/// The tables of an evaluation.
pub(super) fn table(evaluation: &Evaluation) -> String {
    let Evaluation { commands, matches, actions, after_pruning, .. } = evaluation;
    let MatchCounts { matched, missed, ambiguous, spurious } = matches;
    [
        format!("{commands} labelled commands: {matched} found, {missed} missed, {ambiguous} ambiguous; "),
        format!("{spurious} commands without a label\n\n"),
        scores(evaluation),
        "\n".to_owned(),
        action_scores(actions),
        misattributions(actions, &evaluation.confusion),
        "\n".to_owned(),
        calibration(&after_pruning.calibration.bins),
        evaluation.bayes_limit.as_ref().map_or_else(String::new, limits),
    ]
    .concat()
}

/// A figure of a score: its name, and how it is shown.
struct ScoreRow(&'static str, fn(&Score) -> String);

const ROWS: [ScoreRow; 15] = [
    ScoreRow("  not decided, list cut", |score| score.undecided.to_string()),
    ScoreRow("truth the first candidate", |score| percent_of(score.top_1, score.commands)),
    ScoreRow("truth among the first five", |score| percent_of(score.top_5, score.commands)),
    ScoreRow("exactly one candidate", |score| percent_of(score.unique, score.commands)),
    ScoreRow("  and that the truth", |score| percent_of(score.unique_correct, score.commands)),
    ScoreRow("no candidate", |score| score.unexplained.to_string()),
    ScoreRow("candidates, mean", |score| format!("{:.1}", score.candidates.mean)),
    ScoreRow("candidates, median", |score| score.candidates.median.to_string()),
    ScoreRow("candidates, most", |score| score.candidates.max.to_string()),
    ScoreRow("truth in the credible set", |score| percent(score.credible_set.coverage)),
    ScoreRow("credible set, mean size", |score| format!("{:.1}", score.credible_set.size.mean)),
    ScoreRow("calibration error", |score| optional_decimals(score.calibration.expected_error, 3)),
    ScoreRow("  of perfect answers, by chance", |score| optional_decimals(score.calibration.by_chance, 3)),
    ScoreRow("bits unknown without the size", |score| optional_decimals(score.information.prior_bits, 2)),
    ScoreRow("bits given away", |score| {
        let bound = if score.information.is_bound { "≥ " } else { "" };
        score.information.leaked_bits.map_or_else(|| NONE.to_owned(), |bits| format!("{bound}{bits:.2}"))
    }),
];

fn scores(evaluation: &Evaluation) -> String {
    let Evaluation { before_pruning, after_pruning, paper, .. } = evaluation;
    let row = |name: &str, papers: [String; 2], figure: &dyn Fn(&Score) -> String| {
        let [paper_before, paper_after] = papers;
        let before = before_pruning.as_ref().map_or_else(|| NONE.to_owned(), figure);
        [name.to_owned(), paper_before, before, paper_after, figure(after_pruning)]
    };
    let commands = row("commands", [(); 2].map(|()| paper.commands.to_string()), &|score| score.commands.to_string());
    let precisions = [paper.precision_before_pruning, paper.precision_after_pruning].map(percent);
    let precision = row("truth among the candidates", precisions, &|score| percent(score.precision));
    let others = ROWS.iter().map(|ScoreRow(name, figure)| row(name, [NONE, NONE].map(str::to_owned), figure));
    let header = ["", "before pruning:\npaper", "\nhere", "after pruning:\npaper", "\nhere"];
    numbers(header, [commands, precision].into_iter().chain(others))
}

fn action_scores(actions: &[ActionScore]) -> String {
    let row = |score: &ActionScore| {
        let [among, recall, right] = [score.precision, score.top_1_recall, score.top_1_precision].map(optional_percent);
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
fn misattributions(actions: &[ActionScore], confusion: &Confusion) -> String {
    let name = |at: Option<usize>| {
        at.and_then(|at| actions.get(at)).map_or("nothing".into(), |score| name_cell(&score.action))
    };
    let line = |Misattribution { truth, answer, times }: &Misattribution| {
        format!("{times:>8.1} × {} for {}\n", name(*answer), name(*truth))
    };
    let lines: String = confusion.most_frequent(SHOWN).iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\nmost often mistaken, in the first candidate\n{lines}") }
}

fn calibration(bins: &[CalibrationBin]) -> String {
    let row = |CalibrationBin { from, to, answers, probability, right }: &CalibrationBin| {
        [format!("{from:.1} to {to:.1}"), answers.to_string(), format!("{probability:.3}"), format!("{right:.3}")]
    };
    numbers(["probability", "answers", "mean probability", "right"], bins.iter().map(row))
}

fn limits(limits: &LimitComparison) -> String {
    let LimitComparison { top_1, top_1_with_replies, leaked_bits, leaked_bits_with_replies, .. } = *limits;
    let row = |name: &str, [size, replies]: [String; 2]| [name.to_owned(), size, replies];
    let reached = [limits.reached, Some(limits.reached_in_the_end)];
    let rows = [
        row("truth the first candidate", [top_1, top_1_with_replies].map(percent)),
        row("  share of it reached", reached.map(|share| optional_decimals(share, 3))),
        row("bits given away", [leaked_bits, leaked_bits_with_replies].map(|bits| format!("{bits:.2}"))),
    ];
    format!("\n{}", numbers(["best possible", "by the size", "and the replies"], rows))
}
