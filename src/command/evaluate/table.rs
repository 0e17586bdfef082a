//! An evaluation as a person reads it: the paper's table beside the one of these captures.

use std::fmt::{Display, Formatter, Result};

use super::calibration::{Bin, Calibration};
use super::confusion::Confusion;
use super::findings::Evaluation;
use super::limits::Limits;
use super::score::{ActionScore, Score};

/// The table of an evaluation.
#[derive(Debug)]
pub(super) struct Table<'a>(pub(super) &'a Evaluation);

/// What stands where there is no figure.
pub(in crate::command) const NONE: &str = "–";

/// So many misattributions are shown.
const SHOWN: usize = 8;

impl Display for Table<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let Evaluation { commands, matched, missed, ambiguous, spurious, .. } = self.0;
        write!(formatter, "{commands} labelled commands: {matched} found, {missed} missed, {ambiguous} ambiguous; ")?;
        writeln!(formatter, "{spurious} commands without a label\n")?;
        self.write_scores(formatter)?;
        writeln!(formatter)?;
        write_actions(formatter, &self.0.actions)?;
        write_confusion(formatter, &self.0.actions, &self.0.confusion)?;
        write_calibration(formatter, &self.0.after_pruning.calibration)?;
        self.0.bayes_limit.as_ref().map_or(Ok(()), |limits| write_limits(formatter, limits))
    }
}

impl Table<'_> {
    fn write_scores(&self, formatter: &mut Formatter<'_>) -> Result {
        let Evaluation { before_pruning, after_pruning, paper, .. } = self.0;
        let of_paper = [paper.precision_before_pruning, paper.precision_after_pruning];
        let ours = [before_pruning.as_ref(), Some(after_pruning)];
        let with_papers =
            |formatter: &mut Formatter<'_>, name: &str, papers: [String; 2], own: &dyn Fn(&Score) -> String| {
                let [before, after] = ours.map(|score| score.map_or_else(|| NONE.to_owned(), own));
                let [paper_before, paper_after] = papers;
                write_row(formatter, name, [&paper_before, &before, &paper_after, &after])
            };
        let row = |formatter: &mut Formatter<'_>, name: &str, own: &dyn Fn(&Score) -> String| {
            with_papers(formatter, name, [NONE, NONE].map(str::to_owned), own)
        };
        writeln!(formatter, "{:<34}{:>22}{:>24}", "", "before pruning", "after pruning")?;
        write_row(formatter, "", ["paper", "here", "paper", "here"])?;
        with_papers(formatter, "commands", [paper.commands.to_string(), paper.commands.to_string()], &|score| {
            score.commands.to_string()
        })?;
        with_papers(formatter, "truth among the candidates", of_paper.map(percent), &|score| percent(score.precision))?;
        row(formatter, "  not decided, list cut", &|score| score.undecided.to_string())?;
        row(formatter, "truth the first candidate", &|score| percent_of(score.top_1, score.commands))?;
        row(formatter, "truth among the first five", &|score| percent_of(score.top_5, score.commands))?;
        row(formatter, "exactly one candidate", &|score| percent_of(score.unique, score.commands))?;
        row(formatter, "  and that the truth", &|score| percent_of(score.unique_correct, score.commands))?;
        row(formatter, "no candidate", &|score| score.unexplained.to_string())?;
        row(formatter, "candidates, mean", &|score| format!("{:.1}", score.candidates.mean))?;
        row(formatter, "candidates, median", &|score| format!("{}", score.candidates.median))?;
        row(formatter, "candidates, most", &|score| score.candidates.max.to_string())?;
        row(formatter, "truth in the credible set", &|score| percent(score.credible_set.coverage))?;
        row(formatter, "credible set, mean size", &|score| format!("{:.1}", score.credible_set.size.mean))?;
        row(formatter, "calibration error", &|score| maybe(score.calibration.expected_error, 3))?;
        row(formatter, "  of perfect answers, by chance", &|score| maybe(score.calibration.by_chance, 3))?;
        row(formatter, "bits unknown without the size", &|score| maybe(score.information.prior_bits, 2))?;
        row(formatter, "bits given away", &|score| {
            let bound = if score.information.is_bound { "≥ " } else { "" };
            score.information.leaked_bits.map_or_else(|| NONE.to_owned(), |bits| format!("{bound}{bits:.2}"))
        })
    }
}

