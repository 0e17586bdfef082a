//! Several settings over the same captures, side by side.

use std::fmt::{Display, Formatter};

use serde::Serialize;

use super::findings::Evaluation;
use super::score::Score;
use super::table::{NONE, maybe, percent, percent_of};

/// So many settings stand beside each other before the next ones go below.
const ABREAST: usize = 6;

/// What one setting came to.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    /// The setting as it was given.
    pub(super) setting: String,
    pub(super) evaluation: Evaluation,
}

/// Evaluations of the same captures.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) schema: u32,
    /// In the order they were given.
    pub(super) compared: Vec<Compared>,
}

/// A row of the table: its name, and the cell of one evaluation.
struct Row(&'static str, fn(&Evaluation) -> String);

const ROWS: [Row; 15] = [
    Row("labelled commands", |evaluation| evaluation.commands.to_string()),
    Row("  found", |evaluation| evaluation.matched.to_string()),
    Row("  missed or ambiguous", |evaluation| (evaluation.missed + evaluation.ambiguous).to_string()),
    Row("commands without a label", |evaluation| evaluation.spurious.to_string()),
    Row("truth among, before pruning", |evaluation| {
        evaluation.before_pruning.as_ref().map_or_else(|| NONE.to_owned(), |score| percent(score.precision))
    }),
    Row("truth among the candidates", |evaluation| percent(evaluation.after_pruning.precision)),
    Row("truth the first candidate", |evaluation| of_all(&evaluation.after_pruning, |score| score.top_1)),
    Row("truth among the first five", |evaluation| of_all(&evaluation.after_pruning, |score| score.top_5)),
    Row("exactly one candidate", |evaluation| of_all(&evaluation.after_pruning, |score| score.unique)),
    Row("candidates, mean", |evaluation| format!("{:.1}", evaluation.after_pruning.candidates.mean)),
    Row("candidates, median", |evaluation| evaluation.after_pruning.candidates.median.to_string()),
    Row("truth in the credible set", |evaluation| percent(evaluation.after_pruning.credible_set.coverage)),
    Row("credible set, mean size", |evaluation| format!("{:.1}", evaluation.after_pruning.credible_set.size.mean)),
    Row("calibration error", |evaluation| maybe(evaluation.after_pruning.calibration.expected_error, 3)),
    Row("bits given away", |evaluation| maybe(evaluation.after_pruning.information.leaked_bits, 2)),
];

fn of_all(score: &Score, part: fn(&Score) -> u64) -> String {
    percent_of(part(score), score.commands)
}

impl Display for Comparison {
    /// The settings by number, then a table with a column each.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        for (number, compared) in (1..).zip(&self.compared) {
            writeln!(formatter, "[{number}] {}", compared.setting)?;
        }
        for (block, start) in self.compared.chunks(ABREAST).zip((1..).step_by(ABREAST)) {
            write!(formatter, "\n{:<30}", "")?;
            for number in start..start + block.len() {
                write!(formatter, "{:>11}", format!("[{number}]"))?;
            }
            writeln!(formatter)?;
            for Row(name, cell) in &ROWS {
                write!(formatter, "{name:<30}")?;
                for compared in block {
                    write!(formatter, "{:>11}", cell(&compared.evaluation))?;
                }
                writeln!(formatter)?;
            }
        }
        Ok(())
    }
}