fn write_row(formatter: &mut Formatter<'_>, name: &str, cells: [&str; 4]) -> Result {
    let [paper_before, before, paper_after, after] = cells;
    writeln!(formatter, "{name:<34}{paper_before:>11}{before:>11}{paper_after:>13}{after:>11}")
}

fn write_actions(formatter: &mut Formatter<'_>, actions: &[ActionScore]) -> Result {
    let width = actions.iter().map(|score| score.action.chars().count()).max().unwrap_or(0).max("action".len());
    writeln!(formatter, "{:<width$}{:>12}{:>16}{:>30}", "", "commands", "truth among", "in the first candidate")?;
    write_action(formatter, width, "action", ["with it", "the candidates", "occurs", "found", "right"])?;
    for score in actions {
        let [commands, count] = [score.commands, score.count].map(|count| count.to_string());
        let [among, recall, right] = [score.precision, score.top_1_recall, score.top_1_precision].map(maybe_percent);
        write_action(formatter, width, &score.action, [&commands, &among, &count, &recall, &right])?;
    }
    Ok(())
}

fn write_action(formatter: &mut Formatter<'_>, width: usize, name: &str, cells: [&str; 5]) -> Result {
    let [commands, among, count, recall, right] = cells;
    writeln!(formatter, "{name:<width$}{commands:>12}{among:>16}{count:>10}{recall:>10}{right:>10}")
}

/// The greatest misattributions; the whole matrix is in the JSON.
fn write_confusion(formatter: &mut Formatter<'_>, actions: &[ActionScore], confusion: &Confusion) -> Result {
    let greatest = confusion.greatest(SHOWN);
    if greatest.is_empty() {
        return Ok(());
    }
    writeln!(formatter, "\nmost often mistaken, in the first candidate")?;
    let name = |at: Option<usize>| {
        at.and_then(|at| actions.get(at)).map_or_else(|| "nothing".to_owned(), |score| score.action.clone())
    };
    for (truth, said, times) in greatest {
        writeln!(formatter, "{times:>8.1} × {} for {}", name(said), name(truth))?;
    }
    Ok(())
}

fn write_calibration(formatter: &mut Formatter<'_>, calibration: &Calibration) -> Result {
    writeln!(formatter, "\n{:<16}{:>10}{:>20}{:>10}", "probability", "answers", "mean probability", "right")?;
    for Bin { from, to, answers, probability, right } in &calibration.bins {
        writeln!(formatter, "{from:.1} to {to:<9.1}{answers:>10}{probability:>20.3}{right:>10.3}")?;
    }
    Ok(())
}

fn write_limits(formatter: &mut Formatter<'_>, limits: &Limits) -> Result {
    let Limits { top_1, top_1_with_replies, leaked_bits, leaked_bits_with_replies, .. } = *limits;
    writeln!(formatter, "\n{:<34}{:>12}{:>18}", "possible at all", "by the size", "and the replies")?;
    let row = |formatter: &mut Formatter<'_>, name: &str, cells: [String; 2]| {
        let [size, replies] = cells;
        writeln!(formatter, "{name:<34}{size:>12}{replies:>18}")
    };
    row(formatter, "truth the first candidate", [top_1, top_1_with_replies].map(percent))?;
    let reached = [limits.reached, Some(limits.reached_in_the_end)];
    row(formatter, "  share of it reached", reached.map(|share| maybe(share, 3)))?;
    row(formatter, "bits given away", [leaked_bits, leaked_bits_with_replies].map(|bits| format!("{bits:.2}")))
}

/// A figure, where there is one, with so many decimals.
pub(super) fn maybe(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| NONE.to_owned(), |figure| format!("{figure:.digits$}"))
}

/// A share in percent. What is not all is never shown as 100 %.
pub(in crate::command) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let shown = if share < 1.0 { percent.min(99.9) } else { percent };
    format!("{shown:.1} %")
}

/// A part of a whole in percent.
pub(super) fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 { NONE.to_owned() } else { percent(part as f64 / whole as f64) }
}

fn maybe_percent(share: Option<f64>) -> String {
    share.map_or_else(|| NONE.to_owned(), percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!([1.0, 0.9999, 0.9123, 0.0].map(percent), ["100.0 %", "99.9 %", "91.2 %", "0.0 %"]);
        assert_eq!((percent_of(0, 0), percent_of(1, 3)), (NONE.to_owned(), "33.3 %".to_owned()));
    }
}
